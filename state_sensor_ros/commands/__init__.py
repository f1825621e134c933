# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The command ``state_sensor``: a module for each sub-command, and what several of them use.

It may import cdr/, encode/, pipeline/, recordings/, outputs/, exports/, simulators/, monodrive/,
library/, drawing/, emulator/ and the modules directly in the package; not carla/, connections/ or
ros/, and no rclpy.
"""
