# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""config/fastdds_profiles.xml: valid for Fast DDS, and no message is lost with it."""

import math
from pathlib import Path

from budgets import tries
import pytest
from rclpy.utilities import get_rmw_implementation_identifier
from rig import crowded, frame, NodeProcess, packet

from state_sensor_ros.share import share_file

N_ACTORS, N_FRAMES, N_BATCH = 10, tries(20), 5
# Fast DDS 3 reads another variable, and other names in the file.
VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'


def is_fastdds_2():
    """Return whether this process has loaded Fast DDS 2."""
    return 'libfastrtps.so' in Path('/proc/self/maps').read_text()


def stamp_s(message):
    """Return the time of a message, s."""
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def run(domain, listener, simulator, environment):
    """Publish frames to subscribers of every actor; return what they received and the log."""
    topics = [f'/state_sensor/actors/actor_{i}/{kind}' for i in range(N_ACTORS)
              for kind in ('odometry', 'control_state')]
    received = [listener.subscribe(
        topic, 'nav_msgs/Odometry' if topic.endswith('odometry')
        else 'state_sensor_ros/ControlStateStamped') for topic in topics]
    number = 0

    def send():
        nonlocal number
        simulator.send(packet(crowded(number, N_ACTORS), sample_count=number + 1))
        number += 1
        listener.spin(0.005)

    with NodeProcess(domain, port=simulator.port, overflow='block',
                     environment=environment) as node:
        simulator.accept()
        listener.until(lambda: (send(), all(received))[-1], what='a message of each topic')
        last = number
        last_s = frame(last - 1)['game_time']
        listener.until(lambda: all(math.isclose(stamp_s(messages[-1]), last_s)
                                   for messages in received), what='the last frame on each topic')
        for messages in received:
            messages.clear()
        # Less at once than a publisher keeps for a reader that lags.
        for n in range(N_BATCH, N_FRAMES + 1, N_BATCH):
            while number < last + n:
                send()
            listener.until(lambda n=n: all(len(messages) >= n for messages in received),
                           what=f'frame {n} on each topic')
        return [len(messages) for messages in received], node.log


@pytest.mark.thorough
def test_profiles_are_read_and_every_message_is_delivered(domain, listener, simulator, tmp_path):
    if get_rmw_implementation_identifier() != 'rmw_fastrtps_cpp' or not is_fastdds_2():
        pytest.skip('the file is for Fast DDS 2')
    profiles = Path(share_file('config', 'fastdds_profiles.xml'))
    misspelled = tmp_path / 'misspelled.xml'
    misspelled.write_text(profiles.read_text().replace('Supression', 'Suppression'))
    n_received, log = run(domain, listener, simulator, {VARIABLE: str(profiles)})
    assert n_received == [N_FRAMES] * 2 * N_ACTORS
    # Fast DDS names what it does not know in a file, so that this one has been read.
    assert 'XMLPARSER' not in log
    with NodeProcess(domain, environment={VARIABLE: str(misspelled)}) as node:
        listener.until(lambda: 'XMLPARSER' in node.log or listener.spin(0.1), what='its error')
