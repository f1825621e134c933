# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
TCP: host lookup, connecting, waiting with a time-out, a packet source that reconnects, a relay.

Only this folder and the emulator import ``socket``. It may import pipeline/ and the
modules directly in the package, but no simulator, no recordings/ and no rclpy.
"""
