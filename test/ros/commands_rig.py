# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A node that takes commands, simulators that obey, and a stack that publishes them."""

from contextlib import contextmanager, ExitStack
from importlib import import_module
from itertools import count
import math
from pathlib import Path
from tempfile import TemporaryDirectory
import time

from budgets import AWAIT_S
from carla9_rig import Rig
from carla_server.town_server import CarlaOptions, CarlaServer
import pytest
from rig import NodeProcess, statuses
from scripted_simulator import complete, frame, ScriptedSimulator

from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import TrafficSource
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

CONTROL_EGO = 'EgoControl_ID'
STATUS = '/state_sensor/command_status'
COMMAND = '/state_sensor/command'
VELOCITY = '/state_sensor/command_velocity'
OWN_TYPE = 'state_sensor_ros/VehicleControl'
PERIOD_S = 0.05
# Of monoDrive's frames: each costs processor time, and the ego is controlled at this rate, too.
RATE_HZ = 10.0
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
        """Publish a message at 20 Hz until ``condition()`` holds; return its value."""
        now_s = next_s = time.monotonic()
        deadline = now_s + seconds
        while not (found := condition()):
            assert now_s < deadline, f'{what}: not within {seconds} s'
            if now_s >= next_s:
                self.publisher.publish(message() if callable(message) else message)
                next_s = now_s + PERIOD_S
            # It returns with each message, such as the status of each command.
            self.listener.spin(next_s - now_s)
            now_s = time.monotonic()
        return found

    def status(self):
        """Return the last status ``control``, empty before the first."""
        return next(iter(statuses(self.diagnostics, 'control')[-1:]), {})

    def close(self):
        self.listener.node.destroy_publisher(self.publisher)


@contextmanager
def driven(domain, payloads=None, **parameters):
    """Provide a scripted simulator and a node that drives its ego by pedals."""
    with ScriptedSimulator(complete) as peer:
        peer.payloads = payloads or moved_frames(peer)
        with NodeProcess(domain, **{
                'port': peer.port, 'control_port': peer.control_port, 'sample_rate': 20.0,
                'desired_tags': ['vehicle'], 'control_input': 'vehicle_control', **FAST,
                **parameters}) as node:
            yield peer, node
            assert 'Traceback' not in node.log, node.log


def moved_frames(peer):
    """Yield frames at 20 Hz of an ego that moves as its last command says."""
    x, speed = 1e4, 0.0
    for i in count():
        last = next(iter(controls(peer)[-1:]), {'forward_amount': 0.0, 'brake_amount': 0.0})
        speed += 0.2 * last['forward_amount']
        speed = math.copysign(max(abs(speed) - 0.4 * last['brake_amount'], 0.0), speed)
        x += 5.0 * speed
        yield frame(i / 20).replace(b'[100.0', b'[%.6f' % x)


def controls(peer):
    """Return the commands that the simulator has."""
    return peer.messages(CONTROL_EGO)


def is_brake(control):
    """Return whether a command of monoDrive is full brake."""
    return control['brake_amount'] == 1.0 and control['forward_amount'] == 0.0


class RecordingSource(TrafficSource):
    """A source of frames that keeps the pedals it gets."""

    def __init__(self, n_vehicles, rate_hz=RATE_HZ):
        super().__init__(TrafficFrames(n_vehicles, 0, rate_hz, 1, 'v2'))
        self.pedals = []

    def drive(self, pedals):
        self.pedals.append(pedals)
        super().drive(pedals)


class RecordingTown(CarlaServer):
    """A server of CARLA that keeps the pedals it gets."""

    def __init__(self, n_vehicles):
        self.pedals = []
        super().__init__(CarlaOptions(
            rate=20.0, period_s=0.05, n_vehicles=n_vehicles - 1, n_pedestrians=0))

    @property
    def _control(self):
        return self.pedals[-1] if self.pedals else None

    @_control.setter
    def _control(self, pedals):
        self.pedals.append(pedals)


class RecordingWorld(Rig):
    """A server of CARLA 0.9 that keeps the pedals it gets."""

    def __init__(self, n_vehicles, n_objects=0):
        self.pedals = []
        super().__init__(n_vehicles, n_objects, seed=1, rate=20.0)
        drive = self.world.scene.drive
        self.world.scene.drive = lambda pedals: (self.pedals.append(pedals), drive(pedals))


class Obeying:
    """
    A simulator that obeys, and a node that drives its ego by pedals or, if it follows it, a speed.

    ``pedals`` list of what the simulator got; None of SUMO, which has no pedals.

    :param in_step: whether the node asks for each frame: time stands still while one of both
        waits for a core, and is not caught up on with the last pedals.
    """

    def __init__(self, kind, domain, stack, *, n_vehicles=1, in_step=False, **parameters):
        self.pedals = None
        self.follows_speed = kind == 'carla9 ackermann'
        if kind == 'monodrive':
            source = RecordingSource(n_vehicles, 20.0 if in_step else RATE_HZ)
            self.server = stack.enter_context(MonodriveServer(source, MonodriveOptions(
                control_port=0, rate=20.0 if n_vehicles == 1 else 10.0, on_sample=in_step)))
            own = {'port': self.server.port, 'control_port': self.server.control_port,
                   'desired_tags': ['vehicle'], 'sample_rate': 20.0 if in_step else 0.0}
            self.pedals = source.pedals
        elif kind == 'carla':
            self.server = stack.enter_context(RecordingTown(n_vehicles))
            own = {'port': self.server.port, 'control_port': self.server.world_port}
            self.pedals = self.server.pedals
        elif kind in ('carla9', 'carla9 ackermann'):
            pytest.importorskip('carla')
            self.server = stack.enter_context(RecordingWorld(n_vehicles))
            own = {'carla9.port': self.server.port, 'carla9.tick': in_step}
            if self.follows_speed:
                own |= {'carla9.ackermann': True, 'control_input': 'twist'}
            self.pedals = self.server.pedals
        else:
            own = {'sumo.ego': 'first'}
            if n_vehicles > 1:
                folder = Path(stack.enter_context(TemporaryDirectory()))
                own['sumo.args'] = ['--additional-files', str(standing_people(folder, n_vehicles))]
        self.node = stack.enter_context(NodeProcess(
            domain, source=kind.split()[0],
            **{'control_input': 'vehicle_control', **FAST, **own, **parameters}))
        self._kind = kind

    def begin_again(self, listener):
        """Begin a new run or episode; monoDrive, which has none, loses its connection."""
        if self._kind == 'sumo':
            service = pytest.importorskip('simulation_interfaces.srv').ResetSimulation
            client = listener.node.create_client(service, '/state_sensor/reset_simulation')
            listener.until(client.service_is_ready, what='the service')
            listener.call(client, service.Request())
        elif self._kind.startswith('carla9'):
            world = self.server.world
            episode = world.episode
            self.server.do(lambda: world.begin_episode(settings=world.settings))
            listener.until(lambda: world.episode > episode, what='an episode')
        else:
            self.server.disconnect()


class Driven:
    """A stack that drives an :class:`Obeying` simulator."""

    def __init__(self, listener, obeying):
        self.node, self.pedals, self.listener = obeying.node, obeying.pedals, listener
        self.obeying = obeying
        self.odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        # A command that drives, and two wrong ones with the error of the second.
        self.command, self.wrong = pedals(throttle=0.5), (
            pedals(throttle=math.nan), pedals(brake=-1.0), 'brake: found -1')
        if obeying.follows_speed:
            self.command, self.wrong = twist(5.0), (
                twist(math.nan), twist(5.0, math.inf), 'angular.z: found inf')
        self.topic = VELOCITY if obeying.follows_speed else COMMAND
        self.stack = Stack(listener, self.topic, self.command).matched()
        listener.until(lambda: self.odometry, what='the ego')

    @property
    def speed(self):
        return self.odometry[-1].twist.twist.linear.x

    @property
    def throttles(self):
        """Return the throttles of the commands that the node has sent."""
        return [each.throttle for each in self.stack.sent]

    def drive(self, message=None):
        """Publish commands until the ego drives by them."""
        n_before = len(self.stack.sent)
        self.stack.publish_until(
            message or self.command,
            lambda: any(self.throttles[n_before:]) and self.speed > 1.0, what='a speed')

    def throttles_since(self, n_before):
        """Return those after the first brake: the status of a command before may come late."""
        throttles = self.throttles[n_before:]
        return throttles[throttles.index(0.0):]

    def stands(self):
        """Wait until the ego stands, by the brake."""
        # The process of a simulator may brake before the node.
        self.listener.until(lambda: abs(self.speed) < 0.1 and self.stack.sent[-1].brake == 1.0,
                            what='a stand')

    def named(self, words):
        """Wait for words in the diagnostics, without commands."""
        self.listener.until(lambda: words in self.stack.status().get('message', ''), what=words)


def standing_people(folder, n_people):
    """Write people who stand beside a road of SUMO's grid; return the file."""
    people = ''.join(f'<person id="p{i}" depart="0" departPos="{i % 80 + 5}"><stop edge="B3C3" '
                     f'duration="3600" endPos="{i % 80 + 5}"/></person>' for i in range(n_people))
    file = folder / 'people.add.xml'
    file.write_text(f'<additional>{people}</additional>', encoding='utf-8')
    return file


@contextmanager
def obeyed(kind, domain, listener, **parameters):
    """Provide a :class:`Driven` simulator of a kind."""
    with ExitStack() as stack:
        obeying = Obeying(kind, domain, stack, **parameters)
        yield Driven(listener, obeying)
        assert 'Traceback' not in obeying.node.log, obeying.node.log
