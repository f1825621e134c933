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
Payloads in unusual JSON, decoded actor by actor and, if needed, member by member.

The generation is recognized as in doc/protocol/frames.md#recognition. An actor in the usual format
is still decoded at once, the others member by member, which takes thirty times as long.

A member that is missing or ``null`` gets its default; without a default, a missing one is an
error. Vectors and quaternions may have each format of doc/protocol/frames.md#vector-formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import GenericAlias, UnionType
from typing import Any, cast, get_args, get_origin, TypeAlias, TypeVar, Union

import msgspec
from msgspec import Meta, NODEFAULT, Raw, Struct
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.json_values import (
    Json,
    located,
    member,
    NO_TRIPLE,
    NOT_TYPED,
    Number,
    parse_payload,
    Quadruple,
    shortened,
    to_flag,
    to_integer,
    to_list,
    to_number,
    to_object,
    to_quadruple,
    to_text,
    to_triple,
    Triple,
    wrong,
)
from state_sensor_ros.simulators.monodrive.wire import (
    Actors,
    FlatActor,
    FrameV2,
    ITEMS,
    JsonDecoders,
    MEMBERS,
    MEMBERS_OR_ITEMS,
    NO_VECTOR,
    PayloadHead,
    Quaternion,
    State,
    UnreadControlState,
    V0,
    V1,
    V2,
    Vector,
    Vehicle,
)

# Reads parsed JSON with a key path; raises DecodeError with key path, found and expected.
Reader: TypeAlias = Callable[[Json, str], Any]
_Struct = TypeVar('_Struct', bound=Struct)

# The types that JSON has in another format, and None, as which an optional member is read.
_NOT_READ = (Raw, UnreadControlState, type(None))
_WORDS = {Vector: 'a vector', Triple: 'a vector', Quaternion: 'a quaternion',
          Quadruple: 'a quaternion', str: 'a string', int: 'an integer', bool: 'true or false'}


def read_struct(kind: type[_Struct], value: Mapping[str, Json], where: str) -> _Struct:
    """
    Read an object by the annotations of a type.

    :param kind: a type of ``wire``; an actor whose wheels have ids has each id once.
    :param value: parsed JSON.
    :param where: its key path.
    :raises DecodeError: if a member is invalid, a required one missing, or a wheel id repeated.
    """
    read = kind(**{name: read_member(value, where) for name, read_member in _members(kind)})
    ids = _wheel_ids(read)
    if len(set(ids)) < len(ids):
        raise wrong(f'{where}.wheels', ids, 'each wheel id once')
    return read


def _wheel_ids(actor: Struct) -> list[Json]:
    return [wheel.id for wheel in getattr(actor, 'wheels', ())]


def read_optional(kind: type[Struct], key: str, value: Mapping[str, Json],
                  where: str) -> Any:  # noqa: ANN401
    """
    Read one member of an object and none of its others.

    :param kind: type of the object.
    :param key: name of the member, which has a default.
    :param value: parsed JSON.
    :param where: key path of the object, empty at the top.
    :raises DecodeError: if it is invalid.
    """
    return dict(_members(kind))[key](value, where)


@lru_cache(maxsize=32)
def nested_types(kind: type[Struct]) -> dict[str, type[Struct] | None]:
    """
    Return the members of a type, each with the type of the object or objects in it.

    :param kind: a type of ``wire``.
    :returns: None for a member whose content is a value: a number, a text, a vector.
    """
    found: dict[str, type[Struct] | None] = {}
    for declared in msgspec.structs.fields(kind):
        plain, _ = _plain(declared.type)
        items = get_args(plain)
        item = items[0] if items and items[-1] is ... else plain
        is_object = isinstance(item, type) and issubclass(item, Struct) \
            and item not in (Vector, Quaternion)
        found[declared.name] = item if is_object else None
    return found


@lru_cache(maxsize=32)
def _members(kind: type[Struct]) -> tuple[tuple[str, Reader], ...]:
    """Return what reads each member out of an object with its key path."""
    return tuple((declared.name, _member_reader(declared))
                 for declared in msgspec.structs.fields(kind))


def _member_reader(declared: msgspec.structs.FieldInfo) -> Reader:
    key, default = declared.name, declared.default
    plain, is_optional = _plain(declared.type)
    # A vector whose default is unknown may lack components, which are unknown then.
    read = _reader(plain, is_complete=default not in (NO_VECTOR, NO_TRIPLE))

    def read_required(owner: Mapping[str, Json], where: str) -> Any:  # noqa: ANN401
        return read(member(owner, key, where, _word(plain)), f'{where}.{key}')

    def read_or_default(owner: Mapping[str, Json], where: str) -> Any:  # noqa: ANN401
        value = owner.get(key)
        # NaN is how an optional integer may be written; as a number it is the same as none.
        if value is None or (is_optional and value != value):
            return default
        return read(value, f'{where}.{key}' if where else key)

    return cast(Reader, read_required if default is NODEFAULT else read_or_default)


def _plain(annotation: Any) -> tuple[Any, bool]:  # noqa: ANN401
    """Return the type that is read in place of an annotation, and whether it may be None."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation, False
    parts = get_args(annotation)
    return next(part for part in parts if part not in _NOT_READ), type(None) in parts


def _reader(plain: Any, *, is_complete: bool = True) -> Reader:  # noqa: ANN401
    if plain is Vector:
        return lambda value, where: Vector(*to_triple(value, where, complete=is_complete))
    if plain is Quaternion:
        return lambda value, where: _quaternion(*to_quadruple(value, where))
    if plain == Triple:
        return lambda value, where: to_triple(value, where, complete=is_complete)
    if plain == Quadruple:
        return to_quadruple
    items = get_args(plain)
    if items and items[-1] is ...:
        read = _reader(_plain(items[0])[0])
        return lambda value, where: tuple(
            [read(item, path) for item, path in located(to_list(value, where), where)])
    if hasattr(plain, '__metadata__'):
        limits: Meta = plain.__metadata__[0]
        return lambda value, where: to_integer(
            value, where, cast(int, limits.ge), cast(int, limits.le))
    if plain in (str, bool, float):
        return cast(Reader, {str: to_text, bool: to_flag, float: to_number}[plain])
    return lambda value, where: read_struct(plain, to_object(value, where), where)


def _quaternion(x: Number, y: Number, z: Number, w: Number) -> Quaternion:
    return Quaternion(w, x, y, z)


def _word(plain: Any) -> str:  # noqa: ANN401
    return _WORDS.get(getattr(plain, '__origin__', plain)) or _WORDS.get(plain, 'an object')


STRING_KEY = 'state_data_as_string'
HEAD_KEYS = ('game_time', 'time', 'sample_count')

# Frames of one payload. Each element of `[0,0,…]`, two bytes, takes a thousand times its memory.
MAX_FRAMES = 1 << 18
# Errors kept of one frame: enough to find the cause, too few to matter in memory.
_MAX_MESSAGES = 100

Actor = TypeVar('Actor', State, Vehicle, FlatActor)


@dataclass(frozen=True, slots=True)
class LenientFrame:
    """
    One frame: typed actors, and the errors of those that were dropped.

    ``value`` the parsed frame; ``head`` its ``game_time``, ``time`` and ``sample_count``, None
    for those missing; ``names`` of ``flat`` actors; ``dropped`` and ``duplicates`` have one
    error for each actor.
    """

    generation: str
    value: Mapping[str, Json]
    head: PayloadHead
    objects: list[State] = field(default_factory=list)
    vehicles: list[Vehicle] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    flat: list[FlatActor] = field(default_factory=list)
    dropped: list[DecodeError] = field(default_factory=list)
    duplicates: list[DecodeError] = field(default_factory=list)


def lenient_frames(payload: bytes | bytearray | memoryview,
                   typed: JsonDecoders) -> list[LenientFrame]:
    """
    Decode a payload as far as possible.

    :param payload: JSON text, UTF-8.
    :param typed: decoders for actors in the usual format.
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
    """Recognize the generation of a frame object and read its actors."""
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
    lenient.flat.extend(_kept(located(frame, where), typed.flat, FlatActor, lenient, set()))
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
            _note(lenient.dropped, error)
        else:
            lenient.names.append(name)
    return lenient


def _frame_of_v2(value: Mapping[str, Json], start: str, typed: JsonDecoders,
                 lists: Mapping[str, list[Json]]) -> LenientFrame:
    """Read ``objects`` and ``vehicles``, or a ``frame`` that is an array of vehicles (key '')."""
    lenient = LenientFrame(V2, value, _head(value, start))
    seen: set[str] = set()
    for key, actors in lists.items():
        items = located(actors, f'{start}frame.{key}'.rstrip('.'))
        if key == 'objects':
            lenient.objects.extend(_kept(items, typed.state, State, lenient, seen))
        else:
            lenient.vehicles.extend(_kept(items, typed.vehicle, Vehicle, lenient, seen))
    return lenient


def _head(value: Mapping[str, Json], start: str) -> PayloadHead:
    game_time, time, sample_count = (
        read_optional(FrameV2, key, value, start.rstrip('.')) for key in HEAD_KEYS)
    return game_time, time, sample_count


def _kept(items: Iterable[tuple[Json, str]], typed: JsonDecoder[Actor], kind: type[Actor],
          lenient: LenientFrame, seen: set[str]) -> Iterator[Actor]:
    """Yield the actors that can be read and whose names are not in ``seen``."""
    for item, where in items:
        try:
            actor = _read(item, where, typed, kind)
        except DecodeError as error:
            _note(lenient.dropped, error)
            continue
        # A vehicle has its name in its state.
        named: Any = getattr(actor, 'state', actor)
        name = named.name
        if name in seen:
            _note(lenient.duplicates, wrong(where, name, 'a name that no other actor has'))
            continue
        seen.add(name)
        yield actor


def _read(item: Json, where: str, typed: JsonDecoder[Actor], kind: type[Actor]) -> Actor:
    """Return one actor, from its text if it is in the usual format, else member by member."""
    if isinstance(item, msgspec.Raw):
        try:
            actor = typed.decode(item)
        except NOT_TYPED:
            pass
        else:
            ids = _wheel_ids(actor)
            if len(set(ids)) == len(ids):
                return actor
        item = parse_payload(item)
    return read_struct(kind, to_object(item, where), where)


def _note(errors: list[DecodeError], error: DecodeError) -> None:
    """Append an error without its traceback, which would keep the whole payload in memory."""
    if len(errors) < _MAX_MESSAGES:
        error.__context__ = error.__cause__ = None
        errors.append(error.with_traceback(None))
    elif len(errors) == _MAX_MESSAGES:
        errors.append(DecodeError('payload', f'more than {_MAX_MESSAGES} bad actors', 'none'))
    else:
        errors.append(errors[-1])


# Bounds the memory when a peer sends a new key in each frame.
MAX_UNKNOWN_MEMBERS = 64


def unknown_members(generation: str, value: Mapping[str, Json], *, in_text: bool) -> set[str]:
    """
    Return the key paths of unknown members, ``[]`` for any index.

    :param generation: generation of the frame.
    :param value: the parsed frame.
    :param in_text: whether to parse actors that are still text, one by one.
    :returns: at most MAX_UNKNOWN_MEMBERS paths such as ``frame.vehicles[].state.foo``.
    """
    found: set[str] = set()
    for path in _unknown(generation, value, in_text):
        found.add(path)
        if len(found) == MAX_UNKNOWN_MEMBERS:
            break
    return found


def _unknown(generation: str, value: Mapping[str, Json], in_text: bool) -> Iterator[str]:
    if generation == V0:
        for key, item in value.items():
            if isinstance(item, dict):
                yield from _walk(item, FlatActor, '<actor>')
            elif key not in HEAD_KEYS:
                yield shortened(key)
        return
    for key in value:
        if key not in (*HEAD_KEYS, STRING_KEY, 'frame'):
            yield shortened(key)
    frame = value.get('frame')
    known: type[Struct] = FlatActor
    if isinstance(frame, dict):
        known = Actors
    elif isinstance(frame, list) and any(isinstance(a, dict) and 'state' in a for a in frame):
        known = Vehicle
    yield from _walk(frame, known, 'frame', in_text)


def _walk(value: Json, known: type[Struct], path: str, in_text: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            inner = _parsed(item, known) if in_text and isinstance(item, Raw) else item
            # Arrays in arrays are skipped, at any depth: they have no members.
            if isinstance(inner, dict):
                yield from _walk(inner, known, f'{path}[]')
    elif isinstance(value, dict):
        nested = nested_types(known)
        for key, item in value.items():
            at = f'{path}.{shortened(key)}'
            if key not in nested:
                yield at
            elif (inside := nested[key]) is not None:
                yield from _walk(item, inside, at, in_text)


def _parsed(item: Raw, known: type[Struct]) -> Json:
    """
    Parse an actor that may have unknown members.

    :returns: None if it has none, or if a skipped member is nested too deep to be parsed.
    """
    try:
        # A fifth of the time of parsing and walking, in the first frame of many actors.
        _known_alone(known).decode(item)
    except NOT_TYPED:
        try:
            return parse_payload(item)
        except DecodeError:
            pass
    return None


@lru_cache(maxsize=8)
def _known_alone(known: type[Struct]) -> JsonDecoder[Any]:
    """Return a decoder that raises if there are members beside the known ones."""
    return JsonDecoder(_exact(known))


def _exact(known: type[Struct]) -> type:
    """Make a type of objects, and of arrays of objects, that have known members alone."""
    own = msgspec.defstruct('Known', [
        (name, Raw if inside is None else _exact(inside), None)
        for name, inside in nested_types(known).items()], forbid_unknown_fields=True, gc=False)
    return cast('type', Union[own, GenericAlias(tuple, (own, ...)), None])  # noqa: UP007
