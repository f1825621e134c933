# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Bags as rosbag2 of Lyrical splits them: other names of files, and a topic of lost messages."""

import json

from paths import DATA
import pytest
import yaml

from state_sensor_ros.commands.cli import main

BAG = DATA / 'rosbag2_record_mcap'
LOST, LOST_TYPE = '/events/rosbag2_messages_lost', 'rosbag2_interfaces/msg/MessagesLostEvent'
LOST_DEFINITION = f"""uint64 total_num_messages_lost
MessagesLostEventTopicStat[] messages_lost_statistics
{'=' * 80}
MSG: rosbag2_interfaces/MessagesLostEventTopicStat
string topic_name
uint64 messages_lost_in_recorder
uint64 messages_lost_in_transport
"""
# One message lost, of no topic in particular.
LOST_MESSAGE = bytes.fromhex('00010000 0100000000000000 00000000')


def converted(path, out):
    assert main(['convert', str(path), str(out)]) == 0
    return json.loads(out.read_text())


@pytest.fixture
def split(tmp_path):
    """Write each message of a recorded bag, and one about lost messages, to a file of its own."""
    reader_module = pytest.importorskip('mcap.reader', reason='needs the package mcap')
    from mcap.writer import Writer
    folder = tmp_path / 'drive_2026_05_01-12_00_00'
    folder.mkdir()
    [source] = BAG.glob('*.mcap')
    names = []
    with source.open('rb') as file:
        messages = list(reader_module.make_reader(file).iter_messages(log_time_order=True))
    last_ns = messages[-1][2].log_time
    for number in range(len(messages) + 1):
        names.append(f'{number}_drive_2026_05_01-12_00_{number:02}.mcap')
        with (folder / names[-1]).open('wb') as file:
            writer = Writer(file)
            writer.start('ros2', 'rosbag2_storage_mcap')
            if number < len(messages):
                schema, channel, message = messages[number]
                schema_id = writer.register_schema(schema.name, schema.encoding, schema.data)
                channel_id = writer.register_channel(channel.topic, channel.message_encoding,
                                                     schema_id, dict(channel.metadata))
                writer.add_message(channel_id, message.log_time, message.data,
                                   message.publish_time)
            else:
                schema_id = writer.register_schema(LOST_TYPE, 'ros2msg', LOST_DEFINITION.encode())
                channel_id = writer.register_channel(LOST, 'cdr', schema_id)
                writer.add_message(channel_id, last_ns, LOST_MESSAGE, last_ns)
            writer.finish()
    metadata = yaml.safe_load((BAG / 'metadata.yaml').read_text())
    bag = metadata['rosbag2_bagfile_information']
    bag['relative_file_paths'] = names
    bag['files'] = [{**bag['files'][0], 'path': name} for name in names]
    bag['topics_with_message_count'].append({'message_count': 1, 'topic_metadata': {
        'name': LOST, 'type': LOST_TYPE, 'serialization_format': 'cdr',
        'offered_qos_profiles': [], 'type_description_hash': ''}})
    (folder / 'metadata.yaml').write_text(json.dumps(metadata))
    return folder


def test_bag_split_by_lyrical_is_read(split, tmp_path, capsys):
    assert len(list(split.glob('*.mcap'))) == 11
    assert converted(split, tmp_path / 'split.json') == converted(BAG, tmp_path / 'whole.json')
    assert main(['inspect', str(split)]) == 0
    assert '9' in capsys.readouterr().out


def test_bag_split_by_lyrical_is_repaired_in_the_order_of_its_numbers(split, tmp_path):
    (split / 'metadata.yaml').unlink()
    assert main(['repair', str(split), str(tmp_path / 'out')]) == 0
    assert converted(tmp_path / 'out', tmp_path / 'out.json') \
        == converted(BAG, tmp_path / 'whole.json')
    text = (tmp_path / 'out' / 'metadata.yaml').read_text()
    assert LOST in text
    assert LOST_TYPE in text


def test_bag_file_split_by_lyrical_is_read_alone(split, tmp_path):
    file = min(split.glob('*_drive_*.mcap'), key=lambda path: int(path.name.split('_')[0]) != 3)
    [frame] = converted(file, tmp_path / 'one.json')
    assert frame in converted(BAG, tmp_path / 'whole.json')
