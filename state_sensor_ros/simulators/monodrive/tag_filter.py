# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Removal of actors from a payload by their tags and names; all other text stays as it was sent.

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

import msgspec

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.json_text import NOT_TYPED, parse_payload
from state_sensor_ros.simulators.monodrive.generations.lenient_payload import STRING_KEY
from state_sensor_ros.simulators.recordings import TagRule


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


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_ACTOR = msgspec.json.Decoder(_Actor)
_TEXT = msgspec.json.Decoder(str)


class TagFilter:
    """
    Keep the actors that have a ``desired`` tag, any if it is empty, and no ``undesired`` one.

    :param desired: compared as :class:`TagRule` does.
    :param undesired: compared in the same way.
    :param names: names of the actors to keep, empty for all.
    """

    def __init__(self, desired: tuple[str, ...], undesired: tuple[str, ...],
                 names: tuple[str, ...] = ()) -> None:
        self._rule = TagRule(desired, undesired)
        self._names = frozenset(names)

    def frames(self, payload: bytes) -> list[bytes]:
        """
        Split a payload into its frames, without the actors that do not pass.

        :param payload: JSON of one frame, or an array of frames.
        :returns: JSON of each; the payload itself when no actor is removed.
        :raises DecodeError: when it is not JSON.
        """
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
            return [self._frame(bytes(element)) for element in _ELEMENTS.decode(payload)]
        return [self._frame(payload)]

    def _frame(self, payload: bytes) -> bytes:
        if self._rule.passes_all and not self._names:
            return payload
        members = _MEMBERS.decode(payload)
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
        groups = _MEMBERS.decode(frame)
        kept = {key: self._group(group) for key, group in groups.items()}
        return frame if kept == groups else msgspec.Raw(msgspec.json.encode(kept))

    def _group(self, group: msgspec.Raw) -> msgspec.Raw:
        """Filter an array of actors; another value stays unchanged."""
        if bytes(group)[:1] != b'[':
            return group
        actors = _ELEMENTS.decode(group)
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
