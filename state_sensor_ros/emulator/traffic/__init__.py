# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Synthetic traffic on a winding road, as frames of the State sensor; imports no server."""
