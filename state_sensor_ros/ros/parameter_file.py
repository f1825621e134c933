# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""Files of parameters: their faults by line, and the parameters that they give to a node."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

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
    text = b''
    try:
        text = path.read_bytes()
        content: object = _yaml().load(text)
    except OSError as error:
        raise ConfigError(f'{option} {path}', reason_of(error)) from error
    except (YAMLError, ValueError, RecursionError) as error:
        raise _fault(error, text, f'{option} {path}') from error
    if next(_parts(content, ''), None) is None:
        raise ConfigError(f'{option} {path}', 'a file without parameters', _LAYOUT)
    return content


class _Constructor(SafeConstructor):
    pass


# launch_ros writes lists as tuples; rcl ignores the tag.
_Constructor.add_constructor(
    'tag:yaml.org,2002:python/tuple', SafeConstructor.construct_yaml_seq)


def _yaml() -> YAML:
    reader = YAML(typ='safe', pure=True)
    reader.Constructor = _Constructor
    # As rcl reads it; the last of equal keys counts.
    reader.version = (1, 1)
    reader.allow_duplicate_keys = True
    return reader


def _fault(error: Exception, text: bytes, where: str) -> ConfigError:
    mark = getattr(error, 'problem_mark', None)
    if mark is None:
        return ConfigError(where, one_line(str(error)), 'YAML')
    problem: str = (getattr(error, 'problem', None) or 'a fault').removeprefix('found ')
    begun = getattr(error, 'context_mark', None)
    lines = [*text.decode('utf-8', 'replace').split('\n'), '']
    if begun is not None and begun.line < mark.line:
        problem += f', {error.context} from line {begun.line + 1} on'  # type: ignore[attr-defined]
        # Up to the end of the file: the fault is where it begins.
        mark = mark if any(map(str.strip, lines[mark.line:])) else begun
    line = lines[mark.line].rstrip()
    expected = 'spaces in place of the tab' if '\t' in line[:mark.column + 1] else 'YAML'
    return ConfigError(f'{where}: line {mark.line + 1}', f'{line!r} ({problem})', expected)


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
