# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Members of a payload that no known generation has, by key path; types are not checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import GenericAlias
from typing import Any, cast, Union

import msgspec
from msgspec import Raw, Struct
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.json_text import Json, NOT_TYPED, parse_payload, shortened
from state_sensor_ros.simulators.monodrive.generations.lenient_payload import HEAD_KEYS, STRING_KEY
from state_sensor_ros.simulators.monodrive.generations.tolerant_reading import nested_types
from state_sensor_ros.simulators.monodrive.generations.wire import Actors, FlatActor, V0, Vehicle

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
