# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of SUMO equal its own FCD output of the same run, read by ElementTree."""

from contextlib import closing

import numpy as np
import pytest
from sumo_runs import fronts_of, GRID, read_fcd, write_crowd

from state_sensor_ros.settings import Settings  # noqa: I100
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.map import read_network
from state_sensor_ros.simulators.sumo.sumo_process import SumoSource

# It runs the real SUMO; test_sumo_commands.py runs with `make test`, too.
pytestmark = pytest.mark.thorough

FCD = ('--fcd-output', 'fcd.xml', '--precision', '9', '--fcd-output.attributes',
       'x,y,z,angle,speed,speedLat,pos,lane,slope,type')


def run(config, n_frames, folder, *, ego=''):
    """Return frames of a run, and SUMO's own account of it."""
    words = [str(folder / word) if word == 'fcd.xml' else word for word in FCD]
    source = SumoSource(SumoParameters(str(config), ego=ego, args=tuple(words), seed=3),
                        Settings(rate=0.0), print, reconnect=False)
    frames = []
    with closing(source):
        for packet in source.frames():
            frames.append(packet)
            if len(frames) == n_frames:
                break
    source.disconnect()
    return frames


def numbers(actors, *names):
    """Return attributes of actors as float64; of one that has none, 0."""
    return np.array([[float(actor.get(name, 0)) for name in names]
                     for actor in actors])


@pytest.fixture(scope='module')
def crowd(tmp_path_factory):
    folder = tmp_path_factory.mktemp('crowd')
    frames = run(write_crowd(folder), 600, folder, ego='car0')
    return frames, read_fcd(folder / 'fcd.xml'), folder


def test_sumo_crowd_equals_its_own_account_row_by_row(crowd):
    frames, account, _ = crowd
    network = read_network(GRID.with_name('grid.net.xml.gz'))
    n_rows = 0
    for frame in frames[::5]:
        told = account[round(frame.game_time, 3)]
        assert set(frame.names) == set(told)
        actors = [told[name] for name in frame.names]
        front, forward = fronts_of(frame)
        x_y_angle = numbers(actors, 'x', 'y', 'angle')
        assert np.abs(front[:, :2] - x_y_angle[:, :2]).max() < 1e-6
        angles = np.radians(90 - x_y_angle[:, 2])
        assert np.abs(forward[:, :2] - np.stack((np.cos(angles), np.sin(angles)), 1)).max() < 1e-8
        lanes = frame.lanes
        assert set(lanes.actor) >= {i for i, actor in enumerate(actors) if actor.tag == 'vehicle'}
        for row, ids, s in zip(lanes.actor, lanes.ids.tolist(), lanes.s, strict=True):
            if actors[row].tag == 'vehicle':
                road, lane_id = network.lane_ids[actors[row].get('lane')]
                assert lanes.road_names[road] == actors[row].get('lane').rpartition('_')[0]
                assert ids == [road, 0, lane_id]
                assert abs(s - float(actors[row].get('pos'))) < 1e-6
        n_rows += len(actors)
    assert n_rows > 120 * 200
