# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The stand-in simulators: synthetic traffic, a monoDrive server and a CARLA 0.8 server.

It may import `errors`, `share` and `carla.schema` of the package only: the protocols are read
twice, independently, so that an error in one reading shows as a difference.
"""
