# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Pause, step and seek of a recording that the node plays, as parameters ``playback.*``."""

from __future__ import annotations

from collections.abc import Callable
import math

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.player import FileSource
from state_sensor_ros.ros.rclpy_inside import given_parameters

_PAUSED, _STEP, _SEEK = 'playback.paused', 'playback.step', 'playback.seek'
_HELP = {
    _PAUSED: (False, 'Whether the recording is paused.'),
    _STEP: (0, 'Set to N to play N frames at once and pause.'),
    _SEEK: (0.0, 'Set to T to continue T seconds after the start of the recording.'),
}


class Playback:
    """Parameters of ``node`` that control its recording."""

    # source: returns the recording of the active node, None while it is not active.

    def __init__(self, node: Node, source: Callable[[], FileSource | None]) -> None:
        self._source = source
        for name, (default, help_) in _HELP.items():
            given = given_parameters(node).get(name)
            if given is not None and given.value != default:
                raise ConfigError(name, f'{given.value!r} at start', 'a change while it plays')
            node.declare_parameter(name, default, ParameterDescriptor(description=help_),
                                   ignore_override=True)
        node.add_on_set_parameters_callback(self._check)
        node.add_post_set_parameters_callback(self._apply)

    def _check(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse values that are out of range, and all values while the node is not active."""
        ours = {each.name: each.value for each in parameters if each.name in _HELP}
        reason = ''
        if ours and self._source() is None:
            reason = f'{next(iter(ours))}: found no recording that plays; expected an active node'
        elif ours.get(_STEP, 1) < 1:
            reason = f'{_STEP}: found {ours[_STEP]}; expected 1 frame or more'
        elif not 0.0 <= ours.get(_SEEK, 0.0) < math.inf:
            reason = f'{_SEEK}: found {ours[_SEEK]}; expected seconds from the beginning'
        return SetParametersResult(successful=not reason, reason=reason)

    def _apply(self, parameters: list[Parameter]) -> None:
        """Pause, resume, step or seek, in the order of ``parameters``."""
        source = self._source()
        if source is None:
            return
        for parameter in parameters:
            if parameter.name == _PAUSED:
                (source.pause if parameter.value else source.resume)()
            elif parameter.name == _STEP:
                source.step(parameter.value)
            elif parameter.name == _SEEK:
                source.seek(parameter.value)
