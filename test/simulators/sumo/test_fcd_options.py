# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""FCD output with each option that changes it, beside what TraCI says of the same run."""

from importlib.util import find_spec
from pathlib import Path

from budgets import spread
import numpy as np
import pytest
from sumo_runs import fronts_of, write_crowd

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.commands.cli import main

pytestmark = pytest.mark.skipif(find_spec('libsumo') is None, reason='libsumo is not installed')
N_STEPS, STEP_S = 30, 0.1
SHAPES = 'shapes.xml'
READ = [
    (), ('-H',), ('--precision', '6'), ('--step-length', '0.05'),
    ('--fcd-output.signals', '--fcd-output.distance', '--fcd-output.acceleration',
     '--fcd-output.speed-relative', '--fcd-output.max-leader-distance', '50'),
    ('--fcd-output.params', 'device.fcd.period'), ('--fcd-output.skip-empty',),
    ('--fcd-output.attributes', 'x,y,angle,type'), ('--fcd-output.attributes', 'all'),
    ('--person-fcd-output', 'people.xml'), ('--device.fcd.probability', '0.5'),
    ('--device.fcd.radius', '50', '--device.fcd.explicit', 'car1'),
    ('--fcd-output.filter-shapes', 'middle', '-a', SHAPES)]
REFUSED = [('--fcd-output.geo',), ('--fcd-output.utm',), ('--fcd-output.attributes', 'speed,type')]


def run(folder, options, name='fcd.xml'):
    """Run SUMO; return front, class, length, speeds of each actor by time and id."""
    import libsumo
    config = write_crowd(folder, 20)
    Path(SHAPES).write_text('<additional><poly id="middle" shape="150,150 450,150 450,450 150,450"'
                            '/></additional>')
    libsumo.start(['sumo', '-c', str(config), '--fcd-output', name, '--no-step-log',
                   *(() if '--step-length' in options else ('--step-length', str(STEP_S))),
                   *options])
    truth = {}
    try:
        for _ in range(N_STEPS):
            libsumo.simulationStep()
            time_s = libsumo.simulation.getTime() - libsumo.simulation.getDeltaT()
            for domain in (libsumo.vehicle, libsumo.person):
                for actor in domain.getIDList():
                    truth[round(time_s, 3), actor] = (
                        domain.getPosition(actor),
                        domain.getVehicleClass(actor) if domain is libsumo.vehicle else '',
                        domain.getLength(actor), domain.getSpeed(actor),
                        domain.getLateralSpeed(actor) if domain is libsumo.vehicle else 0.0)
    finally:
        libsumo.close()
    return truth


@pytest.mark.parametrize('options', spread(READ, 7), ids=' '.join)
def test_option_keeps_positions_types_names_times_and_speeds(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = run(tmp_path, options)
    rounding = 2e-6 if '--precision' in options else 0.012
    has_speed = 'x,y,angle,type' not in options
    n_actors = n_moving = 0
    with sensor.open_recording('fcd.xml') as recording:
        for frame in recording:
            fronts, forward = fronts_of(frame)
            speeds = np.sum(frame.velocity_xyz * forward, axis=1)
            sideways = np.linalg.norm(frame.velocity_xyz - speeds[:, None] * forward, axis=1)
            assert np.isfinite(speeds).all() == has_speed
            for row, name in enumerate(frame.names):
                front, vclass, length, speed, lateral = truth[round(frame.game_time, 3), name]
                assert fronts[row, :2] == pytest.approx(front, abs=rounding)
                assert frame.boxes.size_xyz[row, 0] == pytest.approx(length)
                assert 'bicycle' in frame.tags[row] or vclass != 'bicycle'
                assert 'truck' in frame.tags[row] or vclass != 'truck'
                n_actors += 1
                if has_speed:
                    assert speeds[row] == pytest.approx(speed, abs=rounding)
                    assert sideways[row] == pytest.approx(
                        abs(lateral) if 'all' in options else 0.0, abs=rounding)
                    n_moving += speed > 1.0
    assert n_actors > 0
    assert n_moving > 0 or not has_speed


@pytest.mark.parametrize('options', REFUSED, ids=' '.join)
def test_option_that_leaves_no_positions_is_refused_by_name(options, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    run(tmp_path, options)
    assert main(['convert', 'fcd.xml', 'out.csv']) == 1
    assert options[0] in capfd.readouterr().err
