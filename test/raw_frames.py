# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The actors of a recording, from the text of the file, without the decoder of the package."""


def actors_of(frame):
    """Return the states of a v0, v1 or v2 frame, from the text of the file alone."""
    inner = frame.get('frame', frame)
    if isinstance(inner, dict) and 'vehicles' in inner:
        return [*(each.get('state', each) for each in inner['objects']),
                *(each['state'] for each in inner['vehicles'])]
    if isinstance(inner, list):
        return [each.get('state', each) for each in inner]
    return [{'name': name, **each} for name, each in inner.items() if isinstance(each, dict)]


def xyz_of(vector):
    return [vector['x'], vector['y'], vector['z']] if isinstance(vector, dict) else list(vector)
