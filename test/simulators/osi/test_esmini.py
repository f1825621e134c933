"""Traces of esmini 3.5: lists that add, a host that is no vehicle, velocities of rear axles."""

import gzip
from itertools import pairwise, product
import math

from budgets import spread
import numpy as np
import osi_traces
from paths import DATA
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.files.osi_writer import angular_velocity_of, rates_of
from state_sensor_ros.naming import Registry
from state_sensor_ros.objects.object_maker import ObjectMaker
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import global_from_unit, quaternion_from_rpy
from state_sensor_ros.settings import DEFAULTS

WALLS = ('Wall1', 'Wall2', 'Wall3')


def frames_of(name, **parameters):
    with sensor.open_recording(DATA / 'osi' / name, parameters=parameters) as recording:
        return list(recording), [fault.text for fault in recording.faults]


def test_static_objects_that_are_added_stay_with_the_others():
    frames, faults = frames_of('added.osi')
    assert faults == []
    names = [frame.names for frame in frames]
    assert names[:3] == [('Ego', *WALLS)] * 3
    assert names[3] == names[4]
    assert names[3][:4] == ('Ego', *WALLS)
    assert len(names[3]) == 5
    assert all(frame.lanes.ids[0].tolist() == [1, 0, -1] for frame in frames)
    assert [frame.ego for frame in frames] == [0] * 5


def test_any_frame_has_what_was_added_before_it(tmp_path):
    first, *rest = osi_traces.drive(200)
    osi_traces.add_building(rest[99], number=51)
    with sensor.open_recording(osi_traces.write_plain(
            tmp_path / 'a_gt_.osi', [first, *rest])) as recording:
        assert [len(recording[i]) for i in (199, 98, 100, 0)] == [5, 4, 5, 4]


def test_lists_that_repeat_replace_each_other(tmp_path):
    messages = [osi_traces.ground_truth(i / 20, objects=0) for i in range(4)]
    for message, numbers in zip(messages, ([1, 2], [2, 3], [4], []), strict=True):
        for number in numbers:
            osi_traces.add_building(message, number)
    with sensor.open_recording(
            osi_traces.write_plain(tmp_path / 'a_gt_.osi', messages)) as recording:
        assert [frame.ids.tolist() for frame in recording] == [[1, 2], [2, 3], [4], [4]]


@pytest.mark.parametrize(('time_s', 'host', 'version', 'ego'), [
    (0.0, None, None, None), (9.0, 2, None, 2), (9.0, None, 3, None)])
def test_all_that_is_kept_ends_with_its_run(tmp_path, time_s, host, version, ego):
    """The clock goes back, or the host or the version of OSI is another one."""
    first, *rest = osi_traces.drive(4)
    first.version.version_major = 2
    for each in first.moving_object:
        osi_traces.name(each, f'entity_name:actor {each.id.value}')
    last = osi_traces.ground_truth(time_s)
    if host is not None:
        last.host_vehicle_id.value = host
    if version is not None:
        last.version.version_major = version
    with sensor.open_recording(osi_traces.write_plain(
            tmp_path / 'a_gt_.osi', [first, *rest, last])) as recording:
        *_, before, after = recording
    assert before.names == ('actor 0', 'actor 1', 'actor 2', 'building_50')
    assert (before.ego, len(before.lanes)) == (1, 3)
    assert after.names == ('car_0', 'car_1', 'car_2')
    assert (after.ego, len(after.lanes)) == (ego, 0)


@pytest.mark.parametrize('length', [0.0, 10.0])
def test_outline_is_a_size_and_a_ghost_is_no_object_of_stacks(tmp_path, length):
    """Also that of an object of a map, whose box is around the origin of its outline."""
    message = osi_traces.ground_truth(0.0, host_vehicle_id=0)
    osi_traces.name(message.moving_object[1], 'entity_name:Lead_ghost')
    osi_traces.add_building(message)
    base = message.stationary_object[0].base
    base.dimension.length = length
    if length:
        osi_traces.name(message.stationary_object[0], 'object_id:2', kind=osi_traces.MAP)
    for x, y in ((1.0, 0.0), (5.0, 0.0), (5.0, 2.0)):
        corner = base.base_polygon.add()
        corner.x, corner.y = x, y
    with sensor.open_recording(osi_traces.write_plain(tmp_path / 'a_gt_.osi', [message])) as found:
        [frame] = found
    assert frame.tags[1] == ('vehicle', 'car', 'ghost')
    assert frame.boxes.size_xyz[3].tolist() == [4.0, 2.0, 6.0]
    # Its corners are those of an object that is turned by 90 degrees.
    assert frame.boxes.position_xyz[3] == pytest.approx((-1.0, 33.0, 3.0))
    objects = ObjectMaker(DEFAULTS).of(frame, Registry(DEFAULTS).update(frame))
    assert objects.rows.tolist() == [2, 3]


def test_host_that_is_no_vehicle_is_named_once_and_a_given_ego_wins():
    frames, faults = frames_of('misc_first.osi')
    assert [frame.ego for frame in frames] == [None] * 2
    assert len(faults) == 1
    assert 'host_vehicle_id: found 14, the id of no moving object' in faults[0]
    frames, faults = frames_of('misc_first.osi', **{'osi.ego': 'Ego'})
    assert [frame.names[frame.ego_row] for frame in frames] == ['Ego'] * 2
    assert faults == []
    # A name that is there is not proposed in its place.
    assert near_names(['Wall1'], frames[0].names) == '; there are Ego, Other'
    # Also over a host that is a vehicle.
    frames, _ = frames_of('added.osi', **{'osi.ego': 'nobody'})
    assert [frame.ego for frame in frames] == [None] * 5


def test_velocities_of_rear_axles_become_those_of_origins():
    [_, *frames], _ = frames_of('circle.osi', **{'osi.velocity_at': 'rear_axle'})
    [_, *as_given], _ = frames_of('circle.osi')
    # Of the step before, as esmini computes them.
    for before, now in pairwise(frames):
        moved = (now.position_xyz - before.position_xyz) / (now.game_time - before.game_time)
        assert now.velocity_xyz[0] == pytest.approx(moved[0], abs=0.005)
    # By hand: 1.4 m before the axle at 0.2435 rad/s.
    assert np.linalg.norm(frames[0].velocity_xyz[0] - as_given[0].velocity_xyz[0]) \
        == pytest.approx(1.3999999761581421 * 0.24349916589060605, abs=1e-12)


@pytest.mark.parametrize(('late_s', 'behind_m', 'is_set'), spread(product(
    [-0.025, 0.0, 0.025], [0.0, 1.4], [False, True]), 6))
def test_velocities_of_another_point_than_is_set_are_named_once(tmp_path, late_s, behind_m,
                                                                is_set):
    """In a circle; velocities of the moment, or of the steps before and after."""
    messages, radius_m = [], 40.0
    for i in range(60):
        message = osi_traces.ground_truth(0.05 * i, objects=2)
        for each in message.moving_object:
            yaw, base = 0.25 * 0.05 * i, each.base
            base.position.x, base.position.y = radius_m * math.sin(yaw), -radius_m * math.cos(yaw)
            base.orientation.yaw, base.orientation_rate.yaw = yaw, 0.25
            # The velocity of a point behind the center.
            yaw += 0.25 * late_s
            base.velocity.x = 0.25 * (radius_m * math.cos(yaw) + behind_m * math.sin(yaw))
            base.velocity.y = 0.25 * (radius_m * math.sin(yaw) - behind_m * math.cos(yaw))
        messages.append(message)
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', messages)
    with sensor.open_recording(path, parameters={
            'osi.velocity_at': 'rear_axle' if is_set else 'center'}) as recording:
        list(recording)
        texts = [fault.text for fault in recording.faults]
    names = 'center', 'rear axle'
    expected, found = names[is_set], names[behind_m > 0.0]
    text = (f'velocity: found velocities of the {found} of vehicles that turn; expected those of '
            f'the {expected}, or the parameter osi.velocity_at: {found.replace(" ", "_")}')
    assert texts == [text] * (expected != found)


@pytest.mark.parametrize('name', ['added.osi', 'added.osi.gz'])
def test_compressed_trace_is_equal_and_is_read_up_to_a_cut(tmp_path, name):
    data = gzip.compress((DATA / 'osi' / 'added.osi').read_bytes())
    (tmp_path / name).write_bytes(data)
    plain, _ = frames_of('added.osi')
    with sensor.open_recording(tmp_path / name) as recording:
        assert [frame.position_xyz.tolist() for frame in recording] == [
            frame.position_xyz.tolist() for frame in plain]
        assert recording[3].names == plain[3].names
    for n_cut, n_frames in ((9, 5), (60, 3)):
        (tmp_path / name).write_bytes(data[:-n_cut])
        with sensor.open_recording(tmp_path / name) as recording:
            assert len(list(recording)) == n_frames
            assert [fault.kind for fault in recording.faults] == ['cut']


def test_rates_of_angles_are_an_angular_velocity():
    """Compared with the difference of two orientations, and undone."""
    angles, rates = np.array([[0.3, -0.4, 2.0]]), np.array([[0.5, -0.7, 0.9]])
    step_s = 1e-6
    before, after = (global_from_unit(quaternion_from_rpy(angles + sign * step_s / 2 * rates))[0]
                     for sign in (-1, 1))
    turning = (after - before) @ ((after + before) / 2).T / step_s
    found = angular_velocity_of(rates, angles)
    assert found[0] == pytest.approx([turning[2, 1], turning[0, 2], turning[1, 0]], abs=1e-6)
    assert rates_of(found, angles) == pytest.approx(rates, abs=1e-14)
