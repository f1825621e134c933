# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The options of the mock server of CARLA 0.9."""

from state_sensor_ros.files.formats import ReadOptions
from state_sensor_ros.simulators.carla9.mock_server import open_mock


def add_options(parser):
    """Declare the recording to serve, its map, and the release."""
    parser.add_argument('file', nargs='?', help='recording (default: synthetic traffic)')
    parser.add_argument('--server-version', default='0.9.16', help='that it claims to be')
    parser.add_argument('--xodr', default='', help='OpenDRIVE map of the recording')


def open_server(options):
    """Make the server."""
    options.read_options = ReadOptions()
    return open_mock(options, 2000)
