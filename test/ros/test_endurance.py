# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Churn and time: absent actors are removed, stamps increase."""

import os

from budgets import tries
import pytest
from rig import frame, framed, NodeProcess, packet, state, statuses


def ego(number):
    return state('ego_car', position=(100.0 * number, 0.0, 0.0), tags=('vehicle', 'ego'))


def show(markers, n_seen, shown):
    """Do what a display does with the arrays that are new; return how many there are now."""
    for array in markers[n_seen:]:
        for marker in array.markers:
            if marker.action == 3:
                shown.clear()
            elif marker.action == 2:
                shown.pop((marker.ns, marker.id), None)
            else:
                shown[marker.ns, marker.id] = marker
    return len(markers)


def stamp_of(message):
    """Return the stamp of an array of markers, or of a message with a header of its own."""
    stamp = (message.markers[-1] if hasattr(message, 'markers') else message).header.stamp
    return stamp.sec, stamp.nanosec


@pytest.mark.thorough
def test_churn_of_actors(domain, listener, simulator):
    """50 new actors in each frame, none of the old ones: topics, memory and names stay bounded."""
    n_frames, n_each = tries(25), 50
    with NodeProcess(domain, port=simulator.port, actor_timeout=0.2, overflow='block',
                     debug_drawing=True, labels=False) as node:
        actors = listener.subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray',
                                    depth=1000, latched=True)
        markers = listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
        simulator.accept()
        warm = iter(range(10 ** 6))
        listener.until(lambda: (simulator.send(framed(next(warm), ego(0), period=1e-4,
                                                      start=0.5)),
                                listener.spin(0.2), actors and markers)[-1])
        early_mb = early_threads = 0
        shown = {}
        n_seen = 0
        for i in range(1, n_frames + 1):
            crowd = [state(f'actor {i}.{k}', position=(k * 600.0, i, 0.0))
                     for k in range(n_each)]
            simulator.send(framed(i, ego(i), *crowd))
            expected = ['ego_car', *(f'actor {i}.{k}' for k in range(n_each))]
            listener.until(lambda e=expected: [a.name for a in actors[-1].actors] == e,
                           what=f'~/actors of frame {i}')
            assert [a.topic_name for a in actors[-1].actors][1] == f'actor_{i}_0'
            n_seen = show(markers, n_seen, shown)
            if i == n_frames // 4:
                early_mb = node.memory_mb()
                early_threads = len(os.listdir(f'/proc/{node.process.pid}/task'))
        listener.until(lambda: stamp_of(markers[-1]) == stamp_of(actors[-1]),
                       what='the last markers')
        show(markers, n_seen, shown)
        assert len(shown) == n_each + 1
        assert node.memory_mb() < early_mb + 25.0
        assert len(os.listdir(f'/proc/{node.process.pid}/task')) <= early_threads + 2
        # All actors but the ego leave; only its topics are left after the timeout.
        for i in range(n_frames + 1, n_frames + 9):
            simulator.send(framed(i, ego(i)))

        def topics():
            return {name for name, _ in listener.node.get_topic_names_and_types()
                    if name.startswith('/state_sensor/actors/')
                    and listener.node.count_publishers(name)}

        remaining = {'/state_sensor/actors/ego_car/odometry',
                     '/state_sensor/actors/ego_car/control_state'}
        listener.until(lambda: topics() == remaining,
                       what='the removal of topics of absent actors')


def test_time_repeats_steps_back_and_restarts(domain, listener, simulator):
    """/tf never goes back within a run; ~/frame has all; /clock jumps once with a restart."""
    times = [1.0, 1.05, 1.05, 1.1, 1.1, 1.15, 0.2, 0.25, 0.25, 0.3]
    with NodeProcess(domain, port=simulator.port, publish_clock=True, overflow='block') as node:
        tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
        clock = listener.subscribe('/clock', 'rosgraph_msgs/Clock')
        frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        simulator.accept()
        warm = iter(range(10 ** 6))
        listener.until(lambda: (simulator.send(framed(next(warm), ego(0), period=1e-4,
                                                      start=0.5)),
                                listener.spin(0.1), tf and clock and frames)[-1])
        n_warm = len(frames)
        for i, game_time in enumerate(times):
            content = frame(0, ego(i))
            content.update(game_time=game_time, sample_count=1_000_000 + i if i < 6 else i)
            simulator.send(packet(content))
        listener.until(lambda: [each.game_time for each in frames[n_warm:]][-len(times):] == times,
                       what='all frames')
        listener.until(lambda: sec(clock[-1].clock) == 0.3, what='the last clock')
        listener.until(lambda: sec(tf[-1].transforms[0].header.stamp) == 0.3,
                       what='the last transforms')

        def distinct(stamps):
            """Return the run from 1.0 s on: what was on its way before belongs to the warm-up."""
            return stamps[stamps.index(1.0):]

        expected = [1.0, 1.05, 1.1, 1.15, 0.2, 0.25, 0.3]
        assert distinct([sec(each.transforms[0].header.stamp) for each in tf]) == expected
        assert distinct([sec(each.clock) for each in clock]) == expected
        listener.until(lambda: [each for each in statuses(diagnostics)
                                if each['simulator restarts'] == '1'
                                and int(each['frames repeated']) >= 3], what='what was counted')
        assert node.is_alive


def sec(stamp):
    return round(stamp.sec + stamp.nanosec * 1e-9, 6)
