# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A node that takes commands, a scripted simulator, and a stack that publishes them."""

from contextlib import contextmanager
from importlib import import_module
from itertools import count
import math
import time

from budgets import AWAIT_S
from rig import NodeProcess, statuses
from scripted_simulator import complete, frame, ScriptedSimulator

CONTROL_EGO = 'EgoControl_ID'
STATUS = '/state_sensor/command_status'
COMMAND = '/state_sensor/command'
VELOCITY = '/state_sensor/command_velocity'
OWN_TYPE = 'state_sensor_ros/VehicleControl'
PERIOD_S = 0.02
FAST = {'reconnect_min': 0.05, 'reconnect_max': 0.2}


def message_of(type_name, **fields):
    """Make a message; a name with dots is a nested field."""
    package, name = type_name.split('/')
    message = getattr(import_module(f'{package}.msg'), name)()
    for path, value in fields.items():
        *parents, last = path.split('__')
        owner = message
        for parent in parents:
            owner = getattr(owner, parent)
        setattr(owner, last, value)
    return message


def pedals(**fields):
    """Make a VehicleControl."""
    return message_of(OWN_TYPE, **{'steer': 0.0, 'steering_angle': math.nan, **fields})


def twist(speed, rate=0.0):
    """Make a TwistStamped."""
    return message_of('geometry_msgs/TwistStamped', twist__linear__x=float(speed),
                      twist__angular__z=float(rate))


class Stack:
    """Publishes commands of a listener's node, and keeps what the node says of them."""

    def __init__(self, listener, topic=COMMAND, sample=None):
        self.listener = listener
        self.publisher = listener.node.create_publisher(
            type(sample if sample is not None else pedals()), topic, 10)
        self.sent = listener.subscribe(STATUS, OWN_TYPE)
        self.diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')

    def matched(self):
        """Wait until the node receives the commands."""
        self.listener.until(self.publisher.get_subscription_count, what='the node')
        self.listener.matched(STATUS)
        return self

    def publish_until(self, message, condition, seconds=AWAIT_S, what='the effect of a command'):
        """Publish a message at 50 Hz until ``condition()`` holds; return its value."""
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < deadline, f'{what}: not within {seconds} s'
            self.publisher.publish(message() if callable(message) else message)
            self.listener.spin(PERIOD_S)
        return found

    def status(self):
        """Return the last status ``control``, empty before the first."""
        return next(iter(statuses(self.diagnostics, 'control')[-1:]), {})

    def close(self):
        self.listener.node.destroy_publisher(self.publisher)


@contextmanager
def driven(domain, payloads=None, **parameters):
    """Provide a scripted simulator and a node that drives its ego by pedals."""
    payloads = payloads or (frame(i / 20) for i in count())
    with ScriptedSimulator(complete, payloads) as peer, NodeProcess(
            domain, **{'port': peer.port, 'control_port': peer.control_port, 'sample_rate': 20.0,
                       'desired_tags': ['vehicle'], 'control_input': 'vehicle_control', **FAST,
                       **parameters}) as node:
        yield peer, node
        assert 'Traceback' not in node.log, node.log


def controls(peer):
    """Return the commands that the simulator has."""
    return peer.messages(CONTROL_EGO)


def is_brake(control):
    """Return whether a command of monoDrive is full brake."""
    return control['brake_amount'] == 1.0 and control['forward_amount'] == 0.0
