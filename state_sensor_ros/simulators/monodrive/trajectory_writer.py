# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Trajectory files that are written: of frames, of packets as received, of a damaged file.

Packets keep the bytes received; of a damaged file its whole frames are copied byte for byte.

Actors are removed from a packet by their tags and names:

Each actor is cut out of the payload as text, and of this text only these are decoded. Key path
of an actor's tags (doc/protocol/frames.md)::

    v2   frame.objects[i].tags, frame.vehicles[i].state.tags
    v1   frame[i].tags
    v0   <name>.tags; a member without "position", such as game_time, is not an actor

Example with ``undesired`` cone; the ``|`` divide the texts that are cut::

    {"frame":[|{"name":"a","tags":["car"]}|,|{"name":"b","tags":["cone"]}|],"time":|7|}
               tags: car, kept               tags: cone, removed            kept
    {"frame":[{"name":"a","tags":["car"]}],"time":7}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from state_sensor_ros.simulators import (
    counted,
    DecodeError,
    Frame,
    FrameWriter,
    Needs,
    Packet,
    TrajectoryFormatError,
    TruncatedError,
    Units,
    WriteOptions,
)
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.json_values import is_strict_json, NOT_TYPED, parse_payload
from state_sensor_ros.simulators.monodrive.decoder import (
    conversion_losses,
    Decoder,
    format_payload,
)
from state_sensor_ros.simulators.monodrive.single_actors import STRING_KEY
from state_sensor_ros.simulators.monodrive.trajectory import (
    complete_trajectory,
    ELEMENTS,
    MAX_ELEMENT_BYTES,
    read_payloads,
    TrajectoryWriter,
)
from state_sensor_ros.simulators.monodrive.wire import GENERATIONS, MEMBERS, V2
from state_sensor_ros.simulators.recordings import (
    copy_beginning,
    FrameSelector,
    TagRule,
    WholeFile,
)


class _Tagged(msgspec.Struct):
    """The tags and the name of the state of a v2 vehicle."""

    tags: tuple[str, ...] = ()
    name: str = ''


class _Actor(msgspec.Struct):
    """The tags of an actor of any generation; with ``position`` a member of v0 is an actor."""

    tags: tuple[str, ...] = ()
    name: str = ''
    state: _Tagged | None = None
    position: msgspec.Raw = msgspec.Raw()


_ACTOR = msgspec.json.Decoder(_Actor)
_TEXT = msgspec.json.Decoder(str)


class TagFilter:
    """Keep the actors with a ``desired`` tag, any if empty, and no ``undesired`` one."""

    def __init__(self, desired: tuple[str, ...], undesired: tuple[str, ...],
                 names: tuple[str, ...] = ()) -> None:
        self._rule = TagRule(desired, undesired)
        self._names = frozenset(names)

    def frames(self, payload: bytes) -> list[bytes]:
        """Split a payload into its frames, without the actors that do not pass."""
        try:
            return self._frames(payload)
        except NOT_TYPED:
            # With NaN and the like: rewritten as JSON, or refused with the place of the fault.
            text = msgspec.json.encode(parse_payload(payload))
        try:
            return self._frames(text)
        except msgspec.DecodeError as exc:
            raise DecodeError('payload', str(exc), 'a frame') from exc

    def _frames(self, payload: bytes) -> list[bytes]:
        if payload.lstrip()[:1] == b'[':
            return [self._frame(bytes(element)) for element in ELEMENTS.decode(payload)]
        return [self._frame(payload)]

    def _frame(self, payload: bytes) -> bytes:
        if self._rule.passes_all and not self._names:
            return payload
        members = MEMBERS.decode(payload)
        if 'frame' in members:
            kept = members | {'frame': self._actors(members['frame'])}
        elif STRING_KEY in members:
            return self._frame(_TEXT.decode(members[STRING_KEY]).encode())
        else:
            kept = {key: value for key, value in members.items()
                    if self._passes_or_is_none(value, key)}
        return payload if kept == members else msgspec.json.encode(kept)

    def _actors(self, frame: msgspec.Raw) -> msgspec.Raw:
        """Filter the member ``frame``: an array of actors, or an object of such arrays."""
        if bytes(frame)[:1] != b'{':
            return self._group(frame)
        groups = MEMBERS.decode(frame)
        kept = {key: self._group(group) for key, group in groups.items()}
        return frame if kept == groups else msgspec.Raw(msgspec.json.encode(kept))

    def _group(self, group: msgspec.Raw) -> msgspec.Raw:
        """Filter an array of actors; another value stays unchanged."""
        if bytes(group)[:1] != b'[':
            return group
        actors = ELEMENTS.decode(group)
        kept = [actor for actor in actors if self._passes(actor)]
        return group if len(kept) == len(actors) else msgspec.Raw(msgspec.json.encode(kept))

    def _passes(self, text: msgspec.Raw, name: str = '') -> bool:
        """Return whether an actor stays; one of v0 has its ``name`` outside of its text."""
        try:
            actor = _ACTOR.decode(text)
        except msgspec.DecodeError:
            # An actor whose tags cannot be read counts as one without tags.
            return not self._names and self._rule.passes(())
        state = actor if actor.state is None else actor.state
        return self._rule.passes(state.tags) and (
            not self._names or (name or state.name) in self._names)

    def _passes_or_is_none(self, text: msgspec.Raw, name: str) -> bool:
        """Return whether a member of a v0 frame stays; ``game_time`` and the like do."""
        try:
            is_actor = bool(bytes(_ACTOR.decode(text).position))
        except msgspec.DecodeError:
            is_actor = bytes(text)[:1] == b'{'
        return not is_actor or self._passes(text, name)


class TrajectoryOutput(WholeFile, FrameWriter):
    """Frames as the elements of a JSON array."""

    # path: path of the file, ``-`` for standard output.
    # generation: to write, None for that of each frame; v2 of another simulator.
    # units: units of box extents and of ``s``.

    is_timed = False

    def __init__(self, path: str, *, force: bool, generation: str | None = None,
                 units: Units = DEFAULT_UNITS) -> None:
        super().__init__(path, force=force)
        self.n_frames = 0
        # What the generation cannot hold, in the order of its discovery.
        self._lost: dict[str, None] = {}
        self._generation, self._units = generation, units
        self._writer: TrajectoryWriter | None = None

    @property
    def notes(self) -> list[str]:
        """Return a line about what the generation does not carry."""
        return [f'{self._generation} does not carry: {", ".join(self._lost)}'] if self._lost \
            else []

    def write(self, frame: Frame) -> None:
        """Append a frame; ``frame``: in SI units and REP-103 axes."""
        generation = self._generation
        if generation is None and frame.generation not in GENERATIONS:
            generation = self._generation = V2
        if generation is not None and generation != frame.generation:
            self._lost.update(dict.fromkeys(conversion_losses(frame, generation)))
        if self._writer is None:
            # A pipe is opened with its first frame.
            self._writer = TrajectoryWriter(self.handle)
        self._writer.write(format_payload(frame, generation, self._units))
        self.n_frames += 1

    def complete(self) -> None:
        """Finish the array, and wait until everything has reached the disk."""
        if self._writer is not None:
            self._writer.close()
        super().complete()


def new_trajectory(path: str, options: WriteOptions) -> TrajectoryOutput:
    """Begin a trajectory; without the option ``generation``, frames keep theirs."""
    return TrajectoryOutput(path, force=options.force, units=options.units,
                            generation=options.values.get('generation'))


class TrajectoryPayloads:
    """Payloads to a trajectory: a ``PayloadWriter``."""

    def __init__(self, file: BinaryIO, selector: FrameSelector) -> None:
        selection = selector.selection
        self._selector = selector
        self._filter = TagFilter(selection.desired_tags, selection.undesired_tags,
                                 selection.actors)
        self._decoder = Decoder(needs=Needs())
        self._writer = TrajectoryWriter(file)

    def write(self, packet: Packet) -> Iterator[tuple[Frame, int]]:
        """Write the payload, without the actors that are not selected."""
        fault: DecodeError | None = None
        for payload in self._filter.frames(bytes(packet.payload)):
            try:
                decoded = self._decoder.decode(payload, game_time=packet.game_time)
            except DecodeError as error:
                fault = error
                continue
            frame = decoded[0].frame
            self._selector.add_selected(frame)
            if not self._selector.keeps(frame.game_time):
                continue
            self._writer.write(payload)
            yield frame, len(payload)
        if fault is not None:
            raise fault

    def close(self) -> None:
        """End the array."""
        self._writer.close()

    def complete(self, file: BinaryIO) -> int:
        """End the array after its last whole frame."""
        return complete_trajectory(file)


_BLOCK_BYTES = 1024 * 1024


def copy_whole_frames(source: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """
    Copy a trajectory up to its last whole frame, and end the array there.

    Frames after a damaged place are copied as well if each frame occupies one line.

    :returns: the number of frames copied; a description of the loss, ``''`` for none.
    """
    n_frames = end = 0
    have_lines = True
    try:
        for payload in read_payloads(source, name):
            n_frames += 1
            end = payload.offset + len(payload.data)
            have_lines = have_lines and b'\n' not in payload.data
    except TrajectoryFormatError as caught:
        error = caught
    else:
        copy_beginning(source, target, source.seek(0, 2))
        return n_frames, ''
    if not n_frames or not _is_array(source):
        raise error
    copy_beginning(source, target, end)
    if isinstance(error, TruncatedError):
        lost = error.lost
    else:
        n_lost = source.seek(0, 2) - end
        source.seek(end)
        for frame in _frames_on_lines(source) if have_lines else ():
            target.write(b',\n' + frame)
            n_frames += 1
            n_lost -= len(frame)
        place = error.where.removeprefix(f'{name}: ')
        lost = f'{counted(n_lost, "byte")} at {place} or after it, which has {error.found}'
    target.write(b'\n]\n')
    return n_frames, lost


def _is_array(source: BinaryIO) -> bool:
    source.seek(0)
    return source.read(_BLOCK_BYTES).lstrip(b'\xef\xbb\xbf \t\r\n').startswith(b'[')


def _frames_on_lines(source: BinaryIO) -> Iterator[bytes]:
    while line := source.readline(MAX_ELEMENT_BYTES):
        text = line.strip(b', \t\r\n')
        if text.startswith(b'{') and is_strict_json(text):
            yield text
