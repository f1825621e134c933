# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""FCD output of SUMO as a recording: its steps, and the files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
import math
from operator import itemgetter
import os.path
from pathlib import Path
import pickle
import re
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import unescape

import numpy as np

from state_sensor_ros import source
from state_sensor_ros.errors import ConfigError, DecodeError, TrajectoryFormatError, TruncatedError
from state_sensor_ros.files import input as files
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Floats, Frame
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.map import NO_NETWORK, PEDESTRIAN, read_network, RoadNetwork
from state_sensor_ros.simulators.sumo.steps import (
    ActorType,
    COLUMNS,
    PASSENGER,
    Run,
    Steps,
    usual_size,
)

SUFFIXES = '.xml', '.xml.gz'
_ROOT = 'fcd-export'
_BLOCK_BYTES = 262144
_NETWORK = 'this file, one beside the recording, or -p sumo.net:=FILE'
_DECLARED = 'a vType in a file that the header names, or in one beside it'
_BESIDE = 'a vehicle, or a person outside of vehicles'
# Options in the header, with the values that SUMO takes as true, and the positions they give.
_REFUSED = (
    (r'(?i)<fcd-output\.(?:geo|utm) value="(?:1|yes|true|on|x|t)"',
     'positions that are not those of the network (--fcd-output.geo or --fcd-output.utm)'),
    (r'<fcd-output\.attributes value="(?!all")(?!(?=[^"]*\bx\b)(?=[^"]*\by\b))',
     'no positions (--fcd-output.attributes without x and y)'))
# Classes of SUMO's own types, for actors without a type of their own.
_CLASSES_OF_DEFAULTS = {'DEFAULT_BIKETYPE': 'bicycle', 'DEFAULT_TAXITYPE': 'taxi',
                        'DEFAULT_RAILTYPE': 'rail', 'DEFAULT_PEDTYPE': PEDESTRIAN}
# Texts that follow the attributes of an element, and stand for those that it lacks; its tag is the
# last one.
_PADDING = '', '0', 'nan'
_DEFAULTS = {**dict.fromkeys(COLUMNS, -2), 'z': -3, 'slope': -3}
# What a row of an element has before the numbers: tag, id, type, lane or edge, and vehicle.
_N_TEXTS = 5
_CUT = [expat.errors.codes[text] for text in (
    expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN,
    expat.errors.XML_ERROR_PARTIAL_CHAR)]


class FcdRecording(FrameFile):
    """
    An FCD file; network and types are read from files beside it.

    :param options: with the network, the ego and the types of the parameters.
    """

    def __init__(self, name: str, options: ReadOptions) -> None:
        super().__init__(name, 'FCD output', 'sumo')
        path, own = Path(name), options.settings.of(SumoParameters)
        head = _head_of(path)
        for pattern, found in _REFUSED:
            if re.search(pattern, head.text):
                raise TrajectoryFormatError(self.name, found,
                                            'meters, as SUMO writes without this option')
        if head.root != _ROOT:
            raise TrajectoryFormatError(
                self.name, f'the XML element <{head.root}>' if head.root
                else 'no XML element at the beginning', 'FCD output of SUMO (`--fcd-output`)')
        beside = Neighbors(path, head.text)
        self.network = read_network(own.net) if own.net else beside.network()
        self._types, self._missing = beside.types(), beside.missing
        self._encoding, self._ego = head.encoding, own.ego
        self._state: tuple[int, Run] | None = None

    def mark(self) -> bytes | None:
        """Return the offset of the last step, and what was before it."""
        return pickle.dumps(self._state) if self._state else None

    def read(self, mark: bytes | None) -> Iterator[Frame]:
        """Yield the frames; those of whole steps if the file was cut."""
        offset, run = pickle.loads(mark) if mark else (0, Run())
        # The step of the mark is read again for what is before the next one.
        decoder = StepDecoder(Steps(self.network, self._ego, run), self._types,
                              source.Faults() if mark else self.faults)
        for error in () if mark else self._missing:
            self.faults.add(source.MISSING, error)
        with files.open_input(self.name) as file:
            content, compressed = files.decompressed(file)
            content.seek(offset)
            scanner = _Scanner(content, offset, self._encoding)
            try:
                for step in scanner.steps():
                    if not self._encoding.startswith('utf-16'):
                        self._state = step.offset, replace(decoder.steps.run)
                    frame = decoder.decode(step)
                    if decoder.faults is self.faults:
                        yield frame
                    decoder.faults = self.faults
            except expat.ExpatError as error:
                if content.read(1) or error.code not in _CUT:
                    raise TrajectoryFormatError(
                        f'{self.name}: line {error.lineno}', expat.ErrorString(error.code),
                        'XML') from error
        if compressed is not None:
            compressed.check_undamaged(self.name)
        if not scanner.is_over:
            raise TruncatedError(
                self.name, 'the end of the file', '</fcd-export>', n_frames=scanner.n_steps, end=0,
                lost='what follows the last whole step', container='<fcd-export>', advice='')


def is_fcd(path: Path) -> bool:
    """Return whether a file begins as FCD output does."""
    return _head_of(path).root == _ROOT


@dataclass(slots=True)
class _Head:
    root: str = ''  # name of the root element, empty if the file does not begin as XML
    text: str = ''  # the comments before it: SUMO's configuration
    encoding: str = ''  # the declared one, in lower case


def _head_of(path: Path) -> _Head:
    head = _Head()

    def note_root(tag: str, _: object) -> None:
        head.root = head.root or tag

    def note_comment(text: str) -> None:
        head.text += '' if head.root else text

    def note_declaration(_: str, encoding: str | None, __: int) -> None:
        head.encoding = (encoding or '').lower()

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.CommentHandler = note_root, note_comment
    parser.XmlDeclHandler = note_declaration
    # An encoding that Python does not have is a LookupError.
    with path.open('rb') as file, suppress(expat.ExpatError, LookupError):
        content, _ = files.decompressed(file)
        while not head.root and (block := content.read(_BLOCK_BYTES)):
            parser.Parse(block, False)
    return head


@dataclass(slots=True)
class _Step:
    """The elements of one step, as text."""

    time: str
    offset: int  # of its first byte
    # Tag, id, type, lane or edge, vehicle, and the numbers of each element.
    rows: list[tuple[str, ...]] = field(default_factory=list)


class _Scanner:
    """Cuts FCD output into steps: a row for each actor, without looking at the values."""

    # offset: place in the content from which on it is read: 0, or the begin of a step.

    def __init__(self, content: BinaryIO, offset: int, encoding: str) -> None:
        self.n_steps = 0
        self.is_over = False
        self._content = content
        self._parser = expat.ParserCreate(encoding or None)
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        head = b'<fcd-export>' if offset else b''
        self._begin = offset - len(head)
        self._parser.Parse(head, False)
        self._step, self._done = _Step('', 0), list[_Step]()
        # The last element's tag and names of attributes, and what takes its values.
        self._layout: tuple[str, list[str]] = '', []
        self._padding: list[str] = []
        self._values = itemgetter(0, 1)

    def steps(self) -> Iterator[_Step]:
        """Yield whole steps; raise ExpatError where the text is no XML, also at its early end."""
        block = b'-'
        while block:
            block = self._content.read(_BLOCK_BYTES)
            try:
                self._parser.Parse(block, not block)
            finally:
                self.n_steps += len(self._done)
                yield from self._done
                self._done.clear()

    def _start(self, tag: str, attributes: list[str]) -> None:
        if tag == 'timestep':
            time = dict(zip(attributes[::2], attributes[1::2], strict=True)).get('time', '')
            self._step = _Step(time, self._begin + self._parser.CurrentByteIndex)
        elif tag in ('vehicle', 'person', 'container'):
            layout = tag, attributes[::2]
            if layout != self._layout:
                self._layout, self._padding = layout, [*_PADDING, tag]
                places = {name: 2 * i + 1 for i, name in enumerate(layout[1])}
                texts = 'id', 'type', 'lane' if tag == 'vehicle' else 'edge', 'vehicle'
                self._values = itemgetter(
                    -1, *(places.get(name, _DEFAULTS.get(name, -4))
                          for name in (*texts, *COLUMNS)))
            self._step.rows.append(self._values(attributes + self._padding))

    def _end(self, tag: str) -> None:
        if tag == 'timestep':
            self._done.append(self._step)
        elif tag == _ROOT:
            self.is_over = True


class StepDecoder:
    """
    Makes frames of the steps of one run, in their order.

    A person at the place of a vehicle rides in it, and is dropped: FCD output does not say so
    unless the attribute `vehicle` is requested. Each rider, and each actor of a type that is not
    declared, is a fault in its first step, and again if it comes back: those that left are
    forgotten.
    """

    def __init__(self, steps: Steps, types: Mapping[str, ActorType],
                 faults: source.Faults) -> None:
        self.steps, self.faults, self._declared = steps, faults, types
        self._types: dict[tuple[str, str], ActorType] = {}
        # Kinds of faults and names of the last step that has actors, and of this one.
        self._reported, self._present = set[tuple[str, str]](), set[tuple[str, str]]()

    def decode(self, step: _Step) -> Frame:
        try:
            time_s = _seconds(step.time)
        except ValueError as error:
            raise DecodeError('timestep time', repr(step.time), 'a number of seconds') from error
        if step.rows:
            self._reported, self._present = self._present, set()
        texts = [row[_N_TEXTS:] for row in step.rows]
        columns: Floats = np.zeros((len(texts), len(COLUMNS)))
        try:
            columns[:] = texts or columns
        except ValueError:
            columns[:] = [[_number(text) for text in row] for row in texts]
        kept = self._kept(step.rows, columns)
        rows = [step.rows[i] for i in kept]
        return self.steps.frame(time_s, [row[1] for row in rows],
                                [self._type(*row[:3]) for row in rows],
                                [row[3] for row in rows], columns[kept])

    def _kept(self, rows: list[tuple[str, ...]], columns: Floats) -> list[int]:
        """Return the places of the actors that can be used, and name the others."""
        # An attribute that is not in the output is NaN, x and y must be there.
        is_wrong = np.logical_or(np.isinf(columns).any(axis=1),
                                 np.isnan(columns[:, :2]).any(axis=1))
        places = columns[:, :2].tolist()
        vehicles = {(x, y): row[1] for row, (x, y) in zip(rows, places, strict=True)
                    if row[0] == 'vehicle'} if any(row[0] == 'person' for row in rows) else {}
        seen, kept = set(), []
        for i, (tag, name, _, _, inside, *texts) in enumerate(rows):
            if tag == 'container':
                self._fault_once(source.DROPPED, name, 'a container', _BESIDE)
            elif not name:
                self._fault(source.DROPPED, tag, 'no id', 'an id')
            elif inside or (tag == 'person' and (inside := vehicles.get((*places[i],), ''))):
                self._fault_once(source.RIDER, name, f'a {tag} in vehicle {inside}', _BESIDE)
            elif is_wrong[i]:
                wrong = [f'no {column}' if text is _PADDING[2] else f'{column} {text!r}'
                         for column, text, number in zip(COLUMNS, texts, columns[i].tolist(),
                                                         strict=True)
                         if math.isinf(number) or (column in ('x', 'y') and math.isnan(number))]
                self._fault(source.DROPPED, f'{tag} {name}', ', '.join(wrong), 'numbers')
            elif (tag, name) in seen:
                self._fault(source.DUPLICATE, f'{tag} {name}', f'a second {tag} of this id', 'one')
            else:
                seen.add((tag, name))
                kept.append(i)
        return kept

    def _fault(self, kind: str, where: str, found: str, expected: str) -> None:
        self.faults.add(kind, DecodeError(where, found, expected))

    def _fault_once(self, kind: str, where: str, found: str, expected: str) -> None:
        if (kind, where) not in self._reported and (kind, where) not in self._present:
            self._fault(kind, where, found, expected)
        self._present.add((kind, where))

    def _type(self, tag: str, name: str, type_name: str) -> ActorType:
        # Distributions and routers append a number or an id to the name of a type: car@3.
        own = type_name.partition('@')[0]
        if (known := self._types.get((tag, type_name))) is None:
            is_person = tag == 'person'
            vclass = _CLASSES_OF_DEFAULTS.get(own, PEDESTRIAN if is_person else PASSENGER)
            known = replace(self._declared[own], is_person=is_person) \
                if own in self._declared else ActorType(
                    vclass, usual_size(vclass), is_person, not own.startswith('DEFAULT_'))
            self._types[tag, type_name] = known
        if known.is_assumed and own:
            self._fault_once(source.UNDECLARED + own, name,
                             'no vType, so class and size are assumed', _DECLARED)
        return known


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.inf


def _seconds(text: str) -> float:
    """Return a time, s, also one of --human-readable-time: [days:]hours:minutes:seconds."""
    units = (1.0, 60.0, 3600.0, 86400.0)
    parts = text.removeprefix('-').split(':')
    time_s = sum(float(part) * unit for part, unit in zip(reversed(parts), units, strict=False))
    if len(parts) > len(units) or not math.isfinite(time_s):
        raise ValueError(text)
    return -time_s if text.startswith('-') else time_s


class Neighbors:
    """
    The files beside a recording: its network, and the types of its vehicles.

    :param header: the comment at the beginning of the recording, with SUMO's options.
    :ivar missing: what a file is missing, or cannot be read though nothing names it.
    """

    def __init__(self, path: Path, header: str) -> None:
        self._path, self._header = path, header
        self.missing: list[DecodeError] = []

    def network(self) -> RoadNetwork:
        """Return the network; nothing of one that nothing names and that is damaged."""
        named = self._named('net-file')[:1]
        found = named or self._files('.net')
        if len(found) > 1 and not self._likeness(found[-1]):
            raise TrajectoryFormatError(
                f'{self._path}: network',
                f'{len(found)} beside it: {", ".join(file.name for file in found)}',
                f'one, or {self._path.name.partition(".")[0]}.net.xml, or -p sumo.net:=FILE')
        if not found:
            self.missing += [DecodeError('lanes', f'no network {name}', _NETWORK)
                             for name in self._values('net-file')]
        try:
            return read_network(found[-1]) if found else NO_NETWORK
        except ConfigError as error:
            if named:
                raise
            self.missing.append(DecodeError(
                'network', error.found, f'{error.expected}; the file is not used'))
            return NO_NETWORK

    def types(self) -> dict[str, ActorType]:
        """Return types by name: of named files, then of those beside."""
        own: dict[str, ActorType] = {}
        for file in self._named('route-files', 'additional-files'):
            own = _types_of(file) | own
        beside: dict[str, ActorType] = {}
        for file in reversed(self._files('.rou', '.add', '.trips')):
            try:
                found = _types_of(file)
            except TrajectoryFormatError as error:
                self.missing.append(DecodeError(
                    file.name, error.found, f'{error.expected}; the file is not used'))
                continue
            if self._likeness(file):
                own = found | own
            for name, declared in found.items():
                if beside.setdefault(name, declared) != declared and name not in own:
                    raise TrajectoryFormatError(
                        f'{self._path}: types of vehicles', f'two of {name!r}, one in {file.name}',
                        f'one, or {self._path.name.partition(".")[0]}.rou.xml')
        return beside | own

    def _files(self, *kinds: str) -> list[Path]:
        """Return the files of some kinds beside the recording, those of its own name last."""
        found = [file for kind in kinds for suffix in SUFFIXES
                 for file in self._path.parent.glob(f'*{kind}{suffix}')]
        return sorted(found, key=lambda file: (self._likeness(file), file.name))

    def _likeness(self, file: Path) -> int:
        """Return the length of a name, up to its suffixes, if that of the recording begins so."""
        stem = re.sub(r'\.(net|rou|add|trips)\.xml(\.gz)?$', '', file.name)
        return len(stem) if self._path.name.startswith(f'{stem}.') else 0

    def _named(self, *options: str) -> list[Path]:
        """Return the existing files that options in the header name."""
        own, beside, found = self._path.absolute(), self._path.parent, list[Path]()
        # Paths are relative to the folder in which SUMO ran, by the name of its output there.
        outputs = [Path(os.path.normpath(name)).parts
                   for name in self._values('fcd-output', 'person-fcd-output')]
        folders = [own.parents[len(parts) - 1] for parts in outputs
                   if own.parts[-len(parts):] == parts != own.parts]
        for name in self._values(*options):
            # Those of another machine may lie beside the recording.
            places = (*(folder / name for folder in (*folders, beside)),
                      beside / re.split(r'[/\\]', name)[-1])
            found += [file for file in places if file.is_file()][:1]
        return found

    def _values(self, *options: str) -> list[str]:
        """Return the files that options in the header name."""
        return [unescape(value.strip()) for option in options
                for values in re.findall(f'<{option} value="([^"]*)"', self._header)
                for value in values.split(',') if value.strip()]


def _types_of(file: Path) -> dict[str, ActorType]:
    found: dict[str, ActorType] = {}

    def note(tag: str, values: dict[str, str]) -> None:
        if tag == 'vType':
            name, declared = values.get('id', ''), _declared(values)
            if found.setdefault(name, declared) != declared:
                raise ValueError(f'two types {name!r}')

    # No tree: routes may have millions of elements.
    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    try:
        with files.opened_beside(file) as text:
            parser.ParseFile(text)
    except TrajectoryFormatError:
        raise
    except (expat.ExpatError, LookupError, OSError, ValueError) as error:
        # An encoding that Python does not have is a LookupError.
        raise TrajectoryFormatError(str(file), str(error), 'types of vehicles') from error
    return found


def _declared(values: Mapping[str, str]) -> ActorType:
    vclass = values.get('vClass', PASSENGER)
    length, width, height = (
        float(values.get(name, usual)) for name, usual in zip(
            ('length', 'width', 'height'), usual_size(vclass), strict=True))
    if not all(0.0 < size < math.inf for size in (length, width, height)):
        raise ValueError(f'a size of {length:g} x {width:g} x {height:g} m')
    return ActorType(vclass, (length, width, height))
