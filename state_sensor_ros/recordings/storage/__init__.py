# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Storage files of rosbag2: readers, writers and salvage of MCAP and SQLite, within size limits.

It may import errors.py and files/: no other folder, and no message type. bags/ opens these files.
"""
