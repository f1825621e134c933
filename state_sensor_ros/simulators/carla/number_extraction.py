# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Extract the numbers of the actors of one measurement, protobuf or a file of a dataset.

The numbers keep CARLA's units and axes (doc/protocol/carla.md#measurements). Both forms of a
measurement have the same attribute names, so one extraction serves both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
import math
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from state_sensor_ros.simulators import DecodeError, DUPLICATE, Fault, LEFT_OUT
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CLASS_PEDESTRIAN,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    CLASS_VEHICLE,
    LIGHT_STATES,
)
from state_sensor_ros.simulators.carla.measurement_file import Number, to_float

# The source member of a box; the older one, of 0.8.0 and 0.8.1, has no transform.
BOX_NAME, OLD_BOX_NAME = 'bounding_box', 'box_extent'

# Half sizes of agents are in cm in 0.8.0, in m in 0.8.1, and no message has the version. In cm
# the height of a child is above this, in m the length of a lorry below.
_GREATEST_HALF_SIZE_M: Final = 15.0
# Speed limits are in km/h in 0.8.0, which has signs of these, and in m/s later: 25.0 for 90 km/h,
# 36.1 for 130. None of these is a sign in m/s: 30 m/s are 108 km/h.
_LIMITS_KPH: Final = (30.0, 40.0, 50.0, 60.0, 90.0, 100.0, 120.0, 130.0)
_KPH_PER_MPS: Final = 3.6
_MOVERS: Final = frozenset((CLASS_VEHICLE, CLASS_PEDESTRIAN))
# Index of a state, which is a name in JSON and a number in protobuf.
_LIGHTS: Final[dict[str | int, int]] = {
    **{name: i for i, name in enumerate(LIGHT_STATES)}, **{i: i for i in range(len(LIGHT_STATES))}}

# A protobuf message or a struct of measurement_file.py; their attributes have the same names.
Tree: TypeAlias = Any
# Id, class, and the message of that class.
AgentBody: TypeAlias = tuple[int, int, Tree]
Agents: TypeAlias = Iterator[AgentBody | None]


def agents_of_message(agents: Iterable[Tree]) -> Agents:
    """
    Yield the agents of a protobuf message, ``None`` for one of an unknown class.

    :param agents: the entries of ``non_player_agents``.
    :returns: id, CLASS_* and the message of that class.
    """
    for agent in agents:
        # The most common class first: HasField takes half as long as WhichOneof.
        if agent.HasField('vehicle'):
            yield agent.id, CLASS_VEHICLE, agent.vehicle
            continue
        name = agent.WhichOneof('agent')
        yield None if name is None else (agent.id, AGENT_CLASSES.index(name), getattr(agent, name))


def agents_of_file(agents: Iterable[Tree]) -> Agents:
    """
    Yield the agents of a file of the dataset, ``None`` for one of an unknown class.

    :param agents: the entries of ``non_player_agents``.
    :returns: id, CLASS_* and the struct of that class.
    """
    for agent in agents:
        if agent.vehicle is not None:
            yield agent.id, CLASS_VEHICLE, agent.vehicle
        elif agent.pedestrian is not None:
            yield agent.id, CLASS_PEDESTRIAN, agent.pedestrian
        elif agent.traffic_light is not None:
            yield agent.id, CLASS_TRAFFIC_LIGHT, agent.traffic_light
        elif agent.speed_limit_sign is not None:
            yield agent.id, CLASS_SPEED_LIMIT_SIGN, agent.speed_limit_sign
        else:
            yield None


@dataclass(slots=True)
class ActorNumbers:
    """Numbers of the actors, in CARLA's units and axes, as flat lists in the order of actors."""

    ids: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    # 7 for each actor: x y z m, roll pitch yaw deg, forward speed m/s
    poses: list[Any] = field(default_factory=list)
    # 9 for each box: x y z m, roll pitch yaw deg relative to the owner, half sizes xyz m
    boxes: list[Any] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    box_names: list[str] = field(default_factory=list)
    # row of the actor, and its traffic light state or speed limit
    lights: list[tuple[int, int]] = field(default_factory=list)
    limits: list[tuple[int, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def collect(player: Tree | None, agents: Agents, *,
            with_boxes: bool) -> ActorNumbers:
    """
    Extract the numbers of the actors of a measurement, the player first.

    :param player: its playerMeasurements, ``None`` if it has none.
    :param agents: agents from :func:`agents_of_message` or :func:`agents_of_file`.
    :param with_boxes: whether to extract the boxes.
    :returns: the numbers of the valid actors, and the faults of the others.
    """
    numbers = ActorNumbers()
    if player is not None:
        _add_player(numbers, player, with_boxes)
    _add_agents(numbers, agents, with_boxes)
    # The older box of the player is that of 0.8.0 and 0.8.1.
    if player is not None and numbers.limits and _has(player, OLD_BOX_NAME):
        numbers.limits = [(row, limit / _KPH_PER_MPS if limit in _LIMITS_KPH else limit)
                          for row, limit in numbers.limits]
    return numbers


def _add_player(numbers: ActorNumbers, player: Tree, with_boxes: bool) -> None:
    if not _add(numbers, 0, CLASS_PLAYER, player, player.forward_speed):
        numbers.faults.append(_left_out('playerMeasurements.transform', 'an object'))
    elif with_boxes:
        _add_box(numbers, player, is_in_cm=False)


def _left_out(where: str, expected: str) -> Fault:
    return Fault(LEFT_OUT, DecodeError(where, 'nothing', expected))


def _has(tree: Tree, name: str) -> bool:
    if isinstance(tree, Message):
        return bool(tree.HasField(name))
    return getattr(tree, name) is not None


def _add_agents(numbers: ActorNumbers, agents: Agents, with_boxes: bool) -> None:
    seen: set[tuple[int, int]] = set()
    for i, agent in enumerate(agents):
        if agent is None:
            numbers.faults.append(_left_out(f'nonPlayerAgents[{i}]', ', '.join(AGENT_CLASSES[1:])))
            continue
        id_, class_, body = agent
        is_mover = class_ in _MOVERS
        if (id_, class_) in seen:
            numbers.faults.append(Fault(DUPLICATE, DecodeError(
                f'nonPlayerAgents[{i}].id', f'another {AGENT_CLASSES[class_]} {id_}',
                'each id once')))
        elif class_ == CLASS_TRAFFIC_LIGHT and body.state not in _LIGHTS:
            numbers.faults.append(Fault(LEFT_OUT, DecodeError(
                f'nonPlayerAgents[{i}].trafficLight.state', str(body.state),
                ', '.join(LIGHT_STATES))))
        elif not _add(numbers, id_, class_, body, body.forward_speed if is_mover else math.nan):
            numbers.faults.append(_left_out(
                f'nonPlayerAgents[{i}].{AGENT_CLASSES[class_]}.transform', 'an object'))
        else:
            seen.add((id_, class_))
            if is_mover:
                if with_boxes:
                    _add_box(numbers, body)
            elif class_ == CLASS_TRAFFIC_LIGHT:
                numbers.lights.append((len(numbers.ids) - 1, _LIGHTS[body.state]))
            else:
                numbers.limits.append((len(numbers.ids) - 1, to_float(body.speed_limit)))


# The two functions below and the loop above take more than half of the time of a frame, 1 to 2 us
# per agent. An absent message reads as zeros: only then its presence is checked, which costs as
# much as reading two numbers (measured by bench/carla_cost.py).

def _add(numbers: ActorNumbers, id_: int, class_: int, body: Tree, speed: Number) -> bool:
    """Add the pose of an actor; return whether it has one."""
    transform = body.transform
    if transform is None:
        return False
    location, rotation = transform.location, transform.rotation
    x, y, z = location.x, location.y, location.z
    if not (x or y or z) and not _has(body, 'transform'):
        return False
    numbers.ids.append(id_)
    numbers.classes.append(class_)
    numbers.poses += (x, y, z, rotation.roll, rotation.pitch, rotation.yaw, speed)
    return True


def _add_box(numbers: ActorNumbers, body: Tree, *, is_in_cm: bool | None = None) -> None:
    """
    Add the box of the actor added last, if it has one.

    :param is_in_cm: the unit of a box of 0.8.0 and 0.8.1, None for that of its size.
    """
    box = body.bounding_box
    if box is not None:
        at, extent = box.transform, box.extent
        x, y, z = extent.x, extent.y, extent.z
        if x or y or z or _has(body, 'bounding_box'):
            centre, turned = at.location, at.rotation
            numbers.owners.append(len(numbers.ids) - 1)
            numbers.box_names.append(BOX_NAME)
            numbers.boxes += (centre.x, centre.y, centre.z,
                              turned.roll, turned.pitch, turned.yaw, x, y, z)
            return
    if _has(body, 'box_extent'):
        half_sizes = [to_float(half_size) for half_size in (
            body.box_extent.x, body.box_extent.y, body.box_extent.z)]
        if is_in_cm is None:
            is_in_cm = any(half_size > _GREATEST_HALF_SIZE_M for half_size in half_sizes)
        if is_in_cm:
            half_sizes = [half_size / 100.0 for half_size in half_sizes]
        numbers.owners.append(len(numbers.ids) - 1)
        numbers.box_names.append(OLD_BOX_NAME)
        numbers.boxes += (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *half_sizes)
