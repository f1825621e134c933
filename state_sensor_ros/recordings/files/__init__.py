# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Outputs that appear whole or not at all, also compressed; the check that an input opens at once.

It may import errors.py only: no other folder, and no file format.
"""
