# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ports of this machine: one that is free, and whether a program listens on one."""

from __future__ import annotations

import socket

_REPLY_S = 1.0


def free_port(host: str) -> int:
    """
    Return a port that no program listens on; another program may take it before it is used.

    :param host: address of this machine.
    """
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def is_listening(host: str, port: int) -> bool:
    """
    Return whether a connection can be made.

    :param host: address of this machine.
    :param port: port that a program may listen on.
    """
    try:
        with socket.create_connection((host, port), _REPLY_S):
            return True
    except OSError:
        return False
