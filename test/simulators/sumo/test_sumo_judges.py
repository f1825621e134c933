# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Speeds, braking and collisions of FCD output are those that SUMO itself says."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

from budgets import AWAIT_S, is_large
import numpy as np
import pytest
from sumo_runs import GRID, read_fcd

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.frame import speed_along

pytestmark = pytest.mark.skipif(shutil.which('sumo') is None, reason='needs the programs of SUMO')
STEP_S = 0.1
FORMS = {
    'by default': (), 'slow lane changes': ('--lanechange.duration', '3'), 'speedLat': (
        '--fcd-output.attributes', 'x,y,z,angle,speed,speedLat,acceleration,pos,lane,slope,type')}
# Numbers of FCD output have two digits: half of the last one in speeds, and in what they change.
SPEED_DIGIT, BRAKING_DIGIT = 0.005, 0.01 / STEP_S + 0.005
HARD = -3.5
# The drivers of this type do not see those on other ways over a junction.
BLIND = ('<vType id="blind" jmIgnoreFoeProb="1" jmIgnoreFoeSpeed="100" jmDriveAfterRedTime="100" '
         'jmIgnoreJunctionFoeProb="1"/>')


@dataclass
class Run:
    """A run: its FCD output, its network, and SUMO's own account by time and id."""

    fcd: Path
    network: Path
    told: dict
    collisions: list


def run(folder, network, scenario, options=(), seconds=35):
    """Run SUMO with a scenario."""
    fcd, collisions = folder / 'fcd.xml', folder / 'collisions.xml'
    subprocess.run([
        'sumo', *map(str, scenario), '--step-length', str(STEP_S), '--end', str(seconds),
        '--no-step-log', '--no-warnings', '--fcd-output', fcd, '--fcd-output.acceleration',
        '--collision-output', collisions, '--collision.check-junctions', '--collision.action',
        'warn', '--collision.mingap-factor', '0', *options],
        check=True, capture_output=True, timeout=AWAIT_S)
    return Run(fcd, network, read_fcd(fcd), [
        each.attrib for each in ElementTree.parse(collisions).iter('collision')])


def random_trips(folder):
    """Return a grid of netgenerate and trips by SUMO's randomTrips.py."""
    import sumo
    network, trips = folder / 'grid.net.xml', folder / 'grid.trips.xml'
    tool = Path(sumo.__file__).parent / 'tools' / 'randomTrips.py'
    for command in (['netgenerate', '--grid', '--grid.number', '4', '--grid.length', '100',
                     '--default.lanenumber', '2', '--seed', '1', '-o', network], [
            sys.executable, tool, '-n', network, '-o', trips, '--end', '60', '--period', '0.7',
            '--seed', '2']):
        subprocess.run(command, check=True, capture_output=True, timeout=AWAIT_S, cwd=folder)
    return network, trips


@pytest.fixture(scope='module', params=[
    pytest.param((source, form), id=f'{source}, {form}', marks=[
        pytest.mark.thorough] * ((source, form) != ('shipped', 'by default')))
    for source in ('shipped', 'generated') for form in FORMS])
def judged(request, tmp_path_factory):
    source, form = request.param
    folder = tmp_path_factory.mktemp('judged')
    if source == 'shipped':
        return run(folder, GRID.with_name('grid.net.xml.gz'), ['-c', GRID], FORMS[form])
    network, trips = random_trips(folder)
    return run(folder, network, ['-n', network, '-r', trips], FORMS[form])


def opened(run):
    return sensor.open_recording(run.fcd, parameters={'sumo.net': str(run.network)})


def test_speed_is_that_of_sumo_in_every_row(judged):
    """The one along the heading; the velocity has no other part than SUMO's lateral speed."""
    n_rows = 0
    with opened(judged) as recording:
        for frame in recording:
            told = judged.told[round(frame.game_time, 3)]
            assert set(frame.names) == set(told)
            for row, name in enumerate(frame.names):
                speed = float(told[name].get('speed'))
                assert abs(speed_along(frame, row) - speed) <= SPEED_DIGIT
                assert np.linalg.norm(frame.velocity_xyz[row]) <= SPEED_DIGIT + np.hypot(
                    speed, float(told[name].get('speedLat', 0.0)))
            n_rows += len(frame)
    assert n_rows > 5000


@pytest.mark.thorough
def test_hard_braking_is_that_of_sumo_and_nobody_collides(judged):
    """Derived from speeds before and after: the mean of SUMO's own accelerations."""
    assert not judged.collisions
    braking = defaultdict(dict)
    for time_s, told in judged.told.items():
        for name, actor in told.items():
            if actor.tag == 'vehicle':
                braking[name][time_s] = float(actor.get('acceleration'))
    names = sorted(braking, key=lambda name: min(braking[name].values()))
    n_hard = 0
    for name in (*names[:2 if is_large() else 1], names[len(names) // 2]):
        with opened(judged) as recording:
            safety = recording.safety(name)
        said = np.array([braking[name].get(round(time_s, 3), np.nan)
                         for time_s in safety.game_time])
        is_inside = ~np.isnan(said[:-2] + said[1:-1] + said[2:])
        assert safety.acceleration[1:-1][is_inside] == pytest.approx(
            (said[1:-1] + said[2:])[is_inside] / 2, abs=BRAKING_DIGIT)
        for event in safety.events():
            assert event.kind != 'collision'
            if event.kind == 'hard_braking':
                n_hard += 1
                is_event = (safety.game_time >= event.start) & (
                    safety.game_time <= event.end + 1.5 * STEP_S)
                assert said[is_event].min() < HARD + BRAKING_DIGIT
    assert n_hard > 0


def touch(one, other):
    """Return whether a corner of one vehicle of the default size is in the other, 1 cm around."""
    def place(actor):
        turn = np.radians(float(actor.get('angle')))
        axes = np.array([[np.sin(turn), np.cos(turn)], [-np.cos(turn), np.sin(turn)]])
        return axes, np.array([float(actor.get('x')), float(actor.get('y'))]) - 2.5 * axes[0]
    half = np.array([2.5, 0.9])
    for (axes, middle), (others, at) in ((place(one), place(other)), (place(other), place(one))):
        corners = at + np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) * half @ others
        if (np.abs((corners - middle) @ axes.T) <= half + 0.01).all(axis=1).any():
            return True
    return False


@pytest.mark.thorough
def test_collisions_are_those_that_sumo_says(tmp_path):
    network, trips = random_trips(tmp_path)
    trips.write_text(re.sub('<trip ', '<trip type="blind" ', trips.read_text()).replace(
        '<trip ', BLIND + '<trip ', 1))
    wild = run(tmp_path, network, ['-n', network, '-r', trips], seconds=52)
    expected = {frozenset((each['collider'], each['victim'])): float(each['time'])
                for each in wild.collisions}
    assert len(expected) > 3
    for pair, time_s in expected.items():
        for name in pair:
            with opened(wild) as recording:
                events = [event for event in recording.safety(name).events()
                          if event.kind == 'collision']
            [event] = [event for event in events if event.actor in pair]
            # SUMO looks at the vehicles after a step, which the frame of that step shows.
            assert event.start - 1.5 * STEP_S <= time_s <= event.end + 1.5 * STEP_S
            for event in events:
                if frozenset((name, event.actor)) not in expected:
                    # SUMO does not compare vehicles on ways that do not cross.
                    told = wild.told[round(event.start, 3)]
                    assert touch(told[name], told[event.actor])


@pytest.mark.parametrize('step_s', [10, 2, 0.5])
@pytest.mark.parametrize('bend', [30, 60, 120])
def test_ego_in_a_parked_car_has_collided_at_any_step(step_s, bend, tmp_path):
    """The positions of SUMO jump from step to step, and its headings snap in a bend."""
    way = [(0, -20, 0), (0, 0, 0), (10, 10, bend), (20, 20, 0), (20, 40, 0)]
    (tmp_path / 'bend.xml').write_text('<fcd-export>' + ''.join(
        f'<timestep time="{step_s * i}"><vehicle id="ego" x="{x}" y="{y}" angle="{angle}" '
        'speed="4" type="passenger"/><vehicle id="parked" x="11.5" y="10.2" angle="90" speed="0" '
        'type="passenger"/></timestep>' for i, (x, y, angle) in enumerate(way)) + '</fcd-export>')
    with sensor.open_recording(tmp_path / 'bend.xml', ego='ego') as recording:
        assert 'collision' in [event.kind for event in recording.safety().events()]
