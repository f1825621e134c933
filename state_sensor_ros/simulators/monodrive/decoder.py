# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
One payload of any generation to Frames: typed as a whole, else actor by actor.

The formats are described in doc/protocol/frames.md; wire.py has the types, single_actors.py
decodes each actor alone, assemble.py makes the Frame, formatting.py is the inverse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timezone
import math
from typing import Any, TypeGuard

import msgspec

from state_sensor_ros.payloads import (
    Decoded,
    EVERYTHING,
    frames_of,
    Members,
    Needs,
    NO_DETAILS,
    Packet,
)
from state_sensor_ros.simulators import DecodeError, Fault, Faults, Frame, IGNORED, Units
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.json_values import check_utf8, NOT_TYPED
from state_sensor_ros.simulators.monodrive.assemble import (
    ActorTable,
    frame_of_flat,
    frame_of_v2,
    head_of,
    head_of_v1t,
)
from state_sensor_ros.simulators.monodrive.formatting import (
    conversion_losses,
    format_frame,
    format_payload,
)
from state_sensor_ros.simulators.monodrive.single_actors import (
    frame_texts,
    HEAD_KEYS,
    partial_frames,
    PartialFrame,
    STRING_KEY,
)
from state_sensor_ros.simulators.monodrive.wire import (
    FlatActor,
    FrameV1,
    FrameV2,
    Head,
    INT64_MAX,
    PayloadHead,
    TypedReader,
    UINT32_MAX,
    V0,
    V1,
    V2,
)

__all__ = ['Decoder', 'conversion_losses', 'format_frame', 'format_payload']

# DecodeError: two actors with one name, or two wheels with one id.
_NOT_USUAL = (*NOT_TYPED, DecodeError)
# 1990 and 2100, s since 1970, and other units in which a time may have been written.
_EARLIEST_S, _LATEST_S = 631_152_000, 4_102_444_800
_OTHER_UNITS = {'ms': 10 ** 3, 'us': 10 ** 6, 'ns': 10 ** 9}


class Decoder:
    """Decode the payloads of one stream; unchanged names, tags and sizes are decoded once."""

    # units: units of extents and of ``s`` in this simulator.

    def __init__(self, units: Units = DEFAULT_UNITS, needs: Needs = EVERYTHING) -> None:
        self._units = units
        self._table = ActorTable()
        # The generation of the last payload is tried first.
        self._order: tuple[str, ...] = (V2, V1, V0)
        self._reader = TypedReader(needs)
        self._last: bytes | bytearray | memoryview = b''
        # A payload, the needs and the generation that it was decoded with, and the result.
        self._ahead: tuple[bytes, Needs, str, FrameV2 | FrameV1] | None = None

    @property
    def unknown_members(self) -> frozenset[str]:
        """Key paths of the members that no type has, and that were ignored so far."""
        return self._reader.unknown_members

    @property
    def details(self) -> bool:
        """Whether boxes, wheels and inputs are decoded; may be set between payloads."""
        return self._reader.needs.boxes

    @details.setter
    def details(self, details: bool) -> None:
        self.needs = EVERYTHING if details else NO_DETAILS

    @property
    def needs(self) -> Needs:
        """Parts of the frame that are decoded; may be set between payloads."""
        return self._reader.needs

    @needs.setter
    def needs(self, needs: Needs) -> None:
        if needs is not self._reader.needs:
            self._reader.use(needs)

    def is_at(self, payload: bytes) -> bool:
        """Return whether this object is the last one that :meth:`decode` was called with."""
        return payload is self._last

    def read_ahead(self, payload: bytes) -> float:
        """
        Check that a payload is JSON of the usual format of the last one.

        If the next call of :meth:`decode` is with this object, the text is not parsed again.

        :param payload: JSON text, UTF-8, of one frame.
        :returns: its ``game_time``; NaN if it has none, has another format, or is not JSON.
        """
        generation = self._order[0]
        if generation not in (V2, V1):
            return math.nan
        try:
            frame = self._reader.decoders[generation].decode(payload)
        except NOT_TYPED:
            return math.nan
        self._ahead = payload, self._reader.needs, generation, frame
        return math.nan if frame.game_time is None else frame.game_time

    def split(self, payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
        """Return the payload of each frame in a payload, undecoded: see :func:`split_frames`."""
        # payload: JSON text, UTF-8: a frame or an array of frames.
        return split_frames(payload)

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = math.nan,
               time: int = 0, sample_count: int = 0) -> list[Decoded]:
        """
        Decode one payload.

        :param payload: JSON text, UTF-8.
        :param game_time: s, from the packet's header, for frames without one.
        :param time: s since 1970, likewise.
        :returns: one frame with its faults, or several of an array of frames; SI, REP-103 axes.
        """
        packet = game_time, time, sample_count
        self._last = payload
        known = self._reader.known
        for generation in self._order:
            try:
                frame = self._usual(generation, payload, packet)
            except _NOT_USUAL:
                # Members that are unknown in another generation are not unknown.
                self._reader.known = known
                continue
            # After the typed decoder, which has brought the payload into the cache.
            _check_text(payload)
            if generation != self._order[0]:
                self._order = generation, *[other for other in self._order if other != generation]
            return [_dated(frame, ())]
        _check_text(payload)
        return [self._assembled(partial, packet)
                for partial in partial_frames(payload, self._reader)]

    def _usual(self, generation: str, payload: bytes | bytearray | memoryview,
               packet: Head) -> Frame:
        if generation == V2:
            v2: FrameV2 = (self._ahead and self._read(payload, V2)) \
                or self._reader.read(V2, payload)
            objects, vehicles = v2.frame.objects, v2.frame.vehicles
            if objects is None and vehicles is None:
                raise DecodeError('frame', 'an object', 'objects or vehicles in it')
            return frame_of_v2(objects or (), vehicles or (),
                               head_of((v2.game_time, v2.time, v2.sample_count), packet),
                               self._reader.needs, self._units, self._table)
        if generation == V1:
            v1: FrameV1 = (self._ahead and self._read(payload, V1)) \
                or self._reader.read(V1, payload)
            return self._flat_frame(V1, tuple([actor.name for actor in v1.frame]), v1.frame,
                                    (v1.game_time, v1.time, v1.sample_count), packet)
        v0: dict[str, Any] = self._reader.read(V0, payload)
        actors: dict[str, Any] = {
            name: actor for name, actor in v0.items() if isinstance(actor, msgspec.Struct)}
        if not actors or 'frame' in v0:
            raise DecodeError('payload', 'no actors by name', 'a frame')
        frame = self._flat_frame(V0, tuple(actors), tuple(actors.values()), _head_of_v0(v0),
                                 packet)
        self._reader.note({('', name) for name in v0.keys() - actors.keys() - {*HEAD_KEYS}})
        return frame

    def _read(self, payload: bytes | bytearray | memoryview,
              generation: str) -> Any:  # noqa: ANN401
        """Return what was read ahead of a payload in a generation, None for nothing."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and ahead[0] is payload and ahead[1] is self._reader.needs \
                and ahead[2] == generation:
            return ahead[3]
        return None

    def _flat_frame(self, generation: str, names: tuple[str, ...],
                    actors: tuple[FlatActor, ...] | list[FlatActor],
                    head: PayloadHead, packet: Head) -> Frame:
        if generation == V1 and (head[0] is None or math.isnan(head[0])):
            generation, game_time, time = head_of_v1t(actors)
            head = game_time, head[1] if time is None else time, head[2]
        return frame_of_flat(generation, names, actors, head_of(head, packet),
                             self._reader.needs, self._units, self._table)

    def _assembled(self, partial: PartialFrame, packet: Head) -> Decoded:
        """Assemble the actors that could be decoded alone."""
        if partial.generation == V2:
            frame = frame_of_v2(partial.objects, partial.vehicles, head_of(partial.head, packet),
                                self._reader.needs, self._units, self._table)
        else:
            frame = self._flat_frame(partial.generation, tuple(partial.names), partial.flat,
                                     partial.head, packet)
        return _dated(frame, tuple(partial.faults))


def _dated(frame: Frame, faults: tuple[Fault, ...]) -> Decoded:
    """Name a time that is not one of a simulator; one that is too late is unknown."""
    time = frame.time
    if not time or _EARLIEST_S <= time <= _LATEST_S:
        return Decoded(frame, faults)
    expected = 'seconds since 1970, between 1990 and 2100'
    for unit, factor in _OTHER_UNITS.items():
        if _EARLIEST_S <= time // factor <= _LATEST_S:
            date = datetime.fromtimestamp(time // factor, timezone.utc)
            expected = f'seconds since 1970; in {unit} it would be {date:%F %T} UTC'
    fault = Fault(IGNORED, DecodeError('time', str(time), expected))
    if not 0 <= time <= _LATEST_S:
        frame = replace(frame, time=0)
    return Decoded(frame, (*faults, fault))


class FrameDecoder:
    """Decodes the payloads of one stream or recording for a reader, whose faults it adds."""

    def __init__(self, units: Units, faults: Faults) -> None:
        self.decoder, self._faults, self._members = Decoder(units), faults, Members()

    def frames(self, packet: Packet, *, details: bool) -> Iterator[Frame]:
        """
        Yield the frames of a payload, several if it is an array.

        :raises DecodeError: if one of them is no frame.
        """
        self.decoder.details = details
        if not packet.payload:
            raise DecodeError('payload', 'nothing', 'a frame')
        for payload in split_frames(packet.payload):
            decoded = self.decoder.decode(payload, game_time=packet.game_time, time=packet.time,
                                          sample_count=packet.sample_count)
            if len(decoded) > 1:
                raise DecodeError('payload', 'an array inside an array', 'a frame')
            self._members.name(self.decoder.unknown_members, self._faults)
            yield from frames_of(decoded, self._faults)


def split_frames(payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
    """Split a payload that is an array of frames."""
    # payload: JSON text, UTF-8.
    # Returns the text of each element, which need not be a frame; the payload itself when it is no
    # array, or one that cannot be split: :meth:`Decoder.decode` then raises the reason.
    if payload.startswith(b'{') and STRING_KEY.encode() not in payload:
        return (payload,)
    try:
        texts = [text for text, _ in frame_texts(payload)]
    except DecodeError:
        return (payload,)
    return texts if len(texts) > 1 else (payload,)


def _check_text(payload: bytes | bytearray | memoryview) -> None:
    """Check the whole text, also members that the typed decoders skip."""
    if isinstance(payload, memoryview) or not payload.isascii():
        check_utf8(payload)


def _head_of_v0(payload: dict[str, Any]) -> PayloadHead:
    """Return the members of the frame itself, which stand between the actors."""
    game_time, time, sample_count = map(payload.get, ('game_time', 'time', 'sample_count'))
    if not isinstance(game_time, int | float | None) or isinstance(game_time, bool) \
            or not _is_count(time, INT64_MAX) or not _is_count(sample_count, UINT32_MAX):
        raise DecodeError('payload', 'game_time, time or sample_count of another type', 'numbers')
    return game_time, time, sample_count


def _is_count(value: object, most: int) -> TypeGuard[int | None]:
    return value is None or (type(value) is int and 0 <= value <= most)
