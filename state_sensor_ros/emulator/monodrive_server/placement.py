# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Completion of frames by which a client places actors: names, tags and poses are sufficient.

An orientation may be a rotator in degrees: yaw right, pitch up, roll lowers the right side.
"""

from __future__ import annotations

from state_sensor_ros.emulator.frame_values import quaternion_of_rotator
from state_sensor_ros.emulator.monodrive_server.emulated_frame import is_actor
from state_sensor_ros.emulator.monodrive_server.packet_bytes import LARGEST_FLOAT32


def completed(members: dict[str, object]) -> dict[str, object]:
    """
    Add the members that a sensor always sends to a frame that places actors.

    :param members: the members of a frame of any generation; not modified.
    :returns: the members with velocities of 0, empty lists for missing ones, and quaternions.
    """
    frame = members.get('frame')
    if isinstance(frame, list):
        return {**members, 'frame': [_complete_flat(actor) for actor in frame]}
    if not isinstance(frame, dict):
        return {key: _complete_flat(value) if is_actor(value) else value
                for key, value in members.items()}
    groups: dict[str, object] = {'objects': [], 'vehicles': [], **frame}
    for key, value in groups.items():
        if isinstance(value, list):
            groups[key] = [_complete_nested(actor) for actor in value]
    return {**members, 'frame': groups}


def _complete_flat(actor: object) -> object:
    """Complete an actor of v0 or v1: vectors are arrays."""
    if not isinstance(actor, dict):
        return actor
    actor = {'velocity': [0.0, 0.0, 0.0], 'angular_velocity': [0.0, 0.0, 0.0], **actor}
    if (quaternion := _rotator_quaternion(actor.get('orientation'))) is not None:
        actor['orientation'] = quaternion
    return actor


def _complete_nested(actor: object) -> object:
    """Complete an actor of v2: a vehicle with a state, or the state itself."""
    if not isinstance(actor, dict) or 'state' not in actor:
        return _complete_state(actor)
    return {'wheels': [], **actor, 'state': _complete_state(actor['state'])}


def _complete_state(state: object) -> object:
    """Complete a state of v2: vectors are objects."""
    if not isinstance(state, dict) or not isinstance(state.get('odometry'), dict):
        return state
    still = {'x': 0.0, 'y': 0.0, 'z': 0.0}
    odometry = {'angular_velocity': still, 'linear_velocity': still, **state['odometry']}
    pose = odometry.get('pose')
    if isinstance(pose, dict) and (
            quaternion := _rotator_quaternion(pose.get('orientation'))) is not None:
        x, y, z, w = quaternion
        odometry['pose'] = {**pose, 'orientation': {'w': w, 'x': x, 'y': y, 'z': z}}
    return {'oriented_bounding_box': [], **state, 'odometry': odometry}


def _rotator_quaternion(orientation: object) -> list[float] | None:
    """Return the quaternion x y z w of a rotator, or None for anything else."""
    if not isinstance(orientation, dict) or 'w' in orientation:
        return None
    angles = [float(angle) for key in ('yaw', 'pitch', 'roll')
              if isinstance(angle := orientation.get(key), (int, float))
              and abs(angle) <= LARGEST_FLOAT32]
    return quaternion_of_rotator(*angles) if len(angles) == 3 else None
