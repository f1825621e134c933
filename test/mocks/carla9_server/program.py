# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The options of the mock server of CARLA 0.9."""

from pathlib import Path

from carla9_server.road_map import NO_ROADS
from carla9_server.scenes import PERIOD_S, RecordedScene, TrafficScene
from carla9_server.server import WorldOptions, WorldServer
from state_sensor_ros import open_recording


def add_options(parser):
    """Declare the recording to serve, its map, and the release."""
    parser.add_argument('file', nargs='?', help='recording (default: synthetic traffic)')
    parser.add_argument('--server-version', default='0.9.16', help='that it claims to be')
    parser.add_argument('--xodr', help='OpenDRIVE map of the recording')


def open_server(options):
    """Make the server; its streams have the port after ``--port``."""
    period_s = PERIOD_S if isinstance(options.rate, str) else 1.0 / options.rate
    if options.file is None:
        scene = TrafficScene(options.vehicles, options.objects, options.seed, period_s)
    else:
        text = Path(options.xodr).read_text(encoding='utf-8') if options.xodr else NO_ROADS
        scene = RecordedScene(lambda: recorded_frames(options.file), text)
    return WorldServer(scene, WorldOptions(
        port=2000 if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=period_s, n_frames=options.frames,
        version=options.server_version))


def recorded_frames(path):
    with open_recording(path) as recording:
        yield from recording
