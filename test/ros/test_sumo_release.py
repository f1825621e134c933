# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The ego of a joined SUMO after its driver has ended, read by SUMO's other client."""

from contextlib import contextmanager, suppress
import os
import shutil
import signal
import subprocess

from budgets import AWAIT_S
from commands_rig import FAST, pedals, Stack, STATUS
from paths import ROOT
from ports import free_port
from process_state import children, has_ended
import pytest
from rig import END_S, Managed, NodeProcess
from stopwatch import Stopwatch, until

SUMO = shutil.which('sumo')
pytestmark = pytest.mark.skipif(SUMO is None, reason='needs the program sumo (eclipse-sumo)')
STEP_S = 0.05
GRID = str(ROOT / 'resource' / 'sumo' / 'grid.sumocfg')
# What a client can set, other than SUMO's defaults.
SPEED_MODE, LANE_CHANGE_MODE, MAX_SPEED = 7, 512, 20.0
ROUTE_LENGTH = 20


class Client:
    """SUMO's first client, which steps it while the test waits for the node."""

    def __init__(self, port, listener):
        import traci
        self.traci = traci.connect(port, numRetries=int(AWAIT_S / 0.1), waitBetweenRetries=0.1)
        # A node that does not join SUMO, or does not make its step, is a failure.
        self.traci._socket.settimeout(AWAIT_S)
        self.listener = listener
        self.vehicle = self.traci.vehicle

    def step(self):
        """Make a step, at ten times the pace of the clock."""
        self.traci.simulationStep()
        self.listener.spin_for(STEP_S / 10)

    def until(self, condition, what):
        """Make steps until a condition holds."""
        until(condition, what, self.step)

    def ego(self):
        """Return what the ego has that a driver might change, and the next edges of its route."""
        vehicle, route = self.vehicle, self.vehicle.getRoute('ego')
        return {
            'route': route[vehicle.getRouteIndex('ego'):][-ROUTE_LENGTH:],
            **{name: getattr(vehicle, f'get{name}')('ego') for name in (
                'SpeedMode', 'LaneChangeMode', 'MaxSpeed', 'TypeID', 'SpeedFactor', 'MinGap',
                'Accel', 'Decel', 'Tau', 'Imperfection', 'RoutingMode', 'Length', 'Color',
                'StopState')}}


@contextmanager
def joined(domain, listener, **parameters):
    """Provide SUMO's client and a node that has joined SUMO and drives the ego."""
    port = free_port()
    with subprocess.Popen([
            SUMO, '-c', GRID, '--remote-port', str(port), '--num-clients', '2', '--step-length',
            str(STEP_S), '--no-step-log'], start_new_session=True) as sumo:
        try:
            client = Client(port, listener)
            with NodeProcess(domain, source='sumo', control_input='vehicle_control', **FAST, **{
                    'sumo.port': port, 'sumo.order': 2, 'sumo.ego': 'ego', **parameters}) as node:
                # SUMO answers when all its clients are there.
                client.traci.setOrder(1)
                yield client, node
            client.traci.close()
        finally:
            # The program `sumo` of eclipse-sumo starts another one.
            with suppress(ProcessLookupError):
                os.killpg(sumo.pid, signal.SIGKILL)


def drive(client, stack, command):
    """Take the ego over with a command, and drive for a second."""
    client.until(lambda: stack.publisher.publish(command) or stack.sent, 'the first command')
    for _ in range(60):
        stack.publisher.publish(command)
        client.step()


def leaves(node):
    """Return a function whether the process that has joined SUMO has ended."""
    [process] = children(node.process.pid, b'sumo_process')
    return lambda: has_ended(process)


@pytest.mark.parametrize(('end', 'release', 'is_changed', 'steer'), [
    ('SIGKILL', 'restore', False, 0.02), ('deactivate', 'stop', True, 0.05),
    # The test below ends a node by it, too.
    *(pytest.param('SIGTERM', *rest, marks=pytest.mark.thorough)
      for rest in (('restore', True, 0.0), ('stop', False, 0.0)))])
def test_ego_is_given_back_as_it_was(domain, listener, end, release, is_changed, steer):
    # A step may take long, if the machine is busy.
    with joined(domain, listener, **{'sumo.release': release, 'control.timeout': 60.0,
                                     'stale_after': 60.0}) as (client, node):
        stack = Stack(listener)
        client.until(lambda: stack.publisher.get_subscription_count()
                     and listener.node.count_publishers(STATUS), 'the node')
        if is_changed:
            client.vehicle.setSpeedMode('ego', SPEED_MODE)
            client.vehicle.setLaneChangeMode('ego', LANE_CHANGE_MODE)
            client.vehicle.setMaxSpeed('ego', MAX_SPEED)
        before = client.ego()
        assert (before['TypeID'] == 'car') is not is_changed
        command = pedals(throttle=0.3, steer=steer)
        drive(client, stack, command)
        # SUMO replaces the route of an ego that leaves it, and removes one beside all lanes.
        client.until(lambda: stack.publisher.publish(command)
                     or (client.ego()['route'] != before['route']) is bool(steer), 'the route')
        during = client.ego()
        assert (during['SpeedMode'], during['LaneChangeMode']) == (0, 0)
        assert during['TypeID'] == 'car@ego'
        has_left = leaves(node)
        if end == 'deactivate':
            managed_end(client, listener)
        else:
            node.process.send_signal(getattr(signal, end))
        speeds, watch = [], Stopwatch(node.process)
        client.until(lambda: speeds.append(client.vehicle.getSpeed('ego')) or has_left(),
                     'the end of the process')
        if end == 'SIGTERM':
            client.until(lambda: watch.delay_s >= 0.0 and node.process.poll() is not None,
                         'the end of the node')
            assert (node.process.returncode, watch.seconds < END_S) == (0, True)
        assert client.ego() == before
        if release == 'stop':
            assert min(speeds) == 0.0
        else:
            # On a junction, SUMO drives slowly.
            assert min(speeds) > 1.0
        # SUMO drives it, at its own speeds, and does not remove it.
        for _ in range(100):
            client.step()
            assert client.vehicle.getSpeed('ego') <= client.vehicle.getAllowedSpeed('ego') + 5.0
        assert client.vehicle.getLaneID('ego')


def managed_end(client, listener):
    """Deactivate the node while SUMO is stepped."""
    Managed(listener).request('deactivate')


@pytest.mark.thorough
def test_ego_that_another_driver_has_is_left_to_it(domain, listener):
    with joined(domain, listener) as (client, node):
        stack = Stack(listener)
        client.until(stack.publisher.get_subscription_count, 'the node')
        before = client.vehicle.getMaxSpeed('ego')
        # As a second node sets it.
        client.vehicle.setSpeedMode('ego', 0)
        client.vehicle.setMaxSpeed('ego', 200.0)
        client.vehicle.setSpeed('ego', 3.0)
        for _ in range(100):
            client.step()
        client.until(lambda: stack.publisher.publish(pedals(throttle=1.0))
                     or "another client drives the vehicle 'ego'" in node.log, 'the warning')
        # Its commands have no effect: that is an error, and no driving.
        client.until(lambda: stack.publisher.publish(pedals(throttle=1.0))
                     or stack.status().get('state') == 'unanswered', 'the error')
        assert stack.status()['level'] == 2
        assert abs(client.vehicle.getSpeed('ego') - 3.0) < 0.5
        # Given back by its driver, it is taken over, and given back as it was then.
        client.vehicle.setSpeedMode('ego', 31)
        client.vehicle.setMaxSpeed('ego', before)
        client.vehicle.setSpeed('ego', -1.0)
        client.until(lambda: stack.publisher.publish(pedals(throttle=1.0))
                     or client.vehicle.getSpeedMode('ego') == 0, 'the driving')
        assert node.log.count('another client drives') == 1
        has_left = leaves(node)
        node.process.send_signal(signal.SIGTERM)
        client.until(has_left, 'the end of the process')
        assert client.vehicle.getSpeedMode('ego') == 31
        assert client.vehicle.getMaxSpeed('ego') == before
