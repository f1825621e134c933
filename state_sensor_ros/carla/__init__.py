# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
CARLA 0.8 measurements and the imitation-learning dataset as the same frames as everything else.

May know: CARLA's messages, member names, units. Must not know: monoDrive's keys, sockets, ROS.
Source: PROTOCOL 7.
"""
