# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Definitions of ROS messages, templates compiled from them, and buffers of serialised messages.

It may import the modules directly in the package, numpy and rosbags; no other folder and no rclpy.
"""
