# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of a frame as the contract defines them, one field after the other.

Nothing here is shared with the encoder: objects of rosbags' types, scalar arithmetic.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
import math

from message_store import typestore
import numpy as np


def new(type_name, **members):
    return typestore().types[type_name](**members)


def unit(quaternion):
    norm = math.sqrt(sum(component ** 2 for component in quaternion))
    return [component / norm for component in quaternion]


def is_pose(position, quaternion):
    norm = math.sqrt(sum(component ** 2 for component in quaternion))
    return 0.9 <= norm <= 1.1 and all(math.isfinite(component) for component in position)


def into_body(quaternion, vector):
    """Rotate by the conjugate: v - 2 w (q x v) + 2 q x (q x v)."""
    x, y, z, w = quaternion
    axis = np.array((x, y, z))
    once = np.cross(axis, vector)
    return np.asarray(vector) - 2.0 * w * once + 2.0 * np.cross(axis, once)


def point(values):
    return new('geometry_msgs/msg/Point', **dict(zip('xyz', map(float, values), strict=True)))


def vector(values):
    return new('geometry_msgs/msg/Vector3', **dict(zip('xyz', map(float, values), strict=True)))


def rotation(values):
    return new('geometry_msgs/msg/Quaternion',
               **dict(zip('xyzw', map(float, values), strict=True)))


def pose(position, quaternion):
    return new('geometry_msgs/msg/Pose', position=point(position),
               orientation=rotation(quaternion))


def twist(linear, angular):
    return new('geometry_msgs/msg/Twist', linear=vector(linear), angular=vector(angular))


def diagonal(variances):
    return np.diag(variances).astype(float).ravel()


class Reference:
    """
    The messages of one frame.

    :param shown: names and ids of markers are the encoder's to choose; markers are not built.
    """

    def __init__(self, frame, actor_list, stamp_ns, settings):
        self.frame, self.actor_list, self.settings = frame, actor_list, settings
        self.stamp = new('builtin_interfaces/msg/Time', sec=stamp_ns // 10 ** 9,
                         nanosec=stamp_ns % 10 ** 9)
        self.rows = [i for i in range(len(frame.names)) if is_pose(
            frame.kinematics[i, :3], frame.kinematics[i, 3:7])]
        self.lane_of = {int(i): k for k, i in enumerate(frame.lanes.actor)}

    def header(self, frame_id):
        return new('std_msgs/msg/Header', stamp=self.stamp, frame_id=frame_id)

    def clock(self):
        return new('rosgraph_msgs/msg/Clock', clock=self.stamp)

    def tf(self):
        transforms = [self._transform(
            self.settings.global_frame, self.actor_list.actors[i].frame_id,
            self.frame.kinematics[i, :3], self.frame.kinematics[i, 3:7]) for i in self.rows]
        wheels = self.frame.wheels
        for k, i in enumerate(wheels.actor):
            quaternion = wheels.orientation_xyzw[k] if wheels.orientation_known[k] \
                else (0.0, 0.0, 0.0, 1.0)
            if i in self.rows and wheels.position_known[k] and is_pose(
                    wheels.position_xyz[k], quaternion):
                actor = self.actor_list.actors[i]
                transforms.append(self._transform(
                    actor.frame_id,
                    f'{self.settings.frame_prefix}{actor.topic_name}/wheel_{wheels.wheel[k]}',
                    wheels.position_xyz[k], quaternion))
        return new('tf2_msgs/msg/TFMessage', transforms=transforms)

    def _transform(self, parent, child, position, quaternion):
        return new('geometry_msgs/msg/TransformStamped', header=self.header(parent),
                   child_frame_id=child, transform=new(
                       'geometry_msgs/msg/Transform', translation=vector(position),
                       rotation=rotation(unit(quaternion))))

    def odometry(self, i):
        numbers = self.frame.kinematics[i]
        quaternion = unit(numbers[3:7])
        linear, angular = np.nan_to_num(numbers[7:10]), np.nan_to_num(numbers[10:13])
        unknown = np.isnan(numbers[7:13]).astype(float)
        if self.settings.twist_frame == 'child':
            linear, angular = into_body(quaternion, linear), into_body(quaternion, angular)
            unknown = np.concatenate([
                sum(share * np.abs(into_body(quaternion, axis))
                    for share, axis in zip(vector, np.eye(3), strict=True))
                for vector in unknown.reshape(2, 3)])
        twist_numbers = np.where(unknown > 0.1, 0.0, (*linear, *angular))
        variances = np.where(unknown > 0.1, 1e6, self.settings.twist_covariance_diagonal)
        return new(
            'nav_msgs/msg/Odometry', header=self.header(self.settings.global_frame),
            child_frame_id=self.actor_list.actors[i].frame_id,
            pose=new('geometry_msgs/msg/PoseWithCovariance', pose=pose(numbers[:3], quaternion),
                     covariance=diagonal(self.settings.pose_covariance_diagonal)),
            twist=new('geometry_msgs/msg/TwistWithCovariance',
                      twist=twist(twist_numbers[:3], twist_numbers[3:]),
                      covariance=diagonal(variances)))

    def lane(self, i):
        lanes, k = self.frame.lanes, self.lane_of.get(i)
        name = 'state_sensor_ros/msg/ControlState'
        if k is None:
            return new(name, lane_change_left=False, lane_change_right=False, road_id=0,
                       section_id=0, lane_id=0, s=0.0)
        return new(name, lane_change_left=bool(lanes.lane_change_left[k]),
                   lane_change_right=bool(lanes.lane_change_right[k]),
                   road_id=int(lanes.road_id[k]), section_id=int(lanes.section_id[k]),
                   lane_id=int(lanes.lane_id[k]), s=float(lanes.s[k]))

    def control_state(self, i):
        actor = self.actor_list.actors[i]
        return new('state_sensor_ros/msg/ControlStateStamped', name=actor.name,
                   header=self.header(actor.frame_id), control_state=self.lane(i))

    def control_states(self):
        return new('state_sensor_ros/msg/ControlStateArray',
                   header=self.header(self.settings.global_frame), control_states=[
                       self.control_state(i) for i in self.rows if i in self.lane_of])

    def joint_states(self, i):
        wheels = self.frame.wheels
        own = [k for k, owner in enumerate(wheels.actor)
               if owner == i and wheels.orientation_known[k]]
        spins = []
        for k in own:
            _, y, _, w = wheels.orientation_xyzw[k]
            # The same rotation with w >= 0 turns by half a turn at most.
            y, w = (-y, -w) if math.copysign(1.0, w) < 0.0 else (y, w)
            spins.append(2.0 * math.atan2(y, w))
        topic_name = self.actor_list.actors[i].topic_name
        return new('sensor_msgs/msg/JointState', header=self.header(''),
                   name=[f'{self.settings.frame_prefix}{topic_name}/wheel_{wheels.wheel[k]}'
                         for k in own],
                   position=np.array(spins), velocity=wheels.speed[own], effort=np.zeros(0))

    def state_frame(self):
        frame = self.frame
        return new('state_sensor_ros/msg/StateFrame',
                   header=self.header(self.settings.global_frame), generation=frame.generation,
                   game_time=frame.game_time, time=frame.time, sample_count=frame.sample_count,
                   actors=[self._actor_state(i) for i in range(len(frame.names))])

    def _actor_state(self, i):
        frame, actor = self.frame, self.actor_list.actors[i]
        numbers, boxes, wheels = frame.kinematics[i], frame.boxes, frame.wheels
        return new(
            'state_sensor_ros/msg/ActorState', name=actor.name, frame_id=actor.frame_id,
            id=actor.id, kind=int(frame.kinds[i]), tags=list(frame.tags[i]),
            pose=pose(numbers[:3], numbers[3:7]), twist=twist(numbers[7:10], numbers[10:13]),
            oriented_bounding_boxes=[
                new('state_sensor_ros/msg/OrientedBoundingBox', name=boxes.names[k],
                    pose=pose(boxes.position_xyz[k], boxes.orientation_xyzw[k]),
                    size=vector(boxes.size_xyz[k]), scale=vector(boxes.scale_xyz[k]))
                for k, owner in enumerate(boxes.actor) if owner == i],
            wheels=[
                new('state_sensor_ros/msg/WheelState', wheel=int(wheels.wheel[k]),
                    source_id=int(wheels.source_id[k]),
                    pose=pose(wheels.position_xyz[k], wheels.orientation_xyzw[k]),
                    position_known=bool(wheels.position_known[k]),
                    orientation_known=bool(wheels.orientation_known[k]),
                    speed=float(wheels.speed[k]))
                for k, owner in enumerate(wheels.actor) if owner == i],
            inputs=new('state_sensor_ros/msg/VehicleInputs', **dict(zip(
                ('throttle', 'brake', 'steering', 'steering_angle'),
                map(float, frame.inputs[i]), strict=True))),
            has_control_state=i in self.lane_of, control_state=self.lane(i),
            color=frame.colors[i], replay_class=frame.replay_classes[i])

    def actors(self):
        return new('state_sensor_ros/msg/ActorArray',
                   header=self.header(self.settings.global_frame), actors=[
                       new('state_sensor_ros/msg/Actor', name=actor.name,
                           topic_name=actor.topic_name, frame_id=actor.frame_id, id=actor.id,
                           kind=kind, tags=list(tags)) for actor, kind, tags in zip(
                               self.actor_list.actors, self.actor_list.kinds,
                               self.actor_list.tags, strict=True)])

    def roads(self):
        return new('state_sensor_ros/msg/RoadArray',
                   header=self.header(self.settings.global_frame), roads=[
                       new('state_sensor_ros/msg/Road', road_id=number, name=name)
                       for number, name in self.frame.lanes.road_names.items()])

    def traffic_lights(self):
        lights = self.frame.traffic_lights
        return new('state_sensor_ros/msg/TrafficLightStateArray',
                   header=self.header(self.settings.global_frame), traffic_lights=[
                       new('state_sensor_ros/msg/TrafficLightState', name=lights.names[k],
                           frame_id=self.settings.global_frame, id=int(lights.ids[k]),
                           state=int(lights.states[k]),
                           pose=pose(lights.poses[k, :3], lights.poses[k, 3:]))
                       for k in range(len(lights.names))])

    def messages(self, own=None):
        """
        Return topic name to message of all but markers.

        :param own: by kind, names of the actors whose own topic has a subscriber, None for all.
        """
        found = {'/clock': self.clock()} if self.settings.publish_clock else {}
        if self.rows:
            found['/tf'] = self.tf()
        with_lanes = [i for i in self.rows if i in self.lane_of]
        wheels = self.frame.wheels
        with_wheels = [i for i in self.rows if wheels.orientation_known[wheels.actor == i].any()]
        for kind, rows, make in (
                ('odometry', self.rows, self.odometry),
                ('control_state', with_lanes, self.control_state),
                ('joint_states', with_wheels, self.joint_states)):
            subscribed = None if own is None else own[kind]
            for i in rows:
                actor = self.actor_list.actors[i]
                if actor.has_topics and (
                        subscribed is None or actor.topic_name in subscribed):
                    found[f'~/actors/{actor.topic_name}/{kind}'] = make(i)
        if self.actor_list.i_ego in self.rows:
            found['~/ego/odometry'] = self.odometry(self.actor_list.i_ego)
        if self.actor_list.i_ego in with_lanes:
            found['~/ego/control_state'] = self.control_state(self.actor_list.i_ego)
        if with_lanes:
            found['~/control_states'] = self.control_states()
        if self.frame.lanes.road_names:
            found['~/roads'] = self.roads()
        if self.frame.traffic_lights is not None:
            found['~/traffic_lights'] = self.traffic_lights()
        found['~/frame'] = self.state_frame()
        return found


def differences(ours, theirs, where=''):
    """Return each leaf that differs, as a line; NaN equals NaN, numbers up to rounding."""
    if is_dataclass(ours):
        return [line for field in fields(ours) if field.name != '__msgtype__'
                for line in differences(getattr(ours, field.name), getattr(theirs, field.name),
                                        f'{where}.{field.name}')]
    if isinstance(ours, (list, np.ndarray)):
        if len(ours) != len(theirs):
            return [f'{where}: {len(ours)} elements, not {len(theirs)}']
        return [line for k in range(len(ours))
                for line in differences(ours[k], theirs[k], f'{where}[{k}]')]
    if isinstance(ours, float):
        same = ours == theirs or (math.isnan(ours) and math.isnan(theirs)) \
            or math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=1e-12)
    else:
        same = ours == theirs and type(ours) is type(theirs)
    return [] if same else [f'{where}: {ours!r}, not {theirs!r}']
