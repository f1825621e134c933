# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Traces of ASAM OSI, as Google's protobuf and MCAP's reader have them, and omega-prime."""

import json
import struct

from budgets import one_of
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from paths import CARLA
import pytest
from real_recordings import FILES, path_of

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

pytestmark = pytest.mark.filterwarnings('error::DeprecationWarning')


def read_trace(path):
    """Return the file's metadata, that of the channel, and the messages with their times."""
    with path.open('rb') as file:
        reader = pytest.importorskip('mcap.reader').make_reader(file)
        summary = reader.get_summary()
        assert summary.chunk_indexes
        [schema], [channel] = summary.schemas.values(), summary.channels.values()
        assert (schema.name, schema.encoding, channel.message_encoding) == (
            'osi3.GroundTruth', 'protobuf', 'protobuf')
        kind = kind_of(schema.data)
        metadata = {each.name: each.metadata for each in reader.iter_metadata()}
        messages = [(message.log_time, message.publish_time, kind.FromString(message.data))
                    for _, _, message in reader.iter_messages()]
    return metadata['net.asam.osi.trace'], channel.metadata, messages


def kind_of(descriptors):
    pool = descriptor_pool.DescriptorPool()
    for each in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName('osi3.GroundTruth'))


@pytest.mark.parametrize('file', one_of(['synthetic', 'carla', *FILES], n_always=3))
def test_osi_trace_has_the_objects_of_the_table(file, tmp_path):
    path = CARLA / 'episode_00000' if file == 'carla' else tmp_path / 'drive.json'
    if file == 'synthetic':
        assert main(['synth', str(path), '--frames', '20']) == 0
    elif file != 'carla':
        path = path_of(file)
    assert main(['convert', str(path), str(tmp_path / 'out.osi.mcap')]) == 0
    metadata, channel, messages = read_trace(tmp_path / 'out.osi.mcap')
    assert {'version', 'min_osi_version', 'max_osi_version', 'min_protobuf_version',
            'max_protobuf_version'} <= metadata.keys()
    assert {'net.asam.osi.trace.channel.osi_version',
            'net.asam.osi.trace.channel.protobuf_version'} <= channel.keys()
    rows = {}
    for row in sensor.read_table(path).to_pylist():
        if row['length'] > 0:
            rows.setdefault(row['stamp_ns'], {}).setdefault(row['center_x'], row)
    assert [log_ns for log_ns, _, _ in messages] == sorted(rows)
    ids = {}
    for log_ns, publish_ns, message in messages:
        assert log_ns == publish_ns == (
            message.timestamp.seconds * 10 ** 9 + message.timestamp.nanos)
        assert len(message.moving_object) == len(rows[log_ns])
        for each in message.moving_object:
            row = rows[log_ns][each.base.position.x]
            base = each.base
            assert (base.position.y, base.position.z) == (row['center_y'], row['center_z'])
            assert (base.dimension.length, base.dimension.width, base.dimension.height) == (
                row['length'], row['width'], row['height'])
            assert (base.orientation.roll, base.orientation.pitch, base.orientation.yaw) == (
                row['roll'], row['pitch'], row['yaw'])
            # Readers take it for granted.
            assert base.HasField('acceleration') == base.HasField('velocity')
            assert ids.setdefault(row['name'], each.id.value) == each.id.value
            assert row['is_ego'] == (each.id.value == message.host_vehicle_id.value)
            assert each.type == (3 if row['class'] == 'person' else 1 if row['class'] == 'unknown'
                                 else 2)
            assert each.HasField('vehicle_classification') == (each.type == 2)
    assert len(set(ids.values())) == len(ids)


def test_osi_plain_trace_has_the_same_messages(tmp_path):
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '5']) == 0
    for name in ('out.osi', 'out.osi.mcap'):
        assert main(['convert', str(tmp_path / 'drive.json'), str(tmp_path / name)]) == 0
    data = (tmp_path / 'out.osi').read_bytes()
    plain = []
    while data:
        [length] = struct.unpack_from('<I', data)
        plain.append(data[4:4 + length])
        data = data[4 + length:]
    _, _, messages = read_trace(tmp_path / 'out.osi.mcap')
    assert plain == [message.SerializeToString(deterministic=True) for *_, message in messages]


def test_osi_objects_that_return_are_others(tmp_path, capsys):
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '6']) == 0
    frames = json.loads((tmp_path / 'drive.json').read_text())
    for frame in frames[2:4]:
        frame['frame']['objects'].pop()
    (tmp_path / 'gap.json').write_text(json.dumps([*frames, *frames]))
    capsys.readouterr()
    assert main(['convert', str(tmp_path / 'gap.json'), str(tmp_path / 'out.osi.mcap')]) == 0
    lines = capsys.readouterr().err.splitlines()
    name = frames[0]['frame']['objects'][-1]['name']
    assert any(f'1 object back after a gap, given a new id: {name}' in line
               for line in lines)
    assert any('1 restart of the simulator' in line for line in lines)
    _, _, messages = read_trace(tmp_path / 'out.osi.mcap')
    times = [log_ns for log_ns, _, _ in messages]
    assert len(times) == 12
    assert times == sorted(set(times))
    present = {}
    for index, (_, _, message) in enumerate(messages):
        for each in message.moving_object:
            present.setdefault(each.id.value, []).append(index)
    for indices in present.values():
        assert indices == list(range(indices[0], indices[-1] + 1))


def test_osi_classes_of_objects_without_one(tmp_path, capsys):
    assert main(['synth', str(tmp_path / 'drive.json'), '--frames', '3', '--vehicles', '2',
                 '--objects', '1']) == 0
    frames = json.loads((tmp_path / 'drive.json').read_text())
    for frame in frames:
        for each in frame['frame']['vehicles']:
            each['state'] |= {'tags': ['vehicle'], 'oriented_bounding_box': []}
        frame['frame']['objects'][0] |= {'tags': [], 'oriented_bounding_box': []}
    (tmp_path / 'bare.json').write_text(json.dumps(frames))
    capsys.readouterr()
    assert main(['convert', str(tmp_path / 'bare.json'), str(tmp_path / 'out.osi.mcap')]) == 0
    found = capsys.readouterr().err
    names = [each['state']['name'] for each in frames[0]['frame']['vehicles']]
    assert f'2 vehicles whose tags name no class, written as cars: {", ".join(names)}' in found
    assert '2 objects without a box, written with the usual size of a class: ' in found
    assert '1 object without a box whose tags name no class, dropped: ' in found
    *_, [*_, (*_, message)] = read_trace(tmp_path / 'out.osi.mcap')
    assert [(each.type, each.vehicle_classification.type, each.base.dimension.length)
            for each in message.moving_object] == [(2, 4, 4.6)] * 2
