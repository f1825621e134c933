# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Churn and time: absent actors are removed, stamps increase."""


from budgets import tries
import pytest
from rig import framed, NodeProcess, state


def ego(number):
    return state('ego_car', position=(100.0 * number, 0.0, 0.0), tags=('vehicle', 'ego'))


@pytest.mark.thorough
def test_churn_of_actors(domain, listener, simulator):
    """50 new actors in each frame, none of the old ones: topics, memory and names stay bounded."""
    n_frames, n_each = tries(25), 50
    with NodeProcess(domain, port=simulator.port, actor_timeout=0.2,
                     overflow='block') as node:
        actors = listener.subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray',
                                    depth=1000, latched=True)
        simulator.accept()
        warm = iter(range(10 ** 6))
        listener.until(lambda: (simulator.send(framed(next(warm), ego(0), period=1e-4,
                                                      start=0.5)),
                                listener.spin(0.2), actors)[-1])
        early_mb = 0
        for i in range(1, n_frames + 1):
            crowd = [state(f'actor {i}.{k}', position=(k * 600.0, i, 0.0))
                     for k in range(n_each)]
            simulator.send(framed(i, ego(i), *crowd))
            expected = ['ego_car', *(f'actor {i}.{k}' for k in range(n_each))]
            listener.until(lambda e=expected: [a.name for a in actors[-1].actors] == e,
                           what=f'~/actors of frame {i}')
            assert [a.topic_name for a in actors[-1].actors][1] == f'actor_{i}_0'
            if i == n_frames // 4:
                early_mb = node.memory_mb()
        assert node.memory_mb() < early_mb + 25.0
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
