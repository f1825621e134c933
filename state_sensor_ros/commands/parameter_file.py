# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""Files of parameters, and the parameters that they give to a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re
from typing import Any

from state_sensor_ros.errors import ConfigError, reason_of
from state_sensor_ros.texts import one_line, size

_LAYOUT = 'NODE_NAME:, below it ros__parameters:, below it NAME: VALUE'
# That of a node with every parameter has 10 kB; a recording would be parsed for a minute.
_MAX_BYTES = 1_000_000


def read_parameter_file(path: str | Path, option: str) -> object:
    path = Path(path)
    if not path.is_file():
        raise ConfigError(option, f'there is no file {path}')
    if (n_bytes := path.stat().st_size) > _MAX_BYTES:
        raise ConfigError(f'{option} {path}', f'a file of {size(n_bytes)}',
                          f'parameters, at most {size(_MAX_BYTES)}: {_LAYOUT}')
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError
    reader = YAML(typ='safe', pure=True)
    # As rcl reads it; the last of equal keys counts.
    reader.version = (1, 1)
    reader.allow_duplicate_keys = True
    try:
        content: object = reader.load(path.read_bytes())
    except OSError as error:
        raise ConfigError(f'{option} {path}', reason_of(error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f'{option} {path}', one_line(str(error)), 'YAML') from error
    if next(_parts(content, ''), None) is None:
        raise ConfigError(f'{option} {path}', 'a file without parameters', _LAYOUT)
    return content


def parameters_of(content: object, node: str) -> dict[str, Any] | None:
    """Return the parameters that a file gives to a node."""
    # node: full name; names in the file may have the wildcards ``*`` and ``**``.
    found: dict[str, Any] = {}
    is_matched = False
    for name, value in _parts(content, ''):
        pattern = re.escape(name).replace(r'/\*\*', '(/.*)?').replace(r'\*', '[^/]*')
        if re.fullmatch(pattern, node):
            is_matched = True
            found.update(value if isinstance(value, dict) else {})
    return found if is_matched else None


def names_in(content: object) -> list[str]:
    """Return the names of nodes in a file, with wildcards."""
    return [name for name, _ in _parts(content, '')]


def _parts(content: object, name: str) -> Iterator[tuple[str, object]]:
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == 'ros__parameters':
            yield name, value
        else:
            yield from _parts(value, f'{name}/{str(key).strip("/")}')
