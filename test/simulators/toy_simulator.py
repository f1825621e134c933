# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A simulator in a package of its own: one ball; each frame is a line `game_time x y`."""

from itertools import count
import math
from pathlib import Path
import threading

import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.formats import Format
from state_sensor_ros.files.recording import RecordedFrame
from state_sensor_ros.frame import frame_of_poses
from state_sensor_ros.payloads import Decoded, Packet, SingleFrameDecoder
from state_sensor_ros.pipeline.source import Health
from state_sensor_ros.simulators.simulator import Simulator


class BallDecoder(SingleFrameDecoder):

    def decode(self, payload, *, game_time=math.nan, time=0, sample_count=0):
        try:
            game_time, x, y = map(float, payload.split())
        except ValueError as error:
            raise DecodeError('line', repr(payload), 'three numbers') from error
        kinematics = np.array([[x, y, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]], float)
        return [Decoded(frame_of_poses('toy', game_time, ('ball',), (('toy',),), kinematics), ())]


class BallSource:
    """A ball that rolls along the x axis at 1 m/s, 20 times a second."""

    def __init__(self):
        self.health = Health(state='connected')
        self._closing = threading.Event()
        self.close = self._closing.set

    def packets(self):
        for i in count():
            if self._closing.wait(0.05):
                return
            yield Packet(b'%f %f 2' % (i / 20, i / 20), i / 20, 0, 0)

    def reconfigure(self, settings):
        pass


class BallRecording:
    form, simulator, unit, cut, new_decoder = 'lines', 'toy', 'frame', None, BallDecoder

    def __init__(self, path):
        self.name, self.decoder = str(path), BallDecoder()
        self._lines = path.read_bytes().splitlines()
        self.total = len(self._lines)

    def frames(self):
        for i, line in enumerate(self._lines):
            at = float(line.split()[0])
            yield RecordedFrame(Packet(line, at, 0, 0), at, i, f'line {i + 1}', i + 1)

    def close(self):
        pass


def open_lines(path, options):
    return BallRecording(Path(path))


class ToySimulator(Simulator):
    name = 'toy'
    formats = (Format(name='lines', noun='a file of lines', suffixes=('.ball',),
                      reader='toy_simulator:open_lines'),)

    def new_decoder(self, settings):
        return BallDecoder()

    def open_source(self, settings, report, *, reconnect=True):
        return BallSource()

