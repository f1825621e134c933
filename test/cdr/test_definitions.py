# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Message definitions: the language, the places to find them, and that all places agree."""

from __future__ import annotations

from message_store import MSG, typestore
import pytest
from rosbags.interfaces import Nodetype

from state_sensor_ros.cdr.definitions import (
    Field,
    load_definitions,
    parse_message,
    SEQUENCE,
)
from state_sensor_ros.errors import EncodeError

STANDARD = (
    'builtin_interfaces/msg/Duration', 'builtin_interfaces/msg/Time',
    'geometry_msgs/msg/Point', 'geometry_msgs/msg/Pose', 'geometry_msgs/msg/PoseWithCovariance',
    'geometry_msgs/msg/Quaternion', 'geometry_msgs/msg/Transform',
    'geometry_msgs/msg/TransformStamped', 'geometry_msgs/msg/Twist',
    'geometry_msgs/msg/TwistWithCovariance', 'geometry_msgs/msg/Vector3',
    'nav_msgs/msg/Odometry', 'rosgraph_msgs/msg/Clock', 'sensor_msgs/msg/CompressedImage',
    'sensor_msgs/msg/JointState', 'std_msgs/msg/ColorRGBA', 'std_msgs/msg/Header',
    'tf2_msgs/msg/TFMessage', 'visualization_msgs/msg/Marker',
    'visualization_msgs/msg/MarkerArray', 'visualization_msgs/msg/MeshFile',
    'visualization_msgs/msg/UVCoordinate')
OWN = sorted(f'state_sensor_ros/msg/{path.stem}' for path in MSG.glob('*.msg'))


def described_by_rosbags(type_name):
    fields = []
    for name, (kind, detail) in typestore().fielddefs[type_name][1]:
        length = None
        if kind == Nodetype.SEQUENCE:
            kind, detail = detail[0]
            length = SEQUENCE
        elif kind == Nodetype.ARRAY:
            (kind, detail), length = detail
        fields.append(Field(name, detail if kind == Nodetype.NAME else detail[0], length))
    return tuple(fields)


@pytest.mark.parametrize('has_ros', [True, False])
def test_definitions_are_what_rosbags_reads(has_ros, monkeypatch):
    if not has_ros:
        monkeypatch.delenv('AMENT_PREFIX_PATH', raising=False)
    definitions = load_definitions()
    # rosbags has its own grammar of .msg files, and its own copies of the standard ones.
    for type_name in (*STANDARD, *OWN):
        assert definitions[type_name] == described_by_rosbags(type_name)


def test_a_sourced_ros_has_precedence(tmp_path, monkeypatch):
    folder = tmp_path / 'share' / 'nav_msgs' / 'msg'
    folder.mkdir(parents=True)
    (folder / 'Odometry.msg').write_text('float64 changed\n')
    monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{tmp_path}')
    assert load_definitions()['nav_msgs/msg/Odometry'] == (Field('changed', 'float64'),)
    assert load_definitions()['nav_msgs/msg/Path'][0].name == 'header'


@pytest.mark.parametrize(('line', 'field'), [
    ('  string   name  # comment with = and [3]', Field('name', 'string')),
    ('string name "a default"', Field('name', 'string')),
    ('string<=10 short', Field('short', 'string')),
    ('uint8[<=4] data', Field('data', 'uint8', SEQUENCE)),
    ('float64[36] covariance', Field('covariance', 'float64', 36)),
    ('string<=5[3] names', Field('names', 'string', 3)),
    ('Point[] points', Field('points', 'a_package/msg/Point', SEQUENCE)),
    ('std_msgs/msg/Header header', Field('header', 'std_msgs/msg/Header'))])
def test_a_line_of_a_message(line, field):
    assert parse_message(line, 'a_package/msg/Name') == (field,)


@pytest.mark.parametrize('line', ['float64', '5 x', 'float64 [3] x', '- x'])
def test_an_invalid_line_is_an_error(line):
    with pytest.raises(EncodeError, match=r'p/msg/M line 2: found .* expected a field'):
        parse_message(f'bool ok\n{line}', 'p/msg/M')


def test_a_type_without_a_definition_is_an_error():
    with pytest.raises(EncodeError, match=r'no_msgs/msg/No: found no definition; expected a sour'):
        load_definitions()['no_msgs/msg/No']
