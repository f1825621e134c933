# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""usage: analysis.py drive.json HOST PORT: analyzes a recording and a live stream in cells."""
import sys

import numpy as np

import state_sensor_ros as sensor

if len(sys.argv) != 4:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
recording = sensor.open_recording(sys.argv[1])
# %% Distance of the ego to the nearest vehicle over time: 4 lines
nearest_m = []
for frame in recording.select(tags=['vehicle']):
    ways_xyz = frame.position_xyz - frame.position_xyz[frame.ego_row]
    nearest_m.append(np.sort(np.linalg.norm(ways_xyz, axis=1))[1])
# %% All lane changes: 1 line
changes = recording.lane_changes()
# %% The track of the ego against that of another actor: 2 lines
ego, other = recording.ego_track(), recording.track(recording[0].names[-1])
apart_m = np.linalg.norm(other.at(ego.game_time).position_xyz - ego.position_xyz, axis=1)
# %% A second of a live stream as a DataFrame: 2 lines
with sensor.open_stream(sys.argv[2], int(sys.argv[3])) as stream:
    table = sensor.read_table(stream, seconds=1.0).to_pandas()
# %% What was found
print(recording, *(np.round(each, 3).tolist() for each in (nearest_m, apart_m)), changes,
      len(table), sep='\n')
