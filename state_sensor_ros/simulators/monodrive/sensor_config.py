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

from collections.abc import Iterator, Mapping
import json
from pathlib import Path

from state_sensor_ros.simulators import ConfigError, reason_of, Settings
from state_sensor_ros.simulators.json_text import shortened

STATE = 'State'
_MAX_SHOWN = 40
# An object that has an array of sensors as a member.
_MAX_DEPTH = 2
# Longer than any configuration; of a recording that is given by mistake no more is read.
_MAX_BYTES = 16 * 1024 * 1024


def state_sensor(settings: Settings) -> dict[str, object]:
    """
    Return the configuration of the State sensor for ``settings``.

    It has no ``ros`` block: with one, the simulator would not open the data connection
    (doc/protocol/sensor.md#configuration-keys).

    :returns: the body of a command that configures the sensor.
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

    :param path: path of the file.
    :returns: parameters by name: ``port``, ``desired_tags``, ``undesired_tags``, ``include_obb``
        and ``debug_drawing``, those that the file sets.
    :raises ConfigError: if it cannot be read or is not JSON (with line and column), has no
        State sensor or several, or a value of a wrong type.
    """
    where = str(path)
    entries = [entry for entry in _sensors(read_json(path), where)
               if entry.get('type') == STATE]
    if not entries:
        raise ConfigError(where, 'no State sensor', 'an entry with "type": "State"')
    if len(entries) > 1:
        ports = ', '.join(_shown(entry.get('listen_port')) for entry in entries)
        raise ConfigError(where, f'State sensors on ports {ports}', 'one, as a node reads one')
    return _parameters(entries[0], f'{where}: {STATE}')


def _parameters(entry: Mapping[str, object], where: str) -> dict[str, object]:
    parameters: dict[str, object] = {}
    if 'listen_port' in entry:
        parameters['port'] = _port(entry['listen_port'], f'{where}.listen_port')
    for key in ('desired_tags', 'undesired_tags'):
        if key in entry:
            parameters[key] = _tags(entry[key], f'{where}.{key}')
    for key in ('include_obb', 'debug_drawing'):
        if key in entry:
            parameters[key] = _flag(entry[key], f'{where}.{key}')
    return parameters


def read_json(path: str | Path) -> object:
    """
    Read a configuration file of the simulator, of any content.

    :param path: path of the file.
    :raises ConfigError: if it cannot be read or is not JSON, with line and column.
    """
    where = str(path)
    try:
        with Path(path).open('rb') as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise ConfigError(where, f'more than {_MAX_BYTES} bytes', 'a sensor configuration')
        return json.loads(str(data, 'utf-8-sig'))
    except UnicodeDecodeError as exc:
        raise ConfigError(where, f'0x{exc.object[exc.start]:02x} at byte {exc.start}',
                          'UTF-8') from exc
    except json.JSONDecodeError as exc:
        found = repr(exc.doc[exc.pos:exc.pos + _MAX_SHOWN].split('\n')[0]) \
            if exc.pos < len(exc.doc) else 'the end of the file'
        raise ConfigError(f'{where}: line {exc.lineno} column {exc.colno}', found,
                          f'JSON ({exc.msg})') from exc
    except ValueError as exc:
        # An integer has more digits than Python converts.
        raise ConfigError(where, str(exc).lower(), 'a sensor configuration') from exc
    except RecursionError as exc:
        raise ConfigError(where, 'brackets nested too deep', 'a sensor configuration') from exc
    except OSError as exc:
        raise ConfigError(where, reason_of(exc)) from exc


def _sensors(value: object, where: str, depth: int = 0) -> Iterator[Mapping[str, object]]:
    """Yield the sensors in a file; other values are skipped."""
    if isinstance(value, dict) and 'type' in value:
        yield value
    elif isinstance(value, (list, dict)):
        if depth < _MAX_DEPTH:
            for item in value.values() if isinstance(value, dict) else value:
                yield from _sensors(item, where, depth + 1)
    elif not depth:
        raise ConfigError(where, _shown(value), 'an array of sensors')


def _port(value: object, where: str) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise ConfigError(where, _shown(value), 'a port, 1 to 65535')
    return value


def _tags(value: object, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ConfigError(where, _shown(value), 'an array of strings')
    for i, tag in enumerate(value):
        if not isinstance(tag, str):
            raise ConfigError(f'{where}[{i}]', _shown(tag), 'a string')
    return tuple(value)


def _flag(value: object, where: str) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(where, _shown(value), 'true or false')
    return value


def _shown(value: object) -> str:
    return shortened(json.dumps(value))
