# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Small files: those installed with the package, and those that a user names."""

from __future__ import annotations

from pathlib import Path

from state_sensor_ros.errors import ConfigError, reason_of

PACKAGE = 'state_sensor_ros'


def share_file(*parts: str) -> Path:
    """
    Return the path of a file or folder that is installed with the package.

    :param parts: path below the package's share folder, such as ``'msg', 'ControlState.msg'``.
    :returns: the path in the source tree, in the pip package or in the ament prefix, whichever
        this module runs from.
    :raises FileNotFoundError: if the file is in none of them.
    """
    module = Path(__file__)
    # A build with --symlink-install leaves a link here that leads into the source tree.
    source = module.resolve().parent.parent
    folders = [source] if (source / 'package.xml').is_file() else [
        module.absolute().parent / 'data',
        *(parent / 'share' / PACKAGE for parent in module.absolute().parents)]
    for folder in folders:
        if (path := folder.joinpath(*parts)).exists():
            return path
    raise FileNotFoundError(f'{PACKAGE}: found no {"/".join(parts)} in {folders[0]}; '
                            'expected it to be installed')


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
