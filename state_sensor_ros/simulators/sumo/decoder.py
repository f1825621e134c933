# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Decodes SUMO's FCD output: each `<timestep>` element, found in the text, is one frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
import math
import re
from typing import BinaryIO
from xml.parsers import expat

import numpy as np

from state_sensor_ros.simulators import (
    Decoded,
    DecodeError,
    DROPPED,
    DUPLICATE,
    Fault,
    RIDER,
    TrajectoryFormatError,
    UNDECLARED,
)
from state_sensor_ros.simulators.frame_arrays import Floats
from state_sensor_ros.simulators.sumo.map import PEDESTRIAN
from state_sensor_ros.simulators.sumo.step_frames import (
    ActorType,
    FASTEST_PERSON,
    N_COLUMNS,
    PASSENGER,
    SPEED,
    StepFrames,
    usual_size,
    with_roads,
    X,
    Y,
)

# Attributes of an actor in the order of the columns; optional ones have a default.
_ATTRIBUTES = (('x', None), ('y', None), ('z', 0.0), ('angle', math.nan), ('slope', 0.0),
               ('speed', math.nan), ('speedLat', math.nan), ('pos', math.nan),
               ('signals', math.nan))
_BESIDE = 'a vehicle, or a person outside of vehicles'
_DECLARED = 'a vType in a file that the header names, in one beside it, or in -p sumo.types:=FILE'
# Classes of SUMO's own types, for actors without a type of their own.
_CLASSES_OF_DEFAULTS = {'DEFAULT_BIKETYPE': 'bicycle', 'DEFAULT_TAXITYPE': 'taxi',
                        'DEFAULT_RAILTYPE': 'rail', 'DEFAULT_PEDTYPE': PEDESTRIAN}


class StepDecoder:
    """
    Decodes the steps of one run, in their order.

    A person at the place of a vehicle rides in it, and is dropped: FCD output does not say so
    unless the attribute `vehicle` is requested. Each rider, and each actor of a type that is not
    declared, is a fault in its first step.
    """

    def __init__(self, maker: StepFrames, types: Mapping[str, ActorType],
                 vehicles: StepScanner | None = None, faults: tuple[Fault, ...] = ()) -> None:
        self._maker, self._types = maker, types
        self._vehicles = iter(()) if vehicles is None else vehicles.steps()
        self._reported: set[tuple[str, str]] = set()
        # Those of the whole run are reported in its first step.
        self._faults = faults
        # The step of the vehicles that was read last.
        self._beside = _Step({})

    def decode(self, text: bytes) -> Decoded:
        step = _parsed(text, self._types)
        columns = np.array(step.rows, float).reshape(len(step.ids), N_COLUMNS)
        riders = self._riders(step, columns)
        kept = [i for i in range(len(columns)) if i not in riders]
        ids = list(step.ids)
        frame = self._maker.frame(
            step.time, [ids[i][1] for i in kept], [step.types[i] for i in kept],
            [step.places[i] for i in kept], columns[kept], 10.0 ** -step.n_decimals)
        step.omitted += [(RIDER, ids[i][1], f'a person in {vehicle}', _BESIDE)
                         for i, vehicle in riders.items()]
        step.omitted += [(UNDECLARED + name, ids[i][1],
                          'no vType, so class and size are assumed', _DECLARED)
                         for i, name in step.undeclared.items() if i not in riders]
        faults = []
        for kind, name, found, expected in step.omitted:
            if (kind, name) not in self._reported:
                self._reported.add((kind, name))
                faults.append(Fault(kind, DecodeError(name, found, expected)))
        faults = [*self._faults, *step.faults, *faults]
        self._faults = ()
        return Decoded(with_roads(frame, self._maker.network), tuple(faults))

    def _riders(self, step: _Step, columns: Floats) -> dict[int, str]:
        """Return the rows of people in vehicles, and the names of these."""
        people = [i for i, kind in enumerate(step.types) if kind.is_person]
        if not people:
            return {}
        places = _vehicle_places(step)
        if not places:
            while not self._beside.time >= step.time and (text := next(self._vehicles, b'')):
                self._beside = _parsed(text, {})
            if self._beside.time == step.time:
                places = _vehicle_places(self._beside)
        fast = dict.fromkeys(np.flatnonzero(columns[:, SPEED] > FASTEST_PERSON).tolist(),
                             'a vehicle that is not in the output')
        return {i: vehicle for i in people
                if (vehicle := places.get(tuple(columns[i, [X, Y]].tolist()), fast.get(i, '')))}


def _vehicle_places(step: _Step) -> dict[tuple[float, ...], str]:
    return {(row[X], row[Y]): f'vehicle {name}' for (tag, name), row in zip(
        step.ids, step.rows, strict=True) if tag == 'vehicle'}


def _parsed(text: bytes, types: Mapping[str, ActorType]) -> _Step:
    step = _Step(types)
    parser = expat.ParserCreate()
    parser.StartElementHandler = step.start
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise DecodeError(f'line {error.lineno} of the step', expat.ErrorString(error.code),
                          'XML') from error
    return step


class _Step:

    def __init__(self, types: Mapping[str, ActorType]) -> None:
        self.time = math.nan
        # Vehicles and persons have ids of their own.
        self.ids: dict[tuple[str, str], None] = {}
        self.types: list[ActorType] = []
        self.places: list[str] = []
        self.n_decimals = 0
        self.rows: list[list[float]] = []
        self.faults: list[Fault] = []
        # Kind of the fault, name, what was found and expected: one fault for each actor.
        self.omitted: list[tuple[str, str, str, str]] = []
        # Rows and types of actors whose type is not known.
        self.undeclared: dict[int, str] = {}
        self._known = types

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == 'timestep':
            try:
                self.time = _seconds(attributes.get('time', ''))
            except ValueError as error:
                raise DecodeError('timestep time', repr(attributes.get('time')),
                                  'a number of seconds') from error
        elif tag in ('vehicle', 'person') and not attributes.get('vehicle'):
            self._add(tag, attributes)
        elif tag in ('vehicle', 'person', 'container'):
            kind, found = (DROPPED, 'a container') if tag == 'container' \
                else (RIDER, f'a {tag} in vehicle {attributes["vehicle"]}')
            self.omitted.append((kind, attributes.get('id', ''), found, _BESIDE))

    def _add(self, tag: str, attributes: dict[str, str]) -> None:
        name = attributes.get('id', '')
        if not name:
            self.faults.append(Fault(DROPPED, DecodeError(tag, 'no id', 'an id')))
            return
        if (tag, name) in self.ids:
            self.faults.append(Fault(DUPLICATE, DecodeError(
                f'{tag} {name}', f'a second {tag} of this id', 'one')))
            return
        try:
            row = [_number(attributes, key, default) for key, default in _ATTRIBUTES]
        except ValueError as error:
            self.faults.append(Fault(DROPPED, DecodeError(f'{tag} {name}', str(error),
                                                          'numbers')))
            return
        self.ids[tag, name] = None
        self.n_decimals = max(self.n_decimals, len(attributes['x'].partition('.')[2]))
        self.rows.append(row)
        self.places.append(attributes.get('lane' if tag == 'vehicle' else 'edge', ''))
        self.types.append(self._type(tag, attributes.get('type', '')))

    def _type(self, tag: str, name: str) -> ActorType:
        # Distributions and routers append a number or an id to the name of a type: car@3.
        name = name.partition('@')[0]
        known, is_person = self._known.get(name), tag == 'person'
        if known:
            return replace(known, is_person=True) if is_person else known
        is_assumed = not name.startswith('DEFAULT_')
        if name and is_assumed:
            self.undeclared[len(self.types)] = name
        vclass = _CLASSES_OF_DEFAULTS.get(name, PEDESTRIAN if is_person else PASSENGER)
        return ActorType(vclass, usual_size(vclass), is_person, is_assumed)


def _seconds(text: str) -> float:
    """Return a time, s, also one of --human-readable-time: [days:]hours:minutes:seconds."""
    units = (1.0, 60.0, 3600.0, 86400.0)
    parts = text.removeprefix('-').split(':')
    time_s = sum(float(part) * unit for part, unit in zip(reversed(parts), units, strict=False))
    if len(parts) > len(units) or not math.isfinite(time_s):
        raise ValueError(text)
    return -time_s if text.startswith('-') else time_s


def _number(attributes: dict[str, str], key: str, default: float | None) -> float:
    text = attributes.get(key)
    if text is None:
        if default is None:
            raise ValueError(f'no {key}')
        return default
    with suppress(ValueError):
        number = float(text)
        if default is not None or math.isfinite(number):
            return number
    raise ValueError(f'{key} {text!r}')


# A comment, a step, or a tag of the root element.
_TOKEN = re.compile(rb'<!--|<timestep[\s/>]|</?fcd-export[\s/>]')
_LONGEST_TOKEN = len('</fcd-export>')
_BLOCK_BYTES = 262144
# Longest step; one of a hundred thousand vehicles takes 30 MB.
_MAX_STEP_BYTES = 67108864


class StepScanner:
    """Finds `<timestep>` elements."""

    # offset: of the step that was found last.

    def __init__(self, content: BinaryIO, name: str, offset: int = 0, n_steps: int = 0) -> None:
        self.offset, self.n_steps = offset, n_steps
        self.is_in_step = self.is_over = False
        self._content, self._name = content, name
        self._text = bytearray()

    def steps(self) -> Iterator[bytes]:
        while token := self._next_token():
            self.is_in_step = token.startswith(b'<timestep')
            end = self._end_of(token)
            if not end:
                return
            if self.is_in_step:
                self.is_in_step = False
                self.n_steps += 1
                yield bytes(self._text[:end])
            elif b'fcd-export' in token:
                self.is_over = token.startswith(b'</') or self._is_empty_tag(end)
            self._omit(end)

    def _next_token(self) -> bytes:
        """Return the next token, with which the text then begins; empty at the end."""
        while (match := _TOKEN.search(self._text)) is None:
            # A token may be cut at the end of a block.
            self._omit(max(0, len(self._text) - _LONGEST_TOKEN))
            if not self._read():
                return b''
        token = bytes(match[0])
        self._omit(match.start())
        return token

    def _omit(self, n_bytes: int) -> None:
        del self._text[:n_bytes]
        self.offset += n_bytes

    def _end_of(self, token: bytes) -> int:
        """Return the end of what begins with a token, 0 if the text ends before."""
        if token == b'<!--':
            return self._after(b'-->', len(token))
        # The last character may be the end of the tag.
        end = self._after(b'>', len(token) - 1)
        if self.is_in_step and end and not self._is_empty_tag(end):
            end = self._after(b'</timestep', end)
            return end and self._after(b'>', end)
        return end

    def _is_empty_tag(self, end: int) -> bool:
        return self._text.endswith(b'/>', 0, end)

    def _after(self, mark: bytes, begin: int) -> int:
        """Return the place after the next mark, 0 if there is none."""
        while (place := self._text.find(mark, begin)) < 0:
            begin = max(begin, len(self._text) - len(mark) + 1)
            if not self._read():
                return 0
        return place + len(mark)

    def _read(self) -> bool:
        if len(self._text) > _MAX_STEP_BYTES:
            raise TrajectoryFormatError(
                f'{self._name}: step {self.n_steps + 1}', f'more than {_MAX_STEP_BYTES} bytes',
                f'at most {_MAX_STEP_BYTES}')
        block = self._content.read(_BLOCK_BYTES)
        self._text += block
        return bool(block)
