# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The State sensor in the simulator's own configuration files."""

import json

import pytest

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.simulators.monodrive.simulator import read_sensor_config

STATE = {'type': 'State', 'listen_port': 8701, 'packet_size': 1472, 'desired_tags': ['vehicle'],
         'undesired_tags': ['static', ''], 'debug_drawing': True, 'include_obb': False}
PARAMETERS = {'port': 8701, 'desired_tags': ('vehicle',), 'undesired_tags': ('static', ''),
              'debug_drawing': True, 'include_obb': False}
CAMERA = {'type': 'Camera', 'listen_port': 8001}


@pytest.fixture
def write(tmp_path):
    """Return a function that writes a file, given data or text."""
    def written(value):
        path = tmp_path / 'sensors.json'
        if not isinstance(value, (str, bytes)):
            value = json.dumps(value)
        path.write_bytes(value if isinstance(value, bytes) else value.encode())
        return path

    return written


@pytest.mark.parametrize('value', [
    STATE, [STATE], [CAMERA, STATE], {'sensors': [CAMERA, STATE]}, {'a': CAMERA, 'b': STATE},
    [CAMERA, STATE, 'comment', None], b'\xef\xbb\xbf' + json.dumps(STATE).encode()])
def test_sensor_config_finds_the_state_sensor(write, value):
    assert read_sensor_config(write(value)) == PARAMETERS


def test_sensor_config_sets_only_what_the_file_sets(write):
    assert read_sensor_config(write([{'type': 'State', 'fps': 30}])) == {}


@pytest.mark.parametrize(('value', 'error'), [
    ('', r'line 1 column 1: found the end; expected JSON'),
    ('[1, 2', r'line 1 column 6: found the end; expected JSON'),
    ('[' * 100_000, 'found brackets nested too deep; expected JSON'),
    ('1' * 5000, 'expected an array of sensors'),
    (b'{"type": "St\xffate"}', 'byte 12: found 0xff; expected UTF-8'),
    ('"State"', "found 'State'; expected an array of sensors"),
    ([], 'found no State sensor; expected an entry with "type": "State"'),
    ({}, 'found no State sensor'),
    ([CAMERA], 'found no State sensor'),
    ([[[STATE]]], 'found no State sensor'),
    ([STATE, STATE | {'listen_port': 8702}], 'found State sensors on ports 8701, 8702; expected'),
    ([STATE | {'listen_port': 0}], 'listen_port: found 0; expected an integer >= 1'),
    ([STATE | {'listen_port': 70000}], 'State.listen_port: found 70000'),
    ([STATE | {'listen_port': '8700'}], "State.listen_port: found '8700'"),
    ([STATE | {'listen_port': True}], 'State.listen_port: found true'),
    ([STATE | {'listen_port': 8700.5}], r'State.listen_port: found 8700\.5'),
    ([STATE | {'desired_tags': 'ego'}], "State.desired_tags: found 'ego'; expected an array"),
    ([STATE | {'undesired_tags': ['a', 7]}], r'State.undesired_tags\[1\]: found 7; expected a'),
    ([STATE | {'include_obb': 1}], 'State.include_obb: found 1; expected true or false'),
    ([STATE | {'debug_drawing': 'x' * 99}], "State.debug_drawing: found 'x{40}…'; expected true"),
])
def test_sensor_config_refuses_with_a_reason(write, value, error):
    path = write(value)
    with pytest.raises(ConfigError, match=error) as caught:
        read_sensor_config(path)
    assert str(caught.value).startswith(str(path))
    assert '\n' not in str(caught.value)


def test_sensor_config_does_not_read_a_recording_to_its_end(write, monkeypatch):
    monkeypatch.setattr('state_sensor_ros.simulators.monodrive.simulator._MAX_BYTES', 100)
    with pytest.raises(ConfigError, match='found more than 100 bytes'):
        read_sensor_config(write([STATE] * 10))
