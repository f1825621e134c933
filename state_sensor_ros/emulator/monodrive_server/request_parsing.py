# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Checked values from the requests of the control port: the envelope and the command bodies."""

from __future__ import annotations

import json
import math

from state_sensor_ros.emulator.monodrive_server.emulated_frame import lower_tags, SensorFilter

# Length of a wrong value in a reply.
SHOWN_CHARACTERS = 80


class RejectedError(Exception):
    """A command cannot be executed; its text is the reply."""


def json_type(value: object) -> str:
    """
    Return the JSON type of a value.

    :param value: plain JSON data.
    :returns: its type with an article.
    """
    names = {dict: 'an object', list: 'an array', str: 'a string', bool: 'a bool',
             int: 'a number', float: 'a number', type(None): 'null'}
    return names.get(type(value), 'something else')


def shortened(value: object) -> str:
    """
    Return a wrong value as text for a reply.

    :param value: plain JSON data.
    :returns: at most 80 characters.
    """
    return repr(value)[:SHOWN_CHARACTERS]


def parse_envelope(body: bytes) -> tuple[object, object, object]:
    """
    Parse a request.

    :param body: JSON text.
    :returns: its members type, reference and message.
    :raises RejectedError: if it is not an object with a type.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f'request: found {error}; expected JSON') from error
    if not isinstance(request, dict) or 'type' not in request:
        raise RejectedError(
            f'request: found {json_type(request)}; expected an object with a type')
    return request['type'], request.get('reference', 0), request.get('message')


def as_object(message: object) -> dict[str, object]:
    """
    Check that a body is an object.

    :param message: the body.
    :returns: the same.
    :raises RejectedError: if it is not an object.
    """
    if not isinstance(message, dict):
        raise RejectedError(f'message: found {json_type(message)}; expected an object')
    return message


def number(message: dict[str, object], key: str, default: float | None = None) -> float:
    """
    Return a member that is a number; NaN and Infinity, which are not JSON, are none.

    :param message: the body.
    :param key: name of the member.
    :param default: value of a missing member, None for a required one.
    :returns: the number.
    :raises RejectedError: if it is missing or not a number.
    """
    value = message.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RejectedError(f'{key}: found {json_type(value)}; expected a number')
    if not abs(value) < math.inf:
        raise RejectedError(f'{key}: found {value}; expected a number')
    return value


def integer(message: dict[str, object], key: str, default: int | None = None) -> int:
    """
    Return a member that is a whole number, such as 8700 or 8700.0.

    :param message: the body.
    :param key: name of the member.
    :param default: value of a missing member, None for a required one.
    :returns: the number.
    :raises RejectedError: if it is missing or not a whole number.
    """
    value = number(message, key, default)
    if isinstance(value, float) and not value.is_integer():
        raise RejectedError(f'{key}: found {value}; expected a whole number')
    return int(value)


def _flag(message: dict[str, object], key: str, default: bool) -> bool:
    value = message.get(key, default)
    if not isinstance(value, bool):
        raise RejectedError(f'{key}: found {json_type(value)}; expected a bool')
    return value


def _tags(config: dict[str, object], key: str) -> frozenset[str]:
    tags = config.get(key, [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise RejectedError(f'{key}: found {json_type(tags)}; expected an array of strings')
    return lower_tags(tags)


def parse_sensor(message: object) -> tuple[int, SensorFilter, bool]:
    """
    Parse the configuration of one State sensor; members of other sensors are ignored.

    :param message: the configuration.
    :returns: port, filter and whether the sensor sends frames.
    :raises RejectedError: if it is not the configuration of a State sensor.
    """
    config = as_object(message)
    if config.get('type') != 'State':
        raise RejectedError(f"type: found {shortened(config.get('type'))}; expected 'State'")
    port = integer(config, 'listen_port')
    if not 1 <= port <= 65535:
        raise RejectedError(f'listen_port: found {port}; expected 1 to 65535')
    sensor_filter = SensorFilter(_tags(config, 'desired_tags'), _tags(config, 'undesired_tags'),
                                 _flag(config, 'include_obb', False))
    return port, sensor_filter, _flag(config, 'enable_streaming', True)


def parse_state_frame(message: object) -> dict[str, object]:
    """
    Parse the frame of a state step: an object, an array of one, or text in a string.

    :param message: the body.
    :returns: the members of the frame.
    :raises RejectedError: if it is none of these.
    """
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if isinstance(message, dict) and 'state_data_as_string' in message:
        text = message['state_data_as_string']
        if not isinstance(text, str):
            raise RejectedError(
                f'state_data_as_string: found {json_type(text)}; expected a string')
        try:
            return as_object(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise RejectedError(f'state_data_as_string: found {error}; expected JSON') from error
    return as_object(message)
