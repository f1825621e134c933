# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""SUMO's FCD output (floating car data) as a recording, in constant memory."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
import math
import os.path
from pathlib import Path
import re
from typing import BinaryIO
from xml.parsers import expat
from xml.sax.saxutils import unescape

from state_sensor_ros.simulators import (
    DecodeError,
    Fault,
    FrameLike,
    MISSING,
    ReadOptions,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.recordings import (
    closed_on_failure,
    decompressed,
    open_positioned,
    opened_beside,
    reopened,
    ResumableFile,
)
from state_sensor_ros.simulators.sumo.decoder import StepDecoder, StepScanner
from state_sensor_ros.simulators.sumo.map import NO_NETWORK, read_network, RoadNetwork
from state_sensor_ros.simulators.sumo.parameters import SumoParameters
from state_sensor_ros.simulators.sumo.step_frames import (
    ActorType,
    PASSENGER,
    StepFrames,
    StepHistory,
    usual_size,
)

SUFFIXES = '.xml', '.xml.gz'
_FCD = b'fcd-export'
_SCENARIOS = (b'sumoConfiguration', b'configuration')
# Before the root element is a comment with SUMO's configuration.
_PROLOG = re.compile(rb'\s*(?:<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)', re.DOTALL)
_ROOT = re.compile(rb'\s*<([\w.:-]+)')
_HEAD_BYTES = 65536
# Largest content of a file with routes.
_MAX_BYTES = 1 << 30
# Largest content of a file with the vehicles, which is read in steps as the recording is.
_MAX_STEPS_BYTES = 1 << 50
_NETWORK = 'this file, one beside the recording, or -p sumo.net:=FILE'
# Options in the header, with the values that SUMO takes as true, and the positions they give.
_REFUSED = (
    (rb'(?i)<fcd-output\.geo value="(?:1|yes|true|on|x|t)"',
     'positions in degrees (--fcd-output.geo)'),
    (rb'(?i)<fcd-output\.utm value="(?:1|yes|true|on|x|t)"',
     'positions that are not those of the network (--fcd-output.utm)'),
    (rb'^(?:timestep_)?time;', 'columns of text (--output.format csv)'),
    (rb'<fcd-output\.attributes value="(?!all")(?!(?=[^"]*\bx\b)(?=[^"]*\by\b))',
     'no positions (--fcd-output.attributes without x and y)'))


class FcdRecording(ResumableFile):
    """An FCD file; network and types are read from files beside it."""

    # ego: id of the ego, `first`, or empty.
    # types: path of a file with types of vehicles, which precede others; empty for none.

    def __init__(self, path: Path, network: str = '', ego: str = '', types: str = '') -> None:
        super().__init__(str(path), 'FCD output', 'sumo')
        self._file: BinaryIO = open_positioned(path)
        with closed_on_failure(self._file):
            head = _head_of(path)
            named = _named_files(path, head, b'net-file')
            beside = network or (str(named[0]) if named else _network_beside(path))
            self.network: RoadNetwork = read_network(beside) if beside else NO_NETWORK
            self._missing = () if beside else tuple(
                Fault(MISSING, DecodeError('lanes', f'no network {name}', _NETWORK))
                for name in _names(head, b'net-file'))
            self._types = _types_of(Path(types)) if types else {}
            if types and not self._types:
                raise TrajectoryFormatError(
                    f'sumo.types: {types}', 'no <vType>', 'types of vehicles')
            for file in _named_files(path, head, b'route-files', b'additional-files'):
                self._types = _types_of(file) | self._types
            self._types = _types_beside(path, self._types) | self._types
        # With --person-fcd-output, the vehicles are in another file.
        self._vehicles = [
            file for file in _named_files(path, head, b'fcd-output')
            if b'<person-fcd-output ' in head and not file.samefile(path)]
        self._ego = ego

    def read_on(self, begin: int, state: tuple[int, int, StepHistory] | None,
                ) -> Iterator[FrameLike]:
        """Yield the frames; those of whole steps if the file was cut."""
        # state: offsets of the step and of that of the vehicles beside, and what was before them.
        offset, offset_beside, history = state or (0, 0, StepHistory())
        with ExitStack() as stack:
            content, compressed = decompressed(stack.enter_context(reopened(self._file)))
            content.seek(offset)
            scanner = StepScanner(content, self.name, offset, begin)
            vehicles: StepScanner | None = None
            for path in self._vehicles[-1:]:
                beside = stack.enter_context(opened_beside(path, _MAX_STEPS_BYTES))
                beside.seek(offset_beside)
                vehicles = StepScanner(beside, str(path), offset_beside)
            decoder = StepDecoder(StepFrames(self.network, self._ego, history), self._types,
                                  vehicles, () if begin else self._missing)
            for number, step in enumerate(scanner.steps(), begin):
                self.checkpoint(number, (
                    scanner.offset, 0 if vehicles is None else vehicles.offset, history))
                try:
                    yield decoder.decode(step)
                except DecodeError as error:
                    yield error
        if compressed is not None:
            compressed.check_undamaged(self.name)
        if not scanner.is_over:
            raise TruncatedError(
                self.name, 'the end of the file', '</fcd-export>', n_frames=scanner.n_steps, end=0,
                lost='a step that is not complete' if scanner.is_in_step
                else 'nothing but the end', container='<fcd-export>', advice='')

    def close(self) -> None:
        super().close()
        self._file.close()


def open_fcd(path: str, options: ReadOptions) -> FcdRecording:
    """Open FCD output with the network and the ego of the parameters."""
    own = options.settings.of(SumoParameters)
    head = _head_of(Path(path))
    for pattern, found in _REFUSED:
        if re.search(pattern, head):
            raise TrajectoryFormatError(path, found, 'meters, as SUMO writes without this option')
    if (root := _root_of(head)) != _FCD:
        if root in _SCENARIOS:
            raise TrajectoryFormatError(
                path, 'a scenario of SUMO', 'FCD output; `state_sensor record OUT --source sumo '
                f'-p sumo.config:={path}` runs the scenario')
        raise TrajectoryFormatError(
            path, f'the XML element <{root.decode(errors="replace")}>' if root
            else 'no XML element at the beginning', 'FCD output of SUMO (`--fcd-output`)')
    return FcdRecording(Path(path), own.net, own.ego, own.types)


def is_fcd(path: Path) -> bool:
    """Return whether a file begins as FCD output does."""
    return _root_of(_head_of(path)) == _FCD


def _root_of(head: bytes) -> bytes:
    at = len(BOM_UTF8) if head.startswith(BOM_UTF8) else 0
    while (prolog := _PROLOG.match(head, at)) is not None:
        at = prolog.end()
    root = _ROOT.match(head, at)
    return b'' if root is None else root[1]


def _head_of(path: Path) -> bytes:
    with path.open('rb') as file:
        content, _ = decompressed(file)
        return content.read(_HEAD_BYTES)


def _network_beside(path: Path) -> str:
    """Return the network of a recording from the files beside it, empty if there is none."""
    names = [file.name for file in _files(path, '.net')]
    best = names[-1] if names else ''
    if len(names) > 1 and not _likeness(path, best):
        raise TrajectoryFormatError(
            f'{path}: network', f'{len(names)} beside it: {", ".join(names)}',
            f'one, or {path.name.partition(".")[0]}.net.xml, or -p sumo.net:=FILE')
    return str(path.with_name(best)) if best else ''


def _files(path: Path, *kinds: str) -> list[Path]:
    """Return the files of some kinds beside a recording, those of its own name last."""
    files = [file for kind in kinds for suffix in SUFFIXES
             for file in path.parent.glob(f'*{kind}{suffix}')]
    return sorted(files, key=lambda file: (_likeness(path, file.name), file.name))


def _likeness(path: Path, name: str) -> int:
    """Return the length of the name, up to its suffixes, if that of the recording begins so."""
    stem = re.sub(r'\.(net|rou|add|trips)\.xml(\.gz)?$', '', name)
    return len(stem) if path.name.startswith(f'{stem}.') else 0


def _types_beside(path: Path, known: Mapping[str, ActorType]) -> dict[str, ActorType]:
    """Return the types that route and additional files beside a recording declare, by name."""
    # Two of a name that is known already are no contradiction.
    types: dict[str, ActorType] = {}
    origins: dict[str, Path] = {}
    for file in reversed(_files(path, '.rou', '.add', '.trips')):
        for name, declared in _types_of(file).items():
            other = origins.setdefault(name, file)
            if types.setdefault(name, declared) != declared and name not in known \
                    and not _likeness(path, other.name):
                raise TrajectoryFormatError(
                    f'{path}: types of vehicles', f'two of {name!r}, in {file.name} and '
                    f'{other.name}', f'one, or {path.name.partition(".")[0]}.rou.xml')
    return types


def _named_files(path: Path, head: bytes, *options: bytes) -> list[Path]:
    """Return the existing files that options in the header of a recording name."""
    named = [name for option in options for name in _names(head, option)]
    # Those of another machine may lie beside the recording.
    found: list[Path] = []
    for name in named:
        places = (*(folder / name for folder in _folders(path, head)),
                  path.parent / re.split(r'[/\\]', name)[-1])
        found += [file for file in places if file.is_file()][:1]
    return found


def _names(head: bytes, option: bytes) -> list[str]:
    """Return the files that an option in the header names."""
    return [unescape(value.strip())
            for values in re.findall(rb'<%s value="([^"]*)"' % option, head)
            for value in values.decode(errors='replace').split(',') if value.strip()]


def _folders(path: Path, head: bytes) -> Iterator[Path]:
    """Yield the folders to which paths in the header may be relative, that of SUMO's run first."""
    for name in _names(head, b'fcd-output') + _names(head, b'person-fcd-output'):
        parts = Path(os.path.normpath(name)).parts
        if not Path(name).is_absolute() and path.absolute().parts[-len(parts):] == parts:
            yield path.absolute().parents[len(parts) - 1]
    yield path.parent


def _types_of(file: Path) -> dict[str, ActorType]:
    found: dict[str, ActorType] = {}

    def note(tag: str, values: dict[str, str]) -> None:
        if tag == 'vType':
            name, declared = values.get('id', ''), _type(values)
            if found.setdefault(name, declared) != declared:
                raise ValueError(f'two types {name!r}')

    # No tree: routes may have millions of elements.
    parser = expat.ParserCreate()
    parser.StartElementHandler = note
    try:
        with opened_beside(file, _MAX_BYTES) as text:
            parser.ParseFile(text)
    except TrajectoryFormatError:
        raise
    except (expat.ExpatError, LookupError, OSError, ValueError) as error:
        # An encoding that Python does not have is a LookupError.
        raise TrajectoryFormatError(str(file), str(error), 'types of vehicles') from error
    return found


def _type(values: Mapping[str, str]) -> ActorType:
    vclass = values.get('vClass', PASSENGER)
    length, width, height = (
        float(values.get(name, usual)) for name, usual in zip(
            ('length', 'width', 'height'), usual_size(vclass), strict=True))
    if not all(0.0 < size < math.inf for size in (length, width, height)):
        raise ValueError(f'a size of {length:g} x {width:g} x {height:g} m')
    return ActorType(vclass, (length, width, height))
