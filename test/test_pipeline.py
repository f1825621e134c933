# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""What the pipeline says of packets; what it makes of them is tested on the topics."""

import json
import math

from encode_world import definitions
import pytest
from silent_sink import SilentSink

from state_sensor_ros.decode import Decoder
from state_sensor_ros.encode import Demand, Encoder
from state_sensor_ros.framing import Packet
from state_sensor_ros.pipeline import Codec, Pipeline
from state_sensor_ros.settings import Settings


def packet(header, in_json):
    actor = {'name': 'car', 'position': [0, 0, 0], 'orientation': [0, 0, 0, 1], 'tags': ['ego']}
    payload = json.dumps({'frame': [actor], **in_json}).encode()
    return Packet(payload, *header, 1)


@pytest.mark.parametrize(('header', 'in_json', 'is_told'), [
    ((12.5, 1600000000), {'game_time': 12.5, 'time': 1600000000}, False),
    ((12.5, 1600000000), {'game_time': 12.5 + 2 ** -20, 'time': 1600000001}, False),
    ((12.5, 1600000000), {}, False),
    ((math.nan, 0), {'game_time': 12.5, 'time': 1600000000}, False),
    ((12.5, 1600000000), {'game_time': 12.5 + 2 ** -18, 'time': 1600000000}, True),
    ((12.5, 1600000000), {'game_time': 12.5, 'time': 1600000002}, True),
    ((0.0, 1600000000), {'game_time': 12.5, 'time': 1600000000}, True)])
def test_pipeline_tells_once_of_two_clocks(header, in_json, is_told):
    told = []
    settings = Settings()
    pipeline = Pipeline(settings, lambda _: Codec(Decoder(), Encoder(settings, definitions())),
                        SilentSink(Demand.nothing()),
                        report=lambda kind, text: told.append((kind, text)))
    for i in range(3):
        later = {key: value + i for key, value in in_json.items()}
        pipeline.process(packet([number + i if number else 0 for number in header], later), 0)
    assert [kind for kind, _ in told] == ['clocks'] * is_told
    if is_told:
        assert pipeline.counters.game_time == in_json['game_time'] + 2
        assert f'game_time {header[0]:g}, time {header[1]}, its JSON' in told[0][1]
