# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Synthetic traffic: all its quantities agree with each other."""

from functools import cache
from itertools import islice
import json

import numpy as np
import pytest

from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

RATE_HZ = 25.0


@cache
def frames_of(n_frames, generation='v2', n_vehicles=20, n_objects=9, rate_hz=RATE_HZ, seed=3):
    return list(islice(TrafficFrames(n_vehicles, n_objects, rate_hz, seed, generation), n_frames))


def xyz(vector):
    return [vector['x'], vector['y'], vector['z']]


def xyzw(quaternion):
    return [quaternion[key] for key in 'xyzw']


def quaternion_product(p, q):
    """Hamilton product of x y z w arrays, by scalar and vector parts."""
    p_v, p_w, q_v, q_w = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    scalar = p_w * q_w - (p_v * q_v).sum(-1, keepdims=True)
    return np.concatenate([p_w * q_v + q_w * p_v + np.cross(p_v, q_v), scalar], axis=-1)


def conjugate(q):
    return q * np.array([-1.0, -1.0, -1.0, 1.0])


def rotate(q, v):
    padded = np.concatenate([v, np.zeros(v.shape[:-1] + (1,))], axis=-1)
    return quaternion_product(quaternion_product(q, padded), conjugate(q))[..., :3]


class Table:
    """The numbers of all vehicles of some v2 frames, (frames, vehicles, ...)."""

    def __init__(self, frames):
        def column(pick):
            return np.array([[pick(v) for v in f['frame']['vehicles']] for f in frames])
        self.time_s = np.array([f['game_time'] for f in frames])
        self.position = column(lambda v: xyz(v['state']['odometry']['pose']['position']))
        self.orientation = column(lambda v: xyzw(v['state']['odometry']['pose']['orientation']))
        self.velocity = column(lambda v: xyz(v['state']['odometry']['linear_velocity']))
        self.rate = column(lambda v: xyz(v['state']['odometry']['angular_velocity']))
        self.wheel_speed = column(lambda v: [w['speed'] for w in v['wheels']])
        self.wheel = column(lambda v: [xyzw(w['pose']['orientation']) for w in v['wheels']])
        self.wheel_place = column(lambda v: [xyz(w['pose']['position']) for w in v['wheels']])
        self.box = column(lambda v: xyz(v['state']['oriented_bounding_box'][0]['center']))
        self.box_turn = column(
            lambda v: xyzw(v['state']['oriented_bounding_box'][0]['orientation']))
        self.extents = column(lambda v: xyz(v['state']['oriented_bounding_box'][0]['extents']))
        self.lane = column(lambda v: v['control_state']['lane_id'])
        self.left = column(lambda v: v['control_state']['lane_change_left'])
        self.right = column(lambda v: v['control_state']['lane_change_right'])
        self.s = column(lambda v: v['control_state']['s'])
        self.road = column(lambda v: v['control_state']['road_id'])


@pytest.fixture(scope='module')
def table():
    return Table(frames_of(200, seed=1))


def test_velocity_is_the_derivative_of_position(table):
    moved = np.diff(table.position, axis=0) * RATE_HZ
    mean = (table.velocity[1:] + table.velocity[:-1]) / 2
    # float32 of positions up to 1 km: 0.008 cm, over 40 ms: below 1 cm/s.
    assert np.abs(moved - mean).max() < 1.0
    assert np.linalg.norm(table.velocity, axis=-1).mean() > 1000.0


def test_angular_velocity_is_the_derivative_of_orientation_in_world_axes(table):
    turn = quaternion_product(table.orientation[1:], conjugate(table.orientation[:-1]))
    turn *= np.sign(turn[..., 3:])
    mean = (table.rate[1:] + table.rate[:-1]) / 2
    assert np.abs(2 * turn[..., :3] * RATE_HZ - mean).max() < 3e-3
    # There are curves to both sides, slopes and banking.
    assert table.rate[..., 2].max() > 0.05
    assert table.rate[..., 2].min() < -0.02
    up = rotate(table.orientation, np.broadcast_to([0.0, 0.0, 1.0], table.position.shape))
    assert np.degrees(np.arccos(up[..., 2].min())) > 2.0


def test_vehicles_drive_along_their_own_x_axis(table):
    body = rotate(conjugate(table.orientation), table.velocity)
    speed = body[..., 0]
    assert speed.min() > 0.0
    steady = ~(table.left | table.right)
    slip = np.abs(np.arctan2(body[..., 1], speed))
    # The origin is ahead of the rear axle, which alone does not slip: v_y = distance * yaw rate.
    assert np.degrees(slip[steady].max()) < 0.65
    assert np.degrees(slip.max()) < 1.5
    # 1.4 m ahead of the rear axle, a change of slope moves the origin by a few cm/s at most.
    assert np.abs(body[..., 2]).max() < 5.0


def test_yaw_to_the_right_is_positive_and_steers_the_inner_wheel_more(table):
    half_steer = np.arctan2(table.wheel[..., :2, 2], table.wheel[..., :2, 3])
    half_steer = (half_steer + np.pi / 2) % np.pi - np.pi / 2
    left, right = 2 * half_steer[..., 0], 2 * half_steer[..., 1]
    yaw_rate = table.rate[..., 2]
    turning = np.abs(yaw_rate) > 0.02
    assert turning.sum() > 1000
    assert (np.sign(left[turning]) == np.sign(yaw_rate[turning])).all()
    to_right = turning & (yaw_rate > 0)
    to_left = turning & (yaw_rate < 0)
    assert (right[to_right] > left[to_right]).all()
    assert (left[to_left] < right[to_left]).all()
    # A turn about z after a spin about y.
    x, y, z, w = np.moveaxis(table.wheel, -1, 0)
    assert np.abs(z * y + x * w).max() < 1e-6
    assert np.abs(table.wheel[..., 2:, [0, 2]]).max() < 1e-7


def test_wheels_integrate_their_speeds_and_the_outer_ones_are_faster(table):
    spin = 2 * np.arctan2(table.wheel[..., 1], table.wheel[..., 3])
    mean = (table.wheel_speed[1:] + table.wheel_speed[:-1]) / 2
    off = np.diff(spin, axis=0) - mean / RATE_HZ
    assert np.abs((off + np.pi) % (2 * np.pi) - np.pi).max() < 1e-3
    rolling = np.linalg.norm(table.velocity, axis=-1) / table.wheel_speed.mean(-1)
    radius = table.wheel_place[..., 0, 2]
    assert np.abs(rolling - radius).max() < 0.5
    outer_left = table.rate[..., 2] > 0.02
    outer_right = table.rate[..., 2] < -0.02
    left_minus_right = table.wheel_speed[..., [0, 2]] - table.wheel_speed[..., [1, 3]]
    assert (left_minus_right[outer_left] > 0).all()
    assert (left_minus_right[outer_right] < 0).all()


def test_boxes_have_permuted_axes_and_stand_on_the_road(table):
    def box_axis(axis):
        world = rotate(table.box_turn, np.broadcast_to(axis, table.box.shape))
        return rotate(conjugate(table.orientation), world)
    assert np.abs(box_axis([1.0, 0.0, 0.0]) - [0.0, -1.0, 0.0]).max() < 1e-6
    assert np.abs(box_axis([0.0, 1.0, 0.0]) - [0.0, 0.0, 1.0]).max() < 1e-6
    assert np.abs(box_axis([0.0, 0.0, 1.0]) - [-1.0, 0.0, 0.0]).max() < 1e-6
    width, height, length = np.moveaxis(table.extents, -1, 0)
    assert ((length > 360) & (length < 730)).all()
    assert ((width > 160) & (width < 240)).all()
    center = rotate(conjugate(table.orientation), table.box - table.position)
    assert np.abs(center[..., 1]).max() < 0.1
    assert np.abs(center[..., 0]).max() < 31.0
    bottom = center[..., 2] - height / 2
    assert ((bottom > 10) & (bottom < 45)).all()


def test_vehicles_never_overlap(table):
    half = table.extents[0][:, [2, 0]] / 2
    forward = rotate(table.orientation, np.broadcast_to([1.0, 0.0, 0.0], table.box.shape))
    side = rotate(table.orientation, np.broadcast_to([0.0, 1.0, 0.0], table.box.shape))
    for frame in range(0, len(table.time_s), 5):
        apart = table.box[frame][None] - table.box[frame][:, None]
        clear = np.eye(len(half), dtype=bool)
        # The separating axes of two rectangles are the axes of both.
        for axes in (forward[frame], side[frame]):
            for axis in (axes[:, None], axes[None]):
                reach = sum(
                    half[:, i][:, None] * np.abs((own[:, None] * axis).sum(-1))
                    + half[:, i][None] * np.abs((own[None] * axis).sum(-1))
                    for i, own in enumerate((forward[frame], side[frame])))
                clear |= np.abs((apart * axis).sum(-1)) > reach
        assert clear.all(), f'frame {frame}: {np.argwhere(~clear)}'


def test_lane_changes_begin_with_a_new_lane_id_and_end_one_lane_beside(table):
    switched = np.argwhere(np.diff(table.lane, axis=0))
    assert len(switched) >= 4
    assert (table.left & table.right).sum() == 0
    assert set(np.diff(table.lane, axis=0)[tuple(switched.T)]) == {-1, 1}
    seen = 0
    for frame, vehicle in switched:
        step = table.lane[frame + 1, vehicle] - table.lane[frame, vehicle]
        flag = table.left if step > 0 else table.right
        other = table.right if step > 0 else table.left
        assert abs(step) == 1
        assert flag[frame + 1, vehicle]
        assert not flag[frame, vehicle]
        after = np.flatnonzero(~flag[frame + 1:, vehicle])
        if not len(after):
            continue
        end = frame + 1 + after[0]
        assert not other[frame:end, vehicle].any()
        assert 2.0 < table.time_s[end] - table.time_s[frame] < 12.0
        # The lateral motion in the vehicle's axes is to the side of the flag.
        path = table.velocity[frame:end, vehicle] / RATE_HZ
        heading = table.orientation[frame:end, vehicle]
        straight = heading[[0]] + np.linspace(0, 1, end - frame)[:, None] * (
            heading[[-1]] - heading[[0]])
        straight /= np.linalg.norm(straight, axis=-1, keepdims=True)
        drift = rotate(conjugate(straight), path)[:, 1].sum()
        assert np.sign(drift) == -step
        seen += 1
    assert seen >= 2
    # Without a flag, the lane is constant.
    keeping = ~(table.left | table.right)
    assert (np.diff(table.lane, axis=0)[keeping[1:] & keeping[:-1]] == 0).all()


def test_distance_along_the_road_advances_with_the_speed(table):
    same_road = np.diff(table.road, axis=0) == 0
    advance = np.diff(table.s, axis=0) * RATE_HZ
    speed = np.linalg.norm((table.velocity[1:] + table.velocity[:-1]) / 2, axis=-1)
    # The reference line is up to 9 m beside the vehicle, in curves of 250 m radius and more.
    assert (np.abs(advance / speed - 1)[same_road] < 0.06).all()
    assert (~same_road).sum() >= 1
    assert (table.s >= 0).all()
    assert set(np.unique(table.lane)) <= {-1, -2, -3}


def test_clock_advances_evenly_and_counts_samples():
    frames = frames_of(40, rate_hz=20.0, n_vehicles=1)
    times = np.array([frame['game_time'] for frame in frames])
    assert np.allclose(np.diff(times), 0.05, atol=1e-5)
    assert [frame['sample_count'] for frame in frames] == list(range(1, 41))
    assert all(isinstance(frame['time'], int) for frame in frames)
    assert frames[-1]['time'] - frames[0]['time'] == int(times[-1]) - int(times[0])


def test_cones_and_signs_stand_still_beside_the_road():
    first, last = (frames_of(5)[i]['frame']['objects'] for i in (0, -1))
    assert first == last
    tags = [thing['tags'] for thing in first]
    assert tags.count(['cone']) == 6
    assert tags.count(['traffic_sign']) == 3
    assert b'null' not in json.dumps(first).encode()
    cone = first[0]
    box, = cone['oriented_bounding_box']
    assert box['name'] == 'None'
    assert box['orientation'] == {'w': 1.0, 'x': 0.0, 'y': 0.0, 'z': 0.0}
    foot = cone['odometry']['pose']['position']
    assert -6.0 < box['center']['z'] - box['extents']['z'] / 2 - foot['z'] < 0.0
    sign = first[2]['odometry']['pose']
    assert (sign['position']['x'], sign['position']['y']) != (foot['x'], foot['y'])


def test_pedals_and_steering_wheel_of_v1_follow_the_motion():
    frames = frames_of(60, 'v1', seed=1)

    def column(key):
        return np.array([[actor[key] for actor in frame['frame'][:10]] for frame in frames])

    throttle, brake, wheel = (column(key) for key in
                              ('throttle_input', 'brake_input', 'wheel_input'))
    assert ((throttle >= 0) & (throttle <= 1)).all()
    assert ((brake >= -1) & (brake <= 0)).all()
    assert brake.min() < -0.1
    assert ((throttle == 0) | (brake == 0)).all()
    speed = np.linalg.norm(column('velocity'), axis=-1)
    gained = np.diff(speed, axis=0) * RATE_HZ
    assert (gained[brake[:-1] < -0.05] < 0).all()
    yaw_rate = column('angular_velocity')[..., 2]
    turning = np.abs(yaw_rate) > 0.02
    assert (np.sign(wheel[turning]) == np.sign(yaw_rate[turning])).all()
