# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Draw the paths of all vehicles of a recording: plot_recording.py drive.json paths.png."""
from collections import defaultdict
import sys

from matplotlib import pyplot as plt

import state_sensor_ros as sensor

plt.switch_backend('Agg')
paths = defaultdict(list)
with sensor.open_recording(sys.argv[1]) as recording:
    for frame in recording:
        for name, kind, position_xyz in zip(frame.names, frame.kinds, frame.position_xyz):
            if kind:
                paths[name].append(position_xyz[:2])
for fault in recording.faults:
    print(fault)
for name, path_xy in paths.items():
    plt.plot(*zip(*path_xy), label=name)
plt.gca().set(aspect='equal', xlabel='x, m', ylabel='y, m')
plt.savefig(sys.argv[2])
