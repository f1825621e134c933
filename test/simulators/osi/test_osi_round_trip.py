# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Traces in, through a bag or a conversion, and out again."""

from collections import defaultdict

from budgets import one_of
import numpy as np
import osi_traces
from paths import SAMPLE
import pytest
import stack_bags

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

MOTION = 'velocity', 'acceleration', 'orientation_rate'


def messages_of(path):
    """Return the messages of a trace of the package itself, read by ASAM's own reader."""
    from osi3trace.osi_trace import OSITrace
    trace = OSITrace(str(path), 'GroundTruth', topic='ground_truth')
    try:
        return list(trace)
    finally:
        trace.close()


def numbers(each, *, is_moving=True):
    base = each.base
    parts = [(base.dimension, 'length width height'), (base.position, 'x y z'),
             (base.orientation, 'roll pitch yaw')]
    if is_moving:
        parts += [(base.velocity, 'x y z'), (base.orientation_rate, 'roll pitch yaw')]
    return [getattr(part, name) for part, names in parts for name in names.split()]


@pytest.mark.parametrize('file_format', one_of(['bag', 'o.db3', 'o.mcap']))
def test_trace_of_another_program_through_a_bag_is_equal(tmp_path, file_format):
    messages = osi_traces.drive(20)
    for i, message in enumerate(messages):
        # Also one that rolls, pitches and turns, whose origin is below its center.
        base = message.moving_object[1].base
        base.orientation.roll, base.orientation.pitch = 0.2, -0.3
        base.orientation.yaw = 0.1 * i - 1.0
        base.orientation_rate.roll, base.orientation_rate.pitch = 0.4, 0.5
        base.orientation_rate.yaw = 2.0
        message.moving_object[2].vehicle_classification.type = 6
    path = osi_traces.write_plain(tmp_path / 'esmini_gt_.osi', messages)
    bag, back = tmp_path / file_format, tmp_path / 'back.osi.mcap'
    assert main(['convert', str(path), str(bag)]) == 0
    assert main(['convert', str(bag), str(back)]) == 0
    written = messages_of(back)
    assert len(written) == len(messages)
    for before, after in zip(messages, written, strict=True):
        assert (before.timestamp.seconds, before.timestamp.nanos) == (
            after.timestamp.seconds, after.timestamp.nanos)
        for name in ('moving_object', 'stationary_object'):
            old, new = getattr(before, name), getattr(after, name)
            if name == 'stationary_object':
                # Each message of the written trace has them.
                old = messages[0].stationary_object
            assert len(old) == len(new)
            for one, other in zip(old, new, strict=True):
                is_moving = name == 'moving_object'
                assert numbers(one, is_moving=is_moving) == pytest.approx(
                    numbers(other, is_moving=is_moving), rel=1e-12, abs=1e-12)
        for one, other in zip(before.moving_object, after.moving_object, strict=True):
            assert (one.type, one.vehicle_classification.type) == (
                other.type, other.vehicle_classification.type)
        host = [each.id.value for each in after.moving_object].index(after.host_vehicle_id.value)
        assert host == 1
    assert written[0].stationary_object[0].classification.type == 3


def test_trace_has_the_names_of_actors(tmp_path):
    trace = tmp_path / 'drive.osi.mcap'
    assert main(['convert', str(SAMPLE), str(trace)]) == 0
    with sensor.open_recording(SAMPLE) as before, sensor.open_recording(trace) as after:
        for message, old, new in zip(messages_of(trace), before, after, strict=True):
            written = [*message.moving_object, *message.stationary_object]
            assert {reference.identifier[0] for each in written for reference in
                    each.source_reference if reference.type == 'state_sensor_ros'} == {*new.names}
            assert len(written) == len(new)
            assert {*new.names} <= {*old.names}
            assert old.names[old.ego] == new.names[new.ego]
        # One that is read apart has them, too.
        assert after[-1].names == new.names


def test_trace_of_another_program_is_valid_for_omega_prime(tmp_path):
    omega_prime = pytest.importorskip('omega_prime')
    messages = osi_traces.drive(20)
    for message in messages:
        message.host_vehicle_id.value = 1
        for each in message.moving_object:
            each.vehicle_classification.role = 2
    path = osi_traces.write_plain(tmp_path / 'esmini_gt_.osi', messages)
    back = tmp_path / 'back.osi.mcap'
    assert main(['convert', str(path), str(tmp_path / 'bag')]) == 0
    assert main(['convert', str(tmp_path / 'bag'), str(back)]) == 0
    for trace in (path, back):
        omega_prime.Recording.from_file(trace, validate=True)


def test_velocities_that_a_trace_does_not_have_are_unknown_in_every_output(tmp_path):
    """As other programs write them: position, orientation and size alone."""
    trace, bag, again = tmp_path / 'trace.osi', tmp_path / 'bag', tmp_path / 'again.osi.mcap'
    messages = [osi_traces.ground_truth(0.1 * i, host_vehicle_id=0) for i in range(4)]
    for each in [each for message in messages for each in message.moving_object]:
        for name in MOTION:
            each.base.ClearField(name)
    osi_traces.write_plain(trace, messages)
    assert main(['convert', str(trace), str(bag), '--outputs', 'autoware,derived_objects']) == 0
    found = defaultdict(list)
    for topic, _, _, message in stack_bags.messages_of(bag):
        found[topic].append(message)
    objects = [each for message in found['/perception/object_recognition/ground_truth/objects']
               for each in message.objects]
    assert objects
    assert not any(each.kinematics.is_stationary for each in objects)
    for part in (*[each.twist for each in found['/localization/kinematic_state']],
                 *[each.accel for each in found['/localization/acceleration']],
                 *[each.kinematics.twist_with_covariance for each in objects],
                 *[each.kinematics.acceleration_with_covariance for each in objects]):
        assert list(part.covariance[::7]) == [1e6] * 6
    assert np.isnan([each.twist.linear.x for message in found['/state_sensor/objects']
                     for each in message.objects]).all()
    assert '/vehicle/status/velocity_status' not in found
    assert main(['convert', str(trace), str(again)]) == 0
    assert not any(each.base.HasField(name) for message in messages_of(again)
                   for each in message.moving_object for name in MOTION)
