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


from budgets import tries
from rig import check_counters_never_decrease, packet, state

ACTOR_TOPICS = '/state_sensor/actors/'
N_KINDS = 2  # odometry and lane state of each actor


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
