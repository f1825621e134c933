# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ego for Autoware: motion of base_link, vehicle status, and the free space around it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table
from state_sensor_ros.control.ego_commands import ControlParameters
from state_sensor_ros.frame import Floats, Frame, speed_along
from state_sensor_ros.jumps import possible
from state_sensor_ros.objects.object_maker import MAX_GAP_S
from state_sensor_ros.rotations import global_from_unit, motion_in_axes
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics import encoding, tables
from state_sensor_ros.topics.actors import ODOMETRY
from state_sensor_ros.topics.tables import diagonal, Fields, header, slots, STAMP_FIELD
from state_sensor_ros.topics.topic import stack_topic, Topic
from state_sensor_ros.topics.transforms import BASE_LINK, BaseLink, move_by

# Of base_link: position and orientation; velocities and their changes in its own axes, with their
# variances; speeds forward and left, heading rate (float32); angle of the tires (float32).
EGO_POSE = Table('ego pose', np.float64, 7)
EGO_TWIST = Table('ego twist', np.float64, 6)
EGO_ACCELERATION = Table('ego acceleration', np.float64, 6)
EGO_TWIST_VARIANCE = Table('ego twist variance', np.float64, 6)
EGO_ACCELERATION_VARIANCE = Table('ego acceleration variance', np.float64, 6)
EGO_SPEEDS = Table('ego speeds', np.float32, 3)
TIRE_ANGLE = Table('ego tire angle', np.float32, 1)
# Of the corner of the grid with the smallest x and y.
GRID_ORIGIN = Table('grid origin', np.float64, 3)

KINEMATIC_STATE_TOPIC: Final = stack_topic('/localization/kinematic_state', ODOMETRY)
ACCELERATION_TOPIC: Final = stack_topic(
    '/localization/acceleration', 'geometry_msgs/msg/AccelWithCovarianceStamped')
VELOCITY_TOPIC, STEERING_TOPIC, GEAR_TOPIC, MODE_TOPIC, TURN_TOPIC, HAZARD_TOPIC = (
    stack_topic(f'/vehicle/status/{name}', f'autoware_vehicle_msgs/msg/{kind}Report')
    for name, kind in (
        ('velocity_status', 'Velocity'), ('steering_status', 'Steering'), ('gear_status', 'Gear'),
        ('control_mode', 'ControlMode'), ('turn_indicators_status', 'TurnIndicators'),
        ('hazard_lights_status', 'HazardLights')))
CLOUD_TOPIC: Final = stack_topic(
    '/perception/obstacle_segmentation/pointcloud', 'sensor_msgs/msg/PointCloud2')
GRID_TOPIC: Final = stack_topic(
    '/perception/occupancy_grid_map/map', 'nav_msgs/msg/OccupancyGrid')

_STEERING_ANGLE = 3
# m/s; below it, a small error of the yaw rate is a large one of the angle.
_MOVING = 1.0
_FRONT = frames.FRONT_LEFT, frames.FRONT_RIGHT
# Constants of autoware_vehicle_msgs; 0 is unknown in each report.
_UNKNOWN, _DRIVE, _REVERSE, _PARK = 0, 2, 20, 22
_AUTONOMOUS, _MANUAL = 1, 4
# Turn indicators and hazard lights.
_INDICATORS = {frames.INDICATORS_OFF: (1, 1), frames.INDICATORS_LEFT: (2, 1),
               frames.INDICATORS_RIGHT: (3, 1), frames.INDICATORS_BOTH: (1, 2)}
_UNINITIALIZED, _INITIALIZED = 1, 3
_FLOAT32, _FLOAT32_BYTES = 7, 4
# Side of the grid, cells; size of a cell, m.
_N_CELLS, _CELL_M = 200, 0.5


class AutowareEgoEncoder(encoding.TopicEncoder):
    """
    One message for each topic of the ego.

    The axes of base_link are those of the ego, its origin is that of :class:`BaseLink`. Gear and
    mode are those of the last command that was sent: the sources have neither. Obstacles are in
    the objects alone: the cloud is empty, and the grid around base_link is free.
    """

    topics = (KINEMATIC_STATE_TOPIC, ACCELERATION_TOPIC, VELOCITY_TOPIC, STEERING_TOPIC,
              CLOUD_TOPIC, GRID_TOPIC, GEAR_TOPIC, MODE_TOPIC, TURN_TOPIC, HAZARD_TOPIC)
    has_details = True

    def set_up(self, settings: Settings) -> None:
        self._base_link = BaseLink(settings, self._report)
        self._templates = {topic: self.message(topic.type_name, fields)
                           for topic, fields in _prototypes(settings).items()}
        self._last: tuple[float, Floats] | None = None
        self._tire_angle = math.nan
        self._wheelbase = settings.of(ControlParameters).wheelbase

    def restart(self) -> None:
        """Start a new run of the simulator: the next frame has no acceleration."""
        self._last = None

    def key(self, now: encoding.FrameToSend) -> dict[Topic, int]:
        """Return the topics that have a message, and the value of those of reports."""
        frame, i_ego, command = now.frame, now.actor_list.i_ego, now.last_command()
        if i_ego < 0 or not now.usable[i_ego]:
            self._last = None
            return {}
        gear, mode = _UNKNOWN, _MANUAL
        if command is not None:
            gear = _PARK if command.is_parked else _REVERSE if command.is_reverse else _DRIVE
            mode = _AUTONOMOUS
        lit = frames.INDICATORS_UNKNOWN if frame.indicators is None else frame.indicators[i_ego]
        turn, hazard = _INDICATORS.get(int(lit), (_UNKNOWN, _UNKNOWN))
        self._tire_angle = self._steering(now)
        return {KINEMATIC_STATE_TOPIC: 0, ACCELERATION_TOPIC: 0, CLOUD_TOPIC: 0, GRID_TOPIC: 0,
                GEAR_TOPIC: gear, MODE_TOPIC: mode, TURN_TOPIC: turn, HAZARD_TOPIC: hazard,
                # Their messages cannot say that their number is unknown.
                **{topic: 0 for topic, number in (
                    (STEERING_TOPIC, self._tire_angle), (VELOCITY_TOPIC, _speed(frame, i_ego)))
                    if math.isfinite(number)}}

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the messages; there is none without an ego that has a pose."""
        found = self.key(now)
        topics = [topic for topic in self.topics
                  if topic in found and now.subscriptions.has(topic)]
        return encoding.MessageBlock([
            MessageInstance(self._templates[topic], {'report': found[topic]})
            for topic in topics], {}, topics) if topics else None

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Compute the state of base_link."""
        settings, frame, i_ego = now.settings, now.frame, now.actor_list.i_ego
        forward_speed = frame.forward_speed
        row = frame.kinematics[i_ego].copy()
        row[3:7] /= np.sqrt(row[3:7] @ row[3:7])
        # From the axes of base_link to those of the global frame.
        axes = global_from_unit(row[None, 3:7])[0]
        if forward_speed is not None:
            row[7:10] = forward_speed[i_ego] * axes[:, 0]
        move_by(row, axes @ self._base_link.offset(frame, i_ego))
        velocities = motion_in_axes(row[None, 7:], axes[None])
        changes = self._accelerations(frame.game_time, row[7:])
        if frame.accelerations is not None and np.isfinite(frame.accelerations[i_ego]).all():
            changes[:3] = frame.accelerations[i_ego]
        accelerations = motion_in_axes(changes[None], axes[None])
        if forward_speed is not None:
            velocities[0, 1:3] = accelerations[0, 1:3] = math.nan
        numbers |= {EGO_POSE: row[None, :7], EGO_SPEEDS: velocities[:, (0, 1, 5)],
                    TIRE_ANGLE: np.array([[self._tire_angle]]),
                    GRID_ORIGIN: row[None, :3] - (*[_N_CELLS * _CELL_M / 2.0] * 2, 0.0)}
        for table, of_variances, motion in (
                (EGO_TWIST, EGO_TWIST_VARIANCE, velocities),
                (EGO_ACCELERATION, EGO_ACCELERATION_VARIANCE, accelerations)):
            numbers[table], numbers[of_variances] = tables.with_variances(
                motion, settings.twist_covariance_diagonal)

    def _accelerations(self, game_time: float, twist_now: Floats) -> Floats:
        """Return (6,) change of the twist since the last frame, global axes; NaN without one."""
        last, self._last = self._last, (game_time, twist_now)
        if last is None or not 0.0 < game_time - last[0] <= MAX_GAP_S:
            return np.full(6, np.nan)
        accelerations: Floats = (twist_now - last[1]) / (game_time - last[0])
        return possible(accelerations)

    def _steering(self, now: encoding.FrameToSend) -> float:
        """Return the angle of the ego's tires, rad, + = left; NaN if it is unknown."""
        frame, i_ego, command = now.frame, now.actor_list.i_ego, now.last_command()
        measured = _measured_tire_angle(frame, i_ego)
        if math.isfinite(measured):
            return measured
        if command is not None:
            return command.steering_angle
        if not abs(speed := speed_along(frame, i_ego)) >= _MOVING:
            # A stack waits for an angle before its first command, whose steering begins at 0.
            return 0.0 if now.settings.control_input else math.nan
        # The yaw rate of a bicycle whose rear wheel does not slip.
        return math.atan(self._wheelbase * frame.angular_velocity_xyz[i_ego, 2] / speed)


def _speed(frame: Frame, i_ego: int) -> float:
    """Return a number that is finite if the speed of the ego is known."""
    return float(frame.velocity_xyz[i_ego].sum() if frame.forward_speed is None
                 else frame.forward_speed[i_ego])


def _measured_tire_angle(frame: Frame, i_ego: int) -> float:
    """Return the angle of the ego's tires: as measured, else the mean of its front wheels."""
    # Returns rad, + = left; NaN where neither is known.
    if frame.inputs is not None:
        measured = float(frame.inputs[i_ego, _STEERING_ANGLE])
        if math.isfinite(measured):
            return measured
    wheels = frame.wheels
    if wheels is None:
        return math.nan
    angles = []
    for row in wheels.rows_of(i_ego):
        if wheels.orientation_known[row] and int(wheels.wheel[row]) in _FRONT:
            # Steering about z, then spin about y (doc/protocol/units.md#wheel-rotation).
            x, y, z, w = wheels.orientation_xyzw[row].tolist()
            angles.append(2.0 * math.atan2(z * w - x * y, w * w + y * y))
    return sum(angles) / len(angles) if angles else math.nan


def _prototypes(settings: Settings) -> dict[Topic, Fields]:
    frame_id = settings.ego_frame or BASE_LINK
    own = header(frame_id)
    return {
        KINEMATIC_STATE_TOPIC: {
            'header': header(settings.global_frame), 'child_frame_id': frame_id,
            'pose': {'pose': tables.pose(EGO_POSE),
                     'covariance': diagonal(settings.pose_covariance_diagonal)},
            'twist': {'twist': tables.twist(EGO_TWIST, 0),
                      'covariance': diagonal(slots(EGO_TWIST_VARIANCE))}},
        ACCELERATION_TOPIC: {
            'header': own, 'accel': {'accel': tables.twist(EGO_ACCELERATION, 0),
                                     'covariance': diagonal(slots(EGO_ACCELERATION_VARIANCE))}},
        VELOCITY_TOPIC: {
            'header': own, **{name: Slot(EGO_SPEEDS, i) for i, name in enumerate(
                ('longitudinal_velocity', 'lateral_velocity', 'heading_rate'))}},
        STEERING_TOPIC: {'stamp': STAMP_FIELD, 'steering_tire_angle': Slot(TIRE_ANGLE, 0)},
        CLOUD_TOPIC: {
            'header': own, 'height': 1, 'point_step': 3 * _FLOAT32_BYTES, 'is_dense': True,
            'fields': [{'name': axis, 'offset': i * _FLOAT32_BYTES, 'datatype': _FLOAT32,
                        'count': 1} for i, axis in enumerate('xyz')]},
        GRID_TOPIC: {
            'header': header(settings.global_frame), 'data': bytes(_N_CELLS ** 2), 'info': {
                'map_load_time': STAMP_FIELD, 'resolution': _CELL_M, 'width': _N_CELLS,
                'height': _N_CELLS, 'origin': {'position': tables.xyz(GRID_ORIGIN, 0),
                                               'orientation': {'w': 1.0}}}},
        **{topic: {'stamp': STAMP_FIELD, field: Given('report')} for topic, field in (
            (GEAR_TOPIC, 'report'), (MODE_TOPIC, 'mode'), (TURN_TOPIC, 'report'),
            (HAZARD_TOPIC, 'report'))}}


class InitializationEncoder(encoding.ChangeEncoder):
    """The state of localization when it changes: it is initialized while there is an ego."""

    topics = (stack_topic('/localization/initialization_state',
                          'autoware_adapi_v1_msgs/msg/LocalizationInitializationState',
                          latched=True),)

    def prototype(self, settings: Settings) -> Fields:
        return {'stamp': STAMP_FIELD, 'state': Given('state')}

    def state(self, now: encoding.FrameToSend) -> int:
        """Return the constant of the message."""
        i_ego = now.actor_list.i_ego
        return _INITIALIZED if i_ego >= 0 and now.usable[i_ego] else _UNINITIALIZED
