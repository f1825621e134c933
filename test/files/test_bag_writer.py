# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The bag sink, read back by other implementations: rosbags, mcap, sqlite3, YAML."""

from cProfile import Profile
import sqlite3
import zlib

from mcap.reader import make_reader
from mcap.stream_reader import get_chunk_data_stream, StreamReader
from message_store import read, typestore
from paths import ROOT
import pytest
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg
from ruamel.yaml import YAML

from state_sensor_ros.errors import SinkError
from state_sensor_ros.files import bag
from state_sensor_ros.files.bag import definition, type_hash
from state_sensor_ros.files.bag_writer import BagSink
from state_sensor_ros.topics.actors import ActorArrayEncoder, ODOMETRY
from state_sensor_ros.topics.state_frame import FRAME_TOPIC
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.transforms import TransformEncoder

[ACTORS_TOPIC] = ActorArrayEncoder.topics
[TF_TOPIC] = TransformEncoder.topics
OWN = Topic('~/actors/car/odometry', ODOMETRY, actor='car')
# An empty TFMessage and ActorArray as CDR, written by hand.
TF = bytes.fromhex('00010000 00000000')
ACTORS = bytes.fromhex('00010000 00000000 00000000 01000000 00 000000 00000000')
STORAGES = ('mcap', 'sqlite3')


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'bag'


def written(path, **options):
    """Write the messages of three frames."""
    sink = BagSink(path, **options)
    sink.open([OWN])
    sink.latch(ACTORS_TOPIC, ACTORS)
    for stamp_ns in (5, 1_000_000_000, 1_000_000_000):
        sink.publish([(TF_TOPIC, TF)], stamp_ns)
    sink.finish()
    return path


def contents(path):
    """Return topic, type, log time, data of all messages, and the topics with their QoS."""
    with Reader(path) as reader:
        return ([(one.topic, one.msgtype, at_ns, bytes(data))
                 for one, at_ns, data in reader.messages()],
                {one.topic: one for one in reader.connections})


@pytest.mark.parametrize('storage', STORAGES)
def test_bag_reads_back_what_was_written(path, storage):
    messages, topics = contents(written(path, storage=storage))
    assert messages == [
        ('/state_sensor/actors', 'state_sensor_ros/msg/ActorArray', 5, ACTORS),
        ('/tf', 'tf2_msgs/msg/TFMessage', 5, TF),
        ('/tf', 'tf2_msgs/msg/TFMessage', 10**9, TF),
        ('/tf', 'tf2_msgs/msg/TFMessage', 10**9, TF)]
    # Depth and profiles are those of the node.
    profiles = {name: [(qos.depth, qos.reliability.name, qos.durability.name, qos.history.name)
                       for qos in one.ext.offered_qos_profiles] for name, one in topics.items()}
    assert profiles == {
        '/tf': [(100, 'RELIABLE', 'VOLATILE', 'KEEP_LAST')],
        '/state_sensor/actors': [(1, 'RELIABLE', 'TRANSIENT_LOCAL', 'KEEP_LAST')],
        '/state_sensor/actors/car/odometry': [(10, 'RELIABLE', 'VOLATILE', 'KEEP_LAST')]}
    assert read(ACTORS, 'state_sensor_ros/msg/ActorArray').actors == []


@pytest.mark.parametrize('storage', STORAGES)
def test_bag_metadata_equals_that_of_rosbags(path, tmp_path, storage):
    _, topics = contents(written(path, storage=storage))
    plugins = {'mcap': StoragePlugin.MCAP, 'sqlite3': StoragePlugin.SQLITE3}
    with Writer(tmp_path / 'theirs' / 'bag', version=9,
                storage_plugin=plugins[storage]) as writer:
        theirs = {name: writer.add_connection(
            name, one.msgtype, msgdef=one.msgdef.data, rihs01=one.digest,
            offered_qos_profiles=one.ext.offered_qos_profiles) for name, one in topics.items()}
        for topic, _, at_ns, data in contents(path)[0]:
            writer.write(theirs[topic], at_ns, data)
    # rosbags names the storage file without a number.
    ours, theirs = (YAML(typ='safe').load((folder / 'metadata.yaml').read_text().replace(
        'bag_0.', 'bag.')) for folder in (path, tmp_path / 'theirs' / 'bag'))
    assert ours == theirs
    # The storage file contains the text of metadata.yaml, in case that is lost.
    [found] = path.glob('bag_0.*')
    if storage == 'mcap':
        with found.open('rb') as file:
            [inner] = make_reader(file).iter_metadata()
        text = inner.metadata['serialized_metadata']
    else:
        database = sqlite3.connect(found)
        [(text,)] = database.execute('select metadata from metadata')
        database.close()
    text = text.replace('bag_0.', 'bag.')
    assert YAML(typ='safe').load(text) == theirs['rosbag2_bagfile_information']


@pytest.mark.parametrize('compression', ['zstd', 'none'])
def test_chunks_are_compressed_and_have_crcs_that_the_mcap_library_confirms(path, compression):
    sink = BagSink(path, compression=compression)
    for i in range(12):
        sink.publish([(TF_TOPIC, TF[:-1] + bytes([i]) * 2**20), (ACTORS_TOPIC, ACTORS)], i)
    sink.finish()
    assert [data[8] for _, _, _, data in contents(path)[0][::2]] == list(range(12))
    with (path / 'bag_0.mcap').open('rb') as file:
        found = list(StreamReader(file, emit_chunks=True, validate_crcs=True).records)
    chunks = [one for one in found if type(one).__name__ == 'Chunk']
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.compression == {'none': ''}.get(compression, compression)
        stream, n_bytes = get_chunk_data_stream(chunk)
        assert chunk.uncompressed_crc == zlib.crc32(stream.read(n_bytes)) != 0
    n_bytes = sum(len(chunk.data) for chunk in chunks)
    assert n_bytes > 12 * 2**20 if compression == 'none' else n_bytes < 2**20
    [data_end] = [one for one in found if type(one).__name__ == 'DataEnd']
    # The library compares it.
    assert data_end.data_section_crc
    footer, data = found[-1], (path / 'bag_0.mcap').read_bytes()
    assert footer.summary_crc == zlib.crc32(data[footer.summary_start:-12]) != 0


def test_bag_log_times_increase_where_stamps_decrease(path):
    sink = BagSink(path)
    for stamp_ns in (3_000_000_000, 3_050_000_000, 1_000_000_000, 1_050_000_000, 500_000_000):
        sink.publish([(TF_TOPIC, TF)], stamp_ns)
    sink.finish()
    assert [at_ns for _, _, at_ns, _ in contents(path)[0]] == [
        3_000_000_000, 3_050_000_000, 3_100_000_000, 3_150_000_000, 3_200_000_000]


def test_bag_with_more_topics_than_mcap_can_number_is_one_error(path):
    sink = BagSink(path)
    sink.open([TF_TOPIC])
    sink._storage._writer._Writer__channels |= dict.fromkeys(range(2, 65536))
    with pytest.raises(SinkError, match='expected at most 65535 in a bag'):
        sink.publish([(FRAME_TOPIC, TF)], 1)
    sink.abort()


def test_definition_is_complete_and_keeps_the_units():
    text = definition('state_sensor_ros/msg/StateFrame')
    assert text.startswith((ROOT / 'msg' / 'StateFrame.msg').read_text())
    named = {line.removeprefix('MSG: ') for line in text.splitlines() if line.startswith('MSG: ')}
    assert named >= {'std_msgs/Header', 'state_sensor_ros/ActorState', 'geometry_msgs/Pose',
                     'state_sensor_ros/WheelState', 'builtin_interfaces/Time'}


TYPES = ('nav_msgs/msg/Odometry', 'state_sensor_ros/msg/StateFrame', 'tf2_msgs/msg/TFMessage',
         'visualization_msgs/msg/MarkerArray', 'rosgraph_msgs/msg/Clock')


@pytest.fixture(params=['sourced', 'without'])
def ros(request, monkeypatch):
    """With the definitions of a sourced ROS and without."""
    if request.param == 'without':
        monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    caches = bag.definition, bag.type_hash, bag._described
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.usefixtures('ros')
@pytest.mark.parametrize('type_name', TYPES)
def test_type_hash_and_definition_are_those_of_rosbags_store(type_name):
    assert type_hash(type_name) == typestore().hash_rihs01(type_name)
    ours = get_types_from_msg(definition(type_name), type_name)
    theirs = get_types_from_msg(typestore().generate_msgdef(type_name, ros_version=2)[0],
                                type_name)
    assert ours == theirs


def test_type_hash_of_odometry_is_the_one_that_ros_computes():
    # From nav_msgs/msg/Odometry.json of ROS 2 Jazzy.
    assert type_hash('nav_msgs/msg/Odometry') == (
        'RIHS01_3cc97dc7fb7502f8714462c526d369e35b603cfc34d946e3f2eda2766dfec6e0')


@pytest.mark.parametrize(('storage', 'suffix'), [('mcap', 'mcap'), ('sqlite3', 'db3')])
def test_bag_files_have_the_names_that_rosbag2_gives(path, storage, suffix):
    """`ros2 bag reindex` finds no others: the name of the bag, and a number."""
    written(path, storage=storage)
    assert sorted(file.name for file in path.iterdir()) == sorted(
        ['metadata.yaml', f'{path.name}_0.{suffix}'])


def calls_of_a_message(path, n_topics, n_messages=40_000):
    """Return the calls of functions, in Python and C, for each message of a bag."""
    topics = [Topic(f'~/actors/a{i}/odometry', ODOMETRY, actor=f'a{i}') for i in range(n_topics)]
    # What is computed once for all bags is not counted.
    assert all((definition(ODOMETRY), type_hash(ODOMETRY)))
    with Profile() as profile, BagSink(path) as sink:
        for i in range(n_messages // n_topics):
            sink.publish([(topic, bytes(700)) for topic in topics], i)
    return sum(entry.callcount for entry in profile.getstats()) / n_messages


@pytest.mark.thorough
def test_a_message_of_2000_topics_costs_at_most_twice_that_of_200(tmp_path):
    """Calls are counted, which other programs do not change; the CPU time is proportional."""
    few, many = (calls_of_a_message(tmp_path / f'bag{n_topics}', n_topics)
                 for n_topics in (200, 2000))
    assert many < 1.5 * few
