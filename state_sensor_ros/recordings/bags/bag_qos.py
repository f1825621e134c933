# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Profiles of QoS as rosbag2 writes them: in metadata.yaml, in channels of MCAP, in tables.

May know: YAML that was parsed, names and numbers of policies. Must not know: files.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from rosbags.interfaces import (
    Qos,
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from state_sensor_ros.recordings.bags.bag_metadata import parse_yaml, Value

Policy = TypeVar('Policy', bound=Enum)


def parse_profiles(value: Value) -> list[Qos]:
    """
    Parse offered profiles.

    :param value: a list of them, or YAML text of one.
    :raises ValueError: where it is none; YAMLError likewise.
    """
    if isinstance(value, str):
        value = parse_yaml(value) if value.strip() else []
    if not isinstance(value, list):
        raise ValueError('no list of profiles')
    return [_profile(item) for item in value]


def _profile(value: Value) -> Qos:
    if not isinstance(value, dict):
        raise ValueError('no profile')
    try:
        return Qos(
            _policy(QosHistory, value['history']), _whole(value['depth']),
            _policy(QosReliability, value['reliability']),
            _policy(QosDurability, value['durability']), _time(value['deadline']),
            _time(value['lifespan']), _policy(QosLiveliness, value['liveliness']),
            _time(value['liveliness_lease_duration']),
            value['avoid_ros_namespace_conventions'] == 'true')
    except KeyError as error:
        raise ValueError(f'a profile without {error}') from error


def _policy(kind: type[Policy], value: Value) -> Policy:
    """Return a policy from its number or its name."""
    if not isinstance(value, str):
        raise ValueError('a policy that is no text')
    return kind(int(value)) if value.isdecimal() else kind[value.upper()]


def _time(value: Value) -> QosTime:
    if not isinstance(value, dict):
        raise ValueError('no time')
    return QosTime(_whole(value['sec']), _whole(value['nsec']))


def _whole(value: Value) -> int:
    if not isinstance(value, str):
        raise ValueError('a number that is no text')
    return int(value)
