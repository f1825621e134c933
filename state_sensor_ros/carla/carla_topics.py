# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The simulator-specific topics of CARLA, and the encodings of its images."""

from __future__ import annotations

from typing import Final

from state_sensor_ros.carla.images import CENTRAL, DEPTH, RGB, SEGMENTATION
from state_sensor_ros.encode.static_frame import CAMERAS
from state_sensor_ros.encode.topics import Topic

STATUS: Final = 'state_sensor_ros/msg/CarlaPlayerStatus'
CONTROL: Final = 'state_sensor_ros/msg/VehicleControl'
IMAGE: Final = 'sensor_msgs/msg/Image'

_OTHER: Final = 'other'

STATUS_TOPIC: Final = Topic('~/player/status', STATUS, _OTHER)
AUTOPILOT_CONTROL_TOPIC: Final = Topic('~/player/autopilot_control', CONTROL, _OTHER)
# The applied command; the command of the expert differs in topic and origin.
CONTROL_TOPIC: Final = Topic('~/player/control', CONTROL, _OTHER)
EXPERT_CONTROL_TOPIC: Final = Topic('~/player/expert_control', CONTROL, _OTHER)
LIGHTS_TOPIC: Final = Topic(
    '~/traffic_lights', 'state_sensor_ros/msg/TrafficLightStateArray', _OTHER)
LIMITS_TOPIC: Final = Topic('~/speed_limits', 'state_sensor_ros/msg/SpeedLimitArray', _OTHER)
CLASSES_TOPIC: Final = Topic(
    '~/camera/segmentation_classes', 'state_sensor_ros/msg/SegmentationClassArray', 'latched')

LIVE_TOPICS: Final = (STATUS_TOPIC, AUTOPILOT_CONTROL_TOPIC, LIGHTS_TOPIC, LIMITS_TOPIC)

# By camera and kind; the segmentation is sent as tags and, on COLORED_TOPIC, in colours.
IMAGE_TOPICS: Final = {
    **{(camera, RGB): Topic(f'~/camera/{camera}/image', IMAGE, _OTHER) for camera in CAMERAS},
    (CENTRAL, DEPTH): Topic('~/camera/central/depth', IMAGE, _OTHER),
    (CENTRAL, SEGMENTATION): Topic('~/camera/central/segmentation', IMAGE, _OTHER)}
# Encoding of the messages of a kind, and bytes per pixel.
ENCODINGS: Final = {RGB: ('rgb8', 3), DEPTH: ('32FC1', 4), SEGMENTATION: ('mono8', 1)}
COLORED_TOPIC: Final = Topic('~/camera/central/segmentation_color', IMAGE, _OTHER)

DATASET_TOPICS: Final = (*LIVE_TOPICS, CONTROL_TOPIC, EXPERT_CONTROL_TOPIC, CLASSES_TOPIC,
                         *IMAGE_TOPICS.values(), COLORED_TOPIC)
