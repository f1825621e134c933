# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Synthetic v2 payloads for the benchmark: a few frames, repeated with increasing time."""

import itertools
import json

import numpy as np

from state_sensor_ros.emulator.traffic.frame_generator import MAX_RATE_HZ, TrafficFrames

N_FRAMES = 12


class Cycle:
    """
    An endless stream of payloads with ``n_vehicles`` vehicles.

    The traffic repeats after N_FRAMES frames; ``game_time`` and ``sample_count`` increase.
    """

    def __init__(self, n_vehicles, rate_hz, seed=1):
        self.rate_hz = rate_hz
        frames = itertools.islice(
            TrafficFrames(n_vehicles, 0, min(rate_hz, MAX_RATE_HZ), seed, 'v2'), N_FRAMES)
        # Without the last brace: the clock follows.
        self._bodies = [json.dumps(
            {'frame': {'objects': [], 'vehicles': frame['frame']['vehicles']}},
            separators=(',', ':'))[:-1].encode() for frame in frames]

    def payload(self, i):
        """Return the payload of frame ``i``."""
        # The simulator sends a float32 as a float64.
        game_time = float(np.float32(1.0 + i / self.rate_hz))
        return b'%s,"game_time":%r,"sample_count":%d,"time":1600000000}' % (
            self._bodies[i % N_FRAMES], game_time, i + 1)
