# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A bag made by `convert` against what the node publishes: same topics, types, QoS and bytes."""

import itertools
import json

from paths import SAMPLE
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from real_recordings import RECORDINGS
from rig import NodeProcess, packet
from rosbags.rosbag2 import Reader

from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.ros.sink import message_class

# Node parameters and the same as options.
PARAMETERS = {'debug_drawing': True, 'joint_states': True, 'wheel_tf': True, 'publish_clock': True,
              'parent_frame': 'earth', 'global_frame_pose': [1.0, 2.0, 0.0, 0.0, 0.0, 0.5],
              'ego_frame': 'base_link', 'overflow': 'block'}
OPTIONS = ['-p', 'debug_drawing:=true', '-p', 'joint_states:=true', '-p', 'wheel_tf:=true',
           '--clock', '-p', 'parent_frame:=earth',
           '-p', 'global_frame_pose:=[1.0, 2.0, 0.0, 0.0, 0.0, 0.5]', '-p', 'ego_frame:=base_link']
FRAMES = '/state_sensor/frame'
MAX_FRAMES = 30
BURST = 4
ALIGNMENT = 4
# Topics of every node, and those of its health at wall time.
NOT_OF_THE_STREAM = ('/diagnostics', '/parameter_events', '/rosout', '/transition_event')


def synthetic():
    return list(itertools.islice(TrafficFrames(5, 3, 20.0, 11, 'v2'), 16))


def contents():
    yield pytest.param(synthetic, id='synthetic')
    for path in (*RECORDINGS, SAMPLE):
        yield pytest.param(lambda path=path: json.loads(path.read_text())[:MAX_FRAMES],
                           id=path.stem, marks=pytest.mark.thorough)


def prelude(frame, number):
    """Return a frame again at a later time: it brings every topic into being."""
    again = {**frame, 'game_time': 10_000.0 + number / 8}
    return {**again, 'sample_count': 100_000 + number} if 'sample_count' in frame else again


def bag_of(frames, path):
    """Convert and return of each topic its connection and messages."""
    path.mkdir()
    (path / 'in.json').write_text(json.dumps(frames))
    assert main(['convert', str(path / 'in.json'), str(path / 'bag'), *OPTIONS]) == 0
    with Reader(path / 'bag') as reader:
        topics = {one.topic: (one, []) for one in reader.connections}
        for one, _, data in reader.messages():
            topics[one.topic][1].append(bytes(data))
    return topics


class Recorder:
    """Keep the bytes of every topic of the node, from when it is found."""

    def __init__(self, listener):
        self._node = listener.node
        self.received = {}

    def subscribe(self):
        """Subscribe to what there is now."""
        for topic, types in self._node.get_topic_names_and_types():
            if not topic.endswith(NOT_OF_THE_STREAM) and '/_action/' not in topic \
                    and topic not in self.received:
                self._subscribe_to(topic, message_class(types[0]))

    def _subscribe_to(self, topic, class_):
        received = self.received[topic] = []
        latched = topic in ('/tf_static', '/state_sensor/actors')
        self._node.create_subscription(class_, topic, received.append, QoSProfile(
            depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL if latched
            else DurabilityPolicy.VOLATILE), raw=True)


def published_on(listener, topic):
    """Return type, hash, reliability and durability of the one publisher of a topic."""
    [writer] = listener.node.get_publishers_info_by_topic(topic)
    qos = writer.qos_profile
    return (writer.topic_type, str(writer.topic_type_hash), qos.reliability.name,
            qos.durability.name)


def same(received, written):
    """Compare messages; the middleware fills them up to a multiple of four bytes."""
    return received[:len(written)] == written and len(received) - len(written) < ALIGNMENT


@pytest.mark.parametrize('frames', list(contents()))
def test_bag_has_the_topics_and_bytes_of_the_node(frames, tmp_path, domain, listener, simulator):
    frames = frames()
    first = bag_of([prelude(frames[0], 0)], tmp_path / 'first')
    recorder, n_preludes = Recorder(listener), 0

    def all_topics_are_received():
        nonlocal n_preludes
        recorder.subscribe()
        simulator.send(packet(prelude(frames[0], n_preludes)))
        n_preludes += 1
        listener.spin_for(0.03)
        return all(recorder.received.get(topic) for topic, (_, data) in first.items() if data)

    with NodeProcess(domain, port=simulator.port, **PARAMETERS):
        simulator.accept()
        listener.until(all_topics_are_received)
        preludes = [prelude(frames[0], number) for number in range(n_preludes)]
        n_before = {topic: len(data) for topic, (_, data)
                    in bag_of(preludes, tmp_path / 'before').items()}
        bag = bag_of(preludes + frames, tmp_path / 'whole')
        for begin in range(0, len(frames), BURST):
            burst = frames[begin:begin + BURST]
            simulator.send(*[packet(frame) for frame in burst])
            last = bag[FRAMES][1][n_preludes + begin + len(burst) - 1]
            listener.until(lambda last=last: same(recorder.received[FRAMES][-1], last))
        assert recorder.received.keys() == bag.keys()
        for topic, (connection, messages) in bag.items():
            expected, received = messages[n_before[topic]:], recorder.received[topic]
            if expected:
                last = expected[-1]
                listener.until(lambda all_=received, last=last: same(all_[-1], last), what=topic)
            tail = received[len(received) - len(expected):]
            assert len(tail) == len(expected), topic
            assert all(map(same, tail, expected)), topic
            [offered] = connection.ext.offered_qos_profiles
            assert published_on(listener, topic) == (
                connection.msgtype, connection.digest, offered.reliability.name,
                offered.durability.name), topic
    assert sum(len(data) for _, data in bag.values()) > 5 * len(frames)
