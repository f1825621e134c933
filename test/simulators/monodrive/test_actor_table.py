# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The actor table: a decoder with it returns the same frames as a new decoder."""


from functools import cache
import itertools
import json
import sys

from budgets import tries
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.payloads import Needs
from state_sensor_ros.simulators.monodrive.decoder import Decoder, format_payload

# The needs of a display of boxes: no wheels, inputs, looks or lanes.
BOXES_ONLY = Needs(wheels=False, inputs=False, appearance=False, lanes=False)


def states(value):
    return [*value['frame']['objects'],
            *[vehicle['state'] for vehicle in value['frame']['vehicles']]]


def swap(value):
    value['frame']['vehicles'].reverse()


def leave(value):
    del value['frame']['vehicles'][0]


def retag(value):
    states(value)[-1]['tags'].append('loud')


def untag(value):
    del states(value)[-1]['tags']


def rename(value):
    states(value)[-1]['name'] += '_2'


def grow(value):
    states(value)[0]['oriented_bounding_box'][0]['extents']['z'] += 1.0


def shrink(value):
    states(value)[-1]['oriented_bounding_box'][-1]['scale']['x'] = 0.5


def unscale(value):
    del states(value)[-1]['oriented_bounding_box'][-1]['scale']


def blur(value):
    states(value)[-1]['oriented_bounding_box'][-1]['extents']['y'] = None


def unbox(value):
    states(value)[-1]['oriented_bounding_box'].clear()


def space(value):
    """Return the same value as other text."""
    states(value)[-1]['oriented_bounding_box'][-1]['extents'] = {
        key: states(value)[-1]['oriented_bounding_box'][-1]['extents'][key] for key in 'zyx'}


def spoil_tags(value):
    states(value)[-1]['tags'] = ['car', 7]


def spoil_size(value):
    states(value)[-1]['oriented_bounding_box'][-1]['scale'] = 'large'


def double(value):
    states(value)[-1]['name'] = states(value)[-2]['name']


CHANGES = [swap, leave, retag, untag, rename, grow, shrink, unscale, blur, unbox, space,
           spoil_tags, spoil_size, double]


def understood(decoder, payload):
    """Return the frames of a payload as text."""
    [decoded] = decoder.decode(payload)
    frame = decoded.frame
    rest = [] if frame.boxes is None else [frame.boxes.actor.tolist(),
                                           frame.boxes.rows.tobytes()]
    whole = b'' if frame.wheels is None else format_payload(frame)
    return (whole, frame.names, frame.tags, frame.kinematics.tobytes(), rest,
            [str(fault.error) for fault in decoded.faults])


@cache
def traffic_text():
    return json.dumps(list(itertools.islice(generate(4, 3, 20.0, 1, 'v2'), 6)))


@settings(max_examples=tries(15))
@given(needs=st.lists(st.sampled_from([Needs(), BOXES_ONLY]), min_size=6, max_size=6),
       changes=st.lists(st.lists(st.sampled_from(CHANGES), max_size=2, unique=True),
                        min_size=6, max_size=6))
def test_a_used_decoder_returns_the_frames_of_a_new_one(needs, changes):
    decoder = Decoder()
    for value, wanted, changed in zip(json.loads(traffic_text()), needs, changes, strict=True):
        for change in sorted(changed, key=CHANGES.index):
            # Only an existing box has a size to change.
            if change is unbox or states(value)[-1]['oriented_bounding_box']:
                change(value)
        payload = json.dumps(value).encode()
        decoder.needs = wanted
        assert understood(decoder, payload) == understood(Decoder(needs=wanted), payload)


def test_unchanged_parts_are_the_same_objects():
    decoder = Decoder(needs=BOXES_ONLY)
    first, second, third = [
        decoder.decode(json.dumps(value).encode())[0].frame
        for value in itertools.islice(generate(4, 3, 20.0, 1, 'v2'), 3)]
    assert first.names is second.names is third.names
    assert first.tags is second.tags is third.tags
    assert not np.array_equal(first.kinematics, second.kinematics)


@pytest.mark.parametrize('key', ['extents', 'scale'])
def test_an_invalid_size_leaves_its_actor_out(key):
    value = next(generate(2, 0, 20.0, 1, 'v2'))
    states(value)[1]['oriented_bounding_box'][0][key] = [1, 2, 'three']
    [decoded] = Decoder(needs=BOXES_ONLY).decode(json.dumps(value).encode())
    assert decoded.frame.n_actors == 1
    [fault] = decoded.faults
    assert isinstance(fault.error, DecodeError)
    assert fault.error.where == f'frame.vehicles[1].state.oriented_bounding_box[0].{key}.z'


def test_no_objects_of_earlier_frames_are_kept():
    decoder, kept = Decoder(), []
    value = next(iter(generate(200, 0, 20.0, 1, 'v2')))
    for i in range(12):
        for vehicle in value['frame']['vehicles']:
            vehicle['control_state']['road_id'] = 1000 + i
        frame = decoder.decode(json.dumps(value).encode())[0].frame
        assert frame.lanes.road_id.tolist() == [1000 + i] * 200
        del frame
        kept.append(sys.getallocatedblocks())
    # 200 lanes are 400 objects and more.
    assert kept[-1] - kept[2] < 200
