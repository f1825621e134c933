# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Payloads that are not in the usual form, decoded actor by actor; actors with faults are left out.

The generation is recognised as in doc/protocol/frames.md#recognition. An actor in the usual form
is still decoded at once, the others member by member, which takes thirty times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.json_text import Json, NOT_TYPED, parse_payload, shortened
from state_sensor_ros.simulators.json_values import to_list, to_object, to_text, wrong
from state_sensor_ros.simulators.monodrive.generations.tolerant_reading import (
    located,
    read_optional,
    read_struct,
)
from state_sensor_ros.simulators.monodrive.generations.wire import (
    FlatActor,
    FlatWheel,
    FrameV2,
    ITEMS,
    JsonDecoders,
    MEMBERS,
    MEMBERS_OR_ITEMS,
    PayloadHead,
    State,
    V0,
    V1,
    V2,
    Vehicle,
    Wheel,
)

STRING_KEY = 'state_data_as_string'
HEAD_KEYS = ('game_time', 'time', 'sample_count')

# Frames of one payload. Each element of `[0,0,…]`, two bytes, takes a thousand times its memory.
MAX_FRAMES = 1 << 18
# Errors kept of one frame: enough to find the cause, too few to matter in memory.
_MAX_MESSAGES = 100

Actor = TypeVar('Actor', State, Vehicle, FlatActor)


@dataclass(frozen=True, slots=True)
class _Kind(Generic[Actor]):
    """One kind of actor: decoder of its text, its type, functions to its name and wheels."""

    typed: JsonDecoder[Actor]
    type: type[Actor]
    name_of: Callable[[Actor], str]
    wheels_of: Callable[[Actor], Sequence[Wheel | FlatWheel]]


@dataclass(frozen=True, slots=True)
class LenientFrame:
    """
    One frame: typed actors, and the errors of those that were left out.

    ``value`` the parsed frame; ``head`` its ``game_time``, ``time`` and ``sample_count``, None
    for those missing; ``names`` of ``flat`` actors; ``left_out`` and ``duplicates`` have one
    error for each actor.
    """

    generation: str
    value: Mapping[str, Json]
    head: PayloadHead
    objects: list[State] = field(default_factory=list)
    vehicles: list[Vehicle] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    flat: list[FlatActor] = field(default_factory=list)
    left_out: list[DecodeError] = field(default_factory=list)
    duplicates: list[DecodeError] = field(default_factory=list)


def lenient_frames(payload: bytes | bytearray | memoryview,
                   typed: JsonDecoders) -> list[LenientFrame]:
    """
    Decode a payload as far as possible.

    :param payload: JSON text, UTF-8.
    :param typed: decoders for actors in the usual form.
    :returns: one frame, or each frame of an array.
    :raises DecodeError: when it is not a frame of any generation.
    """
    value = parse_to_actors(payload)
    return [_frame(element, start, typed) for element, start in _elements(value)]


def parse_to_actors(payload: bytes | bytearray | memoryview) -> Json:
    """
    Parse a payload down to its actors, which remain text, or else completely.

    :param payload: JSON text, UTF-8.
    :returns: dicts and lists; actors and unknown members may be ``msgspec.Raw``.
    :raises DecodeError: when it is not JSON.
    """
    try:
        value: dict[str, Json] = {**MEMBERS.decode(payload)}
        frame = MEMBERS_OR_ITEMS.decode(value['frame'])  # type: ignore[arg-type]
        if isinstance(frame, list):
            value['frame'] = frame
        else:
            value['frame'] = {**frame, **{key: ITEMS.decode(frame[key])
                                          for key in ('objects', 'vehicles') if key in frame}}
    except (*NOT_TYPED, KeyError):
        # Not strict JSON, another shape, several frames or v0.
        return parse_payload(payload)
    for key in value.keys() & set(HEAD_KEYS):
        value[key] = parse_payload(value[key])  # type: ignore[arg-type]
    return value


def _elements(value: Json) -> Iterator[tuple[Mapping[str, Json], str]]:
    """Yield each frame object, several of an array, with the start of its key paths."""
    if not isinstance(value, list):
        yield _unwrapped(value, '')
        return
    if not value:
        raise DecodeError('payload', 'an empty array', 'a frame')
    if len(value) > MAX_FRAMES:
        raise DecodeError('payload', f'an array of {len(value)}', f'at most {MAX_FRAMES} frames')
    for i, element in enumerate(value):
        yield _unwrapped(element, f'[{i}].')


def _unwrapped(value: Json, start: str) -> tuple[Mapping[str, Json], str]:
    if isinstance(value, dict) and STRING_KEY in value and 'frame' not in value:
        where = f'{start}{STRING_KEY}'
        value, start = parse_payload(to_text(value[STRING_KEY], where).encode()), f'{where}.'
    if not isinstance(value, dict):
        raise wrong(start.rstrip('.') or 'payload', value, 'an object: a frame')
    return value, start


def _frame(value: Mapping[str, Json], start: str, typed: JsonDecoders) -> LenientFrame:
    """Recognise the generation of a frame object and read its actors."""
    if 'frame' not in value:
        return _frame_of_v0(value, start)
    frame, where = value['frame'], f'{start}frame'
    if isinstance(frame, dict):
        return _frame_of_v2(value, start, typed, {
            key: to_list(frame.get(key), f'{where}.{key}') for key in ('objects', 'vehicles')})
    if not isinstance(frame, list):
        raise wrong(where, frame, 'an object (v2) or an array (v1)')
    first = parse_payload(frame[0]) if frame and isinstance(frame[0], msgspec.Raw) \
        else frame[0] if frame else None
    if isinstance(first, dict) and 'state' in first:
        return _frame_of_v2(value, start, typed, {'': frame})
    lenient = LenientFrame(V1, value, _head(value, start))
    kind = _Kind(typed.flat, FlatActor, lambda actor: actor.name,
                 lambda actor: actor.wheels if typed.needs.wheels else ())
    lenient.flat.extend(_kept(located(frame, where), kind, lenient, set()))
    lenient.names.extend(actor.name for actor in lenient.flat)
    return lenient


def _frame_of_v0(value: Mapping[str, Json], start: str) -> LenientFrame:
    actors = {name: actor for name, actor in value.items() if isinstance(actor, dict)}
    if not any('position' in actor for actor in actors.values()):
        raise wrong(start.rstrip('.') or 'payload', value,
                    'a frame: a member "frame", or actors by name with a "position"')
    lenient = LenientFrame(V0, value, _head(value, start))
    for name, actor in actors.items():
        try:
            lenient.flat.append(read_struct(
                FlatActor, {**actor, 'name': name}, start + shortened(name)))
        except DecodeError as error:
            _note(lenient.left_out, error)
        else:
            lenient.names.append(name)
    return lenient


def _frame_of_v2(value: Mapping[str, Json], start: str, typed: JsonDecoders,
                 lists: Mapping[str, list[Json]]) -> LenientFrame:
    """Read ``objects`` and ``vehicles``, or a ``frame`` that is an array of vehicles (key '')."""
    lenient = LenientFrame(V2, value, _head(value, start))
    seen: set[str] = set()
    state = _Kind(typed.state, State, lambda state: state.name, lambda _: ())
    vehicle = _Kind(typed.vehicle, Vehicle, lambda vehicle: vehicle.state.name,
                    lambda vehicle: vehicle.wheels if typed.needs.wheels else ())
    for key, actors in lists.items():
        items = located(actors, f'{start}frame.{key}'.rstrip('.'))
        if key == 'objects':
            lenient.objects.extend(_kept(items, state, lenient, seen))
        else:
            lenient.vehicles.extend(_kept(items, vehicle, lenient, seen))
    return lenient


def _head(value: Mapping[str, Json], start: str) -> PayloadHead:
    game_time, time, sample_count = (
        read_optional(FrameV2, key, value, start.rstrip('.')) for key in HEAD_KEYS)
    return game_time, time, sample_count


def _kept(items: Iterable[tuple[Json, str]], kind: _Kind[Actor], lenient: LenientFrame,
          seen: set[str]) -> Iterator[Actor]:
    """Yield the actors that can be read and whose names are not in ``seen``."""
    for item, where in items:
        try:
            actor = _read(item, where, kind)
        except DecodeError as error:
            _note(lenient.left_out, error)
            continue
        name = kind.name_of(actor)
        if name in seen:
            _note(lenient.duplicates, wrong(where, name, 'a name that no other actor has'))
            continue
        seen.add(name)
        yield actor


def _read(item: Json, where: str, kind: _Kind[Actor]) -> Actor:
    """Return one actor, from its text if it is in the usual form, else member by member."""
    if isinstance(item, msgspec.Raw):
        try:
            actor = kind.typed.decode(item)
        except NOT_TYPED:
            pass
        else:
            wheels = kind.wheels_of(actor)
            if len({wheel.id for wheel in wheels}) == len(wheels):
                return actor
        item = parse_payload(item)
    return read_struct(kind.type, to_object(item, where), where)


def _note(errors: list[DecodeError], error: DecodeError) -> None:
    """Append an error without its traceback, which would keep the whole payload in memory."""
    if len(errors) < _MAX_MESSAGES:
        error.__context__ = error.__cause__ = None
        errors.append(error.with_traceback(None))
    elif len(errors) == _MAX_MESSAGES:
        errors.append(DecodeError('payload', f'more than {_MAX_MESSAGES} bad actors', 'none'))
    else:
        errors.append(errors[-1])
