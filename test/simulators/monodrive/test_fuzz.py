# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Damaged inputs: sound frames or our own errors."""

from __future__ import annotations

import contextlib
import json
import random
import sys

from budgets import tries
from monodrive_frames import with_faults, written
import numpy as np
from paths import DATA
import pytest

from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryRecording
from state_sensor_ros.source import IGNORED, MEMBER

SEEDS = [path.read_bytes() for path in sorted(DATA.rglob('*.json'))]
N_INPUTS = tries(400)

TOKENS = [b'null', b'true', b'NaN', b'-Infinity', b'1e999', b'-0', b'9' * 30, b'""', b'[]', b'{}',
          b'"\\ud800"', b'"\\u0000"', b'{"x":1,"y":2,"z":3}', b'[1,2,3]', b'[0,0,0,1]', b'"frame"',
          b'"name"', b'"position"', b'"state"', b'"id"', b'"wheels"', b'"game_time"', b',', b':',
          b'{', b'}', b'[', b']', b'"', b"'", b'\\', b'\xff', b'\xef\xbb\xbf', b'\n', b'[' * 2000]
VALUES = [None, True, -1, 0, 1.5, 2 ** 31, 2 ** 64, 10 ** 40, '', 'x', 'ego', [], {}, [1, 2, 3],
          [0, 0, 0, 1], {'x': 1, 'y': 2, 'z': 3}, {'yaw': 1, 'pitch': 2, 'roll': 3}, [[]],
          '\ud800']


def damaged_text(chance, text):
    """Cut, double, swap or replace some bytes."""
    text = bytearray(text)
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        at = chance.randrange(len(text) + 1)
        end = min(len(text), at + chance.choice((0, 1, 1, 4, 40)))
        text[at:end] = chance.choice((b'', text[at:end] * 2, chance.choice(TOKENS),
                                      bytes([chance.randrange(256)])))
    return bytes(text)


def damaged_value(chance, value):
    """Replace, drop, rename or move one value somewhere inside; the JSON stays JSON."""
    places = []

    def collect(owner):
        keys = owner if isinstance(owner, dict) else range(len(owner))
        for key in list(keys):
            places.append((owner, key))
            if isinstance(owner[key], dict | list):
                collect(owner[key])
    collect(value)
    for _ in range(chance.choice((1, 1, 2, 6))):
        owner, key = chance.choice(places)
        if (isinstance(owner, dict) and key not in owner) \
                or (isinstance(owner, list) and key >= len(owner)):
            continue
        match chance.randrange(4):
            case 0:
                del owner[key]
            case 1 if isinstance(owner, dict):
                owner[chance.choice(('x', 'name', 'frame', 'state', 'position', 'é' * 50))] \
                    = owner.pop(key)
            case 2:
                other, there = chance.choice(places)
                with contextlib.suppress(KeyError, IndexError):
                    owner[key] = json.loads(json.dumps(other[there]))
            case _:
                owner[key] = chance.choice(VALUES)
    return value


def damaged(chance):
    text = chance.choice(SEEDS)
    if chance.random() < 0.6:
        with contextlib.suppress(ValueError):
            value = json.loads(text)
            if isinstance(value, dict | list) and value:
                return json.dumps(damaged_value(chance, value)).encode()
    return damaged_text(chance, text)


@contextlib.contextmanager
def reason_of(number):
    """Print the number of an input that fails."""
    is_good = False
    try:
        yield
        is_good = True
    finally:
        if not is_good:
            sys.stderr.write(f'input {number}\n')


@pytest.mark.filterwarnings('error', 'ignore::ResourceWarning')
def test_damaged_payloads_are_refused_or_become_sound_frames():
    decoders = [Decoder(), Decoder()]
    decoders[1].details = False
    n_frames = n_refused = 0
    for number in range(N_INPUTS):
        text = damaged(random.Random(number))
        with reason_of(number):
            try:
                frames, _ = with_faults(text, decoder=decoders[number % 2])
            except DecodeError as error:
                n_refused += bool(error.where and error.expected)
                continue
            for frame in frames:
                check(frame)
        n_frames += len(frames)
    # Damage that nothing survives, or everything, would prove nothing.
    assert min(n_frames, n_refused) > N_INPUTS / 10


def check(frame):
    """Check that what was understood once is understood again, and is the same."""
    assert len(set(frame.names)) == frame.n_actors
    assert not np.isinf(frame.kinematics).any()
    ''.join(frame.names).encode()
    [again], faults = with_faults(written(frame))
    assert {fault.kind for fault in faults} <= {IGNORED, MEMBER}
    assert (again.names, again.tags) == (frame.names, frame.tags)
    np.testing.assert_allclose(again.kinematics, frame.kinematics, rtol=1e-6, atol=1e-40)


@pytest.mark.filterwarnings('error', 'ignore::ResourceWarning')
def test_damaged_trajectories_give_one_error_or_fewer_frames_but_no_other_number(tmp_path):
    whole = [seed for seed in SEEDS if seed.startswith(b'{')]
    n_whole = n_broken = 0
    for number in range(N_INPUTS // 10):
        chance = random.Random(number)
        path = tmp_path / f'{number}.json'
        path.write_bytes(damaged_text(chance, b'[' + b','.join(chance.choices(whole, k=6)) + b']'))
        recording, n_frames, error = TrajectoryRecording(str(path)), 0, None
        with reason_of(number), contextlib.closing(recording):
            try:
                n_frames = sum(1 for _ in recording.frames())
            except TrajectoryFormatError as caught:
                error = caught
        assert n_frames <= 8
        n_whole += error is recording.cut is None
        n_broken += error is not recording.cut
    assert min(n_whole, n_broken) > N_INPUTS / 200
