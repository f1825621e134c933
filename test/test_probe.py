# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""How much of the package a conversion needs, as bench/probe.py counts it."""

from __future__ import annotations

from pathlib import Path
import re
import subprocess
import sys

PROBE = Path(__file__).parents[1] / 'bench' / 'probe.py'
STEP = ('<timestep time="{:.2f}"><vehicle id="v" x="{}" y="2" angle="90" type="DEFAULT_VEHTYPE" '
        'speed="10" pos="1" lane="e_0"/></timestep>')


def test_conversion_loads_few_modules_and_is_not_deep(tmp_path):
    steps = ''.join(STEP.format(i / 20, i / 2) for i in range(30))
    (tmp_path / 'fcd.xml').write_text(f'<fcd-export>{steps}</fcd-export>')

    ended = subprocess.run(
        [sys.executable, PROBE, 'convert', 'fcd.xml', 'out.parquet'], cwd=tmp_path, check=True,
        capture_output=True, text=True)

    n_modules, depth = map(int, re.search(r'(\d+) modules, (\d+) calls deep$',
                                          ended.stdout.strip()).groups())
    assert (30 < n_modules <= 60, 8 < depth <= 13) == (True, True)
