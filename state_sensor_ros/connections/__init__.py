# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
TCP clients: host lookup, connecting, waiting with a time-out, and a reconnecting packet source.

Only this folder and the emulator import ``socket``. It may import the root's modules and
``pipeline``, but no simulator, no ``recordings`` and no ROS.
"""
