# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""usage: plot_recording.py drive.json paths.png: draws the paths of all vehicles."""
from collections import defaultdict
import sys

from matplotlib import pyplot as plt

import state_sensor_ros as sensor

if len(sys.argv) != 3:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
plt.switch_backend('Agg')
paths = defaultdict(list)
with sensor.open_recording(sys.argv[1]) as recording:
    for frame in recording:
        for row in frame.kinds.nonzero()[0]:
            paths[frame.names[row]].append(frame.position_xyz[row, :2])
print(*(f'{fault}\n' for fault in recording.faults), sep='', end='')
for name, path_xy in paths.items():
    plt.plot(*zip(*path_xy), label=name)
plt.gca().set(aspect='equal', xlabel='x, m', ylabel='y, m')
plt.savefig(sys.argv[2])
