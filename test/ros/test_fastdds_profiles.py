# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""config/fastdds_profiles.xml: valid for Fast DDS, and no message is lost with it."""

from pathlib import Path

import pytest
from rclpy.utilities import get_rmw_implementation_identifier
from rig import framed, NodeProcess

from state_sensor_ros.small_files import share_file

# Fast DDS 3 reads another variable, and other names in the file.
VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'


@pytest.mark.thorough
def test_profiles_are_read_and_messages_arrive(domain, listener, simulator, tmp_path):
    """Fast DDS names what it does not know in a file, so that one without complaint was read."""
    if get_rmw_implementation_identifier() != 'rmw_fastrtps_cpp' \
            or 'libfastrtps.so' not in Path('/proc/self/maps').read_text():
        pytest.skip('the file is for Fast DDS 2')
    profiles = Path(share_file('config', 'fastdds_profiles.xml'))
    misspelled = tmp_path / 'misspelled.xml'
    misspelled.write_text(profiles.read_text().replace('Supression', 'Suppression'))
    odometry = listener.subscribe('/state_sensor/actors/ego_car/odometry', 'nav_msgs/Odometry')
    with NodeProcess(domain, port=simulator.port, environment={VARIABLE: str(profiles)}) as node:
        simulator.accept()
        numbers = iter(range(10_000))
        listener.until(lambda: (simulator.send(framed(next(numbers))), len(odometry) > 10)[-1])
        assert 'XMLPARSER' not in node.log
    with NodeProcess(domain, environment={VARIABLE: str(misspelled)}) as node:
        listener.until(lambda: 'XMLPARSER' in node.log or listener.spin(0.1), what='its error')
