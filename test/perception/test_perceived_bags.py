# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Perceived objects in bags: the ground truth stays byte by byte, and all topics agree."""

import math
import uuid

from message_store import read
import numpy as np
import pytest
from rosbags.rosbag2 import Reader
from stack_bags import DERIVED, DETECTION, EGO, GROUND_TRUTH, PREDICTED, TRACKING, VISION

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

ALL = {'range': 70.0, 'field_of_view': 200.0, 'occlusion': 0.2, 'position_std': 0.3,
       'yaw_std': 0.1, 'size_std': 0.2, 'velocity_std': 0.5, 'missing': 0.1, 'ghosts': 1.5,
       'seed': 7}
N_FRAMES = 30
PERCEIVED = {TRACKING, DETECTION, PREDICTED, DERIVED, VISION}
OUTPUTS = ('--outputs', 'autoware,vision,derived_objects', '-p',
           'autoware_objects:=[ground_truth, tracking, detection, predicted]')


def given(perception):
    return [word for name, value in perception.items()
            for word in ('-p', f'perception.{name}:={value}')]


@pytest.fixture(scope='module')
def drive(tmp_path_factory):
    path = tmp_path_factory.mktemp('drive') / 'drive.json'
    assert main(['synth', str(path), '--vehicles', '20', '--objects', '15', '--rate', '10',
                 '--frames', str(N_FRAMES), '--seed', '5', '-q']) == 0
    return path


@pytest.fixture(scope='module')
def convert(drive, tmp_path_factory):
    """Return a function that converts the drive with perception; it returns its messages."""
    def converted(*options, **perception):
        bag = tmp_path_factory.mktemp('bag') / 'bag'
        assert main(['convert', '-q', str(drive), str(bag), *(options or OUTPUTS),
                     *given(perception)]) == 0
        found = {}
        with Reader(bag) as reader:
            for connection, log_ns, data in reader.messages():
                found.setdefault(connection.topic, []).append(
                    (log_ns, data, connection.msgtype))
        return found
    return converted


@pytest.fixture(scope='module')
def true(convert):
    return convert()


@pytest.fixture(scope='module')
def seen(convert):
    return convert(**ALL)


def objects_of(messages, i):
    """Return stamp (ns) and objects of the message number ``i`` of a topic."""
    _, data, type_name = messages[i]
    message = read(data, type_name)
    stamp = message.header.stamp
    return stamp.sec * 10 ** 9 + stamp.nanosec, message


def pose_of(item):
    """Return the pose of an object of any of the types."""
    if hasattr(item, 'bbox'):
        return item.bbox.center
    kinematics = getattr(item, 'kinematics', None)
    if kinematics is None:
        return item.pose
    of = getattr(kinematics, 'pose_with_covariance', None)
    return (of or kinematics.initial_pose_with_covariance).pose


def numbers_of(pose):
    position, turn = pose.position, pose.orientation
    return (position.x, position.y, position.z, turn.x, turn.y, turn.z, turn.w)


def items_of(message):
    return message.detections if hasattr(message, 'detections') else message.objects


def test_truth_stays_byte_by_byte(true, seen):
    assert set(seen) == set(true) > PERCEIVED
    for topic in set(true) - PERCEIVED:
        assert seen[topic] == true[topic], topic
    assert {GROUND_TRUTH, EGO, '/tf', '/state_sensor/frame'} <= set(true) - PERCEIVED
    for topic in PERCEIVED:
        assert [each[1] for each in seen[topic]] != [each[1] for each in true[topic]]


def test_same_seed_gives_the_same_file(tmp_path, drive):
    """Byte by byte; a bag of another name differs by that name in its metadata."""
    files = []
    for folder in ('one', 'two'):
        (tmp_path / folder).mkdir()
        bag = tmp_path / folder / 'bag'
        assert main(['convert', '-q', str(drive), str(bag), *OUTPUTS, *given(ALL)]) == 0
        files.append({path.name: path.read_bytes() for path in bag.iterdir()})
    assert len(files[0]) == 2
    assert files[0] == files[1]


def test_all_topics_show_the_same_objects(seen):
    n_false = 0
    for i in range(N_FRAMES):
        tracked = items_of(objects_of(seen[TRACKING], i)[1])
        for topic in PERCEIVED:
            found = items_of(objects_of(seen[topic], i)[1])
            assert [numbers_of(pose_of(each)) for each in found] \
                == [numbers_of(pose_of(each)) for each in tracked], topic
        n_false += sum(each.id >= 2 ** 31 for each in items_of(objects_of(seen[DERIVED], i)[1]))
        assert [each.shape.dimensions.x for each in tracked] == [
            each.shape.dimensions.x for each in items_of(objects_of(seen[PREDICTED], i)[1])]
    assert n_false == pytest.approx(1.5 * N_FRAMES, abs=4 * (1.5 * N_FRAMES) ** 0.5)


def test_false_positives_have_the_id_of_no_actor(true, seen):
    def ids(messages, topic, of):
        return {of(each) for i in range(N_FRAMES)
                for each in items_of(objects_of(messages[topic], i)[1])}

    for topic, of in ((TRACKING, lambda each: bytes(each.object_id.uuid)),
                      (PREDICTED, lambda each: bytes(each.object_id.uuid)),
                      (DERIVED, lambda each: each.id), (VISION, lambda each: each.id)):
        actors, found = ids(true, topic, of), ids(seen, topic, of)
        assert len(found - actors) > 30
        assert len(found & actors) > 5
    assert all(uuid.UUID(bytes=each).version == 5 for each in found_uuids(seen))


def found_uuids(messages):
    return [bytes(each.object_id.uuid) for each in items_of(objects_of(messages[TRACKING], 3)[1])]


def test_covariances_are_those_of_the_noise(true, seen):
    def check(covariance, expected):
        expected = {**dict.fromkeys(range(6), 1e-9), **expected}
        found = np.array(covariance).reshape(6, 6)
        assert found == pytest.approx(np.diag([expected[i] for i in range(6)]), rel=1e-12)

    at_pose = {0: 0.3 ** 2, 1: 0.3 ** 2, 5: 0.1 ** 2}
    at_twist = {0: 0.5 ** 2, 1: 0.5 ** 2}
    for messages, pose, twist in ((seen, at_pose, at_twist), (true, {}, {})):
        for topic in (TRACKING, DETECTION):
            for each in items_of(objects_of(messages[topic], 5)[1]):
                check(each.kinematics.pose_with_covariance.covariance, pose)
                check(each.kinematics.twist_with_covariance.covariance, twist)
        for each in items_of(objects_of(messages[PREDICTED], 5)[1]):
            check(each.kinematics.initial_pose_with_covariance.covariance, pose)
            check(each.kinematics.initial_twist_with_covariance.covariance, twist)
            check(each.kinematics.initial_acceleration_with_covariance.covariance, {})
        for each in items_of(objects_of(messages[VISION], 5)[1]):
            check(each.results[0].pose.covariance, pose)
    for each in items_of(objects_of(seen[GROUND_TRUTH], 5)[1]):
        check(each.kinematics.pose_with_covariance.covariance, {})


def test_paths_are_off_as_their_objects_are(true, seen):
    checked = 0
    for i in range(0, N_FRAMES, 5):
        truths = {bytes(each.object_id.uuid): each
                  for each in items_of(objects_of(true[PREDICTED], i)[1])}
        for each in items_of(objects_of(seen[PREDICTED], i)[1]):
            [path] = each.kinematics.predicted_paths
            poses = np.array([numbers_of(pose) for pose in path.path])
            own = numbers_of(each.kinematics.initial_pose_with_covariance.pose)
            assert poses[0].tolist() == list(own)
            truth = truths.get(bytes(each.object_id.uuid))
            if truth is None:
                # A false positive: straight, at its own speed.
                twist = each.kinematics.initial_twist_with_covariance.twist
                yaw = 2.0 * math.atan2(own[5], own[6])
                ahead = np.array((math.cos(yaw), math.sin(yaw))) * twist.linear.x * 0.5
                assert poses[:, :2] == pytest.approx(
                    poses[0, :2] + np.arange(31)[:, None] * ahead, abs=1e-9)
                continue
            true_poses = np.array([numbers_of(pose) for pose
                                   in truth.kinematics.predicted_paths[0].path])
            assert len(poses) == len(true_poses)
            shift = poses[0, :3] - true_poses[0, :3]
            assert poses[:, :3] - true_poses[:, :3] == pytest.approx(
                np.tile(shift, (len(poses), 1)), abs=1e-9)
            assert 0.0 < np.hypot(*shift[:2]) < 2.0
            assert shift[2] == 0.0
            turns = 2.0 * (np.arctan2(poses[:, 5], poses[:, 6])
                           - np.arctan2(true_poses[:, 5], true_poses[:, 6]))
            assert np.cos(turns) == pytest.approx(math.cos(turns[0]), abs=1e-9)
            checked += 1
    assert checked > 30


def test_delay_moves_the_time_of_receipt_and_no_byte(true, seen, convert):
    late = convert(delay=0.25, **ALL)
    assert set(late) == set(true)
    for topic in PERCEIVED:
        assert [each[1:] for each in late[topic]] == [each[1:] for each in seen[topic]]
        assert [log_ns for log_ns, *_ in late[topic]] == [
            log_ns + 250_000_000 for log_ns, *_ in seen[topic]]
    for topic in set(true) - PERCEIVED:
        assert late[topic] == true[topic]


def test_perceived_frames_of_the_library_are_those_of_the_messages(drive, seen):
    with sensor.open_recording(str(drive)) as recording:
        frames = list(recording.perceived(**ALL))
        truths = list(recording)
    assert len(frames) == N_FRAMES
    for i, (frame, truth) in enumerate(zip(frames, truths, strict=True)):
        expected = items_of(objects_of(seen[DERIVED], i)[1])
        names = [each.id for each in items_of(objects_of(seen[VISION], i)[1])]
        assert set(frame.names) - set(names) <= set(truth.names)
        assert frame.names[frame.ego] == truth.names[truth.ego]
        assert frame.position_xyz[frame.ego].tolist() == truth.position_xyz[truth.ego].tolist()
        for name, each in zip(names, expected, strict=True):
            row = frame.row(name)
            [box] = np.flatnonzero(frame.boxes.actor == row)
            pose = numbers_of(each.pose)
            assert frame.boxes.position_xyz[box] == pytest.approx(pose[:3], abs=1e-9)
            assert frame.boxes.size_xyz[box] == pytest.approx(each.shape.dimensions, abs=1e-9)
            assert abs(frame.orientation_xyzw[row] @ pose[3:]) == pytest.approx(1.0)
            arm = np.array(pose[:3]) - frame.position_xyz[row]
            velocity = frame.velocity_xyz[row] + np.cross(frame.angular_velocity_xyz[row], arm)
            linear = each.twist.linear
            assert velocity == pytest.approx((linear.x, linear.y, linear.z), abs=1e-9)
