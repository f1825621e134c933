# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Vehicles that change lanes, park or are long, and people: live and from FCD output the same."""

from dataclasses import dataclass
from pathlib import Path
import pickle
import subprocess
import sys

from budgets import AWAIT_S
import numpy as np
from paths import ROOT
import pytest
import sumo_maneuvers

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.frame import Frame, LIGHT_GREEN, LIGHT_RED, LIGHT_YELLOW
from state_sensor_ros.simulators.sumo.map import read_network

# It runs the real SUMO; test_sumo_commands.py runs with `make test`, too.
pytestmark = pytest.mark.thorough

DATA = ROOT / 'test' / 'data' / 'sumo'
COLORS = {'g': LIGHT_GREEN, 'y': LIGHT_YELLOW, 'r': LIGHT_RED, 'u': LIGHT_RED}


@dataclass
class Run:
    """A run: its frames, the states of its lights, its FCD output, and its network."""

    frames: list[Frame]
    states: list[dict]
    fcd: Path
    network: Path


@pytest.fixture(scope='module', params=['left', 'right'])
def run(request, tmp_path_factory):
    """Run SUMO with left-hand traffic, and with sublanes and right-hand traffic."""
    folder = tmp_path_factory.mktemp(request.param)
    network = DATA / f'bend_{request.param}.net.xml.gz'
    args = {'left': ('--lanechange.duration', '3'), 'right': ('--lateral-resolution', '0.8')}
    subprocess.run([sys.executable, sumo_maneuvers.__file__, network, folder / 'frames',
                    folder / 'fcd.xml', *args[request.param]], check=True, timeout=AWAIT_S * 4)
    with (folder / 'frames').open('rb') as file:
        frames, states = zip(*pickle.load(file), strict=True)
    return Run(list(frames), list(states), folder / 'fcd.xml', network)


def lanes_of(frame):
    """Return road, section, lane, s and changes of each actor that is in a lane, by its name."""
    lanes = frame.lanes
    return {frame.names[row]: (*ids, s, *changes) for row, ids, s, changes in zip(
        lanes.actor, lanes.ids.tolist(), lanes.s.tolist(),
        zip(lanes.lane_change_left.tolist(), lanes.lane_change_right.tolist(), strict=True),
        strict=True)}


def test_sumo_frames_are_the_same_live_and_from_fcd_row_by_row(run):
    parameters = {'sumo.net': str(run.network), 'sumo.ego': 'car'}
    with sensor.open_recording(run.fcd, parameters=parameters) as recording:
        recorded = [*recording]
    assert len(recorded) == len(run.frames) == sumo_maneuvers.N_STEPS
    n_parked = n_people = 0
    roads = read_network(run.network).road_names
    for live, stored in zip(run.frames, recorded, strict=True):
        # People come in another order.
        assert sorted(live.names) == sorted(stored.names)
        rows = [stored.names.index(name) for name in live.names]
        assert live.tags == tuple(stored.tags[row] for row in rows)
        assert np.allclose(live.kinematics, stored.kinematics[rows], rtol=0, atol=1e-5,
                           equal_nan=True)
        assert np.allclose(live.boxes.size_xyz, stored.boxes.size_xyz[rows])
        assert lanes_of(live).keys() == lanes_of(stored).keys()
        for name, lane in lanes_of(live).items():
            assert lane == pytest.approx(lanes_of(stored)[name], abs=1e-6), (name, live.game_time)
        people = [i for i, tags in enumerate(live.tags) if 'pedestrian' in tags]
        n_people += len(set(people) & set(live.lanes.actor.tolist()))
        assert set(live.lanes.actor.tolist()) >= set(range(len(live.names))) - set(people)
        row = live.names.index('parked') if 'parked' in live.names else -1
        if row >= 0 and np.linalg.norm(live.velocity_xyz[row]) == 0.0:
            [ids] = live.lanes.ids[live.lanes.actor == row].tolist()
            n_parked += roads[ids[0]] == 'ab' and abs(ids[2]) == 3
    assert n_parked > 300
    assert n_people > 5000


def test_sumo_vehicle_and_person_of_one_id_have_names_of_their_own(run):
    kinds = {}
    for frame in run.frames:
        assert len(set(frame.names)) == len(frame.names)
        for name, tags in zip(frame.names, frame.tags, strict=True):
            if name.rpartition('_')[2] in ('1', '2'):
                kinds.setdefault(name, set()).add(tags[-1])
    # The one that comes first keeps the id, as long as it exists.
    assert kinds == {'1': {'car'}, 'person_1': {'pedestrian'},
                     '2': {'pedestrian'}, 'vehicle_2': {'car'}}


def test_sumo_slope_is_that_of_vehicles_and_people_stand_upright(tmp_path):
    (tmp_path / 'fcd.xml').write_text('<fcd-export><timestep time="0">' + ''.join(
        f'<{tag} id="{i}" x="{10 * i}" y="2" angle="90" speed="3" slope="{slope}"/>'
        for i, (tag, slope) in enumerate((('vehicle', 6), ('vehicle', 60), ('person', 90)))) +
        '</timestep></fcd-export>')
    with sensor.open_recording(tmp_path / 'fcd.xml') as recording:
        [frame] = recording
    slopes = np.radians([6, 60, 0])
    assert -2 * np.arcsin(frame.orientation_xyzw[:, 1]) == pytest.approx(slopes)
    assert frame.velocity_xyz[:, 0] == pytest.approx(3 * np.cos(slopes))
    assert frame.velocity_xyz[:, 2] == pytest.approx(3 * np.sin(slopes))


def test_sumo_lane_with_links_of_different_colors_has_a_light_for_each(run):
    lines = read_network(run.network).stop_lines
    has_differed = set()
    for frame, states in zip(run.frames, run.states, strict=True):
        lights = frame.traffic_lights
        shown = dict(zip(lights.names, lights.states.tolist(), strict=True))
        assert len(shown) == len(lights.names)
        for line in lines:
            colors = [COLORS[states[line.light][link].lower()] for link in line.links]
            entries = [shown.get(f'{line.light}/{link}') for link in line.links]
            if len(set(colors)) > 1:
                has_differed.add(line)
            if line.is_split:
                assert entries == colors
            else:
                assert entries == [colors[0], *[None] * (len(colors) - 1)]
                assert len(set(colors)) == 1
    assert [line.links for line in has_differed] == (
        [] if 'left' in run.network.name else [(2, 3)])
