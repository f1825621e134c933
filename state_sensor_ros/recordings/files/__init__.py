# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Files and folders of any content: outputs that appear whole or not at all, and special files.

It may import errors.py only: no other folder, and no file format.
"""
