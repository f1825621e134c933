# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Look into a recording, cell by cell as in a notebook: look_into_recording.py drive.json."""
# %%
import sys

import numpy as np

import state_sensor_ros as sensor

recording = sensor.open_recording(sys.argv[1])
print(len(recording), recording)
# %% How far is the nearest actor?
for frame in recording:
    ways_xyz = frame.position_xyz - frame.position_xyz[frame.ego_row]
    nearest_m = np.sort(np.linalg.norm(ways_xyz, axis=1))[1]
print(f'nearest at the end: {nearest_m:.1f} m')
# %% Who changes lanes, and when?
print(recording.lane_changes())
# %% How does the ego keep its distance to another actor?
ego, other = recording.ego_track(), recording.track(next(iter(recording.actors)))
print(np.linalg.norm(other.at(ego.game_time).position_xyz - ego.position_xyz, axis=1).round(1))
