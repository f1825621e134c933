# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Completion of command lines, as the function of argcomplete in a shell requests it."""

import os
import subprocess
import sys

from budgets import AWAIT_S, first_of
from paths import ROOT, SAMPLE
import pytest


@pytest.mark.parametrize(('line', 'expected'), first_of(n_always=4, cases=[
    (f'state_sensor convert {SAMPLE} --actors SUV_monoDrive_03_1', {'SUV_monoDrive_03_10'}),
    # Nothing is read without IN.
    ('state_sensor record out.json --actors ', {''}),
    ('state_sensor in', {'inspect'}),
    ('state_sensor convert --stor', {'--storage'}),
    ('state_sensor convert --outputs au', {'autoware'}),
    ('state_sensor convert -p wheel', {'wheel_tf:='}),
    ('state_sensor convert --to par', {'parquet'}),
    ('state_sensor record --source su', {'sumo'}),
    ('state_sensor convert --storage ', {'mcap', 'sqlite3'})]))
def test_completion_of_a_line(tmp_path, line, expected):
    pytest.importorskip('argcomplete')
    out = tmp_path / 'out'
    subprocess.run(
        [sys.executable, '-m', 'state_sensor_ros'], cwd=ROOT, timeout=AWAIT_S, check=False,
        env=os.environ | {'_ARGCOMPLETE': '1', '_ARGCOMPLETE_IFS': '\n', 'COMP_LINE': line,
                          'COMP_POINT': str(len(line)), '_ARGCOMPLETE_STDOUT_FILENAME': str(out)})
    assert {word.strip() for word in out.read_text().split('\n')} == expected
