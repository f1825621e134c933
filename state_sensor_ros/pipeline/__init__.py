# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The way of a packet from a source to a sink: threads, stamps, tags, topics of actors, counters.

It may import encode/ and the modules directly in the package, and numpy; no other folder, no rclpy
and no sockets.
"""
