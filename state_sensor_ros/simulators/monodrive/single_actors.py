# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Payloads that do not have the types of wire.py as a whole: each actor is decoded alone.

An actor that has the types is decoded from its text; another one is spelled in the usual way first
(doc/protocol/frames.md#vector-formats). A member that is ``null`` gets its default. The generation
is recognized as in doc/protocol/frames.md#recognition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
import re
from typing import Any, TypeAlias

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder
from msgspec.json import encode
import numpy as np

from state_sensor_ros.simulators import DecodeError, DROPPED, DUPLICATE, Fault, IGNORED
from state_sensor_ros.simulators.frame_arrays import mirrored_orientation, to_rep103_rotator
from state_sensor_ros.simulators.json_values import (
    is_strict_json,
    Json,
    NOT_TYPED,
    parse_finite,
    repaired,
    wrong,
)
from state_sensor_ros.simulators.monodrive.wire import (
    FlatActor,
    INT64_MAX,
    INT64_MIN,
    MEMBERS,
    PayloadHead,
    State,
    TypedReader,
    UINT32_MAX,
    V0,
    V1,
    V2,
    Vehicle,
)

STRING_KEY = 'state_data_as_string'
HEAD_KEYS = ('game_time', 'time', 'sample_count')
# Errors kept of one frame: enough to find the cause, too few to matter in memory.
_MAX_ERRORS = 100

Actor: TypeAlias = State | Vehicle | FlatActor
Text: TypeAlias = bytes | bytearray | memoryview | Raw


_ITEMS = JsonDecoder(list[Raw])


@dataclass(slots=True)
class PartialFrame:
    """The actors of one frame that could be decoded, and the faults of the others."""

    generation: str
    head: PayloadHead
    objects: list[State] = field(default_factory=list)
    vehicles: list[Vehicle] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of ``flat``
    flat: list[FlatActor] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)

    def add_fault(self, kind: str, error: DecodeError) -> None:
        """Add a fault; the errors after the first hundred are one."""
        n_faults = len(self.faults)
        if n_faults == _MAX_ERRORS:
            error = DecodeError('payload', f'more than {_MAX_ERRORS} bad actors', 'none')
        elif n_faults > _MAX_ERRORS:
            error = self.faults[-1].error
        self.faults.append(Fault(kind, error))


def partial_frames(payload: Text, reader: TypedReader) -> list[PartialFrame]:
    """Decode a payload as far as possible; ``payload``: JSON text, UTF-8."""
    return [_frame(text, where, reader) for text, where in frame_texts(payload)]


def frame_texts(payload: Text, where: str = '') -> list[tuple[bytes, str]]:
    """Return the strict JSON of each frame in a payload, with its key path."""
    # payload: JSON text, UTF-8: a frame, an array of them, or an object with either as text.
    text = bytes(payload)
    if not is_strict_json(text):
        text = repaired(text)
    if begins_with(text, b'['):
        return [frame for i, element in enumerate(_elements(text, where))
                for frame in frame_texts(element, f'{where}[{i}]')]
    if STRING_KEY.encode() not in text:
        return [(text, where)]
    members = _members(text, where)
    if STRING_KEY not in members or 'frame' in members:
        return [(text, where)]
    where = f'{where}.{STRING_KEY}'.lstrip('.')
    inner = parse_finite(members[STRING_KEY])
    if not isinstance(inner, str):
        raise wrong(where, inner, 'a string')
    return frame_texts(inner.encode('utf-8', 'replace'), where)


def _frame(text: bytes, where: str, reader: TypedReader) -> PartialFrame:
    members, start = _members(text, where), f'{where}.'.lstrip('.')
    frame = PartialFrame(V0, (None, None, None))
    frame.head = _head(members, start, frame)
    if 'frame' in members:
        reader.note({('', name) for name in members.keys() - {*HEAD_KEYS, 'frame'}})
        _add_actors(members['frame'], f'{start}frame', _ActorReader(reader, frame))
    else:
        _add_actors_of_v0(members, start, _ActorReader(reader, frame))
    return frame


def begins_with(text: Text, bracket: bytes) -> bool:
    return bytes(memoryview(text)[:64]).lstrip().startswith(bracket)


def _elements(text: bytes, where: str) -> list[Raw]:
    name = where or 'payload'
    try:
        elements = _ITEMS.decode(text)
    except NOT_TYPED:
        raise DecodeError(name, 'brackets nested too deep', 'JSON') from None
    if not elements:
        raise DecodeError(name, 'an empty array', 'a frame')
    for i, element in enumerate(elements):
        if not begins_with(element, b'{'):
            raise wrong(f'{where}[{i}]', parse_finite(element), 'an object: a frame')
    return elements


def _members(text: bytes | Raw, where: str) -> dict[str, Raw]:
    try:
        return MEMBERS.decode(text)
    except NOT_TYPED:
        raise wrong(where or 'payload', parse_finite(text), 'an object: a frame') from None


def _head(members: Mapping[str, Raw], start: str, frame: PartialFrame) -> PayloadHead:
    """Return the members that are not actors; what cannot be used of them is a fault."""
    found: list[Any] = [parse_finite(members[key]) if key in members else None
                        for key in HEAD_KEYS]
    for i, (key, low, high, expected) in enumerate((
            ('game_time', -np.inf, np.inf, 'a number'),
            ('time', INT64_MIN, INT64_MAX, 'whole seconds since 1970'),
            ('sample_count', 0, UINT32_MAX, f'an integer in 0 .. {UINT32_MAX}'))):
        number = found[i]
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int | float) \
                or not low <= number <= high or (key == 'sample_count' and number % 1):
            frame.add_fault(IGNORED, wrong(start + key, number, expected))
            found[i] = None
        elif key != 'game_time':
            found[i] = int(number)
    return found[0], found[1], found[2]


def _add_actors_of_v0(members: Mapping[str, Raw], start: str, actors: _ActorReader) -> None:
    named = {name: text for name, text in members.items() if begins_with(text, b'{')}
    if not any('position' in MEMBERS.decode(text) for text in named.values()):
        raise DecodeError(start.rstrip('.') or 'payload', 'an object', 'a frame: a member '
                          '"frame", or actors by name with a "position"')
    actors.reader.note({('', name) for name in members.keys() - named.keys() - {*HEAD_KEYS}})
    for name, text in named.items():
        actors.add('flat', text, start + name, name)


def _add_actors(text: Raw, where: str, actors: _ActorReader) -> None:
    """Recognize the generation of a ``frame``, and add its actors."""
    if not begins_with(text, b'{') and not begins_with(text, b'['):
        raise wrong(where, parse_finite(text), 'an object (v2) or an array (v1)')
    is_list = begins_with(text, b'[')
    items = _items(text, where)
    first = MEMBERS.decode(items[0][0]) if items and begins_with(items[0][0], b'{') else {}
    actors.frame.generation = V2
    if not is_list and {'objects', 'vehicles'} & first.keys():
        actors.reader.note({('frame', name) for name in first.keys() - {'objects', 'vehicles'}})
        for key, kind in (('objects', 'state'), ('vehicles', 'vehicle')):
            for item, at in _items(first.get(key, Raw(b'null')), f'{where}.{key}'):
                actors.add(kind, item, at)
        return
    kind = 'vehicle' if 'state' in first else 'state' if 'odometry' in first else 'flat'
    if kind == 'flat':
        actors.frame.generation = V1
        if not is_list and 'position' not in first:
            raise DecodeError(where, 'an object', '"objects" or "vehicles" in it (v2), or an '
                              'actor with a "position" (v1)')
    for item, at in items:
        actors.add(kind, item, at)


def _items(text: Raw, where: str) -> list[tuple[Raw, str]]:
    """Return the items of an array with their key paths; one object stands for an array of it."""
    if begins_with(text, b'['):
        return [(item, f'{where}[{i}]') for i, item in enumerate(_ITEMS.decode(text))]
    if begins_with(text, b'{'):
        return [(text, where)]
    value = parse_finite(text)
    if value is not None:
        raise wrong(where, value, 'an array')
    return []


class _ActorReader:

    def __init__(self, reader: TypedReader, frame: PartialFrame) -> None:
        self.reader, self.frame = reader, frame
        self._names: set[str] = set()

    def add(self, kind: str, text: Raw, where: str, name: str | None = None) -> None:
        """Add an actor, under ``name`` if it has none itself, or the fault in it."""
        actor = self._decoded(kind, text, where, name)
        if isinstance(actor, DecodeError):
            self.frame.add_fault(DROPPED, actor)
            return
        # A vehicle has its name in its state.
        named: Any = getattr(actor, 'state', actor)
        found: str = named.name
        if found in self._names:
            self.frame.add_fault(DUPLICATE, wrong(where, found, 'a name that no other actor has'))
            return
        self._names.add(found)
        frame = self.frame
        if kind == 'flat':
            frame.names.append(found)
        kept: dict[str, list[Any]] = {
            'state': frame.objects, 'vehicle': frame.vehicles, 'flat': frame.flat}
        kept[kind].append(actor)

    def _decoded(self, kind: str, text: Raw, where: str,
                 name: str | None) -> Actor | DecodeError:
        try:
            if name is None:
                return _checked(self.reader.read(kind, text), where)
        except NOT_TYPED:
            pass
        try:
            value = parse_finite(text)
        except DecodeError as error:
            return DecodeError(where, error.found, error.expected)
        if not isinstance(value, dict):
            return wrong(where, value, 'an object')
        try:
            usual = _usual(value, is_flat=kind == 'flat')
            if name is not None:
                usual['name'] = name
            return _checked(self.reader.read(kind, encode(usual)), where)
        except NOT_TYPED as error:
            return _error_of(str(error), value, where)


def _checked(actor: Actor, where: str) -> Actor | DecodeError:
    ids: list[Json] = [wheel.id for wheel in getattr(actor, 'wheels', ())
                       if hasattr(wheel, 'id')]
    return actor if len(set(ids)) == len(ids) else wrong(
        f'{where}.wheels', ids, 'each wheel id once')


# Members of the three usual forms; motions and poses of wheels may lack components.
_MOTIONS = frozenset(('velocity', 'linear_velocity', 'angular_velocity'))
_VECTORS = _MOTIONS | {'position', 'center', 'extents', 'scale'}
_ROTATION = 'orientation'
_LISTS = frozenset(('tags', 'wheels', 'wheel_speed', 'oriented_bounding_box'))
_MAX_EXACT = 2.0 ** 53


def _usual(value: Mapping[str, Json], *, is_flat: bool, is_open: bool = False) -> dict[str, Json]:
    """Spell an object in the usual way, as far as it can be."""
    usual: dict[str, Json] = {}
    for key, item in value.items():
        if key in _VECTORS:
            usual[key] = _components(item, 'xyz', is_flat, is_open or key in _MOTIONS)
        elif key == _ROTATION:
            usual[key] = _components(_unrotated(item), 'xyzw', is_flat, False)
        elif key in _LISTS and item is not None:
            items = item if isinstance(item, list) else [item] if item != '' else []
            usual[key] = [_usual(part, is_flat=is_flat, is_open=is_open or key == 'wheels')
                          if isinstance(part, dict) else part for part in items]
        elif isinstance(item, dict):
            usual[key] = _usual(item, is_flat=is_flat, is_open=is_open)
        elif isinstance(item, float) and abs(item) < _MAX_EXACT and (
                item.is_integer() or key == 'time'):
            usual[key] = int(item)
        elif isinstance(item, int) and not INT64_MIN <= item <= INT64_MAX:
            usual[key] = float(item)
        elif item is not None:
            usual[key] = item
    return usual


def _components(item: Json, keys: str, is_flat: bool, is_open: bool) -> Json:
    """Return a vector or quaternion as an object, or as a list for the flat generations."""
    if item is None:
        item = dict.fromkeys(keys)
    if isinstance(item, list) and len(item) == len(keys):
        item = dict(zip(keys, item, strict=True))
    if not isinstance(item, dict):
        return item
    if is_open:
        item = {**dict.fromkeys(keys), **item}
    return [item[key] for key in keys] if is_flat and item.keys() >= set(keys) else item


def _unrotated(item: Json) -> Json:
    """Return the quaternion of a rotator, ``{pitch, yaw, roll}`` in degrees; others unchanged."""
    if not isinstance(item, dict) or 'w' in item or 'yaw' not in item:
        return item
    angles = [item.get(key, '') for key in ('roll', 'pitch', 'yaw')]
    if not all(angle is None or type(angle) in (int, float) for angle in angles):
        return item
    rotator = np.array(angles, np.float64)
    return dict(zip('xyzw', mirrored_orientation(to_rep103_rotator(rotator)).tolist(),
                    strict=True))


_PLACE = re.compile(r'(.*?)(?: - at `\$(.*)`)?', re.DOTALL)
_STEP = re.compile(r'\.(\w+)|\[(\d+)\]')
_MISSING = re.compile(r'Object missing required field `(.*)`')
_EXPECTED = re.compile(r'Expected (.*?)(?:, got `.*`)?')
_TYPE = re.compile(r'`(\w+)(?: \| null)?`')
_WORDS = {'int': 'an integer', 'float': 'a number', 'str': 'a string', 'bool': 'true or false',
          'object': 'an object', 'array': 'an array'}
_VECTOR, _QUATERNION = '{x, y, z} or [x, y, z]', '{w, x, y, z} or [x, y, z, w]'


def _error_of(text: str, value: Json, where: str) -> DecodeError:
    """Return the error for an actor that msgspec refuses with ``text``."""
    match = _PLACE.fullmatch(text)
    assert match is not None
    what, path = match[1], match[2] or ''
    missing = _MISSING.fullmatch(what)
    if missing is not None:
        path += f'.{missing[1]}'
    steps = _STEP.findall(path)
    for key, index in steps:
        value = _at(value, key, int(index or 0))
    last = steps[-1][0] if steps else ''
    refused = _EXPECTED.fullmatch(what)
    expected = _VECTOR if last in _VECTORS else _QUATERNION if last == _ROTATION else 'a value' \
        if missing is not None else what if refused is None else _TYPE.sub(
            lambda name: _WORDS.get(name[1], name[1]), refused[1])
    return DecodeError(where + path, 'nothing', expected) if value is _ABSENT \
        else wrong(where + path, value, expected)


_ABSENT = object()


def _at(value: Json, key: str, index: int) -> Json:
    """Return a member or an item of a value in whatever form it was sent."""
    if isinstance(value, list):
        index = 'xyzw'.find(key) if key else index
        return value[index] if 0 <= index < len(value) else _ABSENT
    if not isinstance(value, dict):
        return value
    # One object stands for an array of it, and an object for a vector.
    return value.get(key, _ABSENT) if key else value.get('xyzw'[index:index + 1], value)
