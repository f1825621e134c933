# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measure what SUMO's FCD output costs, as CPU of whole commands.

Compared are SUMO's own ``xml2csv.py`` and pandas, the two that a user would take instead.
"""

import math
from pathlib import Path
import sys
import tempfile

from processes import command_cpu_s
from row import Row, show
import sumo

N_STEPS, N_VEHICLES, STEP_S = 1000, 200, 0.1
PANDAS = """
import sys, pandas
pandas.read_xml(sys.argv[1], xpath='.//vehicle', parser='etree').to_parquet(sys.argv[2])
"""


def write_fcd(path):
    """Write FCD output of vehicles on circles, with the attributes and precision of SUMO's own."""
    with path.open('w') as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export>\n')
        for step in range(N_STEPS):
            time_s = step * STEP_S
            file.write(f'    <timestep time="{time_s:.2f}">\n')
            for i in range(N_VEHICLES):
                speed, radius = 5.0 + i % 11, 50.0 + i
                turn = speed * time_s / radius + i
                file.write(
                    f'        <vehicle id="car.{i}" x="{500 + radius * math.sin(turn):.2f}" '
                    f'y="{500 - radius * math.cos(turn):.2f}" '
                    f'angle="{(90 - math.degrees(turn)) % 360:.2f}" type="DEFAULT_VEHTYPE" '
                    f'speed="{speed:.2f}" pos="{speed * time_s % 500:.2f}" lane="E{i % 7}_0" '
                    f'slope="0.00"/>\n')
            file.write('    </timestep>\n')
        file.write('</fcd-export>\n')


def fcd_rows(rounds=2):
    """Convert to Parquet with all columns and inspect; print and return the rows."""
    with tempfile.TemporaryDirectory() as folder:
        fcd = Path(folder) / 'fcd.xml'
        write_fcd(fcd)
        xml2csv = Path(sumo.__file__).parent / 'tools' / 'xml' / 'xml2csv.py'
        commands = {
            'convert': ('state_sensor', 'convert', fcd, f'{folder}/out.parquet', '--force'),
            'inspect': ('state_sensor', 'inspect', fcd),
            'xml2csv': (sys.executable, xml2csv, fcd),
            'pandas': (sys.executable, '-c', PANDAS, fcd, f'{folder}/pandas.parquet')}
        found = {name: min(command_cpu_s(*command) for _ in range(rounds))
                 for name, command in commands.items()}
    print('    ' + ', '.join(f'{name} {value:.1f}' for name, value in found.items())
          + f' CPU s, {N_STEPS} steps of {N_VEHICLES} vehicles', flush=True)
    return show([
        Row('convert FCD to Parquet / the slower of xml2csv.py and pandas', N_VEHICLES,
            found['convert'] / max(found['xml2csv'], found['pandas']), '<= 1'),
        Row('inspect FCD / convert it to Parquet', N_VEHICLES,
            found['inspect'] / found['convert'], '<= 3')])


if __name__ == '__main__':
    fcd_rows()
