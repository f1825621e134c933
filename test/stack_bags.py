# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Bags of an autonomy stack: those of `convert`, changed and written by rosbags."""

import json

from message_store import typestore
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from state_sensor_ros.commands.cli import main

# Beside the ego, in the drives of test/evaluation.
N_CARS = 6
# At 10 Hz: long enough for predictions over 5 s.
N_FRAMES = 60
PERCEPTION = '/perception/object_recognition'
TRACKING, DETECTION = f'{PERCEPTION}/tracking/objects', f'{PERCEPTION}/detection/objects'
PREDICTED, GROUND_TRUTH = f'{PERCEPTION}/objects', f'{PERCEPTION}/ground_truth/objects'
DERIVED, VISION = '/state_sensor/objects', '/state_sensor/detections'
EGO = '/localization/kinematic_state'
OUTPUTS = ('--outputs', 'autoware,vision,derived_objects', '-p',
           'autoware_objects:=[ground_truth, tracking, detection, predicted]', '-p',
           'frame:=false', '-p', 'odometry:=false', '-p', 'tf:=ego')


def write_drive(path, n_frames):
    """Write a drive at 10 Hz with an ego and N_CARS cars."""
    assert main(['synth', str(path), '--vehicles', str(N_CARS + 1), '--objects', '0',
                 '--frames', str(n_frames), '--rate', '10', '--seed', '3', '-q']) == 0
    # Of one class: whatever the traffic is made of.
    frames = json.loads(path.read_text())
    for frame in frames:
        for vehicle in frame['frame']['vehicles']:
            tags = vehicle['state']['tags']
            tags[:] = ['car', *(tag for tag in tags if tag in ('vehicle', 'ego'))]
    path.write_text(json.dumps(frames))
    return path


def write_outputs(drive):
    """Write the bag of the outputs of a drive, without frames, beside it."""
    bag = drive.with_name('stack')
    assert main(['convert', str(drive), str(bag), *OUTPUTS, '-q']) == 0
    return bag


def messages_of(bag, topics=None):
    """Yield topic, type, log time and deserialized message."""
    with Reader(bag) as reader:
        connections = [each for each in reader.connections
                       if topics is None or each.topic in topics]
        for connection, log_ns, data in reader.messages(connections):
            yield (connection.topic, connection.msgtype, log_ns,
                   typestore().deserialize_cdr(data, connection.msgtype))


def write_bag(path, messages, storage=StoragePlugin.MCAP):
    """Write (topic, type, log time, message) with rosbags."""
    connections = {}
    with Writer(path, version=9, storage_plugin=storage) as writer:
        for topic, type_name, log_ns, message in messages:
            key = topic, type_name
            if key not in connections:
                connections[key] = writer.add_connection(topic, type_name, typestore=typestore())
            data = message if isinstance(message, bytes) else \
                typestore().serialize_cdr(message, type_name)
            writer.write(connections[key], log_ns, data)
    return path


def changed(source, target, change, topics=(TRACKING,)):
    """
    Write the messages of some topics of a bag after a change.

    :param change: called with each message, which it changes; it may return other log time, ns.
    """
    def messages():
        for topic, type_name, log_ns, message in messages_of(source, topics):
            other_ns = change(message, log_ns)
            yield topic, type_name, log_ns if other_ns is None else other_ns, message
    return write_bag(target, messages())


def positions_of(objects):
    """Return the positions of TrackedObjects or DetectedObjects, which may be changed."""
    return [each.kinematics.pose_with_covariance.pose.position for each in objects]
