# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Files that a user names in a parameter or option: read whole, within a limit."""

from __future__ import annotations

from pathlib import Path

from state_sensor_ros.errors import ConfigError, reason_of


def read_limited(path: str | Path, limit: int, expected: str) -> bytes:
    """
    Return the content of a file.

    :param path: file, which may be one that is given by mistake, such as a recording.
    :param limit: most bytes; no more than these are read.
    :param expected: what the file should be, for the error.
    :raises ConfigError: if it cannot be read, or is longer.
    """
    if Path(path).is_fifo():
        # Opening it would wait for a writer.
        raise ConfigError(str(path), 'a pipe', expected)
    try:
        with open(path, 'rb') as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise ConfigError(str(path), reason_of(error)) from error
    if len(data) > limit:
        raise ConfigError(str(path), f'more than {limit} bytes', expected)
    return data
