# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The needs of a reader that uses no optional part of a frame."""

from state_sensor_ros.frame import Needs

ESSENTIALS = Needs(boxes=False, wheels=False, inputs=False, appearance=False, lanes=False)
