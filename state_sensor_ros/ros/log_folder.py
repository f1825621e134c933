# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The folder of the log of ROS where HOME is missing or cannot be written."""

from __future__ import annotations

import os
from pathlib import Path
import tempfile

from state_sensor_ros.errors import ConfigError, reason_of

_SELECTED = 'ROS_LOG_DIR'


def choose_log_folder() -> str:
    """Select a temporary folder if that of ROS cannot be written: rcl would not start."""
    selected, home = os.environ.get(_SELECTED), os.environ.get('HOME')
    above = os.environ.get('ROS_HOME') or (home and f'{home}/.ros')
    if selected:
        reason = _refusal(Path(selected))
        if reason:
            raise ConfigError(_SELECTED, f'{reason} ({selected})', 'a folder that can be written')
        return ''
    reason = _refusal(Path(above, 'log')) if above else 'HOME is not set'
    if not reason:
        return ''
    folder = tempfile.mkdtemp(prefix='ros_log_')
    os.environ[_SELECTED] = folder
    return f'{reason}: the log is in {folder}; {_SELECTED} selects another folder'


def _refusal(folder: Path) -> str:
    """Return why a folder cannot be made or written, empty if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f'{folder}: {reason_of(error)}'
    return '' if os.access(folder, os.W_OK | os.X_OK) else f'{folder}: permission denied'
