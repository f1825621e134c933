# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Runs ``state_sensor`` as ``python -m state_sensor_ros``."""
import sys

from state_sensor_ros.commands.command_line import main

if __name__ == '__main__':
    sys.exit(main())
