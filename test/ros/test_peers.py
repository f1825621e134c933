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

import signal

from budgets import one_of
import pytest
from rig import (
    arrayed,
    changed_program,
    check_counters_never_decrease,
    END_S,
    frame,
    Managed,
    packet,
    state,
    statuses,
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


def held_by(file):
    """
    Return what waits in the middle of a frame that has an actor `slow`, while ``file`` exists.

    Its marks are no words of the log, whose "sends" holds "ends".
    """
    return 'topics.encoder', 'Encoder', 'encode', f"""
    from pathlib import Path
    if 'slow' in args[0].names:
        print('<begins>', flush=True)
        while Path({str(file)!r}).exists():
            time.sleep(0.01)
        print('<ends>', flush=True)
    return original(self, *args, **options)
"""


class SlowBench:
    """A node whose next frame takes longer than a stop waits for it."""

    def __init__(self, rig, hold):
        self.rig, self._hold, self._n_slow = rig, hold, 0
        subscribe = rig.listener.subscribe
        self.markers = subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
        self.actors = subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray',
                                latched=True)
        self.odometry = subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        self.managed = Managed(rig.listener)
        rig.simulator.accept()
        self.publishes(is_start=True)

    def publishes(self, *, is_start):
        """Wait until new frames are published on all topics; a start empties displays first."""
        rig = self.rig
        topics = rig.frames, rig.tf, self.markers, self.actors, self.odometry
        for received in topics:
            received.clear()
        rig.n_sent += 1

        def send():
            # Another actor in each frame, so that ~/actors changes, too.
            rig.send_packet(packet(rig.content(
                state('ego_car', tags=('ego',)), state(f'car_{rig.n_sent % 2}'))))
            rig.listener.spin_for(0.03)
            return all(topics)

        rig.listener.until(send, what='new frames on all topics')
        assert any(marker.action == 3 for marker in self.markers[0].markers) == is_start
        rig.wait_until_counted()

    def begin_slow_frame(self):
        """Send it, and frames behind it; return its stamp."""
        rig = self.rig
        self._hold.touch()
        self._n_slow += 1
        stamp_ns = NS_PER_S + rig.n_sent * NS_PER_S // 20
        rig.send_packet(packet(rig.content(state('ego_car', tags=('ego',)), state('slow'))))
        rig.send(3)
        rig.listener.until(lambda: rig.node.log.count('<begins>') >= self._n_slow,
                           what='the slow frame to begin')
        # What a stop finds in the socket is not counted.
        rig.listener.until(lambda: int(statuses(rig.diagnostics)[-1]['frames received'])
                           == rig.n_frames, what='the receipt of the frames behind it')
        return stamp_ns

    def is_processing(self):
        log = self.rig.node.log
        return log.count('<begins>') > log.count('<ends>')

    def end_slow_frame(self):
        assert self.is_processing()
        self._hold.unlink()
        self.rig.listener.until(lambda: not self.is_processing(), what='the end of the frame')

    def reconnect(self):
        self.rig.simulator.hang_up()
        self.rig.simulator.accept()

    def check_nothing_came_of(self, stamp_ns):
        """Check that nothing of the slow frame, or of those behind it, was published."""
        stamps = [*stamps_of(self.rig.frames), *stamps_of(self.odometry), *stamps_of(self.actors),
                  *[ns_of(each.transforms[0].header.stamp) for each in self.rig.tf],
                  *[ns_of(marker.header.stamp) for array in self.markers
                    for marker in array.markers if marker.action != 3]]
        assert not [each for each in stamps if stamp_ns <= each < stamp_ns + NS_PER_S // 5]


@pytest.fixture
def slow_bench(bench, tmp_path):
    hold = tmp_path / 'hold'
    rig = bench(program=changed_program(tmp_path / 'slow.py', held_by(hold)), debug_drawing=True,
                overflow='block')
    return SlowBench(rig, hold)


def test_stop_and_start_again_while_a_frame_is_processed(slow_bench):
    rig, managed = slow_bench.rig, slow_bench.managed
    for sequence in (['deactivate', 'activate'],
                     ['deactivate', 'activate', 'deactivate', 'activate'],
                     ['deactivate', 'cleanup', 'configure', 'activate']):
        stamp_ns = slow_bench.begin_slow_frame()
        for name in sequence:
            n_markers = len(slow_bench.markers)
            assert managed.request(name)
            assert slow_bench.is_processing()
            if name == 'deactivate':
                rig.listener.until(lambda n=n_markers: [
                    marker.action for array in slow_bench.markers[n:] for marker in array.markers
                ][-1:] == [3], what='the removal of the markers')
            elif name == 'cleanup':
                # Counters begin anew with the configuration.
                rig.n_frames = 0
            elif name == 'activate':
                slow_bench.reconnect()
        slow_bench.end_slow_frame()
        slow_bench.publishes(is_start=True)
        slow_bench.check_nothing_came_of(stamp_ns)
        slow_bench.publishes(is_start=False)
        slow_bench.check_nothing_came_of(stamp_ns)
    check_counters_never_decrease(rig.diagnostics[-3:])
    rig.finish()


@pytest.mark.parametrize('signum', one_of([signal.SIGTERM, signal.SIGINT]))
def test_end_while_a_frame_is_processed(slow_bench, signum):
    rig = slow_bench.rig
    stamp_ns = slow_bench.begin_slow_frame()
    n_markers = len(slow_bench.markers)
    code, seconds = rig.node.end(signum)
    assert (code, seconds < END_S) == (0, True), rig.node.log
    assert '<ends>' not in rig.node.log
    assert 'Traceback' not in rig.node.log
    rig.listener.until(lambda: len(slow_bench.markers) > n_markers)
    assert [marker.action for marker in slow_bench.markers[-1].markers] == [3]
    slow_bench.check_nothing_came_of(stamp_ns)
