# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""What tells the frame generations v0, v1, v1t and v2 apart; decode.py is the way in."""
