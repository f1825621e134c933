# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Servers of CARLA 0.8 and the imitation-learning dataset as one of the simulators.

It may import cdr/, encode/, pipeline/, connections/, recordings/, simulators/, emulator/ and the
modules directly in the package; no monodrive/, sockets or rclpy. Formats: doc/protocol/carla.md.
"""
