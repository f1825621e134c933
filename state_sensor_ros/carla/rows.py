# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The actors of one measurement, protobuf or a dataset's JSON, as rows of CARLA's own numbers.

May know: which fields an agent has and which may be missing. Must not know: axes and units of the
result, the bytes they came in. Source: PROTOCOL 7.2 to 7.4. Both forms have the same attribute
names, so one walk serves both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
import math
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from state_sensor_ros.carla.extension import (
    AGENT_CLASSES,
    CLASS_PEDESTRIAN,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    CLASS_VEHICLE,
    LIGHT_STATES,
)
from state_sensor_ros.carla.members import Number, to_float
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.payloads import DUPLICATE, Fault, LEFT_OUT

# Which member a box came from; the older one has no transform of its own (PROTOCOL 7.2).
BOX_NAME, OLD_BOX_NAME = 'bounding_box', 'box_extent'

_MOVERS: Final = frozenset((CLASS_VEHICLE, CLASS_PEDESTRIAN))
# By name in JSON, by number in protobuf.
_LIGHTS: Final[dict[str | int, int]] = {
    **{name: i for i, name in enumerate(LIGHT_STATES)}, **{i: i for i in range(len(LIGHT_STATES))}}

# A protobuf message or a struct of members.py; their attributes have the same names.
Tree: TypeAlias = Any
# id, class, body
Agent: TypeAlias = tuple[int, int, Tree]


def agents_of_message(agents: Iterable[Tree]) -> Iterator[Agent | None]:
    """Walk the agents of a protobuf message; ``None`` for one of no known class."""
    for agent in agents:
        # The most common class first: to ask for this one takes half as long as to ask which.
        if agent.HasField('vehicle'):
            yield agent.id, CLASS_VEHICLE, agent.vehicle
            continue
        name = agent.WhichOneof('agent')
        yield None if name is None else (agent.id, AGENT_CLASSES.index(name), getattr(agent, name))


def agents_of_file(agents: Iterable[Tree]) -> Iterator[Agent | None]:
    """Walk the agents of a file of the dataset; ``None`` for one of no known class."""
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
class ActorRows:
    """Numbers of the actors one after the other, as CARLA sends them."""

    ids: list[int] = field(default_factory=list)
    classes: list[int] = field(default_factory=list)
    # x y z m, roll pitch yaw deg, forward speed m/s
    poses: list[Any] = field(default_factory=list)
    # x y z m, roll pitch yaw deg relative to the owner, half sizes xyz m
    boxes: list[Any] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    box_names: list[str] = field(default_factory=list)
    # traffic light states and speed limits with the row that they belong to
    lights: list[tuple[int, int]] = field(default_factory=list)
    limits: list[tuple[int, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def collect(player: Tree | None, agents: Iterator[Agent | None], *,
            with_boxes: bool) -> ActorRows:
    """
    Walk over the actors of a measurement, the player first.

    :param player: what is measured of the player, ``None`` where that is not there.
    :param agents: from :func:`agents_of_message` or :func:`agents_of_file`.
    :param with_boxes: whether somebody will look at the boxes.
    :returns: the numbers of the good ones, and what is wrong with the others.
    """
    rows = ActorRows()
    if player is not None:
        _add_player(rows, player, with_boxes)
    _add_agents(rows, agents, with_boxes)
    return rows


def _add_player(rows: ActorRows, player: Tree, with_boxes: bool) -> None:
    if not _add(rows, 0, CLASS_PLAYER, player, player.forward_speed):
        rows.faults.append(_left_out('playerMeasurements.transform', 'an object'))
    elif with_boxes and not _add_box(rows, player) and _has(player, 'box_extent'):
        extent = player.box_extent
        rows.owners.append(0)
        rows.box_names.append(OLD_BOX_NAME)
        rows.boxes += (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, extent.x, extent.y, extent.z)


def _left_out(where: str, expected: str) -> Fault:
    return Fault(LEFT_OUT, DecodeError(where, 'nothing', expected))


def _has(tree: Tree, name: str) -> bool:
    if isinstance(tree, Message):
        return bool(tree.HasField(name))
    return getattr(tree, name) is not None


def _add_agents(rows: ActorRows, agents: Iterator[Agent | None], with_boxes: bool) -> None:
    seen: set[tuple[int, int]] = set()
    for i, agent in enumerate(agents):
        if agent is None:
            rows.faults.append(_left_out(f'nonPlayerAgents[{i}]', ', '.join(AGENT_CLASSES[1:])))
            continue
        id_, class_, body = agent
        is_mover = class_ in _MOVERS
        if (id_, class_) in seen:
            rows.faults.append(Fault(DUPLICATE, DecodeError(
                f'nonPlayerAgents[{i}].id', f'another {AGENT_CLASSES[class_]} {id_}',
                'each id once')))
        elif class_ == CLASS_TRAFFIC_LIGHT and body.state not in _LIGHTS:
            rows.faults.append(Fault(LEFT_OUT, DecodeError(
                f'nonPlayerAgents[{i}].trafficLight.state', str(body.state),
                ', '.join(LIGHT_STATES))))
        elif not _add(rows, id_, class_, body, body.forward_speed if is_mover else math.nan):
            rows.faults.append(_left_out(
                f'nonPlayerAgents[{i}].{AGENT_CLASSES[class_]}.transform', 'an object'))
        else:
            seen.add((id_, class_))
            if is_mover:
                if with_boxes:
                    _add_box(rows, body)
            elif class_ == CLASS_TRAFFIC_LIGHT:
                rows.lights.append((len(rows.ids) - 1, _LIGHTS[body.state]))
            else:
                rows.limits.append((len(rows.ids) - 1, to_float(body.speed_limit)))


# These two and the walk take more than half of the time of a frame: 1 to 2 us an agent. An absent
# message reads as zeros, so presence, which costs as much as two numbers, is asked for only then.

def _add(rows: ActorRows, id_: int, class_: int, body: Tree, speed: Number) -> bool:
    """Add the pose of an actor; return False for one that has none."""
    transform = body.transform
    if transform is None:
        return False
    location, rotation = transform.location, transform.rotation
    x, y, z = location.x, location.y, location.z
    if not (x or y or z) and not _has(body, 'transform'):
        return False
    rows.ids.append(id_)
    rows.classes.append(class_)
    rows.poses += (x, y, z, rotation.roll, rotation.pitch, rotation.yaw, speed)
    return True


def _add_box(rows: ActorRows, body: Tree) -> bool:
    """Add the box of the actor added last; return False for one that has none."""
    box = body.bounding_box
    if box is None:
        return False
    at, extent = box.transform, box.extent
    x, y, z = extent.x, extent.y, extent.z
    if not (x or y or z) and not _has(body, 'bounding_box'):
        return False
    centre, turned = at.location, at.rotation
    rows.owners.append(len(rows.ids) - 1)
    rows.box_names.append(BOX_NAME)
    rows.boxes += (centre.x, centre.y, centre.z, turned.roll, turned.pitch, turned.yaw, x, y, z)
    return True
