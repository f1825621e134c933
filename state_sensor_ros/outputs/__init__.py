# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The topics of autonomy stacks: objects made of a frame, and each stack's messages of them.

It may import cdr/, encode/, recordings/ and the modules directly in the package; no simulator and
no rclpy. The ids and numbers of each message: doc/reference/outputs.md.
"""
