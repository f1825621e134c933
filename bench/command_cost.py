# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measurements of commands: their receipt to their bytes on monoDrive's control port."""

from contextlib import ExitStack
import json
import subprocess
import sys
import time

from processes import HERE, line_of, Listener, reading, running
from row import percentile, Row, show

from state_sensor_ros.connections.connection import free_port
from state_sensor_ros.msg import VehicleControl

COMMANDS_HZ, N_COMMANDS = 50.0, 300


def measured(actors, rate):
    """Return the latencies of frames and of commands in one run, ms."""
    with ExitStack() as stack:
        listener = stack.enter_context(Listener())
        server = stack.enter_context(running(
            [sys.executable, '-m', 'state_sensor_ros', 'simulate', '--port', '0',
             '--control-port', free_port('127.0.0.1'), '--vehicles', actors, '--objects', '0',
             '--rate', rate], stdout=subprocess.PIPE))
        control_port, port = (line_of(server, name).rpartition(':')[2].strip()
                              for name in ('control', 'listening'))
        stack.enter_context(reading('rviz', 'state_sensor'))
        node = stack.enter_context(running(
            [sys.executable, HERE / 'command_stopwatch.py', N_COMMANDS, f'port:={port}',
             f'control_port:={control_port}', 'desired_tags:=[vehicle]',
             'control_input:=vehicle_control', 'debug_drawing:=true'], stdout=subprocess.PIPE))
        publisher = listener.node.create_publisher(VehicleControl, '/state_sensor/command', 1)
        while node.poll() is None:
            publisher.publish(VehicleControl(throttle=0.2))
            time.sleep(1.0 / COMMANDS_HZ)
        found = json.loads(line_of(node, '{'))
        server.kill()
    return found['frames'], found['commands']


def command_rows():
    """Measure commands at 50 Hz beside frames, as ratios to the latency of these frames."""
    rows = []
    for actors, rate, goal in ((10, 20.0, 1), (100, 20.0, 1), (1000, 20.0, 1)):
        frames, commands = measured(actors, rate)
        medians = [percentile(each, 0.5) for each in (frames, commands)]
        print(f'    frames: {len(frames)}, median {medians[0]:.2f}, p99 '
              f'{percentile(frames, 0.99):.2f} ms; commands: {len(commands)}, median '
              f'{medians[1]:.2f}, p99 {percentile(commands, 0.99):.2f} ms', flush=True)
        rows += show([
            Row('command received to bytes sent / frame received to published, median', actors,
                medians[1] / medians[0], f'<= {goal}'),
            Row('  the same, p99', actors,
                percentile(commands, 0.99) / percentile(frames, 0.99), '<= 2')])
    return rows
