# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The frame generations v0, v1, v1t and v2: JSON members to arrays of a Frame and back.

Only computes: it imports the root's modules, and no sockets, threads or files; decoder.py uses it.
"""
