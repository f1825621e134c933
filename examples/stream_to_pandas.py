# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""usage: stream_to_pandas.py 127.0.0.1 8700: prints the speeds of all actors of the stream."""
import sys

import state_sensor_ros as sensor

if len(sys.argv) != 3:
    print(__doc__, file=sys.stderr)
    sys.exit(2)
with sensor.open_stream(sys.argv[1], int(sys.argv[2])) as stream:
    table = sensor.read_table(stream, n_frames=40).to_pandas()
print(table.groupby('name', observed=True)['speed'].describe())
