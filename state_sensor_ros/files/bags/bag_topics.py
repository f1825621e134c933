# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a bag stores of a topic: its QoS profiles, the definition and the hash of its type."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import TypeVar

from rosbags.interfaces import Qos as Profile
from rosbags.interfaces import QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.typesys import get_types_from_msg, get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from state_sensor_ros.cdr.definitions import foreign_texts, installed_text, parse_message
from state_sensor_ros.files.bags.bag_metadata import parse_yaml, Value
from state_sensor_ros.files.storage.storage_file import ROS2MSG
from state_sensor_ros.share import PACKAGE, share_file
from state_sensor_ros.topics.topic import Qos

# The duration that rmw reports for a profile without deadline, lifespan or lease.
_INFINITE = QosTime(9223372036, 854775807)

Policy = TypeVar('Policy', bound=Enum)
# Longer definitions are not parsed: the time to parse one grows with the square of its size.
MAX_DEFINITION_BYTES = 64 * 1024
# Profiles of some hundred publishers; the library reads 0.1 MB/s.
_MAX_PROFILES_BYTES = 256 * 1024
# Separates the definition of a type from those of the types of its fields.
_SEPARATOR = '=' * 80 + '\nMSG: '


def full_name(topic_name: str, node_name: str) -> str:
    """
    Resolve the name of a topic, absolute or with ``~`` for that of the node.

    >>> full_name('~/frame', '/front/state_sensor'), full_name('/tf', '/front/state_sensor')
    ('/front/state_sensor/frame', '/tf')
    """
    return node_name + topic_name[1:] if topic_name.startswith('~') else topic_name


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
    """Format profiles as YAML: list as in metadata version 9, without a line break at the end."""
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
    """Parse profiles of any version of rosbag2."""
    # text: YAML of a list of them, ``''`` for none.
    # Returns the profiles; None if the text is something else, or too long.
    if len(text) > _MAX_PROFILES_BYTES:
        return None
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


@lru_cache(maxsize=1)
def typestore() -> Typestore:
    """Return the standard types and those of this package, with serializers; takes 0.1 s once."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in _own_texts().items():
        store.register(get_types_from_msg(text, name))
    return store


@lru_cache(maxsize=1)
def _own_texts() -> dict[str, str]:
    return {f'{PACKAGE}/msg/{path.stem}': path.read_text('utf-8')
            for path in sorted(share_file('msg').glob('*.msg'))}


@lru_cache(maxsize=1)
def _fields() -> Typestore:
    return get_typestore(Stores.EMPTY)


def _described(type_name: str) -> Typestore:
    """
    Return a store with the fields of a type and of the types it contains, but no classes.

    As in :mod:`definitions`, the definitions of a sourced ROS precede those of rosbags.
    """
    store, pending = _fields(), [type_name]
    while pending:
        name = pending.pop()
        if name in store.fielddefs:
            continue
        text = _own_texts().get(name) or installed_text(name) or foreign_texts().get(name)
        if text is None:
            standard = get_typestore(Stores.ROS2_JAZZY).fielddefs
            store.fielddefs = {**standard, **store.fielddefs}
        else:
            store.fielddefs |= get_types_from_msg(text, name)
            pending += [field.type_name for field in parse_message(text, name)
                        if '/' in field.type_name]
    return store


@lru_cache(maxsize=64)
def definition(type_name: str) -> str:
    """
    Return the definition of a type followed by those of the types it contains.

    Definitions of this package are those of ``msg/``, with the units in their comments.
    """
    whole, _ = _described(type_name).generate_msgdef(type_name, ros_version=2)
    first, *others = whole.split(_SEPARATOR)
    sections = [_own_texts().get(type_name, first)]
    for section in others:
        bare, _, text = section.partition('\n')
        package, _, name = bare.partition('/')
        sections.append(f'{bare}\n{_own_texts().get(f"{package}/msg/{name}", text)}')
    return _SEPARATOR.join(text if text.endswith('\n') else f'{text}\n' for text in sections)


@lru_cache(maxsize=64)
def hash_of_definition(type_name: str, text: str, encoding: str) -> str:
    """Compute the hash of a type from its definition in a bag."""
    # type_name: ``package/msg/Name``.
    # Returns ``''`` if the definition is damaged, too long, or not in the language ros2msg.
    if encoding != ROS2MSG or len(text) > MAX_DEFINITION_BYTES:
        return ''
    try:
        store = get_typestore(Stores.EMPTY)
        store.fielddefs |= get_types_from_msg(text, type_name)
        return store.hash_rihs01(type_name)
    except (TypesysError, ValueError, KeyError, RecursionError):
        return ''


@lru_cache(maxsize=64)
def type_hash(type_name: str) -> str:
    """Return the hash of a type, the same as of every ROS 2 distribution."""
    # type_name: ``package/msg/Name``.
    # Returns ``RIHS01_`` and 64 hexadecimal digits.
    return _described(type_name).hash_rihs01(type_name)
