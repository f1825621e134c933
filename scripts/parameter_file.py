# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Write ``config/state_sensor.yaml`` from the declarations of the parameters."""

from pathlib import Path
import textwrap

from state_sensor_ros.parameters import as_yaml, Parameter
from state_sensor_ros.simulators import schema_of

OUT = Path(__file__).resolve().parents[1] / 'config' / 'state_sensor.yaml'
_WIDTH = 99
_HEAD = """\
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
#
# Every parameter of state_sensor_node with its default. (D): may change while the node runs.
# Keep only the lines that you change: these values take precedence over config_file.
# Written by scripts/parameter_file.py.
/**:
  ros__parameters:
"""
# Parameters of the node that are not among its settings.
_END = """\

    # The quality of service of the other topics is set by their full names:
    # qos_overrides:
    #   /state_sensor/frame:
    #     publisher:
    #       reliability: best_effort
    #       depth: 1
"""


def text() -> str:
    """Return the content of the file."""
    schema = schema_of()
    return _HEAD + '\n'.join(
        ''.join(_lines(schema.find(name)) for name in names)
        for names in schema.by_subject().values()) + _END


def _lines(parameter: Parameter) -> str:
    """Return the comment and the line of a parameter."""
    rule, choices = parameter.rule, ', '.join(filter(None, parameter.rule.choices))
    about = ' '.join(filter(None, (
        rule.help, choices and f'{"Any" if parameter.item else "One"} of {choices}.',
        '(D)' if rule.dynamic else '')))
    # ROS cannot tell the type of the items of an empty list.
    value = "['']" if choices and parameter.default == () else as_yaml(parameter.default)
    lines = textwrap.wrap(about, _WIDTH, initial_indent='    # ', subsequent_indent='    # ')
    lines += textwrap.wrap(f'    {parameter.name}: {value}', _WIDTH, subsequent_indent=' ' * 6,
                           break_on_hyphens=False)
    return '\n'.join((*lines, ''))


if __name__ == '__main__':
    OUT.write_text(text(), encoding='utf-8')
