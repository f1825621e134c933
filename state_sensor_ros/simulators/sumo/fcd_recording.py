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

from collections.abc import Iterator
import math
from pathlib import Path
import re
from typing import BinaryIO
from xml.etree import ElementTree

from state_sensor_ros.simulators import (
    DecodeError,
    FrameFile,
    FrameLike,
    ReadOptions,
    reason_of,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.compressed_files import decompressed, DecompressedFile
from state_sensor_ros.simulators.file_reading import open_positioned
from state_sensor_ros.simulators.sumo.fcd_decoder import decode_step
from state_sensor_ros.simulators.sumo.road_network import (
    NO_NETWORK,
    read_network,
    RoadNetwork,
)
from state_sensor_ros.simulators.sumo.step_scanner import StepScanner
from state_sensor_ros.simulators.sumo.sumo_frames import ActorType, StepFrames
from state_sensor_ros.simulators.sumo.sumo_simulator import SumoParameters
from state_sensor_ros.simulators.sumo.vehicle_classes import PASSENGER, usual_size

SUFFIXES = '.xml', '.xml.gz'
_ROOT = re.compile(rb'<fcd-export[\s/>]')
# The root element is searched here; before it is a comment with SUMO's configuration.
_HEAD_BYTES = 65536
# This option has x and y in degrees; the values are those that SUMO takes as true.
_IN_DEGREES = re.compile(rb'<fcd-output\.geo value="(?:1|yes|true|on|x|t)"', re.IGNORECASE)


class FcdRecording(FrameFile):
    """
    An FCD file; network and types are read from files beside it.

    :param path: an existing file.
    :param network: path of the network file; empty for the only one beside the recording, if any.
    :param ego: id of the ego, `first`, or empty.
    :raises TrajectoryFormatError: if it cannot be read.
    """

    def __init__(self, path: Path, network: str = '', ego: str = '') -> None:
        super().__init__(str(path), 'FCD output', 'sumo')
        try:
            self._file: BinaryIO = open_positioned(path)
        except OSError as error:
            raise TrajectoryFormatError(str(path), reason_of(error)) from error
        beside = [network] if network else [
            str(file) for file in sorted(path.parent.glob('*.net.xml*'))
            if file.name.endswith(SUFFIXES)]
        self.network: RoadNetwork = read_network(beside[0]) if len(beside) == 1 else NO_NETWORK
        self._types = dict(_types_beside(path))
        self._ego = ego

    def read(self) -> Iterator[FrameLike]:
        """Yield the frames; those of whole steps if the file was cut."""
        self._file.seek(0)
        self.cut = None
        content, compressed = decompressed(self._file)
        maker = StepFrames(self.network, self._ego)
        for step in self._steps(content, compressed):
            if isinstance(step, TruncatedError):
                self.cut = step
                return
            try:
                yield decode_step(step, maker, self._types)
            except DecodeError as error:
                yield error

    def _steps(self, content: BinaryIO,
               compressed: DecompressedFile | None) -> Iterator[bytes | TruncatedError]:
        """Yield the text of each step, then an error if the end is missing."""
        scanner = StepScanner(content, self.name)
        yield from scanner.steps()
        fault = compressed.fault if compressed is not None else ''
        if fault and compressed is not None and not compressed.is_cut:
            raise TrajectoryFormatError(self.name, fault, 'undamaged compressed data')
        if not scanner.is_over:
            lost = 'a step that is not complete' if scanner.is_in_step \
                else 'nothing but the end'
            error = TruncatedError(self.name, 'the end of the file', '</fcd-export>',
                                   n_frames=scanner.n_steps, end=0, lost=lost)
            if not scanner.n_steps:
                raise error
            yield error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_fcd(path: str, options: ReadOptions) -> FcdRecording:
    """
    Open FCD output with the network and the ego of the parameters.

    :param path: path of the file.
    :param options: options of the command or the node.
    :raises TrajectoryFormatError: if it is not FCD output, or cannot be read.
    """
    own = options.settings.of(SumoParameters)
    recording = FcdRecording(Path(path), own.net, own.ego)
    head = _head_of(Path(path))
    if _ROOT.search(head) and not _IN_DEGREES.search(head):
        return recording
    recording.close()
    if _IN_DEGREES.search(head):
        raise TrajectoryFormatError(path, 'positions in degrees (--fcd-output.geo)',
                                    'metres, as SUMO writes without this option')
    raise TrajectoryFormatError(path, 'no <fcd-export> at its beginning', 'FCD output of SUMO')


def is_fcd(path: Path) -> bool:
    """
    Return whether a file begins as FCD output does.

    :param path: an existing file.
    :raises OSError: if it cannot be read.
    """
    return bool(_ROOT.search(_head_of(path)))


def _head_of(path: Path) -> bytes:
    with path.open('rb') as file:
        content, _ = decompressed(file)
        return content.read(_HEAD_BYTES)


def _types_beside(path: Path) -> Iterator[tuple[str, ActorType]]:
    """Yield the types that route and additional files in the folder of a recording declare."""
    for pattern in ('*.rou.xml', '*.add.xml'):
        for file in sorted(path.parent.glob(pattern)):
            try:
                for _, element in ElementTree.iterparse(file):
                    if element.tag == 'vType':
                        yield element.get('id', ''), _type(element)
                    element.clear()
            except (ElementTree.ParseError, LookupError, OSError, ValueError) as error:
                # An encoding that Python does not have is a LookupError.
                raise TrajectoryFormatError(str(file), str(error),
                                            'types of vehicles') from error


def _type(element: ElementTree.Element) -> ActorType:
    """
    Return the type that an element declares.

    :raises ValueError: if a size is not a positive number.
    """
    vclass = element.get('vClass', PASSENGER)
    length, width, height = (
        float(element.get(name, usual)) for name, usual in zip(
            ('length', 'width', 'height'), usual_size(vclass), strict=True))
    if not all(0.0 < size < math.inf for size in (length, width, height)):
        raise ValueError(f'a size of {length:g} x {width:g} x {height:g} m')
    return ActorType(vclass, (length, width, height))
