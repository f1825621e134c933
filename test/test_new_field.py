# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A field of a frame is a line in frame.py, one in the message and one in each source."""

import json
import shutil

from paths import ROOT
from programs import ENVIRONMENT, run_python
import pytest

FCD = """<fcd-export><timestep time="0"><vehicle id="a" x="300" y="150" angle="90" speed="20"
 lane="bc_1" pos="20"/><person id="b" x="0" y="0" angle="0" speed="1"/></timestep></fcd-export>"""
EDITS = (
    ('state_sensor_ros/frame.py', "    position_xyz = View[Floats]('kinematics', 0,",
     "    mass: Floats | None = actor('f8', 'mass', unit='kg')\n"),
    ('msg/ActorState.msg', 'string replay_class ', 'float64 mass  # kg, NaN if unknown\n'),
    ('state_sensor_ros/simulators/sumo/steps.py', '        return replace(frame, indicators=',
     '        frame = replace(frame, mass=400.0 * sizes[:, 0])\n'))
PROGRAM = """
from contextlib import redirect_stderr
import io, json, sys
from unittest.mock import MagicMock
import numpy as np
from pyarrow import csv, parquet
import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
lost = {}
for name in ('a.parquet', 'a.csv', 'a.mcap', 'a.osi', 'a.json'):
    with redirect_stderr(io.StringIO()) as errors:
        assert main(['convert', '-q', 'a.xml', name]) == 0
    lost[name] = 'mass' in errors.getvalue()
for name in ('docutils', 'docutils.nodes', 'sphinx', 'sphinx.application', 'sphinx.ext',
             'sphinx.ext.autodoc', 'sphinx.ext.autodoc.mock', 'sphinx.util',
             'sphinx.util.docutils'):
    sys.modules[name] = MagicMock()
sys.path.insert(0, sys.argv[1])
import generated
found = {name: sensor.open_recording(name)[0] for name in ('a.xml', 'a.parquet', 'a.mcap')}
print(json.dumps({
    'lost': lost,
    **{name: frame.mass.tolist() for name, frame in found.items()},
    'select': found['a.xml'].select([1]).mass.tolist(),
    'csv': csv.read_csv('a.csv')['mass'].to_pylist(),
    'unit': parquet.read_schema('a.parquet').field('mass').metadata[b'unit'].decode(),
    'reference': [line for line in generated.frame_fields().splitlines() if 'mass' in line]}))
"""


def test_a_new_field_is_three_lines(tmp_path):
    pytest.importorskip('osi3')
    copy = tmp_path / 'copy'
    for name in ('state_sensor_ros', 'msg', 'doc'):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns('__pycache__'))
    for name in ('package.xml', 'resource', 'config'):
        (copy / name).symlink_to(ROOT / name)
    for name, before, line in EDITS:
        text = (copy / name).read_text(encoding='utf-8')
        assert text.count(before) == 1
        (copy / name).write_text(text.replace(before, line + before), encoding='utf-8')
    # The messages of the copy, not those that are installed.
    environment = {**ENVIRONMENT, 'PYTHONPATH': str(copy), 'AMENT_PREFIX_PATH': ''}
    (tmp_path / 'a.xml').write_text(FCD)
    done = run_python('-c', PROGRAM, copy / 'doc', cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop('lost') == {'a.parquet': False, 'a.csv': False, 'a.mcap': False,
                                 'a.osi': True, 'a.json': True}
    mass = found['a.xml']
    assert len(mass) == 2
    assert found == {
        **dict.fromkeys(('a.xml', 'a.parquet', 'a.mcap', 'csv'), mass), 'select': mass[1:],
        'unit': 'kg', 'reference': ['| `mass` | (N,) float64 | kg | mass |']}
