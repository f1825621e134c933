# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The simulator-specific topics of CARLA, and the encodings of its images."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
import re
from typing import Final

from state_sensor_ros.simulators.carla.sensors import DEPTH, POINTS, RGB, SEGMENTATION, Sensor
from state_sensor_ros.simulators.own_topics import LATCHED, Topic

STATUS: Final = 'state_sensor_ros/msg/CarlaPlayerStatus'
CONTROL: Final = 'state_sensor_ros/msg/VehicleControl'
IMAGE: Final = 'sensor_msgs/msg/Image'
CAMERA_INFO: Final = 'sensor_msgs/msg/CameraInfo'
POINT_CLOUD: Final = 'sensor_msgs/msg/PointCloud2'

STATUS_TOPIC: Final = Topic('~/player/status', STATUS)
AUTOPILOT_CONTROL_TOPIC: Final = Topic('~/player/autopilot_control', CONTROL)
# The applied command; the command of the expert differs in topic and origin.
CONTROL_TOPIC: Final = Topic('~/player/control', CONTROL)
EXPERT_CONTROL_TOPIC: Final = Topic('~/player/expert_control', CONTROL)
LIGHTS_TOPIC: Final = Topic(
    '~/traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray')
LIMITS_TOPIC: Final = Topic('~/speed_limits', 'state_sensor_ros/msg/SpeedLimitArray')
CLASSES_TOPIC: Final = Topic(
    '~/camera/segmentation_classes', 'state_sensor_ros/msg/SegmentationClassArray', LATCHED)

# Encoding of the messages of a kind, and bytes per pixel.
ENCODINGS: Final = {RGB: ('rgb8', 3), DEPTH: ('32FC1', 4), SEGMENTATION: ('mono8', 1)}
# Last token of the topic of a kind.
_TOKENS: Final = {RGB: 'image', DEPTH: 'depth', SEGMENTATION: 'segmentation'}
_KINDS: Final = {token: kind for kind, token in _TOKENS.items()}
_INFO: Final = 'camera_info'
_IMAGE_TOPIC: Final = re.compile(
    rf'camera/(?P<camera>[a-z0-9_]+)/(?P<token>{"|".join(_KINDS)})')
_POINTS_TOPIC: Final = re.compile(r'lidar/(?P<lidar>[a-z0-9_]+)/points')


@cache
def image_topic(camera: str, kind: str) -> Topic:
    return Topic(f'~/camera/{camera}/{_TOKENS[kind]}', IMAGE)


@cache
def colored_topic(camera: str) -> Topic:
    """Return the topic of the segmentation of ``camera``, a name in topics, in colors."""
    return Topic(f'~/camera/{camera}/segmentation_color', IMAGE)


@cache
def info_topic(camera: str) -> Topic:
    """Return the topic of the intrinsics of ``camera``, a name in topics."""
    return Topic(f'~/camera/{camera}/{_INFO}', CAMERA_INFO)


@cache
def points_topic(lidar: str) -> Topic:
    """Return the topic of the points of ``lidar``, a name in topics."""
    return Topic(f'~/lidar/{lidar}/points', POINT_CLOUD)


def sensor_topics(sensors: Iterable[Sensor]) -> tuple[Topic, ...]:
    """Return the topics of sensors, and that of the legend if there is a segmentation."""
    topics: dict[Topic, None] = {}
    for sensor in sensors:
        if sensor.kind == POINTS:
            topics[points_topic(sensor.name)] = None
            continue
        topics[image_topic(sensor.name, sensor.kind)] = None
        topics[info_topic(sensor.name)] = None
        if sensor.kind == SEGMENTATION:
            topics[colored_topic(sensor.name)] = topics[CLASSES_TOPIC] = None
    return tuple(topics)


def sensor_of_topic(name: str, type_name: str) -> Sensor | None:
    """Return the sensor that a topic is of."""
    # type_name: ``package/msg/Name``.
    # Returns None for another topic, such as that of intrinsics or of colors.
    if type_name == POINT_CLOUD and (match := _POINTS_TOPIC.fullmatch(name)):
        return Sensor(match['lidar'], POINTS)
    if type_name == IMAGE and (match := _IMAGE_TOPIC.fullmatch(name)):
        return Sensor(match['camera'], _KINDS[match['token']])
    return None
