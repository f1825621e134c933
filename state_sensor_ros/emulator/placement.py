# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Completes frames that a client sends to place actors: only names, tags and poses are needed.

May know: the forms that the simulator's reader accepts. Must not: clocks, sockets.
Source of truth: PROTOCOL 4.4, 4.9 and 6; rotators: yaw right, pitch up, roll lowers the right.
"""

from __future__ import annotations

import math

import numpy as np

from state_sensor_ros.emulator.motion import multiply_xyzw
from state_sensor_ros.emulator.selection import is_actor


def _is_rotator(value: object) -> bool:
    return isinstance(value, dict) and 'w' not in value and all(
        isinstance(value.get(key), (int, float)) for key in ('yaw', 'pitch', 'roll'))


def quaternion_of_rotator(yaw_deg: float, pitch_deg: float, roll_deg: float) -> list[float]:
    """
    Turn a rotator into a quaternion.

    :param yaw_deg: to the right.
    :param pitch_deg: nose up.
    :param roll_deg: right side down.
    :returns: x y z w, left-handed axes like the rotator's.
    """
    turns = ((2, yaw_deg), (1, -pitch_deg), (0, -roll_deg))
    product = np.array([0.0, 0.0, 0.0, 1.0])
    for axis, degrees in turns:
        half = math.radians(degrees) / 2
        turn = np.zeros(4)
        turn[axis], turn[3] = math.sin(half), math.cos(half)
        product = multiply_xyzw(product, turn)
    return [float(value) for value in product]


def _flat(actor: object) -> object:
    """Complete an actor of v0 or v1: arrays."""
    if not isinstance(actor, dict):
        return actor
    actor = {'velocity': [0.0, 0.0, 0.0], 'angular_velocity': [0.0, 0.0, 0.0], **actor}
    rotator = actor.get('orientation')
    if isinstance(rotator, dict) and _is_rotator(rotator):
        actor['orientation'] = quaternion_of_rotator(
            rotator['yaw'], rotator['pitch'], rotator['roll'])
    return actor


def _state(state: object) -> object:
    """Complete an actor state of v2: objects."""
    if not isinstance(state, dict) or not isinstance(state.get('odometry'), dict):
        return state
    still = {'x': 0.0, 'y': 0.0, 'z': 0.0}
    odometry = {'angular_velocity': still, 'linear_velocity': still, **state['odometry']}
    pose = odometry.get('pose')
    rotator = pose.get('orientation') if isinstance(pose, dict) else None
    if isinstance(pose, dict) and isinstance(rotator, dict) and _is_rotator(rotator):
        x, y, z, w = quaternion_of_rotator(rotator['yaw'], rotator['pitch'], rotator['roll'])
        odometry['pose'] = {**pose, 'orientation': {'w': w, 'x': x, 'y': y, 'z': z}}
    return {'oriented_bounding_box': [], **state, 'odometry': odometry}


def _vehicle(vehicle: object) -> object:
    if not isinstance(vehicle, dict) or 'state' not in vehicle:
        return _state(vehicle)
    return {'wheels': [], **vehicle, 'state': _state(vehicle['state'])}


def placed(members: dict[str, object]) -> dict[str, object]:
    """
    Complete a frame with what the sensor always sends.

    :param members: a frame of any generation, left as it is.
    :returns: the frame with velocities, lists that may be empty, and quaternions.
    """
    frame = members.get('frame')
    if isinstance(frame, list):
        return {**members, 'frame': [_flat(actor) for actor in frame]}
    if not isinstance(frame, dict):
        return {key: _flat(value) if is_actor(value) else value
                for key, value in members.items()}
    groups: dict[str, object] = {'objects': [], 'vehicles': [], **frame}
    for key, value in groups.items():
        if isinstance(value, list):
            groups[key] = [_vehicle(actor) for actor in value]
    return {**members, 'frame': groups}
