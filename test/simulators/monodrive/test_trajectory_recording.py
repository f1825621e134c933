# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trajectory decoded frame by frame: what is read ahead changes nothing."""

from contextlib import closing
from functools import cache
import itertools
import json
import random

import numpy as np
import pytest

from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import EVERYTHING, Needs
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.recording import TrajectoryRecording

POSES_ALONE = Needs(boxes=False, wheels=False, inputs=False, appearance=False, lanes=False)


@cache
def traffic_texts(generation):
    return [json.dumps(frame) for frame in itertools.islice(
        generate(2, 1, 20.0, 1, generation), 4)]


def texts(seed):
    """Return frames of all generations, some of them unusual or no frames."""
    rng = random.Random(seed)
    frames = []
    for generation in rng.choices(('v2', 'v1', 'v0'), k=6):
        some = traffic_texts(generation)
        frames += some
        frames += rng.choice(([], [some[0].replace('"tags": [', '"tags": [1, ')], ['{"frame": 3}'],
                              [some[1].replace('"game_time"', '"gone"')],
                              ['{"game_time": 1.0}'], [some[2], some[2]]))
    return frames


def shown(decoder, payload):
    """Return what a decoder makes of a payload, as text."""
    try:
        return repr([(one.frame, [str(fault.error) for fault in one.faults])
                     for one in decoder.decode(payload)])
    except DecodeError as error:
        return str(error)


@pytest.mark.parametrize('seed', range(8))
def test_recording_is_decoded_as_its_frames_one_by_one(seed, tmp_path):
    path = tmp_path / 'drive.json'
    frames = texts(seed)
    path.write_text('[\n' + ',\n'.join(frames) + '\n]\n')
    rng, alone = random.Random(seed), Decoder()
    with closing(TrajectoryRecording(str(path))) as recording, \
            np.printoptions(threshold=1_000_000, precision=17):
        for text, recorded in zip(frames, recording.frames(), strict=True):
            assert recorded.packet.payload == text.encode()
            if rng.random() < 0.1:
                continue
            recording.decoder.needs = alone.needs = rng.choice(
                (EVERYTHING, EVERYTHING, EVERYTHING, POSES_ALONE))
            # Another object, which was not read ahead.
            assert shown(recording.decoder, recorded.packet.payload) \
                == shown(alone, bytearray(text.encode()))


def test_frame_that_follows_a_decoded_one_is_parsed_once(tmp_path):
    path = tmp_path / 'drive.json'
    path.write_text('[\n' + ',\n'.join(json.dumps(frame) for frame in itertools.islice(
        generate(1, 0, 20.0, 1, 'v2'), 4)) + '\n]\n')
    with closing(TrajectoryRecording(str(path))) as recording:
        n_decoded = 0
        for recorded in recording.frames():
            decoder = recording.decoder
            was_read = decoder.is_read_ahead(recorded.packet.payload)
            assert was_read == (n_decoded > 0)
            decoder.decode(recorded.packet.payload)
            assert not decoder.is_read_ahead(recorded.packet.payload)
            n_decoded += 1
    assert n_decoded == 4
