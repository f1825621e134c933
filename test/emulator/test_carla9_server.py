# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mock server of CARLA 0.9 as a program serves a recording."""

import signal

from budgets import AWAIT_S
import numpy as np
from paths import SAMPLE
from programs import start_mock
import pytest

from state_sensor_ros import open_recording, open_stream
from state_sensor_ros.rotations import global_from_unit


def test_mock_program_serves_a_recording():
    """In axes of the other handedness and in degrees: the driver returns what was recorded."""
    pytest.importorskip('carla')
    process = start_mock('carla9', SAMPLE, '--port', 0)
    try:
        assert process.stdout.readline().startswith('streams on 127.0.0.1:')
        port = int(process.stdout.readline().removeprefix('listening on 127.0.0.1:'))
        with open_stream('127.0.0.1', port, source='carla9') as stream:
            frame = next(iter(stream))
    finally:
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=AWAIT_S)
    assert (output, errors) == ('', '')
    with open_recording(SAMPLE) as recording:
        expected = recording[round(frame.game_time / 0.05)]
    # In another order, under other names.
    places = frame.position_xyz[:, None] - expected.position_xyz
    rows = np.linalg.norm(places, axis=2).argmin(axis=1)
    assert sorted(rows) == list(range(len(expected)))
    assert rows[frame.ego] == expected.ego
    found, recorded = frame.kinematics, np.nan_to_num(expected.kinematics[rows])
    np.testing.assert_allclose(found[:, :3], recorded[:, :3], rtol=1e-6)
    np.testing.assert_allclose(global_from_unit(found[:, 3:7]),
                               global_from_unit(recorded[:, 3:7]), atol=2e-5)
    np.testing.assert_allclose(found[:, 7:], recorded[:, 7:], atol=1e-5)
    assert len(frame.boxes) == 19
    for row, box in zip(frame.boxes.actor, frame.boxes.rows, strict=True):
        [at] = np.flatnonzero(expected.boxes.actor == rows[row])
        np.testing.assert_allclose(box[:3], expected.boxes.rows[at, :3], atol=1e-3)
        assert sorted(box[7:10]) == pytest.approx(sorted(expected.boxes.rows[at, 7:10]), abs=1e-4)
