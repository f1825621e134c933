#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Serve synthetic frames to one client at a pace, as cheaply as Python can.

Prints its port; ``mark`` when one of the marked frames has been sent; ``done`` after the last one.
With ``--await`` it first serves slowly until there is a line on its standard input, and after
``done`` prints the number of the first frame that counts and when each of those was sent (ns of
the steady clock), JSON. Holds the connection until its standard input ends.
"""

import argparse
import json
import select
import socket
import struct
import sys
import time

from traffic import Cycle

HEADER = struct.Struct('>IIfI')
# A longer delay is not made up for: no simulator would send such a burst.
MAX_LAG_S = 0.25
AWAIT_PERIOD_S = 0.05


def packet(cycle, i):
    """Return frame ``i`` as the simulator sends it."""
    payload = cycle.payload(i)
    return HEADER.pack(len(payload) + HEADER.size, 1600000000, 1.0 + i / cycle.rate_hz,
                       i + 1) + payload


def send_until_line(connection, cycle):
    """Send slowly until there is a line on standard input; return how many frames that took."""
    i = 0
    while not select.select([sys.stdin], [], [], AWAIT_PERIOD_S)[0]:
        connection.sendall(packet(cycle, i))
        i += 1
    sys.stdin.readline()
    return i


def send(connection, cycle, args, first):
    """Send the frames that count; return when each was handed to the kernel, ns."""
    sent_ns, next_s = [], time.perf_counter()
    period_s = 1.0 / args.rate if args.rate else 0.0
    for i in range(args.frames):
        data = packet(cycle, first + i)
        if period_s:
            time.sleep(max(next_s - time.perf_counter(), 0.0))
            next_s = max(next_s, time.perf_counter() - MAX_LAG_S) + period_s
        connection.sendall(data)
        sent_ns.append(time.perf_counter_ns())
        if i + 1 in args.marks:
            print('mark', flush=True)
    return sent_ns


def main():
    """Serve ``--frames`` frames to one client."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--actors', type=int, required=True)
    parser.add_argument('--frames', type=int, required=True)
    parser.add_argument('--rate', type=float, required=True, help='Hz; 0 as fast as it is read')
    parser.add_argument('--marks', type=int, nargs='*', default=[])
    parser.add_argument('--await', action='store_true', dest='is_awaiting')
    args = parser.parse_args()
    cycle = Cycle(args.actors, args.rate or 100.0)
    with socket.create_server(('127.0.0.1', 0)) as server:
        print(server.getsockname()[1], flush=True)
        connection, _ = server.accept()
    with connection:
        first = send_until_line(connection, cycle) if args.is_awaiting else 0
        sent_ns = send(connection, cycle, args, first)
        print('done', flush=True)
        if args.is_awaiting:
            print(json.dumps({'first': first + 1, 'sent_ns': sent_ns}), flush=True)
        sys.stdin.read()


if __name__ == '__main__':
    main()
