# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Which ROS domains are in use on this machine: their ports are those of RTPS 9.6.1."""

from __future__ import annotations

import socket

# The ports of higher ids overlap with the ephemeral ports of Linux.
MAX_DOMAIN = 101
_N_PARTICIPANTS = 5


def claim(domain: int) -> socket.socket | None:
    """
    Reserve ``domain`` among tests and demonstrations on this machine, before a node is in it.

    :returns: what holds the reservation until it is closed or the process ends, or ``None`` if
        another process has it.
    """
    holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        # In the abstract name space of Linux: no file is left behind.
        holder.bind(f'\0state_sensor_ros domain {domain}')
    except OSError:
        holder.close()
        return None
    return holder


def is_empty(domain: int) -> bool:
    """Return whether the ports of the first participants of ``domain`` are free."""
    for participant in range(_N_PARTICIPANTS):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(('', 7400 + 250 * domain + 10 + 2 * participant))
            except OSError:
                return False
    return True
