# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The stand-in simulator: synthetic traffic and a server of the State sensor's wire protocol.

May know: sockets, JSON, the simulator's own units (cm, left-handed axes, y to the right).
Must not: import anything of the receiving side but the exceptions.
"""
