# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The options of the mock server of CARLA 0.8."""

from carla_server.town_server import CarlaOptions, CarlaServer

# The imitation-learning dataset was collected at this rate.
_RATE_HZ = 10.0


def add_options(parser):
    """Declare no more than those of all mock servers."""


def open_server(options):
    """Make the server; ``--port`` is that of the measurements, between the two others."""
    rate_hz = _RATE_HZ if isinstance(options.rate, str) else options.rate
    return CarlaServer(CarlaOptions(
        port=2001 if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=1.0 / rate_hz, n_frames=options.frames,
        n_vehicles=options.vehicles - 1, n_pedestrians=options.objects, seed=options.seed))
