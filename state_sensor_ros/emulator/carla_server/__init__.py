# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A server of the CARLA 0.8 protocol with a small town of its own; imports no other server."""
