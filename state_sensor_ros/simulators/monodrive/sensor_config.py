# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The State sensor in the simulator's own configuration format: read from files, made for requests.

Its keys are in doc/protocol/control.md#sensor-configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from state_sensor_ros.simulators import (
    ConfigError,
    DecodeError,
    read_limited,
    restated,
    Settings,
)
from state_sensor_ros.simulators.json_values import (
    Json,
    located,
    parse_payload,
    shown,
    to_flag,
    to_integer,
    to_list,
    to_text,
)

STATE = 'State'
# An object that has an array of sensors as a member.
_MAX_DEPTH = 2
# Longer than any configuration; of a recording that is given by mistake no more is read.
_MAX_BYTES = 16 * 1024 * 1024


def state_sensor(settings: Settings) -> dict[str, object]:
    """
    Return the configuration of the State sensor for ``settings``.

    It has no ``ros`` block: with one, the simulator would not open the data connection
    (doc/protocol/sensor.md#configuration-keys).
    """
    zero_vector, zero_rotator = dict.fromkeys('xyz', 0.0), dict.fromkeys(
        ('pitch', 'yaw', 'roll'), 0.0)
    return {
        'type': STATE,
        'listen_port': settings.port,
        'location': zero_vector,
        'rotation': zero_rotator,
        'desired_tags': list(settings.desired_tags),
        'undesired_tags': list(settings.undesired_tags),
        'include_obb': settings.include_obb,
        'debug_drawing': settings.debug_drawing,
        'enable_streaming': True,
        'wait_for_fresh_frame': True,
    }


def read_sensor_config(path: str | Path) -> dict[str, object]:
    """
    Read the State sensor from a file in the simulator's own format.

    The file has one sensor, an array of sensors, or an object whose members are either. Keys
    without a parameter are ignored.

    :returns: parameters by name: ``port``, ``desired_tags``, ``undesired_tags``, ``include_obb``
        and ``debug_drawing``, those that the file sets.
    """
    where = str(path)
    entries = [entry for entry in _sensors(read_json(path), where)
               if entry.get('type') == STATE]
    if not entries:
        raise ConfigError(where, 'no State sensor', 'an entry with "type": "State"')
    if len(entries) > 1:
        ports = ', '.join(shown(entry.get('listen_port')) for entry in entries)
        raise ConfigError(where, f'State sensors on ports {ports}', 'one, as a node reads one')
    return _parameters(entries[0], f'{where}: {STATE}')


def _tags(value: Json, where: str) -> tuple[str, ...]:
    return tuple([to_text(tag, path) for tag, path in located(to_list(value, where), where)])


def _port(value: Json, where: str) -> int:
    return to_integer(value, where, 1, 65535)


# Keys of a sensor, with the parameter and the reader of each.
_KEYS: Mapping[str, tuple[str, Callable[[Json, str], object]]] = {
    'listen_port': ('port', _port), 'desired_tags': ('desired_tags', _tags),
    'undesired_tags': ('undesired_tags', _tags), 'include_obb': ('include_obb', to_flag),
    'debug_drawing': ('debug_drawing', to_flag)}


def _parameters(entry: Mapping[str, Json], where: str) -> dict[str, object]:
    try:
        return {name: read(entry[key], f'{where}.{key}') for key, (name, read) in _KEYS.items()
                if key in entry}
    except DecodeError as error:
        raise ConfigError(error.where, error.found, error.expected) from error


def read_json(path: str | Path) -> object:
    """Read a configuration file of the simulator, of any content."""
    with restated(ConfigError, str(path)):
        return parse_payload(read_limited(path, _MAX_BYTES, 'a sensor configuration'))


def _sensors(value: Json, where: str, depth: int = 0) -> Iterator[Mapping[str, Json]]:
    if isinstance(value, dict) and 'type' in value:
        yield value
    elif isinstance(value, (list, dict)):
        if depth < _MAX_DEPTH:
            for item in value.values() if isinstance(value, dict) else value:
                yield from _sensors(item, where, depth + 1)
    elif not depth:
        raise ConfigError(where, shown(value), 'an array of sensors')
