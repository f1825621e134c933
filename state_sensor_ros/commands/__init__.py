# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The sub-commands of ``state_sensor``, a module each: HELP, add_arguments, run."""
