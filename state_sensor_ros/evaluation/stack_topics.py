# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The choice of the topics of a stack's bag that are evaluated, and of a topic with the truth."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from state_sensor_ros.errors import ConfigError, TrajectoryFormatError
from state_sensor_ros.evaluation.stack_messages import (
    DERIVED,
    DETECTED,
    OBJECT_TYPES,
    PREDICTED,
    TRACKED,
    VISION,
)

# Name and type of a topic.
TopicKey = tuple[str, str]

ODOMETRY: Final = 'nav_msgs/msg/Odometry'
_PERCEPTION = '/perception/object_recognition'
GROUND_TRUTH: Final = f'{_PERCEPTION}/ground_truth/objects'
EGO_TOPIC: Final = '/localization/kinematic_state'
# Usual name and type of topics, in the order in which one is chosen if none is named.
_USUAL = ((f'{_PERCEPTION}/tracking/objects', TRACKED),
          (f'{_PERCEPTION}/detection/objects', DETECTED),
          (f'{_PERCEPTION}/objects', PREDICTED), ('', DERIVED), ('', VISION),
          (GROUND_TRUTH, TRACKED))


def chosen_topics(name: str, topics: Collection[TopicKey],
                  named: Sequence[str]) -> list[TopicKey]:
    """
    Choose the topics to evaluate.

    :param name: name of the bag.
    :param topics: topics of the bag that have messages.
    :param named: names given by ``--topic``, in the order in which parts of the result are taken
        from them; empty for the first topic of objects and that of the ego.
    :raises ConfigError: if a named topic is missing or its type cannot be evaluated.
    :raises TrajectoryFormatError: if there is none, or several are equally likely.
    """
    evaluable = [key for key in sorted(topics) if key[1] in (*OBJECT_TYPES, ODOMETRY)]
    if named:
        by_name = {key[0]: key for key in evaluable}
        for topic in named:
            if topic not in by_name:
                raise ConfigError('--topic', f'{topic}, of which {name} has none to evaluate',
                                  f'one of {", ".join(by_name) or "none"}')
        return [by_name[topic] for topic in named]
    found = [key for key in (_objects(name, evaluable), _ego(evaluable)) if key is not None]
    if not found:
        raise TrajectoryFormatError(
            name, 'no topic to evaluate', f'one of the types {", ".join(OBJECT_TYPES)}, or '
            f'{EGO_TOPIC} of the type {ODOMETRY}')
    return found


def _objects(name: str, evaluable: Sequence[TopicKey]) -> TopicKey | None:
    for topic, type_name in _USUAL:
        if (topic, type_name) in evaluable:
            return topic, type_name
        others = [key for key in evaluable if key[1] == type_name and key[0] != GROUND_TRUTH]
        if others and topic != GROUND_TRUTH:
            return _only(name, others)
    return None


def _only(name: str, keys: Sequence[TopicKey]) -> TopicKey:
    if len(keys) > 1:
        raise TrajectoryFormatError(name, f'the topics {", ".join(key[0] for key in keys)}',
                                    'one of them to be named by --topic')
    return keys[0]


def _ego(evaluable: Sequence[TopicKey]) -> TopicKey | None:
    """Return the ego's odometry: the topic of the usual name, else the only one."""
    odometries = [key for key in evaluable if key[1] == ODOMETRY]
    if (EGO_TOPIC, ODOMETRY) in odometries:
        return EGO_TOPIC, ODOMETRY
    return odometries[0] if len(odometries) == 1 else None


def truth_topic(name: str, topics: Collection[TopicKey], named: str) -> TopicKey:
    """
    Choose the topic of objects that are the truth, in a bag of another program.

    :param name: name of the bag.
    :param topics: topics of the bag that have messages.
    :param named: name given by ``--truth-topic``, ``''`` for none.
    :raises TrajectoryFormatError: if there is none, or several are equally likely.
    """
    tracked = [key for key in sorted(topics) if key[1] == TRACKED and named in ('', key[0])]
    if not tracked:
        raise TrajectoryFormatError(
            name, f'no topic {named} of the type {TRACKED}' if named else
            f'neither frames nor a topic of the type {TRACKED}', 'a recording with truth')
    if (GROUND_TRUTH, TRACKED) in tracked:
        return GROUND_TRUTH, TRACKED
    if len(tracked) > 1:
        raise TrajectoryFormatError(name, f'the topics {", ".join(key[0] for key in tracked)}',
                                    'one of them to be named by --truth-topic')
    return tracked[0]
