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
    arrayed,
    check_counters_never_decrease,
    frame,
    packet,
    Remote,
)
from rosgraph_msgs.msg import Clock

NS_PER_S = 1_000_000_000


def ns_of(stamp):
    return stamp.sec * NS_PER_S + stamp.nanosec


def stamps_of(frames):
    return [ns_of(each.header.stamp) for each in frames]


class SimulatedClock:
    """Publishes /clock and waits until the node has received it."""

    def __init__(self, rig):
        self._rig = rig
        self._publisher = rig.listener.node.create_publisher(Clock, '/clock', 10)
        rig.listener.until(lambda: self._publisher.get_subscription_count() >= 1)

    def set(self, now_ns):
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(now_ns, NS_PER_S)
        reports = self._rig.diagnostics
        n_reports = len(reports)

        def is_set():
            # Again and again, as the first ones may be lost before the topic is connected.
            self._publisher.publish(message)
            self._rig.listener.spin(0.05)
            # Reports have the node's time.
            return len(reports) > n_reports and ns_of(reports[-1].header.stamp) == now_ns

        self._rig.listener.until(is_set, what=f'a clock of {now_ns} ns')


def test_ros_clock_that_goes_back_is_a_restart(bench):
    rig = bench(stamp_source='ros', use_sim_time=True, debug_drawing=True, overflow='block',
                publish_clock=False)
    markers = rig.listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    actors = rig.listener.subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray',
                                    latched=True)
    rig.simulator.accept()
    clock = SimulatedClock(rig)
    clock.set(100 * NS_PER_S)
    rig.listener.until(lambda: (rig.send_until_received(), markers and actors and rig.tf)[-1])
    rig.wait_until_counted()
    # Each topic has the last frame: topics do not arrive in the order in which they are sent.
    rig.listener.until(lambda: rig.frames[-1].sample_count == rig.n_sent
                       and ns_of(rig.frames[-1].header.stamp)
                       == ns_of(markers[-1].markers[-1].header.stamp)
                       == ns_of(rig.tf[-1].transforms[-1].header.stamp))
    n_restarts = 0
    for now_ns, is_restart in ((101 * NS_PER_S, False), (50 * NS_PER_S, True),
                               (50 * NS_PER_S - 1000, True), (50 * NS_PER_S, False),
                               (0, True), (2 * 10 ** 9 * NS_PER_S, False), (NS_PER_S, True)):
        clock.set(now_ns)
        for received in (rig.frames, markers, actors, rig.tf):
            received.clear()
        # Two frames, a repeated one and an array: the clock stands still meanwhile.
        rig.send(2)
        rig.send_packet(packet({**frame(rig.n_sent - 1), 'sample_count': rig.n_sent + 1}))
        rig.n_sent += 1
        rig.send_packet(arrayed(rig.content(), rig.content()), 2)
        values = rig.wait_until_counted()
        n_restarts += is_restart
        assert values['simulator restarts'] == str(n_restarts), now_ns
        rig.listener.until(lambda: len(rig.frames) == 5 and len(markers) == len(rig.tf) == 4)
        expected = [now_ns + i for i in range(4)]
        assert sorted(set(stamps_of(rig.frames))) == expected
        assert [ns_of(each.transforms[0].header.stamp) for each in rig.tf] == expected
        deletes = [any(marker.action == 3 for marker in array.markers) for array in markers]
        assert deletes == [is_restart, False, False, False]
        rig.listener.until(lambda n=is_restart: len(actors) == n)
    rig.listener.until(lambda: 'the ROS clock went back' in rig.node.log,
                       what='the line of the log')
    check_counters_never_decrease(rig.diagnostics)
    rig.finish()


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
    line = '/clock has another publisher, /listener: it is left to that one'
    listener.until(lambda: line in rig.node.log, what='the warning')
    rig.publishes_again()
    listener.receive_all(clocks)
    n_clocks = len(clocks)
    rig.publishes_again()
    assert (len(clocks), rig.node.log.count(line)) == (n_clocks, 1)
    rig.finish()
    listener.node.destroy_publisher(other)
