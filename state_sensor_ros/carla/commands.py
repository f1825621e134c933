# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What a command to CARLA's vehicle means in the terms of every other source.

May know: the full lock of the default vehicle. Must not know: signs (rep103.py), messages.
"""

from __future__ import annotations

import numpy as np

from state_sensor_ros.carla.extension import Command
from state_sensor_ros.frame import Floats
from state_sensor_ros.rep103 import to_rep103_inputs

# Full lock of the default Mustang; that of another vehicle is not known (PROTOCOL 7.2).
FULL_LOCK_DEG = 70.0


def command_inputs(*commands: Command) -> Floats:
    """
    Convert commands as the inputs of a driver.

    :returns: (K, 4) float64: throttle, brake 0..1, steering -1..1 (+ = left), steering angle of
        the default vehicle, rad (+ = left); NaN where a command has none.
    """
    return to_rep103_inputs(np.array([
        (command.throttle, command.brake, command.steer, FULL_LOCK_DEG * command.steer)
        for command in commands]))
