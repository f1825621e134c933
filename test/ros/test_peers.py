# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""What peers may send, and when: times, clocks, arrays, frames that take longer than a stop."""

from budgets import one_of
import pytest
from rig import (
    Remote,
)
from rosgraph_msgs.msg import Clock

NS_PER_S = 1_000_000_000


def ns_of(stamp):
    return stamp.sec * NS_PER_S + stamp.nanosec


def stamps_of(frames):
    return [ns_of(each.header.stamp) for each in frames]


@pytest.mark.parametrize('stamp_source', one_of(['game_time', 'utc']))
def test_clock_is_published_with_game_time_and_switched_while_it_runs(bench, stamp_source):
    rig = bench(stamp_source=stamp_source, overflow='block')
    clocks = rig.listener.subscribe('/clock', 'rosgraph_msgs/Clock')
    rig.connect()
    remote = Remote(rig.listener)
    if stamp_source == 'utc':
        assert not rig.listener.node.count_publishers('/clock')
        return
    rig.listener.until(lambda: rig.send_until_received() and clocks and ns_of(
        clocks[0].clock) in stamps_of(rig.frames), what='a clock with the stamp of a frame')
    assert remote.set('publish_clock', False).successful
    rig.publishes_again()
    rig.listener.receive_all(clocks)
    n_clocks = len(clocks)
    rig.publishes_again()
    assert len(clocks) == n_clocks
    assert remote.set('publish_clock', True).successful
    rig.listener.until(lambda: rig.send_until_received() and len(clocks) > n_clocks)
    rig.finish()


def test_clock_of_another_node_is_left_to_it(bench, listener):
    other = listener.node.create_publisher(Clock, '/clock', 10)
    rig = bench()
    clocks = listener.subscribe('/clock', 'rosgraph_msgs/Clock')
    rig.connect()
    line = '/clock has another publisher, /listener: it is left to it'
    listener.until(lambda: line in rig.node.log, what='the warning')
    rig.publishes_again()
    listener.receive_all(clocks)
    n_clocks = len(clocks)
    rig.publishes_again()
    assert (len(clocks), rig.node.log.count(line)) == (n_clocks, 1)
    rig.finish()
    listener.node.destroy_publisher(other)
