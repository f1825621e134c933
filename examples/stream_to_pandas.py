# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Speeds of all actors of the live stream as a table: stream_to_pandas.py 127.0.0.1 8700."""
import sys

import numpy as np
import pandas as pd

import state_sensor_ros as sensor

N_FRAMES = 40

rows = []
with sensor.open_stream(sys.argv[1], int(sys.argv[2])) as stream:
    for i, frame in enumerate(stream, 1):
        speeds = np.linalg.norm(frame.velocity_xyz, axis=1)
        rows += zip([frame.game_time] * len(speeds), frame.names, speeds)
        if i == N_FRAMES:
            break
table = pd.DataFrame(rows, columns=['game_time', 'name', 'speed'])
print(table.groupby('name')['speed'].describe())
