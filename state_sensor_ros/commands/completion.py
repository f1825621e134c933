# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Values that a shell proposes: commands/options.py names the functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
import os
import time

from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.files import formats as known_formats
from state_sensor_ros.files import open_any
from state_sensor_ros.files.tables.table import BY_NAME
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.settings import OUTPUTS
from state_sensor_ros.simulators import schema_of

# Limits of the search for actors and tags.
_MAX_FRAMES, _MAX_S = 200, 0.5


def formats(**_: object) -> list[str]:
    """Return the names of the formats that ``--to`` takes."""
    return sorted(row.name for row in known_formats() if row.is_written and row.suffixes)


def outputs(**_: object) -> list[str]:
    """Return the stacks that topics are written for."""
    return list(OUTPUTS)


def subjects(**_: object) -> list[str]:
    """Return the parameters and their groups."""
    schema = schema_of(with_added=True)
    return [*schema.by_subject(), *schema.names]


def parameters(prefix: str, **_: object) -> list[str]:
    """Return parameters, and the values of the one in ``prefix``."""
    schema = schema_of(with_added=True)
    name, has_value, _value = prefix.partition(':=')
    if not has_value or not schema.has(name):
        return [f'{known}:=' for known in schema.names]
    declared = schema.find(name)
    values = ('true', 'false') if declared.type is bool else declared.rule.choices
    return [f'{name}:=[{value}]' if declared.item else f'{name}:={value}' for value in values]


def columns(prefix: str, **_: object) -> list[str]:
    """Return lists of columns that begin with the one in ``prefix``."""
    listed = prefix.split(',')[:-1]
    return [','.join((*listed, name)) for name in BY_NAME if name not in listed]


def actors(**_: object) -> list[str]:
    """Return the names of actors in the first frames of the recording on the command line."""
    return _found(lambda frame: frame.names)


def tags(**_: object) -> list[str]:
    """Return the tags of actors in the first frames of the recording on the command line."""
    return _found(lambda frame: chain.from_iterable(frame.tags))


def _found(texts_of: Callable[[Frame], Iterable[str]]) -> list[str]:
    # argcomplete passes no arguments of a sub-command.
    words = os.environ.get('COMP_LINE', '').split()[2:]
    path = next(filter(os.path.exists, words), None)
    try:
        return [] if path is None else sorted({
            text for frame in _frames(path) for text in texts_of(frame)})
    except (StateSensorError, OSError):
        return []


def _frames(path: str) -> Iterator[Frame]:
    end_s = time.monotonic() + _MAX_S
    with closing(open_any(path)) as reader:
        for frame in islice(FrameLoop(reader), _MAX_FRAMES):
            yield frame
            if time.monotonic() > end_s:
                return
