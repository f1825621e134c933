# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Hostile traces of OSI: what is wrong is counted and named, and never a traceback."""

from contextlib import suppress
import math
import random
import struct

from budgets import tries
import osi_traces
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main


def frames_and_faults(path):
    with sensor.open_recording(path) as recording:
        frames = list(recording)
        return frames, list(recording.faults)


def set_base(member, **values):
    def change(message):
        part = getattr(message.moving_object[1].base, member)
        for name, value in values.items():
            setattr(part, name, value)
    return change


def without_id(message):
    for each in message.moving_object:
        each.ClearField('id')


def wrong_text(message):
    osi_traces.add_lanes(message)
    for i in range(3):
        message.logical_lane[i].source_reference[0].identifier[i] = '@@@'
    for each in message.moving_object:
        reference = each.source_reference.add()
        reference.type = 'net.asam.openscenario'
        reference.identifier.extend(['Vehicle', '@@@'])


def far_lane(message):
    osi_traces.add_lanes(message, road='9' * 5000)
    for lane, s in zip(message.logical_lane, ('nan', 'x', '0'), strict=True):
        lane.source_reference[0].identifier[1] = s
        lane.source_reference[0].identifier[2] = '9' * 30


HOSTILE_OBJECTS = [
    (without_id, 1, ['duplicate', 'duplicate']),
    (lambda message: setattr(message.moving_object[2].id, 'value', 0), 2, ['duplicate']),
    (far_lane, 3, []), (wrong_text, 3, []),
    (set_base('position', x=math.nan), 2, []), (set_base('position', x=1e308, y=-1e308), 3, []),
    (set_base('orientation', yaw=math.nan), 2, []), (set_base('orientation', roll=1e300), 3, []),
    (set_base('dimension', width=-1.0), 3, []), (set_base('dimension', height=math.inf), 3, []),
    (set_base('velocity', x=math.nan, y=math.inf), 3, []),
    (lambda message: message.moving_object[1].base.ClearField('position'), 2, []),
    (lambda message: setattr(message.host_vehicle_id, 'value', 77), 3, ['dropped'])]


def hostile(change, i):
    message = osi_traces.ground_truth(i / 20)
    change(message)
    # Not UTF-8.
    return message.SerializeToString().replace(b'@@@', b'\xff\xfe@')


@pytest.mark.parametrize(('change', 'n_usable', 'kinds'), HOSTILE_OBJECTS)
def test_osi_hostile_objects(tmp_path, change, n_usable, kinds):
    messages = [hostile(change, i) for i in range(3)]
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', messages)
    frames, faults = frames_and_faults(path)
    assert [int(frame.has_pose().sum()) for frame in frames] == [n_usable] * 3
    # A host that is not there is named once.
    assert [fault.kind for fault in faults] == (kinds if kinds == ['dropped'] else kinds * 3)


def test_osi_message_that_cannot_be_parsed_is_one_fault(tmp_path):
    whole = [osi_traces.ground_truth(i / 20) for i in range(4)]
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', [*whole[:2], b'\xff' * 9, *whole[2:]])
    frames, [fault] = frames_and_faults(path)
    assert len(frames) == 4
    assert str(fault) == ('message 3: payload: message: found 9 bytes that cannot be parsed; '
                          'expected an osi3.GroundTruth')


@pytest.mark.parametrize(('content', 'text'), [
    (b'', 'found an empty file; expected a trace of ASAM OSI'),
    (struct.pack('<I', 5) + b'abc',
     'message 1: found the last 7 bytes of a message; expected a whole message'),
    (struct.pack('<I', 9) + b'\xff' * 9,
     ('message 1: found 9 bytes that cannot be parsed; expected an osi3.GroundTruth or '
     'osi3.SensorView'))])
def test_osi_file_without_a_message_is_one_line(tmp_path, capsys, content, text):
    path = tmp_path / 'a.osi'
    path.write_bytes(content)
    assert main(['inspect', str(path)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith('error: ')
    assert line.endswith(text)


@pytest.mark.parametrize('n_bytes', [1, 60])
def test_osi_cut_trace_has_its_whole_frames(tmp_path, n_bytes):
    path = osi_traces.write_plain(
        tmp_path / 'a.osi', [osi_traces.ground_truth(i / 20) for i in range(3)])
    path.write_bytes(path.read_bytes()[:-n_bytes])
    frames, [fault] = frames_and_faults(path)
    assert len(frames) == 2
    assert fault.kind == 'cut'
    assert 'message 3: found ' in fault.text
    assert '2 whole frames; lost: the last ' in fault.text


def test_osi_mcap_of_other_messages_is_named(tmp_path, capsys):
    from osi3.osi_sensordata_pb2 import SensorData
    path = osi_traces.write_mcap(tmp_path / 'a.mcap', [SensorData()])
    assert main(['inspect', str(path)]) == 1
    assert 'found messages of osi3.SensorData; expected a channel of osi3.GroundTruth' in \
        capsys.readouterr().err


def test_osi_mcap_with_several_channels_needs_a_topic(tmp_path, capsys):
    path = osi_traces.write_mcap(tmp_path / 'a.mcap', osi_traces.drive(3), topics=('one', 'two'))
    assert main(['inspect', str(path)]) == 1
    assert 'found several channels; expected one of one, two to be named by --topic' in \
        capsys.readouterr().err
    assert main(['inspect', str(path), '--topic', 'two']) == 0
    with sensor.open_recording(path, topic='one') as recording:
        assert len(recording) == 3
    with pytest.raises(sensor.TrajectoryFormatError, match='found no channel six'):
        sensor.open_recording(path, topic='six')


def test_osi_cut_mcap_is_one_line(tmp_path, capsys):
    path = osi_traces.write_mcap(tmp_path / 'a.mcap', osi_traces.drive(3))
    path.write_bytes(path.read_bytes()[:-100])
    assert main(['inspect', str(path)]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f'error: {path}: found a damaged trace (')
    assert line.endswith('expected a whole trace')


@pytest.mark.parametrize('name', osi_traces.WRITERS)
def test_osi_mutated_traces_raise_only_errors_of_the_package(tmp_path, name):
    rng = random.Random(name)
    path = tmp_path / name
    osi_traces.WRITERS[name](path)
    content = path.read_bytes()
    for _ in range(tries(12)):
        data, i = bytearray(content), rng.randrange(len(content) - 8)
        begin, end, new = rng.choice((
            (0, 1, rng.randbytes(1)), (0, rng.randrange(1, 8), b''), (0, 0, rng.randbytes(4)),
            (0, 8, struct.pack('<d', rng.choice((math.nan, -math.inf, 1e308, -1.0))))))
        data[i + begin:i + end] = new
        path.write_bytes(data)
        with suppress(sensor.StateSensorError), sensor.open_recording(path) as recording:
            for frame in recording:
                frame.has_pose()
