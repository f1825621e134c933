# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""Limits hold for any change of actors; the work for a frame is linear in its actors."""

from statistics import median
import time

from budgets import tries
from rig import check_counters_never_decrease, packet, state

ACTOR_TOPICS = '/state_sensor/actors/'
N_KINDS = 2  # odometry and lane state of each actor
MAX_ATTEMPTS = 12


def topics_of_actors(rig):
    """Return the topics of actors that have a publisher in the graph."""
    graph = rig.listener.node
    return {name for name, _ in graph.get_topic_names_and_types()
            if name.startswith(ACTOR_TOPICS) and graph.count_publishers(name)}


def topics_named(names):
    return {f'{ACTOR_TOPICS}{name}/{kind}' for name in names
            for kind in ('odometry', 'control_state')}


def test_topics_never_exceed_their_limit_over_restarts(bench):
    limit, n_each, n_restarts = 40, 20, tries(3)
    rig = bench(max_actor_topics=limit, overflow='block', frame=False, tf='none')
    rig.simulator.accept()

    def send(names):
        rig.send_packet(packet(rig.content(*[state(name) for name in names])))
        rig.listener.spin(0.02)
        topics = topics_of_actors(rig)
        assert len(topics) <= limit * N_KINDS
        return topics

    for run in range(n_restarts):
        rig.n_sent = 0  # the clock goes back
        names = [f'run{run}_{i}' for i in range(n_each)]
        send(names)
        rig.listener.until(lambda own=names: topics_named(own) <= send(own),
                           what=f'topics of the actors of run {run}')
    values = rig.wait_until_counted()
    assert (values['simulator restarts'], values['actors without topics']) == (
        str(n_restarts - 1), '0')
    # More than the limit at a time, with and without a restart before: the rest is counted.
    for first, n_sent in ((0, 0), (1000, rig.n_sent)):
        rig.n_sent = n_sent
        names = [f'many_{first + i}' for i in range(limit + 30)]
        rig.listener.until(lambda own=names: len(send(own) & topics_named(own)) == limit * N_KINDS)
        values = rig.wait_until_counted()
        assert values['actors without topics'] == '30'
        assert f'max_actor_topics is {limit}' in values['message'] or values['level'] == 3
        # Without 20 of those that have topics, 20 of those that wait get them.
        served = {name.split('/')[3] for name in topics_of_actors(rig)}
        left = [name for name in names if name not in sorted(served)[:20]]
        rig.listener.until(lambda own=left: len(send(own) & topics_named(own)) == limit * N_KINDS)
        assert rig.wait_until_counted()['actors without topics'] == '10'
    assert rig.wait_until_counted()['internal errors'] == '0'
    check_counters_never_decrease(rig.diagnostics)
    rig.finish()


def test_actors_that_leave_together_do_not_delay_the_next_frames(bench):
    n, n_frames, timeout_s = min(tries(100), 1000), 20, 0.5
    rig = bench(overflow='block', actor_timeout=timeout_s, frame=False, tf='ego')
    odometry = rig.listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    rig.simulator.accept()
    crowd = [state(f'car_{i}', position=(i * 600.0, 0.0, 0.0), n_boxes=0) for i in range(n)]
    ego = state('ego', tags=('ego',))

    def delay_s(*states):
        """Return how long the next frame takes to be published."""
        data = packet(rig.content(*states))
        n_before, began = len(odometry), time.perf_counter()
        rig.send_packet(data)
        rig.listener.until(lambda: len(odometry) > n_before)
        return time.perf_counter() - began

    rig.listener.until(lambda: (rig.send_packet(packet(rig.content(ego))),
                                rig.listener.spin(0.1), odometry)[-1])
    rig.wait_until_counted()
    ratios = []
    # A frame may wait for a core: the least of some attempts counts.
    for _ in range(MAX_ATTEMPTS):
        delay_s(ego, *crowd)
        # As many topics as the limit allows, at both ends.
        rig.listener.until(lambda: len(topics_of_actors(rig)) == N_KINDS * (n + 1))
        steady_s = median(delay_s(ego, *crowd) for _ in range(n_frames))
        gone_s = [delay_s(ego) for _ in range(n_frames)]
        assert len(topics_of_actors(rig)) <= N_KINDS * (n + 1)
        ratios.append(max(gone_s) / steady_s)
        if ratios[-1] < 3.0:
            break
        rig.listener.until(lambda: len(topics_of_actors(rig)) == N_KINDS)
    # The frames without them are hundreds of times smaller than the steady one.
    assert min(ratios) < 3.0, ratios
    rig.finish()
