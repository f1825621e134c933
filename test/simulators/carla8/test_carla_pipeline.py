# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""CARLA in the pipeline: faults, restarts, the consistency check, and the cost."""

from contextlib import closing, contextmanager
import math
import random
import shutil
import socket
import struct
import threading

from budgets import AWAIT_S
import carla_wire as wire
from carla_wire import join_messages
from message_store import read
import msgspec
from paths import CARLA
import pytest
from silent_sink import SilentSink
from test_carla_sensors import PLY

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files import open_any
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.decoder import CarlaDecoder
from state_sensor_ros.simulators.carla.recording import MessagesDecoder, TOPICS
from state_sensor_ros.simulators.carla.source import CarlaSource
from state_sensor_ros.simulators.carla.topics import carla_encoders
from state_sensor_ros.simulators.opening import find_simulator
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING

SETTINGS = Settings(debug_drawing=True)


class ListSink(SilentSink):
    """A sink that keeps messages by topic."""

    def __init__(self, subscriptions=None):
        super().__init__(subscriptions or EVERYTHING)
        self.messages = {}

    def publish(self, messages, stamp_ns):
        for topic, data in messages:
            self.messages.setdefault(topic.name, []).append((topic.type_name, data))

    def first_messages(self):
        return [(name, messages[0][1]) for name, messages in self.messages.items()]

    def read(self, name):
        return [read(data, type_name) for type_name, data in self.messages.get(name, [])]


def pipeline_of(decoder, sink, settings=SETTINGS):
    """Return a pipeline and its reports."""
    reports, definitions = [], load_definitions()
    further = carla_encoders() if isinstance(decoder, CarlaDecoder) else ()
    codec = Codec(decoder, Encoder(settings, definitions, further=further))
    return Pipeline(settings, lambda _: codec, sink,
                    report=lambda kind, text: reports.append((kind, text))), reports


def packet(*messages):
    return Packet(join_messages(messages) if messages else b'', math.nan, 0, 0)


def drive(x, game_timestamp, frame_number, *, speed=10.0):
    return wire.measurements(
        frame_number, game_timestamp, 0, wire.player(wire.transform((x, 0.0, 0.0)), speed=speed),
        wire.traffic_light(7, wire.transform((50.0, 5.0, 0.0)), 2))


# A file of a dataset in CARLA's own conversion, with an image that no camera takes.
DATASET_FILE = b'{"playerMeasurements": {"transform": {}, "forwardSpeed": 1.0}, "steer": 0}'
IMAGE = b'central/unknown\0\x89PNG\r\n\x1a\n'
NO_MEASUREMENTS = {
    'empty': (), 'bytes': (b'\xff' * 50,), 'text': (b'{"frame": []}',),
    'no player': (wire.measurements(1, 1, 1),),
    'dataset': (b'dataset\n' + DATASET_FILE, IMAGE),
    'dataset-file': (b'dataset\n' + DATASET_FILE,),
    'dataset-mark': (b'dataset\n',), 'dataset-number': (b'dataset\n{"playerMeasurements": 3}',),
    'file': (DATASET_FILE, IMAGE), 'parts': (b'frame\0' + bytes(40),), 'images': (IMAGE, IMAGE),
    'random': (random.Random(1).randbytes(5000),), 'nested-groups': (b'\x0b' * 50_000,),
    'nested-unknown': (wire.sub(7, wire.sub(7, wire.sub(7, b''))),),
    'huge-length': (b'\x1a\xff\xff\xff\xff\x0f',), 'long-number': (b'\x28' + b'\xff' * 30,)}


def test_carla_bad_payloads_are_skipped_and_counted():
    sink = ListSink()
    pipeline, reports = pipeline_of(CarlaDecoder(), sink)
    bad = {'cut': Packet(b'\x05\0\0\0ab', math.nan, 0, 0),
           **{name: packet(*messages) for name, messages in NO_MEASUREMENTS.items()}}
    for i, (name, each) in enumerate(bad.items()):
        pipeline.process(packet(drive(i, 100 * i, i + 1)), 0)
        pipeline.process(each, 0)
        assert pipeline.counters.n_skipped == i + 1, name
    assert len(sink.read('~/player/status')) == len(bad)
    assert [kind for kind, _ in reports] == ['payload'] * len(bad)
    assert all(': found ' in text and '; expected ' in text for _, text in reports)
    # Images after a measurement are dropped, and thousands of agents without a class.
    n = len(bad)
    pipeline.process(packet(drive(n, 100 * n, n + 1), IMAGE, b'dataset\n' + DATASET_FILE), 0)
    pipeline.process(packet(wire.measurements(n + 2, 10 ** 6, 0, *[wire.sub(4, b'')] * 40_000)), 0)
    assert (pipeline.counters.n_published, pipeline.counters.n_skipped) == (n + 2, n)
    assert pipeline.counters.n_dropped_actors == 40_000


def test_carla_bad_agent_leaves_the_others_on_the_topics():
    sink = ListSink()
    pipeline, reports = pipeline_of(CarlaDecoder(), sink)
    nowhere = wire.sub(4, wire.fixed32(1, 9) + wire.sub(2, b''))
    pipeline.process(packet(drive(0.0, 0, 1) + nowhere), 0)
    assert pipeline.counters.n_dropped_actors == 1
    assert [actor.name for actor in sink.read('~/frame')[0].actors] \
        == ['player', 'traffic_light_7']
    assert reports[0][1].startswith('nonPlayerAgents[1].vehicle.transform: found nothing')


def test_carla_episode_is_a_restart_on_the_topics():
    sink = ListSink()
    pipeline, reports = pipeline_of(CarlaDecoder(), sink)
    for i, game_timestamp in enumerate((500, 600, 0, 100)):
        pipeline.process(packet(drive(i, game_timestamp, i + 1)), 0)
    assert pipeline.counters.n_restarts == 1
    assert [kind for kind, _ in reports] == ['restart']
    stamps = [message.header.stamp.nanosec // 10 ** 6 for message in sink.read('~/player/status')]
    assert stamps == [500, 600, 0, 100]
    first_after = sink.read('~/markers')[2].markers[0]
    assert first_after.action == 3  # DELETEALL


def test_carla_clock_keeps_milliseconds_at_large_times():
    pipeline, _ = pipeline_of(CarlaDecoder(), ListSink())
    # Ten hours at 100 Hz, where a float32 of seconds steps by 3.9 ms.
    for i in range(4):
        pipeline.process(packet(drive(0.1 * i, 36_000_000 + 10 * i, i + 1)), 0)
    assert pipeline.counters.n_published == 4
    assert pipeline.stamper.n_coarse == 0


def test_carla_repeated_measurement_is_sent_on_frame_only():
    sink = ListSink()
    pipeline, _ = pipeline_of(CarlaDecoder(), sink)
    for frame_number in (1, 1):
        pipeline.process(packet(drive(0.0, 100, frame_number)), 0)
    assert pipeline.counters.n_repeated == 1
    assert len(sink.read('~/frame')) == 2
    assert len(sink.read('~/player/status')) == len(sink.read('~/traffic_lights')) == 1


@pytest.mark.parametrize('numbers', [range(7, 13), [0] * 6], ids=['frame-number', 'as-in-0.8.0'])
def test_carla_episodes_of_one_frame_are_restarts(numbers):
    """All begin at the same game time; before 0.8.2 only the platform's time differs."""
    sink = ListSink()
    pipeline, reports = pipeline_of(CarlaDecoder(), sink)
    for i, number in enumerate(numbers):
        pipeline.process(packet(wire.measurements(
            number, 0, 50 + 10 * i, wire.player(wire.transform((float(i), 0.0, 0.0))))), 0)
    assert (pipeline.counters.n_restarts, pipeline.counters.n_repeated) == (5, 0)
    for topic in ('~/frame', '~/player/status', '/tf'):
        assert len(sink.read(topic)) == 6
    assert reports[0][1].endswith('clock was set: another frame has the same game_time')


def test_carla_tags_choose_agents_on_every_topic():
    sink = ListSink()
    settings = Settings(desired_tags=('traffic_light',))
    pipeline, _ = pipeline_of(CarlaDecoder(), sink, settings)
    pipeline.process(packet(drive(0.0, 100, 1)), 0)
    assert [actor.name for actor in sink.read('~/frame')[0].actors] == ['traffic_light_7']
    assert len(sink.read('~/traffic_lights')[0].traffic_lights) == 1
    assert '~/player/status' not in sink.messages


def test_carla_markers_are_deleted_and_drawn_again_with_the_parameter():
    sink = ListSink()
    pipeline, _ = pipeline_of(CarlaDecoder(), sink)
    for i, settings in enumerate((SETTINGS, Settings(), SETTINGS)):
        pipeline.reconfigure(settings)
        pipeline.process(packet(drive(i, 100 * i, i + 1)), 0)
    kinds = [[(marker.ns, marker.action) for marker in array.markers]
             for array in sink.read('~/markers')]
    first, between, again = kinds
    assert between == [('', 3)]
    assert first == again
    assert ('traffic_lights', 0) in first


@pytest.mark.parametrize(('factor', 'complaint'), [(1.0, None), (3.6, 'displacement is 0.278')])
def test_carla_consistency_check_uses_the_forward_speed(factor, complaint):
    pipeline, _ = pipeline_of(CarlaDecoder(), ListSink(NOTHING))
    for i in range(60):
        pipeline.process(packet(drive(i, 100 * i, i + 1, speed=10.0 * factor)), 0)
    complaints = pipeline.checks.complaints
    assert pipeline.checks.figures().displacement == pytest.approx(1.0 / factor)
    assert all(complaint in words for words in complaints)
    assert bool(complaints) == (complaint is not None)
    # Numbers that CARLA never measures are not counted as missing.
    assert pipeline.counters.n_unknown_velocities == 0


@contextmanager
def serving(*connections):
    """Answer each connection with its bytes and hang up; the last one stays open."""
    held = []
    with socket.create_server(('127.0.0.1', 0)) as listener:
        def serve():
            for i, data in enumerate(connections):
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                connection.sendall(data)
                if i + 1 < len(connections):
                    connection.close()
                else:
                    held.append(connection)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        source = CarlaSource(
            Settings(source='carla', port=listener.getsockname()[1], reconnect_min=0.01,
                     reconnect_max=0.02, max_frame_bytes=100_000))
        try:
            yield source
        finally:
            source.close()
            thread.join(AWAIT_S)
            for connection in held:
                connection.close()


GOOD = join_messages([drive(0.0, 100, 1)])


@pytest.mark.parametrize(('fault', 'n_protocol_errors', 'n_cut'), [
    (b'', 0, 0), (GOOD, 0, 0), (GOOD[:3], 0, 1), (GOOD[:40], 0, 1), (GOOD[:-4], 0, 1),
    (struct.pack('<I', 2 ** 32 - 1), 1, 0), (struct.pack('<I', 100_001), 1, 0),
    (struct.pack('>I', 200) + bytes(200), 1, 0), (bytes(range(256)) * 500, 1, 0)])
def test_carla_source_survives_what_a_server_does_wrong(fault, n_protocol_errors, n_cut):
    with serving(fault, GOOD + GOOD) as source:
        packets = source.frames()
        payloads = [next(packets).payload for _ in range(3 if fault == GOOD else 2)]
        assert payloads[-2:] == [GOOD, GOOD]
        assert source.health.n_protocol_errors == n_protocol_errors
        assert source.health.n_cut_packets == n_cut
        assert source.health.n_reconnects == 1
        assert source.health.last_error


@pytest.fixture
def dataset(tmp_path):
    """Make two episodes of the sample; in the second, one measurement occurs twice."""
    for i in range(2):
        shutil.copytree(CARLA / 'episode_00000',
                        tmp_path / 'set' / f'episode_{i:05d}')
    episode = tmp_path / 'set' / 'episode_00001'
    shutil.copy(episode / 'measurements_00003.json', episode / 'measurements_00004.json')
    (episode / 'Lidar32_00002.ply').write_bytes(PLY)
    (tmp_path / 'set' / 'metadata.json').write_text('{"LeftRGB": -30.0, "fov": 73.25}')
    return tmp_path / 'set'


def played(path, settings=SETTINGS):
    """Return the sink of a node that plays a recording, and its reports."""
    reports, sink, definitions = [], ListSink(), load_definitions()

    def report(kind, text):
        reports.append((kind, text))

    with closing(open_any(str(path))) as recording:
        topics = find_simulator(recording.simulator).topics(
            settings, recording=recording)
        encoder = Encoder(settings, definitions, report, topics.encoders)
        codec = Codec(recording.decoder, encoder)
        pipeline = Pipeline(settings, lambda _: codec, sink, report=report)
        for entry in recording.frames():
            pipeline.process(entry.packet, 0)
    assert {topic.name for topic in encoder.topics} >= {
        name for name in sink.messages if name.startswith(('~/player', '~/camera', '~/lidar'))}
    return sink, reports


def test_carla_bag_sends_what_its_dataset_does(dataset, tmp_path):
    assert main(['convert', str(dataset), str(tmp_path / 'bag')]) == 0
    first, first_reports = played(dataset)
    again, reports = played(tmp_path / 'bag')
    assert set(again.messages) == set(first.messages)
    for name, messages in first.messages.items():
        assert again.messages[name] == messages, name
    assert reports == first_reports == [('restart', reports[0][1])]
    assert len(again.messages['~/frame']) == 24
    assert len(again.messages['~/player/expert_control']) == 23
    assert len(again.messages['~/camera/left/image']) == 11
    assert len(again.messages['~/lidar/lidar32/points']) == 1
    assert again.read('~/camera/left/camera_info')[0].k[0] == pytest.approx(
        20.0 / math.tan(math.radians(73.25 / 2.0)))


def test_carla_bag_is_played_under_the_names_of_the_playing_node(dataset, tmp_path):
    assert main(['convert', str(dataset), str(tmp_path / 'bag'), '-p', 'frame_prefix:=old/',
                 '--desired-tags', 'ego,traffic_light,vehicle']) == 0
    settings = Settings(frame_prefix='new/')
    sink, _ = played(tmp_path / 'bag', settings)
    assert sink.read('~/camera/left/image')[0].header.frame_id == 'new/player/camera_left_optical'
    assert sink.read('~/player/control')[0].header.frame_id == 'new/player'
    assert sink.read('~/traffic_lights')[0].traffic_lights[0].frame_id.startswith('new/')
    without, _ = played(tmp_path / 'bag', Settings(undesired_tags=('ego',)))
    assert '~/camera/left/image' not in without.messages
    assert len(without.messages['~/traffic_lights']) == 23


def test_carla_bag_with_another_encoding_leaves_the_other_images():
    parts = {}
    for topic, data in played(CARLA)[0].first_messages():
        parts.setdefault(topic.removeprefix('~/'), data)
    chosen = {name: data for name, data in parts.items()
              if name in TOPICS or name.startswith('camera/')}
    del chosen['camera/segmentation_classes'], chosen['camera/central/segmentation_color']
    image = chosen['camera/left/image']
    (decoded,) = MessagesDecoder().decode(msgspec.msgpack.encode(chosen))
    assert len(decoded.frame.extension.sensor_data.images) == 5
    for wrong in (image.replace(b'rgb8', b'bgr8'), image[:-12]):
        payload = msgspec.msgpack.encode({**chosen, 'camera/left/image': wrong})
        (decoded,) = MessagesDecoder().decode(payload)
        found = decoded.frame.extension.sensor_data
        assert len(found.images) == 4
        assert [error.where for error in found.errors] == ['~/camera/left/image']
    del chosen['player/status']
    (decoded,) = MessagesDecoder().decode(msgspec.msgpack.encode(chosen))
    assert decoded.frame.extension is None
