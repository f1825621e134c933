# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Offered profiles of quality of service (QoS) in bags, read and written as YAML."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TypeVar

from rosbags.interfaces import (
    Qos as Profile,
)
from rosbags.interfaces import (
    QosDurability,
    QosHistory,
    QosLiveliness,
    QosReliability,
    QosTime,
)

from state_sensor_ros.files.bags.bag_metadata import parse_yaml, Value
from state_sensor_ros.topics.topic import Qos

# The duration that rmw reports for a profile without deadline, lifespan or lease.
_INFINITE = QosTime(9223372036, 854775807)

Policy = TypeVar('Policy', bound=Enum)


def profile_of(qos: Qos) -> Profile:
    """
    Return the profile that a node offers for a topic.

    :param qos: quality of service of the topic.
    :returns: profile without deadline, lifespan and lease; history keeps the last ``qos.depth``.
    """
    return Profile(
        QosHistory.KEEP_LAST, qos.depth,
        QosReliability.RELIABLE if qos.reliable else QosReliability.BEST_EFFORT,
        QosDurability.TRANSIENT_LOCAL if qos.latched else QosDurability.VOLATILE,
        _INFINITE, _INFINITE, QosLiveliness.AUTOMATIC, _INFINITE,
        avoid_ros_namespace_conventions=False)


@lru_cache(maxsize=16)
def profiles_text(profiles: tuple[Profile, ...]) -> str:
    """
    Format profiles as YAML.

    :param profiles: offered profiles of one topic.
    :returns: list as in metadata version 9, without a line break at the end.
    """
    return '\n'.join(map(_profile_text, profiles)) or '[]'


def _profile_text(profile: Profile) -> str:
    # Formatted here: the library for YAML takes longer to load.
    return f"""\
- avoid_ros_namespace_conventions: {str(profile.avoid_ros_namespace_conventions).lower()}
  deadline:
    nsec: {profile.deadline.nsec}
    sec: {profile.deadline.sec}
  depth: {profile.depth}
  durability: {profile.durability.name.lower()}
  history: {profile.history.name.lower()}
  lifespan:
    nsec: {profile.lifespan.nsec}
    sec: {profile.lifespan.sec}
  liveliness: {profile.liveliness.name.lower()}
  liveliness_lease_duration:
    nsec: {profile.liveliness_lease_duration.nsec}
    sec: {profile.liveliness_lease_duration.sec}
  reliability: {profile.reliability.name.lower()}"""


def parse_profiles(text: str) -> list[Profile] | None:
    """
    Parse profiles of any version of rosbag2.

    :param text: YAML of a list of them, ``''`` for none.
    :returns: the profiles; None if the text is something else.
    """
    try:
        value = parse_yaml(text) if text.strip() else []
        return [_profile(item) for item in value] if isinstance(value, list) else None
    except (ValueError, KeyError):
        return None


def _profile(value: Value) -> Profile:
    if not isinstance(value, dict):
        raise ValueError('no profile')
    return Profile(
        _policy(QosHistory, value['history']), _whole(value['depth']),
        _policy(QosReliability, value['reliability']),
        _policy(QosDurability, value['durability']), _time(value['deadline']),
        _time(value['lifespan']), _policy(QosLiveliness, value['liveliness']),
        _time(value['liveliness_lease_duration']),
        value['avoid_ros_namespace_conventions'] == 'true')


def _policy(kind: type[Policy], value: Value) -> Policy:
    """Return a policy by its number or its name."""
    if not isinstance(value, str):
        raise ValueError('a policy that is not text')
    return kind(int(value)) if value.isdecimal() else kind[value.upper()]


def _time(value: Value) -> QosTime:
    if not isinstance(value, dict):
        raise ValueError('no time')
    return QosTime(_whole(value['sec']), _whole(value['nsec']))


def _whole(value: Value) -> int:
    if not isinstance(value, str):
        raise ValueError('a number that is not text')
    return int(value)
