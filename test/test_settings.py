# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Every parameter takes what it should and refuses the rest with a reason."""


import pytest
from wrong_values import SCHEMA, WRONG

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import as_yaml
from state_sensor_ros.settings import DEFAULTS, parse_settings
from state_sensor_ros.simulators import checked_settings


def test_settings_refuse_wrong_values_with_name_and_reason():
    for name, value in WRONG:
        with pytest.raises(ConfigError, match=f'^{name}: found .+; expected .+'):
            checked_settings({name: value})
    assert {name for name, _ in WRONG} == set(SCHEMA.names)


def test_settings_refuse_wrong_values_in_the_text_of_a_command_line():
    for name, value in WRONG:
        declared = SCHEMA.find(name)
        text = as_yaml(tuple(value) if isinstance(value, list) else value)
        # Any text is a value of a text without rules, and `true` is one of a flag.
        if not (str in (declared.type, declared.item) or text == 'true'):
            with pytest.raises(ConfigError, match=f'^{name}: found .+; expected .+'):
                checked_settings({name: declared.parsed(text)})


def test_settings_take_their_own_defaults():
    for name in SCHEMA.names:
        assert SCHEMA.value_of(SCHEMA.parse({name: SCHEMA.find(name).default}), name) \
            == SCHEMA.value_of(DEFAULTS, name)
        assert SCHEMA.find(name).rule.help.endswith('.')


@pytest.mark.parametrize(('values', 'words'), [
    ({'reconnect_min': 3.0}, 'at most reconnect_max'),
    ({'source': 'file'}, 'trajectory_file: found nothing'),
    ({'control_port': 8999}, 'desired_tags: found an empty list'),
    ({'control_port': 8999, 'desired_tags': ['']}, 'desired_tags'),
    ({'sample_rate': 10.0}, 'sample_rate: found 10; expected a control_port'),
    ({'source': 'carla', 'stamp_source': 'utc'}, 'stamp_source: found utc'),
    ({'source': 'carla', 'port': 2001, 'carla.relay_port': 3000, 'control_port': 2000},
     'control_port: found 2000; expected 0 with relay_port'),
    ({'parent_frame': 'map'}, 'parent_frame'),
    ({'ego_frame': 'map'}, 'ego_frame'),
    ({'odom_frame': 'map'}, 'odom_frame: .* than global_frame'),
    ({'odom_frame': 'a', 'ego_frame': 'a'}, 'ego_frame: .* than odom_frame'),
    ({'color': 'red'}, 'color: unknown parameter'),
    ({'kp': 2.0}, "did you mean 'control.kp'"),
])
def test_settings_that_do_not_go_together(values, words):
    with pytest.raises(ConfigError, match=words):
        checked_settings(values)


def test_settings_integers_serve_for_floats():
    assert parse_settings({'rate': 2}).rate == 2.0
    assert parse_settings({'global_frame_pose': [0, 0, 1, 0, 0, 0]}).global_frame_pose[2] == 1.0
