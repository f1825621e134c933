# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The driver as a ROS node: its program, life cycle, parameters, topics, diagnostics and services.

It may import rclpy and messages of ROS, as no other folder may, and of the package cdr/, encode/,
pipeline/, recordings/, outputs/, simulators/ and the modules directly in it.
"""
