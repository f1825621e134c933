# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Faults of a CARLA server over real sockets: the node continues, publishes again, counts."""

import socket

from carla_client import CarlaClient
from carla_late_server import LateServer
import carla_wire as wire
from ports import free_ports
import pytest
from rig import Managed, NodeProcess, statuses


def test_carla_fault_port_that_accepts_and_is_silent_is_named(domain, listener, simulator):
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, source='carla', port=simulator.port, stale_after=0.5) as node:
        simulator.accept()
        words = f'127.0.0.1:{simulator.port} accepted the connection and is silent; expected'
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if values['level'] == 3 and words in values['message']],
                       what='the silent port by name')
        body = wire.measurements(1, 100, 0, wire.player(wire.transform((1.0, 0.0, 0.0))))
        simulator.send(wire.join_messages([body]))
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if values['frames received'] == '1' and values['level'] == 3],
                       what='a silence after a frame')
        assert words not in statuses(diagnostics)[-1]['message']
        assert node.end()[0] == 0


def test_carla_faults_of_a_relay_are_named(domain, listener):
    """A port in use, no server, a client that sends nothing, deactivation."""
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    world_port, port = free_ports(3), free_ports(3)

    def reports(words):
        diagnostics.clear()
        listener.until(lambda: [values for values in statuses(diagnostics)
                                if words in values['message']], what=words)

    def drive():
        with CarlaClient(port, is_synchronous=True) as client:
            n_before = len(odometry)

            def step():
                client.frame()
                client.command(throttle=1.0)
                listener.spin(0.0)
                return len(odometry) > n_before + 2
            listener.until(step, what='odometry')

    with socket.create_server(('127.0.0.1', port)) as taken, NodeProcess(
            domain, source='carla', port=world_port + 1, reconnect_min=0.05, reconnect_max=0.1,
            **{'carla.relay_port': port}) as node:
        listener.matched('/diagnostics')
        managed = Managed(listener)
        in_use = f'127.0.0.1:{port}: found address already in use; expected a free port'
        reports(in_use)
        taken.close()
        no_client = f'no client is connected to the relay, 127.0.0.1:{port} to {port + 2}'
        reports(no_client)
        with LateServer(world_port):
            with socket.create_connection(('127.0.0.1', port)):
                silent = 'a client is connected to the relay, and its episode has not begun'
                reports(silent)
            drive()
            assert managed.request('deactivate')
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(('127.0.0.1', port))
            assert managed.request('activate')
            reports(no_client)
            drive()
            assert node.end()[0] == 0
            for words in (in_use, no_client, silent):
                assert words in node.log, words
