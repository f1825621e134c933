# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What clients ask for over the control port, checked and taken apart.

May know: the envelope and the bodies of commands. Must not: sockets, what a command does.
Source of truth: PROTOCOL 2.4, 2.5 and 3.
"""

from __future__ import annotations

import json

from state_sensor_ros.emulator.selection import lower_tags, Selection

# Enough of a wrong value to recognise it in a reply.
SHOWN_CHARACTERS = 80


class RefusedError(Exception):
    """A command cannot be done; its text is the reply."""


def kind(value: object) -> str:
    """
    Name the JSON type of a value.

    :param value: anything that JSON can hold.
    :returns: its type with an article.
    """
    names = {dict: 'an object', list: 'an array', str: 'a string', bool: 'a bool',
             int: 'a number', float: 'a number', type(None): 'null'}
    return names.get(type(value), 'something else')


def shown(value: object) -> str:
    """
    Show a wrong value in a reply.

    :param value: anything.
    :returns: its text, cut where it gets long.
    """
    return repr(value)[:SHOWN_CHARACTERS]


def envelope(body: bytes) -> tuple[object, object, object]:
    """
    Open the envelope of a request.

    :param body: JSON text.
    :returns: type, reference and message.
    :raises RefusedError: when it is not an object with a type.
    """
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f'request: found {error}; expected JSON') from error
    if not isinstance(request, dict) or 'type' not in request:
        raise RefusedError(f'request: found {kind(request)}; expected an object with a type')
    return request['type'], request.get('reference', 0), request.get('message')


def as_object(message: object) -> dict[str, object]:
    """
    Take a body that must be an object.

    :param message: the body.
    :returns: the same.
    :raises RefusedError: when it is something else.
    """
    if not isinstance(message, dict):
        raise RefusedError(f'message: found {kind(message)}; expected an object')
    return message


def number(message: dict[str, object], key: str, default: float | None = None) -> float:
    """
    Take a number out of a body.

    :param message: the body.
    :param key: the member.
    :param default: for a member that is missing, None if it must not be.
    :returns: the number.
    :raises RefusedError: when it is missing or no number.
    """
    value = message.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RefusedError(f'{key}: found {kind(value)}; expected a number')
    return value


def integer(message: dict[str, object], key: str, default: int | None = None) -> int:
    """
    Take a whole number out of a body; 8700.0 is one too.

    :param message: the body.
    :param key: the member.
    :param default: for a member that is missing, None if it must not be.
    :returns: the number.
    :raises RefusedError: when it is missing or no whole number.
    """
    value = number(message, key, default)
    if isinstance(value, float) and not value.is_integer():
        raise RefusedError(f'{key}: found {value}; expected a whole number')
    return int(value)


def flag(message: dict[str, object], key: str, default: bool) -> bool:
    """
    Take a bool out of a body.

    :param message: the body.
    :param key: the member.
    :param default: if it is missing.
    :returns: the bool.
    :raises RefusedError: when it is something else.
    """
    value = message.get(key, default)
    if not isinstance(value, bool):
        raise RefusedError(f'{key}: found {kind(value)}; expected a bool')
    return value


def _tags(config: dict[str, object], key: str) -> frozenset[str]:
    tags = config.get(key, [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise RefusedError(f'{key}: found {kind(tags)}; expected an array of strings')
    return lower_tags(tags)


def sensor(message: object) -> tuple[int, Selection, bool]:
    """
    Read the configuration of one State sensor; members that matter to others are ignored.

    :param message: the configuration.
    :returns: port, filter and whether it streams.
    :raises RefusedError: when it is not that of a State sensor.
    """
    config = as_object(message)
    if config.get('type') != 'State':
        raise RefusedError(f"type: found {shown(config.get('type'))}; expected 'State'")
    port = integer(config, 'listen_port')
    if not 1 <= port <= 65535:
        raise RefusedError(f'listen_port: found {port}; expected 1 to 65535')
    selection = Selection(_tags(config, 'desired_tags'), _tags(config, 'undesired_tags'),
                          flag(config, 'include_obb', False))
    return port, selection, flag(config, 'enable_streaming', True)


def frame(message: object) -> dict[str, object]:
    """
    Read the frame of a state step: itself, an array of one, or text in a string.

    :param message: the body.
    :returns: the frame as plain data.
    :raises RefusedError: when it is none of these.
    """
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if isinstance(message, dict) and 'state_data_as_string' in message:
        text = message['state_data_as_string']
        if not isinstance(text, str):
            raise RefusedError(f'state_data_as_string: found {kind(text)}; expected a string')
        try:
            return as_object(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise RefusedError(f'state_data_as_string: found {error}; expected JSON') from error
    return as_object(message)
