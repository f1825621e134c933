# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The format `points`: a line `game_time x y z name` for each actor, in m.

In the core it is the module `files/points.py` and a row in `FORMATS`.
"""

from itertools import groupby

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.frame_builder import FrameBuilder
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.recording import FrameFile, FrameWriter
from state_sensor_ros.source import LOST


class PointsRecording(FrameFile):
    """A file of points that is read; it opens anew for each reading."""

    def read(self, mark):
        """Yield a frame for the lines of one time, unless something is wrong in it."""
        with open(self.name, encoding='utf-8') as file:
            for game_time, lines in groupby(file, lambda line: line.partition(' ')[0]):
                try:
                    builder = FrameBuilder('points', float(game_time))
                    for line in lines:
                        _, x, y, z, name = line.rstrip('\n').split(' ', 4)
                        builder.add(name, (float(x), float(y), float(z)))
                    yield builder.frame()
                except ValueError as error:
                    self.faults.add(LOST, DecodeError(
                        f'{self.name}: time {game_time}', str(error),
                        'lines of a time, three numbers, a name'))


def open_points(path, options):
    """Open a file NAME.points."""
    return PointsRecording(path, 'points', '')


class PointsOutput(WholeFile, FrameWriter):
    """A file of points that is written; it appears when it is complete."""

    details = False

    def __init__(self, path, options):
        super().__init__(path, force=options.force)
        self.n_frames = 0

    def write(self, frame):
        """Append a frame."""
        for name, place in zip(frame.names, frame.position_xyz.tolist(), strict=True):
            numbers = ' '.join(map(repr, (frame.game_time, *place)))
            self.handle.write(f'{numbers} {name}\n'.encode())
        self.n_frames += 1
