# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""config/fastdds_profiles.xml: the same messages with fewer wake-ups of Fast DDS."""

import math
from pathlib import Path
import re

import pytest
from rclpy.utilities import get_rmw_implementation_identifier
from rig import crowded, frame, NodeProcess, packet

from state_sensor_ros.share import share_file

N_ACTORS, N_FRAMES, N_BATCH = 10, 60, 5
# Fast DDS 3 reads another variable, and other names in the file.
VARIABLE = 'FASTRTPS_DEFAULT_PROFILES_FILE'


def is_fastdds_2():
    """Return whether this process has loaded Fast DDS 2."""
    return 'libfastrtps.so' in Path('/proc/self/maps').read_text()


def wake_ups(pid):
    """Return how often the event threads of Fast DDS have slept."""
    total = 0
    for task in Path(f'/proc/{pid}/task').iterdir():
        if (task / 'comm').read_text().startswith('dds.ev'):
            [found] = re.findall(r'^voluntary_ctxt_switches:\s*(\d+)$',
                                 (task / 'status').read_text(), re.MULTILINE)
            total += int(found)
    return total


def stamp_s(message):
    """Return the time of a message, s."""
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def run(domain, listener, simulator, environment):
    """Publish frames to subscribers of every actor; return received stamps and wake-ups."""
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
        # One message a turn: of topics that are never read empty, the first would hide the last.
        for _ in topics:
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
        before = wake_ups(node.process.pid)
        # Less at once than a publisher keeps for a reader that lags.
        for n in range(N_BATCH, N_FRAMES + 1, N_BATCH):
            while number < last + n:
                send()
            listener.until(lambda n=n: all(len(messages) >= n for messages in received),
                           what=f'frame {n} on each topic')
        spent = wake_ups(node.process.pid) - before
        assert 'XMLPARSER' not in node.log
    return [len(messages) for messages in received], spent


def test_profiles_deliver_every_message_with_fewer_wake_ups(domain, listener, simulator):
    if get_rmw_implementation_identifier() != 'rmw_fastrtps_cpp' or not is_fastdds_2():
        pytest.skip('the file is for Fast DDS 2')
    profiles = {VARIABLE: str(share_file('config', 'fastdds_profiles.xml'))}
    found = [run(domain, listener, simulator, environment)
             for environment in ({}, profiles)]
    assert [counts for counts, _ in found] == [[N_FRAMES] * 2 * N_ACTORS] * 2
    # 20 to 30 of a frame without the file, 4 to 8 with it.
    assert found[1][1] < found[0][1] / 1.5, found
