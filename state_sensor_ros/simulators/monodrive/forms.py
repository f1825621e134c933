# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Payloads that do not have the types of schema.py as a whole: each actor is decoded alone.

An actor that has the types is taken as it is; another one is spelled in the usual way first
(doc/protocol/frames.md#vector-formats). A member that is ``null`` gets its default. The generation
is recognized as in doc/protocol/frames.md#recognition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
import math
import re
import sys
from typing import Any

import msgspec
from msgspec import Struct
import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.rep103 import mirrored_orientation, to_rep103_rotator
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.json_text import wrong
from state_sensor_ros.simulators.monodrive import schema
from state_sensor_ros.source import DROPPED, DUPLICATE, Faults, IGNORED

STRING_KEY = 'state_data_as_string'
HEAD_KEYS = ('game_time', 'time', 'sample_count')


def frame_values(text: bytes | bytearray) -> Iterator[tuple[Any, str, bool]]:
    """
    Yield each frame in a payload: a frame, an array of them, or an object with either as text.

    :returns: the frame as parsed, its key path, and whether all of its numbers are finite.
    """
    try:
        value, is_finite = msgspec.json.decode(text), True
    except (*json_text.NOT_TYPED, ValueError):
        value, is_finite = json_text.parse(text), False
    yield from _frames(value, '', is_finite)


def _frames(value: Any, where: str, is_finite: bool  # noqa: ANN401
            ) -> Iterator[tuple[Any, str, bool]]:
    if isinstance(value, list):
        if not value:
            raise DecodeError(where or 'payload', 'an empty array', 'a frame')
        for i, each in enumerate(value):
            yield from _frames(each, f'{where}[{i}]', is_finite)
        return
    if not isinstance(value, dict):
        raise wrong(where or 'payload', value, 'an object: a frame')
    if STRING_KEY not in value or 'frame' in value:
        yield value, where, is_finite
        return
    where = f'{where}.{STRING_KEY}'.lstrip('.')
    if not isinstance(value[STRING_KEY], str):
        raise wrong(where, value[STRING_KEY], 'a string')
    yield from _frames(json_text.parse(value[STRING_KEY].encode()), where, False)


def _actors_in(frame: Mapping[str, Any], start: str) -> tuple[str, list[tuple[str, Any, str]]]:
    """Return the generation of a frame, and kind, value and place of each of its actors."""
    if 'frame' not in frame:
        actors = {name: value for name, value in frame.items() if isinstance(value, dict)}
        if not any('position' in actor for actor in actors.values()):
            raise DecodeError(start.rstrip('.') or 'payload', 'an object', 'a frame: a member '
                              '"frame", or actors by name with a "position"')
        return schema.V0, [('flat', {**actor, 'name': name}, start + name)
                           for name, actor in actors.items()]
    value, where = frame['frame'], f'{start}frame'
    if not isinstance(value, dict | list):
        raise wrong(where, value, 'an object (v2) or an array (v1)')
    if isinstance(value, dict) and {'objects', 'vehicles'} & value.keys():
        return schema.V2, [
            item for key, kind in (('objects', 'state'), ('vehicles', 'vehicle'))
            for item in _items(kind, value.get(key), f'{where}.{key}')]
    first = value[0] if isinstance(value, list) and value else value
    keys = first.keys() if isinstance(first, dict) else set()
    if {'state', 'odometry'} & keys:
        return schema.V2, _items('vehicle' if 'state' in keys else 'state', value, where)
    if isinstance(value, dict) and 'position' not in value:
        raise DecodeError(where, 'an object', '"objects" or "vehicles" in it (v2), or an '
                          'actor with a "position" (v1)')
    return schema.V1, _items('flat', value, where)


def _items(kind: str, value: Any, where: str) -> list[tuple[str, Any, str]]:  # noqa: ANN401
    """Return the actors of an array; one object stands for an array of it."""
    if isinstance(value, dict):
        return [(kind, value, where)]
    return [(kind, item, f'{where}[{i}]')
            for i, item in enumerate(json_text.to_list(value, where))]


class FormReader:
    """Decodes the frames of one payload actor by actor, and adds a fault for each that is bad."""

    def __init__(self, types: dict[str, Any], faults: Faults) -> None:
        self._types, self._faults = types, faults
        self._is_finite = True

    def read(self, frame: Mapping[str, Any], where: str, is_finite: bool,
             ) -> tuple[str, tuple[Any, ...], dict[str, list[Any]]]:
        """
        Decode a frame of :func:`frame_values`.

        :returns: the generation, the values of HEAD_KEYS, None for those without, and the actors
            that could be decoded, by ``state``, ``vehicle`` and ``flat``.
        """
        self._is_finite = is_finite
        start = f'{where}.'.lstrip('.')
        generation, found = _actors_in(frame, start)
        head, actors = self._head(frame, start), defaultdict[str, list[Any]](list)
        names = set[str]()
        for kind, value, at in found:
            try:
                actor = self._actor(kind, value, at)
            except DecodeError as error:
                self._faults.add(DROPPED, error)
                continue
            name = actor.state.name if kind == 'vehicle' else actor.name
            if name in names:
                self._faults.add(DUPLICATE, wrong(at, name, 'a name that no other actor has'))
                continue
            names.add(name)
            actors[kind].append(actor)
        return generation, head, actors

    def _head(self, frame: Mapping[str, Any], start: str) -> tuple[Any, ...]:
        """Return the members that are not actors; what cannot be used of them is a fault."""
        found: list[Any] = []
        for key, low, high, expected in (
                ('game_time', -sys.float_info.max, sys.float_info.max, 'a number'),
                ('time', -2 ** 63, 2 ** 63 - 1, 'whole seconds since 1970'),
                ('sample_count', 0, 2 ** 32 - 1, f'an integer in 0 .. {2 ** 32 - 1}')):
            number: Any = frame.get(key)
            if isinstance(number, int | float) and not isinstance(number, bool) \
                    and low <= number <= high and (key != 'sample_count' or not number % 1):
                found.append(number if key == 'game_time' else int(number))
                continue
            found.append(None)
            if number is not None:
                self._faults.add(IGNORED, wrong(start + key, number, expected))
        return tuple(found)

    def _actor(self, kind: str, value: Any, where: str) -> Any:  # noqa: ANN401
        if not isinstance(value, dict):
            raise wrong(where, value, 'an object')
        wheels: dict[str, Any] = {}
        if kind == 'vehicle' and self._types[kind] is schema.Vehicle:
            value = dict(value)
            owned = self._wheels(value.pop('wheels', None), f'{where}.wheels')
            wheels = {'wheels': msgspec.Raw(msgspec.json.encode(owned))}
        actor: Any = None
        if self._is_finite:
            with suppress(*json_text.NOT_TYPED):
                actor = msgspec.convert({**value, **wheels}, self._types[kind])
        if actor is None:
            actor = converted({**_usual(value, where, is_flat=kind == 'flat'), **wheels},
                              self._types[kind], where)
        if kind == 'flat':
            _check_ids(getattr(actor, 'wheels', ()), f'{where}.wheels')
        return actor

    def all_wheels(self, text: bytes) -> list[tuple[schema.Wheel, ...]]:
        """Return the wheels of each vehicle of v2 in an array, none where one of them is bad."""
        return [self._wheels(value, f'frame.vehicles[{i}].wheels')
                for i, value in enumerate(json_text.parse(text))]

    def _wheels(self, value: Any, where: str) -> tuple[schema.Wheel, ...]:  # noqa: ANN401
        try:
            usual = _usual({'wheels': value}, where.rpartition('.')[0], is_flat=False)
            wheels: tuple[schema.Wheel, ...] = converted(
                usual.get('wheels', ()), tuple[schema.Wheel, ...], where)
            _check_ids(wheels, where)
        except DecodeError as error:
            self._faults.add(IGNORED, error)
            return ()
        return wheels


def _check_ids(wheels: Sequence[Any], where: str) -> None:
    ids = [wheel.id for wheel in wheels]
    if len(set(ids)) < len(ids):
        raise wrong(where, ids, 'each wheel id once')


# Members of the three usual forms; motions and poses of wheels may lack components.
_MOTIONS = frozenset(('velocity', 'linear_velocity', 'angular_velocity'))
_VECTORS = _MOTIONS | {'position', 'center', 'extents', 'scale'}
_ROTATION, _ANGLES = 'orientation', ('roll', 'pitch', 'yaw')
_LISTS = frozenset(('tags', 'wheels', 'wheel_speed', 'oriented_bounding_box'))


def _usual(value: Mapping[str, Any], where: str, *, is_flat: bool,
           is_open: bool = False) -> dict[str, Any]:
    """Spell an object in the usual way, as far as it can be; refuse numbers beyond a double."""
    usual: dict[str, Any] = {}
    for key, item in value.items():
        at = f'{where}.{key}'
        if key in _VECTORS:
            usual[key] = _components(item, at, 'xyz', is_flat, is_open or key in _MOTIONS)
        elif key == _ROTATION:
            usual[key] = _components(_unrotated(item, at), at, 'xyzw', is_flat, False)
        elif key in _LISTS and item is not None:
            items = item if isinstance(item, list) else [item] if item != '' else []
            usual[key] = [_usual(each, f'{at}[{i}]', is_flat=is_flat,
                                 is_open=is_open or key == 'wheels')
                          if isinstance(each, dict) else _finite(each, f'{at}[{i}]')
                          for i, each in enumerate(items)]
        elif isinstance(item, dict):
            usual[key] = _usual(item, at, is_flat=is_flat, is_open=is_open)
        elif isinstance(item, float) and abs(item) < 2.0 ** 53 and (
                item.is_integer() or key == 'time'):
            usual[key] = int(item)
        elif item is not None:
            usual[key] = _finite(item, at)
    return usual


def _finite(item: Any, where: str) -> Any:  # noqa: ANN401
    if isinstance(item, float) and math.isinf(item):
        raise wrong(where, item, 'a number')
    return item


def _components(item: Any, where: str, keys: str, is_flat: bool,  # noqa: ANN401
                is_open: bool) -> Any:  # noqa: ANN401
    """Return a vector or quaternion as an object, or as a list for the flat generations."""
    if item is None:
        item = dict.fromkeys(keys)
    if isinstance(item, list) and len(item) == len(keys):
        item = dict(zip(keys, item, strict=True))
    if not isinstance(item, dict):
        return item
    for key, number in item.items():
        _finite(number, f'{where}.{key}')
    if is_open:
        item = {**dict.fromkeys(keys), **item}
    return [item[key] for key in keys] if is_flat and item.keys() >= set(keys) else item


def _unrotated(item: Any, where: str) -> Any:  # noqa: ANN401
    """Return the quaternion of a rotator, ``{pitch, yaw, roll}`` in degrees; others unchanged."""
    if not isinstance(item, dict) or 'w' in item or 'yaw' not in item:
        return item
    angles = [_finite(item.get(key, ''), f'{where}.{key}') for key in _ANGLES]
    if not all(angle is None or type(angle) in (int, float) for angle in angles):
        return item
    quaternion = mirrored_orientation(to_rep103_rotator(np.array(angles, np.float64)))
    return dict(zip('xyzw', quaternion.tolist(), strict=True))


_PLACE = re.compile(r'(.*?)(?: - at `\$(.*)`)?', re.DOTALL)
# Of a text; those with a quotation mark are found in part.
_KEY = re.compile(rb'"([^"]*)"\s*:')
_STEP = re.compile(r'\.(\w+)|\[(\d+)\]')
_MISSING = re.compile(r'Object missing required field `(.*)`')
_EXPECTED = re.compile(r'Expected (.*?)(?:, got `.*`)?')
_TYPE = re.compile(r'`(\w+)(?: \| null)?`')
_WORDS = {'int': 'an integer', 'float': 'a number', 'str': 'a string', 'bool': 'true or false',
          'object': 'an object', 'array': 'an array'}
_VECTOR, _QUATERNION = '{x, y, z} or [x, y, z]', '{w, x, y, z} or [x, y, z, w]'
_ABSENT = object()


def converted(value: Any, kind: Any, where: str) -> Any:  # noqa: ANN401
    """Return a value of a type; the error for another one has the key path."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise _error_of(str(error), value, where) from None


def _error_of(text: str, value: Any, where: str) -> DecodeError:  # noqa: ANN401
    """Return the error for a value that msgspec refuses with ``text``."""
    match = _PLACE.fullmatch(text)
    assert match is not None
    what, path = match[1], match[2] or ''
    missing = _MISSING.fullmatch(what)
    if missing is not None:
        path += f'.{missing[1]}'
    steps = _STEP.findall(path)
    for key, index in steps:
        value = value.get(key, _ABSENT) if key else value[int(index)]
    last = steps[-1][0] if steps else ''
    refused = _EXPECTED.fullmatch(what)
    expected = _VECTOR if last in _VECTORS else _QUATERNION if last == _ROTATION else 'a value' \
        if missing is not None else what if refused is None else _TYPE.sub(
            lambda name: _WORDS.get(name[1], name[1]), refused[1])
    return DecodeError(where + path, 'nothing', expected) if value is _ABSENT \
        else wrong(where + path, value, expected)


def _names(*kinds: type[Struct]) -> frozenset[str]:
    return frozenset((*'xyzw', *_ANGLES)).union(*(kind.__struct_fields__ for kind in kinds))


_KNOWN = {
    schema.V2: _names(
        schema.Payload, schema.Actors, schema.Vehicle, schema.ControlState, schema.State,
        schema.Odometry, schema.Pose, schema.Box, schema.Wheel, schema.WheelPose),
    schema.V1: _names(schema.Payload, schema.Flat, schema.FlatBox, schema.FlatWheel)}


def has_other_keys(payload: bytes | bytearray, generation: str) -> bool:
    """Return whether a text has keys that the types of a generation, v2 or v1, do not have."""
    return not _KNOWN[generation].issuperset(
        [key.decode('utf-8', 'replace') for key in {*_KEY.findall(payload)}])


def unknown_members(frame: Mapping[str, Any], generation: str) -> Iterator[str]:
    """Yield the key paths of the members that the types of a generation do not have."""
    if generation != schema.V0:
        yield from _unknown(frame, _KNOWN[generation], '')
        return
    for name, value in frame.items():
        if isinstance(value, dict):
            yield from _unknown(value, _KNOWN[schema.V1], '<actor>')
        elif name not in HEAD_KEYS:
            yield name


def _unknown(value: Any, known: frozenset[str], path: str) -> Iterator[str]:  # noqa: ANN401
    if isinstance(value, list):
        for item in value:
            yield from _unknown(item, known, f'{path}[]')
    elif isinstance(value, dict):
        for key, item in value.items():
            at = f'{path}.{key}'.lstrip('.')
            if key in known:
                yield from _unknown(item, known, at)
            else:
                yield at
