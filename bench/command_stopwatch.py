# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run the node as its program does, with a stopwatch around each frame and each command.

It ends after the number of commands in its first argument, and prints as JSON, in ms: ``frames``
from the receipt of the last byte to the last publish, ``commands`` from their receipt to the bytes
on the control port.
"""

import json
import sys
import time

from configured_node import configured_node

from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.ros.commanding import CommandTopics
from state_sensor_ros.simulators.monodrive.control import CONTROL_EGO, ControlSession

# Start of the node and of its readers.
WARM_UP_S = 3.0


class CommandStopwatch:
    """Record when a command was received, and when its bytes were sent."""

    def __init__(self):
        self.latencies_ns = []
        self._received_ns = 0
        self._take, self._send = CommandTopics._take, ControlSession._send
        CommandTopics._take = lambda *given: self.take(*given)
        ControlSession._send = lambda *given: self.send(*given)

    def take(self, topics, topic, message):
        self._received_ns = time.perf_counter_ns()
        self._take(topics, topic, message)

    def send(self, session, command, data):
        self._send(session, command, data)
        if command == CONTROL_EGO and self._received_ns:
            self.latencies_ns.append(time.perf_counter_ns() - self._received_ns)
            self._received_ns = 0


def main():
    """Run until the number of commands in the first argument was measured."""
    n_commands, watch = int(sys.argv[1]), CommandStopwatch()
    with configured_node(sys.argv[2:]) as (node, executor):
        node.trigger_activate()
        until_s = time.monotonic() + WARM_UP_S
        while time.monotonic() < until_s:
            executor.spin_once(0.1)
        frames_ns = []
        counters = node._pipeline.counters
        counters.take_latencies()
        watch.latencies_ns.clear()
        # The diagnostics take the latencies, too.
        take, Counters.take_latencies = Counters.take_latencies, lambda counters: []
        while len(watch.latencies_ns) < n_commands:
            executor.spin_once(0.1)
            frames_ns += take(counters)
        print(json.dumps({'frames': [each / 1e6 for each in frames_ns],
                          'commands': [each / 1e6 for each in watch.latencies_ns]}), flush=True)


if __name__ == '__main__':
    main()
