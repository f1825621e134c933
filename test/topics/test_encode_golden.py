# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Every message to the byte, padding included, against bytes that the encoder did not make."""

from __future__ import annotations

from encode_world import ALL_ON, definitions, exact_actors, STAMP_NS
from paths import ROOT
import pytest

from state_sensor_ros.naming import Registry
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING

GOLDEN = ROOT / 'test' / 'golden'
TOPICS = {'actors': '~/actors', 'clock': '/clock', 'control_states': '~/control_states',
          'control_state': '~/actors/demo_1/control_state', 'frame': '~/frame',
          'joint_states': '~/actors/demo_1/joint_states', 'tf': '/tf',
          'odometry': '~/actors/demo_1/odometry'}


def golden(name):
    lines = (GOLDEN / f'{name}.hex').read_text('utf-8').splitlines()
    return bytes.fromhex(' '.join(
        line.partition('#')[0].rpartition(':')[2] for line in lines))


def test_every_golden_file_is_compared():
    assert {path.stem for path in GOLDEN.glob('*.hex')} == TOPICS.keys()


@pytest.mark.parametrize('name', TOPICS)
def test_message_is_the_golden_one(name):
    frame = exact_actors()
    actor_list = Registry().update(frame)
    encoder = Encoder(ALL_ON, definitions())
    messages = dict(encoder.encode(frame, actor_list, STAMP_NS, EVERYTHING))
    found = {topic.name: data for topic, data in messages.items()}
    assert found[TOPICS[name]].hex(' ') == golden(name).hex(' ')
