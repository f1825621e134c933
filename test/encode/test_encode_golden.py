# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Every message to the byte, padding included, against bytes that the encoder did not make."""

from __future__ import annotations

from encode_world import ALL_ON, definitions, exact_actors, STAMP_NS
from paths import ROOT
import pytest

from state_sensor_ros.encode import Encoder, EVERYTHING
from state_sensor_ros.naming import Registry

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
    messages.update([encoder.encode_actors(actor_list, STAMP_NS)])
    found = {topic.name: data for topic, data in messages.items()}
    assert found[TOPICS[name]].hex(' ') == golden(name).hex(' ')
