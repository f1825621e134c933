# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Each input for commands with messages of its own type, on the mock servers of simulators."""

from contextlib import ExitStack
from importlib import import_module
import math
import time

from budgets import one_of
from carla_server.town_server import CarlaOptions, CarlaServer
from commands_rig import (
    FAST,
    message_of,
    Obeying,
    Stack,
)
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile
from rig import Managed, NodeProcess

from state_sensor_ros.control.command_inputs import AutowareInput
from state_sensor_ros.control.ego_commands import ControlParameters
from state_sensor_ros.ros.commanding import STATE_WAIT_S

ACKERMANN = 'ackermann_msgs/AckermannDriveStamped'
ACKERMANN_DRIVE = 'ackermann_msgs/AckermannDrive'
CARLA_CONTROL = 'carla_msgs/CarlaEgoVehicleControl'
CONTROL = 'autoware_control_msgs/Control'
GEAR = 'autoware_vehicle_msgs/GearCommand'
DRIVE, REVERSE, PARK = 2, 20, 22
# The ego holds its speed, also if the test waits for a core between two commands.
PATIENT = {'control.timeout': 60.0}
CONTROL_TOPIC, GEAR_TOPIC = '/control/command/control_cmd', '/control/command/gear_cmd'


def control(velocity, angle=0.0, **fields):
    """Make Autoware's command."""
    return message_of(CONTROL, longitudinal__velocity=float(velocity),
                      lateral__steering_tire_angle=float(angle), **fields)


class Loop:
    """A node on a mock server, the ego's odometry and the stack."""

    def __init__(self, listener, topic, sample):
        self.listener = listener
        self.odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        self.stack = Stack(listener, topic, sample).matched()

    @property
    def speed(self):
        return self.odometry[-1].twist.twist.linear.x if self.odometry else math.nan

    def drives(self, message, speed):
        """Publish a message until the ego has a speed and holds it."""
        n_before = len(self.odometry)

        def holds():
            recent = self.odometry[n_before:][-10:]
            return len(recent) == 10 and all(
                abs(each.twist.twist.linear.x - speed) < 0.3 for each in recent)
        self.stack.publish_until(message, holds, what=f'{speed} m/s for 10 frames')


@pytest.fixture(params=one_of(['monodrive', 'carla9']))
def driven_by(request, domain):
    """Provide a function that starts a node with an input on the mock server of a simulator."""
    with ExitStack() as stack:
        yield lambda name, **own: Obeying(
            request.param, domain, stack, control_input=name, **PATIENT, **own).node


@pytest.fixture
def monodrive(domain):
    """Provide the same on monoDrive's mock server."""
    with ExitStack() as stack:
        yield lambda name: Obeying('monodrive', domain, stack, control_input=name, **PATIENT).node


def test_ackermann_drives_forward_and_backward(listener, monodrive):
    monodrive('ackermann')
    loop = Loop(listener, '/state_sensor/command_ackermann', message_of(ACKERMANN))
    loop.drives(message_of(ACKERMANN, drive__speed=4.0, drive__steering_angle=0.05), 4.0)
    rate = loop.odometry[-1].twist.twist.angular.z
    assert rate == pytest.approx(loop.speed * math.tan(0.05) / 2.86, rel=0.05)
    # Speed 0 with acceleration 0 means stop.
    loop.drives(message_of(ACKERMANN), 0.0)
    loop.drives(message_of(ACKERMANN, drive__speed=-1.0), -1.0)


def test_both_commands_of_carlas_bridge_drive_but_not_at_once(listener, monodrive):
    node = monodrive('carla_ros_bridge')
    place = '/carla/ego_vehicle'
    followed = message_of(ACKERMANN_DRIVE, speed=4.0, steering_angle=0.05)
    loop = Loop(listener, f'{place}/ackermann_cmd', followed)
    loop.drives(followed, 4.0)
    assert loop.odometry[-1].twist.twist.angular.z > 0.0
    pedals = message_of(CARLA_CONTROL, throttle=0.25, steer=0.125)
    by_pedals = Stack(listener, f'{place}/vehicle_control_cmd', pedals).matched()
    by_pedals.publish_until(pedals, lambda: (
        f'{place}/vehicle_control_cmd with {place}/ackermann_cmd has 2 publishers'
        in by_pedals.status().get('message', '')), what='the name of both')
    loop.stack.close()
    # To the right is positive.
    sent = by_pedals.publish_until(pedals, lambda: (
        now := by_pedals.sent[-1]).throttle == 0.25 and now.steer == -0.125 and now)
    assert not sent.reverse
    by_pedals.publish_until(pedals, lambda: loop.odometry[-1].twist.twist.angular.z < 0.0,
                            what='a turn to the right')
    assert 'Traceback' not in node.log


class Gear:
    """A publisher of Autoware's gear, latched or volatile."""

    def __init__(self, listener, *, is_latched):
        durability = DurabilityPolicy.TRANSIENT_LOCAL if is_latched else DurabilityPolicy.VOLATILE
        self._node = listener.node
        self.publisher = listener.node.create_publisher(
            type(message_of(GEAR)), GEAR_TOPIC, QoSProfile(depth=1, durability=durability))

    def send(self, command):
        self.publisher.publish(message_of(GEAR, command=command))

    def close(self):
        self._node.destroy_publisher(self.publisher)


# As Autoware's planning simulator takes them.
@pytest.mark.parametrize(('gear', 'speed', 'acceleration', 'used'), [
    (DRIVE, 4, -1.5, -1.5), (REVERSE, -4, -1.5, 1.5), (DRIVE, 4, math.nan, 0.0)])
def test_acceleration_of_autoware_counts_without_its_flag(gear, speed, acceleration, used):
    message = control(speed, longitudinal__acceleration=acceleration)
    assert AutowareInput(ControlParameters()).wanted(gear, message).acceleration == used


def test_autoware_drives_with_its_gear(listener, driven_by):
    # The largest speed depends on the frames between two commands.
    node = driven_by('autoware', in_step=True)
    loop = Loop(listener, CONTROL_TOPIC, control(0))
    # Without a publisher of the gear: drive, after a second.
    begun_s = time.monotonic()
    loop.stack.publish_until(control(4), lambda: any(each.throttle for each in loop.stack.sent))
    assert time.monotonic() - begun_s > STATE_WAIT_S
    listener.until(lambda: f'{GEAR_TOPIC} has no publisher: the gear is drive' in node.log,
                   what='the line of the log')
    loop.drives(control(0), 0.0)
    n_before = len(loop.odometry)
    loop.drives(control(4, longitudinal__acceleration=50.0), 4.0)
    assert max(each.twist.twist.linear.x for each in loop.odometry[n_before:]) < 4.5
    gear = Gear(listener, is_latched=False)
    listener.until(gear.publisher.get_subscription_count, what='the node')
    # Backward in a gear forward is no command that can be followed: the ego stops.
    loop.drives(control(-2), 0.0)
    gear.send(REVERSE)
    loop.drives(control(-2, longitudinal__acceleration=50.0), -2.0)
    gear.send(PARK)
    loop.drives(control(-2), 0.0)
    loop.stack.publish_until(control(-2), lambda: loop.stack.sent[-1].hand_brake)
    modes = import_module('autoware_vehicle_msgs.srv').ControlModeCommand
    client = listener.node.create_client(modes, '/control/control_mode_request')
    listener.until(client.service_is_ready, what='the service of the mode')
    for mode, is_done in ((modes.Request.AUTONOMOUS, True), (modes.Request.MANUAL, False)):
        assert listener.call(client, modes.Request(mode=mode)).success is is_done
    # A publisher without a subscription in common is not warned of: the other one matches.
    assert 'incompatible QoS' not in node.log


@pytest.mark.thorough
def test_gear_is_known_before_the_ego_drives(listener, driven_by):
    latched = Gear(listener, is_latched=True)
    latched.send(PARK)
    driven_by('autoware')
    loop, managed = Loop(listener, CONTROL_TOPIC, control(0)), Managed(listener)
    sent = loop.stack.sent

    def stands(seconds=2 * STATE_WAIT_S):
        """Publish a command for a time in which the ego would move off."""
        n_before, until_s = len(sent), time.monotonic() + seconds
        loop.stack.publish_until(control(5), lambda: time.monotonic() > until_s
                                 and len(sent) > n_before + 20)
        return all(each.throttle == 0.0 and each.brake > 0.0 for each in sent[n_before:])

    assert stands()
    # It may have been driven before, by the simulator.
    loop.stack.publish_until(control(5), lambda: sent[-1].hand_brake, what='the hand brake')
    latched.send(DRIVE)
    loop.drives(control(5), 5.0)
    # It is known again after an activation, as it is then; two subscriptions are one publisher.
    assert managed.request('deactivate')
    latched.send(REVERSE)
    assert managed.request('activate')
    assert stands()
    assert loop.stack.status()['commands refused'] == '0'
    loop.drives(control(-3), -3.0)
    # A volatile publisher that is there is waited for, and named.
    assert managed.request('deactivate')
    latched.close()
    volatile = Gear(listener, is_latched=False)
    assert managed.request('activate')
    assert stands()
    loop.stack.publish_until(control(5), lambda: loop.stack.status()['message']
                             == f'the ego does not move: no message on {GEAR_TOPIC} yet')
    assert loop.stack.status()['level'] == 1
    volatile.send(DRIVE)
    loop.drives(control(5), 5.0)


# Also when no frame asks for the last brake before the end.
@pytest.mark.parametrize('rate', one_of([20.0, 0.5]))
def test_pedals_reach_carla_unchanged(domain, listener, rate):
    with CarlaServer(CarlaOptions(
            rate=rate, period_s=0.05, n_vehicles=0, n_pedestrians=0)) as server, \
            NodeProcess(domain, source='carla', port=server.port, **FAST,
                        control_port=server.world_port, control_input='vehicle_control') as node:
        stack = Stack(listener).matched()
        message = message_of('state_sensor_ros/VehicleControl', steer=0.25, throttle=0.5,
                             brake=0.125, hand_brake=True, reverse=True)
        pedals = stack.publish_until(message, lambda: (
            now := server._control) and now.throttle == 0.5 and now)
        assert (pedals.throttle, pedals.brake, pedals.hand_brake, pedals.reverse) == (
            0.5, 0.125, True, True)
        # The tires turn at 0.7 rad/s of simulated time.
        assert -0.25 <= pedals.steer <= 0.0
        # The last answer before the end is the brake.
        assert node.end()[0] == 0
        listener.until(lambda: (server._control.throttle, server._control.brake) == (0.0, 1.0),
                       what='the last brake')
