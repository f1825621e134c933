# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The rivals that the benchmark compares with publish the same as the driver, field by field."""

import importlib
import itertools
import json
import math
import os
import subprocess

from budgets import AWAIT_S
import numpy as np
from paths import ROOT
import pytest
import rclpy
from rclpy.serialization import deserialize_message, serialize_message
from rig import packet
from silent_sink import SilentSink
from visualization_msgs.msg import Marker

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.ros.topic_sink import message_class
from state_sensor_ros.settings import parse_settings
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING

BENCH = ROOT / 'bench'
SETTINGS = parse_settings({'frame': False, 'debug_drawing': True, 'labels': False})
# Both compute with doubles, in different orders.
TOLERANCE = 1e-9


def traffic():
    """Make frames with new and absent actors, without a lane, at rest and with odd numbers."""
    # Frames share what never changes; as text they share nothing.
    texts = [json.dumps(frame) for frame in itertools.islice(generate(6, 3, 20.0, 7, 'v2'), 12)]
    frames = [json.loads(text) for text in texts]
    for frame in frames[3:6]:
        del frame['frame']['vehicles'][4]
    for frame in frames[5:8]:
        del frame['frame']['objects'][0]
    for frame in frames[6:9]:
        del frame['frame']['vehicles'][2]['control_state']
    twice = frames[9]['frame']['vehicles'][1]['state']
    twice['oriented_bounding_box'] *= 2
    twice['odometry']['angular_velocity'] = dict.fromkeys('xyz')
    return [json.dumps(frame).encode() for frame in frames]


class Recorder(SilentSink):
    """A sink that subscribes to every topic and stores its messages, deserialized."""

    def __init__(self):
        super().__init__(EVERYTHING)
        self.received = {}

    def publish(self, messages, stamp_ns):
        for topic, data in messages:
            self.received.setdefault(topic.name, []).append(
                deserialize_message(data, message_class(topic.type_name)))


class Published:
    """A publisher of the rival whose messages go through the wire format into a list."""

    def __init__(self, type_, received):
        self._type, self._received = type_, received

    def publish(self, message):
        assert isinstance(message, self._type)
        self._received.append(deserialize_message(serialize_message(message), self._type))


@pytest.fixture(scope='module')
def ours():
    sink = Recorder()
    codec = Codec(Decoder(), Encoder(SETTINGS, load_definitions()))
    pipeline = Pipeline(SETTINGS, lambda _: codec, sink, report=lambda kind, text: None)
    for payload in traffic():
        pipeline.process(Packet(payload, 0.0, 0, 0), 0)
    assert pipeline.counters.n_published == len(traffic())
    return sink.received


@pytest.fixture(scope='module')
def theirs():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCH))
        rival = importlib.import_module('rival')
    received = {}

    class Recording(rival.Rival):

        def create_publisher(self, type_, topic, *args, **options):
            if topic in ('/tf', *received) or topic.startswith('~/'):
                return Published(type_, received.setdefault(topic, []))
            return super().create_publisher(type_, topic, *args, **options)

    context = rclpy.Context()
    rclpy.init(context=context)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rival.Node, '__init__', with_context(rival.Node.__init__, context))
        node = Recording()
    for payload in traffic():
        node.process(payload)
    node.destroy_node()
    rclpy.shutdown(context=context)
    # A driver that publishes an empty topic counts as one that does not have it.
    return {topic: messages for topic, messages in received.items() if messages}


def with_context(init, context):
    return lambda self, name: init(self, name, context=context)


def plain(message):
    """Return a message as dictionaries, lists and numbers."""
    if hasattr(message, 'get_fields_and_field_types'):
        return {name: plain(getattr(message, name))
                for name in message.get_fields_and_field_types()}
    if isinstance(message, (list, tuple, np.ndarray)):
        return [plain(each) for each in message]
    return message.item() if isinstance(message, np.generic) else message


def differences(one, other, where=''):
    """Yield where two plain messages differ."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            yield from differences(one[key], other[key], f'{where}.{key}')
    elif isinstance(one, list):
        if len(one) != len(other):
            yield f'{where}: {len(one)} and {len(other)} elements'
        for i, (mine, yours) in enumerate(zip(one, other, strict=False)):
            yield from differences(mine, yours, f'{where}[{i}]')
    elif isinstance(one, float):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            yield f'{where}: {one} and {other}'
    elif one != other:
        yield f'{where}: {one!r} and {other!r}'


def compare(ours, theirs, where):
    for i, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        assert list(differences(plain(mine), plain(yours), f'{where} {i}')) == []


def test_rival_uses_the_same_topics(ours, theirs):
    assert theirs.keys() == ours.keys()
    assert len([topic for topic in ours if topic.endswith('/odometry')]) == 6 + 3 + 1


@pytest.mark.parametrize('kind', ['/tf', '/odometry', '/control_state', '~/control_states',
                                  '~/actors'])
def test_rival_publishes_the_same(kind, ours, theirs):
    topics = [topic for topic in ours if topic.endswith(kind)]
    assert topics
    for topic in topics:
        compare(ours[topic], theirs[topic], topic)


def drawn(arrays):
    """
    Return the markers that a display receives, array by array.

    The id of a marker is replaced by the order of its first appearance.
    """
    lists, shown, n_shown = [], {}, 0
    for array in arrays:
        markers = [plain(marker) for marker in array.markers]
        for marker in markers:
            key = marker['ns'], marker['id']
            if marker['action'] == Marker.ADD:
                if key not in shown:
                    shown[key] = n_shown
                    n_shown += 1
                marker['id'] = shown[key]
                continue
            if marker['action'] == Marker.DELETE:
                # None for a deletion that is repeated for displays that are slow.
                marker['id'] = shown.pop(key, None)
            # The pose of a deleted marker has no meaning.
            del marker['pose']
        markers = [marker for marker in markers if marker['id'] is not None]
        lists.append(sorted(markers, key=lambda marker: (marker['action'], marker['id'])))
    return lists


def test_rival_draws_the_same(ours, theirs):
    mine, yours = (drawn(received['~/markers']) for received in (ours, theirs))
    assert list(differences(mine, yours)) == []
    assert {marker['action'] for array in mine for marker in array} == {
        Marker.ADD, Marker.DELETE, Marker.DELETEALL}


@pytest.mark.parametrize('library', ['nlohmann_json', 'simdjson'])
def test_rival_in_cpp_publishes_the_same(library, ours, domain, listener, simulator, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    program = importlib.import_module('cpp_rival').built().get(library)
    if program is None:
        pytest.skip(f'no rival with {library} is built: `make bench` does where rclcpp and '
                    f'{library} are installed')
    theirs = {topic: listener.subscribe(
        topic.replace('~', '/rival'), type_name(messages[0]), latched=True)
        for topic, messages in ours.items()}
    with subprocess.Popen([program, '127.0.0.1', str(simulator.port), 'durable'],
                          env={**os.environ, 'ROS_DOMAIN_ID': str(domain)}) as process:
        try:
            simulator.accept()
            simulator.send(*map(packet, traffic()))
            listener.until(lambda: all(len(theirs[topic]) == len(messages)
                                       for topic, messages in ours.items()))
            topics = dict(listener.node.get_publisher_names_and_types_by_node('rival', '/'))
            simulator.hang_up()
            assert process.wait(AWAIT_S) == 0
        finally:
            process.kill()
    assert topics.keys() - {'/rosout', '/parameter_events'} == {
        topic.replace('~', '/rival') for topic in ours}
    for topic in ours.keys() - {'~/markers'}:
        compare(ours[topic], theirs[topic], topic)
    assert list(differences(*(drawn(each['~/markers']) for each in (ours, theirs)))) == []


def type_name(message):
    return f'{type(message).__module__.partition(".")[0]}/{type(message).__name__}'
