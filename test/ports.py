# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ports that are closed until the test opens them, also with other tests running."""

from collections import deque
import os
import socket

# Linux gives the ports below this to sockets that name none.
_FIRST, _LAST = 61000, 65535
_N_PORTS = _LAST - _FIRST + 1
_next = os.getpid() * 97
# The same ports of the other protocol, which reserve them among the processes of tests: the last
# ones, which is more than a test uses.
_reserved = deque()
_MAX_RESERVED = 64


def free_port():
    """Return a TCP port of 127.0.0.1 that is closed and reserved for this process."""
    return _free_port(socket.SOCK_STREAM, socket.SOCK_DGRAM)


def free_udp_port():
    """Return a UDP port of 127.0.0.1 that is closed and reserved for this process."""
    return _free_port(socket.SOCK_DGRAM, socket.SOCK_STREAM)


def _free_port(kind, other_kind):
    global _next
    for _ in range(_N_PORTS):
        address = '127.0.0.1', _FIRST + _next % _N_PORTS
        _next += 1
        holder = socket.socket(socket.AF_INET, other_kind)
        try:
            holder.bind(address)
            with socket.socket(socket.AF_INET, kind) as tried:
                if kind == socket.SOCK_STREAM:
                    # As servers do: the last connections of one before do not count.
                    tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                tried.bind(address)
                if kind == socket.SOCK_STREAM:
                    tried.listen()
        except OSError:
            holder.close()
            continue
        _reserved.append(holder)
        if len(_reserved) > _MAX_RESERVED:
            _reserved.popleft().close()
        return address[1]
    raise RuntimeError(f'found no free port from {_FIRST} to {_LAST}')


def free_ports(number):
    """Return the first of so many consecutive ports as of :func:`free_port`."""
    for _ in range(_N_PORTS):
        ports = [free_port() for _ in range(number)]
        if ports == list(range(ports[0], ports[0] + number)):
            return ports[0]
    raise RuntimeError(f'found no {number} consecutive free ports')
