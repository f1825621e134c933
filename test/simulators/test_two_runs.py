# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Two runs of a simulator in a row are the two alone: nothing of the first one is left."""

import carla_wire
from equal_frames import assert_equal
from hypothesis import given
from hypothesis import strategies as st
import osi_traces
import pytest
from scripted_simulator import frame

from state_sensor_ros.simulators.carla.frames import FrameMaker
from state_sensor_ros.simulators.carla.stream import parsed
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.simulators.osi import frames as osi
from state_sensor_ros.source import Faults


def osi_message(random, i):
    """Return a message that has lists, names, a host and a version, or leaves them out."""
    message = osi_traces.ground_truth(0.05 * i, objects=random.randint(1, 3))
    for each in message.moving_object:
        each.type = random.choice((2, 3))
        if random.random() < 0.5:
            osi_traces.name(each, f'entity_name:{random.choice("ABC")}')
    if random.random() < 0.5:
        osi_traces.add_lanes(message, random.randint(1, 3), random.choice('7A'))
    if random.random() < 0.5:
        osi_traces.add_building(message, random.randint(50, 52))
    if random.random() < 0.5:
        message.host_vehicle_id.value = random.randint(0, 3)
    if random.random() < 0.5:
        message.version.version_major = random.randint(2, 3)
    return random.choice((message, osi_traces.view_of(message))).SerializeToString()


def carla_message(random, i):
    box = carla_wire.box((2.0, 1.0, 0.8))
    return carla_wire.measurements(i, 50 * i, 50 * i, carla_wire.player(
        carla_wire.transform((1.0 * i, 2.0, 0.0)), bounding_box=box), *(random.choice(
            (carla_wire.vehicle, carla_wire.pedestrian))(
                number, carla_wire.transform((3.0, 4.0, 0.0)), 1.0 * i, box)
            for number in random.sample(range(1, 5), 2)))


def osi_decoder():
    faults = Faults()
    decoder = osi.Decoder(osi.OsiParameters(), osi.Run(), faults)
    return lambda data: [decoder.frame(data), *((fault.kind, fault.error.found)
                                                for fault in faults.take())]


def carla_decoder():
    maker = FrameMaker(Faults())
    return lambda payload: [maker.frame(parsed(payload))]


# What makes a message of a drawn run, and what makes a decoder.
SIMULATORS = {
    'osi': (osi_message, osi_decoder), 'carla': (carla_message, carla_decoder),
    'monodrive': (lambda random, i: frame(0.05 * i, random.choice('ab'), random.choice(
        (('vehicle', 'ego'), ('car',)))), lambda: Decoder().frames)}


@pytest.mark.parametrize('name', SIMULATORS)
@given(random=st.randoms(use_true_random=False))
def test_two_runs_in_a_row_are_the_two_alone(name, random):
    message, new_decoder = SIMULATORS[name]
    runs = [[message(random, i) for i in range(random.randint(2, 5))] for _ in range(2)]
    alone, in_a_row = [], new_decoder()
    for run in runs:
        decode = new_decoder()
        alone += [item for payload in run for item in decode(payload)]
    assert_equal(tuple(item for run in runs for payload in run for item in in_a_row(payload)),
                 tuple(alone))
