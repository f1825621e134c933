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

import re

from encode_world import ALL_ON, definitions, exact_actors, STAMP_NS
from paths import ROOT
import pytest

from state_sensor_ros.naming import Registry
from state_sensor_ros.topics.encoder import Encoder, TOPICS
from state_sensor_ros.topics.topic import EVERYTHING

GOLDEN = ROOT / 'test' / 'golden'
FILES = sorted(path.stem for path in GOLDEN.glob('*.hex'))


def topic_of(name):
    """Return the topic that a file names in its first line."""
    return re.match(r'# ([~/][^:]*):', (GOLDEN / f'{name}.hex').read_text('utf-8'))[1]


def golden(name):
    lines = (GOLDEN / f'{name}.hex').read_text('utf-8').splitlines()
    return bytes.fromhex(' '.join(
        line.partition('#')[0].rpartition(':')[2] for line in lines))


@pytest.mark.parametrize('encoder', TOPICS, ids=lambda each: each.__name__)
def test_every_topic_has_a_golden_file(encoder):
    names = {topic.name for topic in encoder.topics}
    if encoder.kind:
        names.add(f'~/actors/demo_1/{encoder.kind}')
    assert names & set(map(topic_of, FILES)), f'no file of {names}: see test/golden/README.md'


@pytest.mark.parametrize('name', FILES)
def test_message_is_the_golden_one(name):
    frame = exact_actors()
    actor_list = Registry().update(frame)
    encoder = Encoder(ALL_ON, definitions())
    encoder.new_topics(frame)
    messages = dict(encoder.encode(frame, actor_list, STAMP_NS, EVERYTHING))
    found = {topic.name: data for topic, data in messages.items()}
    assert found[topic_of(name)].hex(' ') == golden(name).hex(' ')
