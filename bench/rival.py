#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
The same driver in idiomatic ROS 2: json, message objects, publish(message).

Its outputs equal those of this package with ``frame`` and ``labels`` off and ``debug_drawing``
on: test/ros/test_rival.py compares them. It reads only v2 frames with the 16-byte header, checks
no input, and has no life cycle and no diagnostics, which makes it faster.
"""

import json
import math
import socket
import struct
import sys
import threading

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
import numpy as np
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import ColorRGBA
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

from state_sensor_ros.msg import (
    Actor,
    ActorArray,
    ControlState,
    ControlStateArray,
    ControlStateStamped,
)

COLORS = {'ego': ColorRGBA(r=214 / 255, g=51 / 255, b=108 / 255, a=0.9),
          'vehicles': ColorRGBA(r=33 / 255, g=143 / 255, b=141 / 255, a=0.8),
          'objects': ColorRGBA(r=240 / 255, g=140 / 255, b=0.0, a=0.8)}
COVARIANCE = np.diag(np.full(6, 1e-9)).ravel()
# Small, so that nearly all sent frames have been processed.
RECEIVE_BUFFER_BYTES = 256 * 1024


def rotated_back(q, v):
    """Rotate ``v`` by the inverse of the quaternion ``q`` = (x, y, z, w)."""
    x, y, z, w = q
    tx = 2.0 * (z * v[1] - y * v[2])
    ty = 2.0 * (x * v[2] - z * v[0])
    tz = 2.0 * (y * v[0] - x * v[1])
    return (v[0] + w * tx + z * ty - y * tz,
            v[1] + w * ty + x * tz - z * tx,
            v[2] + w * tz + y * tx - x * ty)


def to_rep103(q):
    """Mirror a quaternion at the xz plane and scale it to unit length."""
    x, y, z, w = -q['x'], q['y'], -q['z'], q['w']
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    return x / norm, y / norm, z / norm, w / norm


class Rival(Node):
    """Publish odometry, TF, lane states and markers of every actor."""

    def __init__(self):
        super().__init__('rival')
        self.tf = self.create_publisher(TFMessage, '/tf', 100)
        self.ego_odometry = self.create_publisher(Odometry, '~/ego/odometry', 10)
        self.ego_control_state = self.create_publisher(
            ControlStateStamped, '~/ego/control_state', 10)
        self.control_states = self.create_publisher(ControlStateArray, '~/control_states', 10)
        self.markers = self.create_publisher(MarkerArray, '~/markers', 10)
        self.actors = self.create_publisher(ActorArray, '~/actors', QoSProfile(
            depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        self.odometry, self.control_state, self.ids = {}, {}, {}
        self.published_actors, self.drawn = [], None

    def process(self, payload):
        """Publish one frame."""
        document = json.loads(payload)
        game_time = document['game_time']
        stamp = Time(sec=int(game_time), nanosec=round((game_time - int(game_time)) * 1e9))
        tf, lanes = TFMessage(), ControlStateArray()
        lanes.header.stamp, lanes.header.frame_id = stamp, 'map'
        markers, now_drawn, registry = MarkerArray(), set(), []
        if self.drawn is None:
            markers.markers.append(self.make_removal(Marker.DELETEALL, stamp))
        frame = document['frame']
        actors = [(0, {'state': state}) for state in frame['objects']]
        actors += [(1, vehicle) for vehicle in frame['vehicles']]
        for kind, entry in actors:
            state = entry['state']
            name = state['name']
            is_ego = 'ego' in state['tags']
            odometry = self.make_odometry(state, stamp)
            tf.transforms.append(self.make_transform(odometry, stamp))
            if name not in self.odometry:
                self.ids[name] = len(self.ids) + 1
                self.odometry[name] = self.create_publisher(
                    Odometry, f'~/actors/{name}/odometry', 10)
            self.odometry[name].publish(odometry)
            if is_ego:
                self.ego_odometry.publish(odometry)
            if 'control_state' in entry:
                control_state = self.make_control_state(name, entry['control_state'], stamp)
                lanes.control_states.append(control_state)
                if name not in self.control_state:
                    self.control_state[name] = self.create_publisher(
                        ControlStateStamped, f'~/actors/{name}/control_state', 10)
                self.control_state[name].publish(control_state)
                if is_ego:
                    self.ego_control_state.publish(control_state)
            namespace = 'ego' if is_ego else 'vehicles' if kind else 'objects'
            for i_box, box in enumerate(state['oriented_bounding_box']):
                marker = self.make_marker(box, namespace, self.ids[name] * 16 + i_box, stamp)
                markers.markers.append(marker)
                now_drawn.add((marker.ns, marker.id))
            registry.append((name, kind, tuple(state['tags'])))
        for namespace, marker_id in (self.drawn or set()) - now_drawn:
            markers.markers.append(
                self.make_removal(Marker.DELETE, stamp, ns=namespace, id=marker_id))
        self.drawn = now_drawn
        self.tf.publish(tf)
        if lanes.control_states:
            self.control_states.publish(lanes)
        self.markers.publish(markers)
        if registry != self.published_actors:
            self.published_actors = registry
            self.publish_actors(stamp)

    def make_odometry(self, state, stamp):
        """Convert a state to REP-103, with the twist in the child frame."""
        source = state['odometry']
        p, orientation = source['pose']['position'], to_rep103(source['pose']['orientation'])
        v, r = source['linear_velocity'], source['angular_velocity']
        linear = rotated_back(orientation, (v['x'] / 100, -v['y'] / 100, v['z'] / 100))
        angular = rotated_back(
            orientation, (-(r['x'] or 0.0), r['y'] or 0.0, -(r['z'] or 0.0)))
        # An unknown number is 0 with a large variance.
        unknown = [number is None for number in (*v.values(), *r.values())]
        message = Odometry()
        message.header.stamp, message.header.frame_id = stamp, 'map'
        message.child_frame_id = state['name']
        pose = message.pose.pose
        pose.position.x, pose.position.y, pose.position.z = \
            p['x'] / 100, -p['y'] / 100, p['z'] / 100
        pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w = \
            orientation
        twist = message.twist.twist
        twist.linear.x, twist.linear.y, twist.linear.z = linear
        twist.angular.x, twist.angular.y, twist.angular.z = angular
        message.pose.covariance = message.twist.covariance = COVARIANCE
        if any(unknown):
            message.twist.covariance = np.diag(np.where(unknown, 1e6, 1e-9)).ravel()
        return message

    def make_transform(self, odometry, stamp):
        """Return the pose of an odometry as a transform."""
        transform = TransformStamped()
        transform.header.stamp, transform.header.frame_id = stamp, 'map'
        transform.child_frame_id = odometry.child_frame_id
        position = odometry.pose.pose.position
        translation = transform.transform.translation
        translation.x, translation.y, translation.z = position.x, position.y, position.z
        transform.transform.rotation = odometry.pose.pose.orientation
        return transform

    def make_control_state(self, name, source, stamp):
        """Convert a lane state."""
        message = ControlStateStamped(name=name)
        message.header.stamp, message.header.frame_id = stamp, name
        message.control_state = ControlState(
            lane_change_left=source['lane_change_left'],
            lane_change_right=source['lane_change_right'], road_id=source['road_id'],
            section_id=source['section_id'], lane_id=source['lane_id'], s=source['s'] / 100)
        return message

    def make_marker(self, box, namespace, marker_id, stamp):
        """Return the marker of an oriented box."""
        marker = Marker(ns=namespace, id=marker_id, type=Marker.CUBE, action=Marker.ADD)
        marker.header.stamp, marker.header.frame_id = stamp, 'map'
        c, e, s = box['center'], box['extents'], box['scale']
        position, orientation = marker.pose.position, marker.pose.orientation
        position.x, position.y, position.z = c['x'] / 100, -c['y'] / 100, c['z'] / 100
        orientation.x, orientation.y, orientation.z, orientation.w = \
            to_rep103(box['orientation'])
        marker.scale.x, marker.scale.y, marker.scale.z = \
            e['x'] / 100 * s['x'], e['y'] / 100 * s['y'], e['z'] / 100 * s['z']
        marker.color = COLORS[namespace]
        return marker

    def make_removal(self, action, stamp, **which):
        """Return the marker that deletes one marker, or all."""
        marker = Marker(action=action, **which)
        marker.header.stamp, marker.header.frame_id = stamp, 'map'
        return marker

    def publish_actors(self, stamp):
        """Publish the list of actors."""
        message = ActorArray()
        message.header.stamp, message.header.frame_id = stamp, 'map'
        for name, kind, tags in self.published_actors:
            message.actors.append(Actor(name=name, topic_name=name, frame_id=name, kind=kind,
                                        id=self.ids[name], tags=list(tags)))
        self.actors.publish(message)


def receive(node, host, port):
    """Read packets and publish them until the connection ends."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        connection.connect((host, port))
        stream = connection.makefile('rb')
        while header := stream.read(16):
            (length,) = struct.unpack('>I', header[:4])
            node.process(stream.read(length - 16))
    rclpy.try_shutdown()


def main():
    """Run until the connection ends."""
    rclpy.init()
    node = Rival()
    host, port = sys.argv[1], int(sys.argv[2])
    thread = threading.Thread(target=receive, args=(node, host, port), daemon=True)
    thread.start()
    try:
        rclpy.spin(node)
    except ExternalShutdownException:
        thread.join()


if __name__ == '__main__':
    main()
