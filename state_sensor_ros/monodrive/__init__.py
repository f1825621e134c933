# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Everything about monoDrive: sensor and control connections, frame generations, trajectory files.

It may import pipeline/, connections/, recordings/, simulators/, emulator/ and the modules directly
in the package, but no other simulator, no message encoding and no rclpy.
"""
