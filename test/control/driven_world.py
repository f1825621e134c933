# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A stack, a node and a simulator on a simulated clock.

All that is between the callback of a command and the bytes that the simulator reads is the code of
the package; the simulators are models of what reads those bytes, with a vehicle on a slope.
"""


from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
import json
import math
import pickle
import struct
from types import SimpleNamespace

import msgspec
import numpy as np
from rclpy.qos import DurabilityPolicy
from simulated_threads import Ended, Machine, Network, Pipe, replaced

import state_sensor_ros.connections.connection as connection_module
import state_sensor_ros.connections.live_source as live_source_module
import state_sensor_ros.control.ego_commands as ego_commands_module
import state_sensor_ros.control.ego_driver as ego_driver_module
import state_sensor_ros.control.ego_watch as ego_watch_module
import state_sensor_ros.control.late_calls as late_calls_module
import state_sensor_ros.ros.commanding as commanding_module
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.simulators.carla.frames import SERVER
import state_sensor_ros.simulators.carla.stream as carla_commands_module
from state_sensor_ros.simulators.carla9 import Carla9Parameters
import state_sensor_ros.simulators.carla9.carla_process as carla_process_module
import state_sensor_ros.simulators.carla9.source as carla9_source_module
import state_sensor_ros.simulators.child_process as child_process_module
import state_sensor_ros.simulators.monodrive.control as monodrive_control_module
import state_sensor_ros.simulators.sumo as sumo_simulator_module
import state_sensor_ros.simulators.sumo.sumo_process as sumo_process_module
import state_sensor_ros.simulators.sumo.sumo_process as sumo_source_module
from state_sensor_ros.source import Health, SourceState

TICK_S = 0.05
GRAVITY, DRAG = 9.81, 0.08
CONTROL_PORT = 8999
MODULES = (
    connection_module, live_source_module, ego_commands_module, ego_driver_module,
    ego_watch_module, late_calls_module, commanding_module, carla_commands_module,
    carla_process_module, carla9_source_module, monodrive_control_module,
    child_process_module)


@dataclass
class Vehicle:
    """What the ego is: ``mass`` times that for which 4 and 8 m/s2 are full throttle and brake."""

    mass: float = 1.0
    delay_s: float = 0.0
    slope: float = 0.0
    top_speed: float = 60.0
    speed: float = 0.0
    x: float = 0.0
    pedals: deque = field(default_factory=deque)

    def advance(self, throttle, brake, reverse, seconds):
        self.pedals.append((throttle, brake, reverse))
        while len(self.pedals) > 1 + round(self.delay_s / TICK_S):
            self.pedals.popleft()
        throttle, brake, reverse = self.pedals[0]
        n = 4
        for _ in range(n):
            dt = seconds / n
            push = 4.0 * throttle / self.mass * (-1 if reverse else 1)
            if abs(self.speed) > self.top_speed:
                push = 0.0
            pull = -GRAVITY * math.sin(self.slope) - DRAG * self.speed
            held = 8.0 * brake / self.mass
            if self.speed == 0.0 and abs(push + pull) <= held:
                continue
            speed = self.speed + dt * (push + pull)
            slowed = max(abs(speed) - dt * held, 0.0)
            self.speed = math.copysign(slowed, speed) if slowed else 0.0
            self.x += dt * self.speed


class Frame:
    """What the node uses of a frame."""

    def __init__(self, game_time, speed, x, has_ego, n_egos, pedals, *, has_speed=True):
        self.game_time, self.speed, self.x = game_time, speed, x
        self.given_speed = speed if has_speed else math.nan
        self.row = 0 if has_ego else -1
        self.n_egos = n_egos if has_ego else 0
        self.names = ('ego', 'other')
        self.inputs = ((pedals[0], pedals[1], math.nan, math.nan),)

    def has_pose(self):
        return (True, True)

    def _replace(self, **_):
        """Take what a step of CARLA 0.9 gets besides."""
        return self


ACTORS = (SimpleNamespace(frame_id='ego', name='ego'), SimpleNamespace(
    frame_id='other', name='other'))


def snapshot_of(frame, now_ns):
    actors = SimpleNamespace(i_ego=frame.row, n_egos=frame.n_egos, actors=ACTORS,
                             names=frame.names, tags=(('ego',), ('ego',)))
    return SimpleNamespace(frame=frame, actor_list=actors, stamp_ns=0, received_ns=now_ns,
                           before=None, packet=None)


class Simulator:
    """
    The vehicle and the pedals in effect, and how the node's bytes get there.

    ``writes``: (time, throttle, brake, steering angle) of each command that left the node's
    process; ``applied`` the same of those that the simulator has taken.
    """

    name = ''
    has_replies = False

    def __init__(self, world):
        self.world, self.machine, self.vehicle = world, world.machine, world.plan.vehicle
        self.writes, self.applied = [], []
        # Parked.
        self.pedals = (0.0, 1.0, False)

    def wrote(self, throttle, brake, angle, reverse=False):
        self.writes.append((self.machine.now_s, throttle, brake, angle, reverse))

    def apply(self, throttle, brake, angle, reverse=False):
        self.applied.append((self.machine.now_s, throttle, brake, angle, reverse))
        self.pedals = (throttle, brake, reverse)

    def advance(self):
        self.vehicle.advance(*self.pedals, TICK_S)

    @property
    def speed(self):
        return self.vehicle.speed

    def can_write(self):
        """Return whether there is a way for bytes to leave."""
        return True

    def frame_leaves(self, frame):
        """Send a frame to the node, which has it after a while."""
        self.world.deliver(frame)

    def close(self):
        pass


class Monodrive(Simulator):

    name = 'monodrive'
    has_replies = True

    def __init__(self, world):
        super().__init__(world)
        world.network.listeners[CONTROL_PORT] = self.take
        self.reply_s, self.replies, self.cut_s = 0.002, True, -math.inf
        self.client = monodrive_control_module.ControlClient(
            world.settings, world.report, on_silence=lambda text: None)
        self.commands = monodrive_control_module.MonodriveCommands(self.client)
        self._rest, self.ways = {}, []

    def start(self):
        self.machine.Thread(target=self._begin).start()

    def _begin(self):
        while True:
            with suppress(Exception):
                self.client.configure()
                self.client.connected()
                return
            self.machine.time.sleep(0.5)

    def take(self, end, data):
        self.ways.append(end)
        data = self._rest.pop(end, b'') + data
        while len(data) >= 8:
            _, length = struct.unpack('>II', data[:8])
            if len(data) < length:
                break
            request, data = json.loads(data[8:length]), data[length:]
            if request['type'] == monodrive_control_module.CONTROL_EGO:
                body = request['message']
                self.wrote(abs(body['forward_amount']), body['brake_amount'],
                           -body['right_amount'] * self.world.lock, body['drive_mode'] < 0)
                self.apply(*self.writes[-1][1:])
            if self.replies:
                text = json.dumps({'type': request['type'], 'reference': request['reference'],
                                   'message': 'complete', 'success': True}).encode()
                reply = struct.pack('>II', 0x6D6F6E6F, 8 + len(text)) + text
                self.machine.at(self.reply_s, lambda reply=reply: end.reply(reply), 'simulator')
        if data:
            self._rest[end] = data

    def can_write(self):
        return not self.world.network.blocked and self.machine.now_s > self.cut_s + 1.0

    def frame_leaves(self, frame):
        super().frame_leaves(frame)
        self.machine.at(0.0, self.client.packet_arrived, 'node')

    def close(self):
        self.client.close()


class Carla(Simulator):

    name = 'carla'

    def __init__(self, world):
        super().__init__(world)
        world.network.listeners[2002] = self.take
        world.network.listeners[2000] = lambda end, data: None
        self.client = carla_commands_module.EpisodeClient(
            world.settings, lambda text: None, lambda text: None)
        self.commands = self.client
        self._rest = b''

    def start(self):
        self.client._control.open()
        self.client._control.open_socket.settimeout(60.0)
        self.client._has_control = True

    def take(self, end, data):
        data = self._rest + data
        while len(data) >= 4 and len(data) >= 4 + struct.unpack('<I', data[:4])[0]:
            size = 4 + struct.unpack('<I', data[:4])[0]
            control, data = SERVER['Control'].FromString(data[4:size]), data[size:]
            self.wrote(control.throttle, control.brake, -control.steer * self.world.lock,
                       control.reverse)
            self.apply(*self.writes[-1][1:])
        self._rest = data

    def can_write(self):
        return not self.world.network.blocked and self.world.network.ends[0].is_open

    def frame_leaves(self, frame):
        self.machine.at(0.0, lambda: self._receive(frame), 'node')

    def _receive(self, frame):
        # Before the first command its own driver drives.
        if self.client._command is not None:
            self.client.answer(SERVER['Measurements']())
        self.world.deliver(frame)


def pickled_pipe(machine):
    pipe = Pipe(machine)
    pipe.recv = lambda: pickle.loads(pipe.recv_bytes())
    return pipe


class Helped(Simulator):
    """A simulator with a process of its own between the node and it."""

    def __init__(self, world, source):
        super().__init__(world)
        self.source, self.pipe = source, pickled_pipe(self.machine)
        source._requests = self.pipe
        source._begin_s = 0.0
        source.health.state = SourceState.CONNECTED
        self.is_helper_alive = True

    def can_write(self):
        return self.is_helper_alive and 'helper' not in self.machine.stopped

    def kill_helper(self):
        """Kill the process; what it wrote stays in effect."""
        self.is_helper_alive = False
        self.machine.stop('helper')
        self.pipe.close()
        self.source._requests = None


class Carla9(Helped):

    name = 'carla9'

    def __init__(self, world):
        own = world.settings.of(Carla9Parameters)
        ticking = world.plan.is_ticking
        source = (carla9_source_module.TickingSource if ticking
                  else carla9_source_module.Carla9Source)(
            world.settings, world.report, reconnect=True)
        super().__init__(world, source)
        self.commands = carla9_source_module.Carla9Commands(source)
        self.answers = True
        world.network.listeners[own.port] = self.take
        self.frame = 0
        self.carla = SimpleNamespace(VehicleControl=SimpleNamespace,
                                     VehicleAckermannControl=SimpleNamespace)
        self.actor = SimpleNamespace(
            id=7, apply_control=self.control, get_control=lambda: SimpleNamespace(
                throttle=self.pedals[0], brake=self.pedals[1], steer=0.0))
        self.machine.process = 'helper'
        run = carla9_source_module.ClientRun(own, 1.0, False, details=False)
        self.client = client = carla_process_module.WorldClient(run, self)
        client._carla, client._episode = self.carla, 1
        client._reader = SimpleNamespace(ego=self.actor, step=self.step, scene=None)
        client._world = client._client = self
        self.is_ticking, self.id = ticking, 1
        source.is_paused = False

    # The library, as the process sees it.
    def tick(self, timeout):
        if not self.answers:
            self.machine.time.sleep(timeout)
            raise RuntimeError('time-out')
        self.world.advance()

    def get_snapshot(self):
        return SimpleNamespace(id=1, frame=self.frame, timestamp=SimpleNamespace(
            elapsed_seconds=self.world.game_time))

    def get_world(self):
        return self

    get_settings = lambda self: SimpleNamespace(synchronous_mode=False)  # noqa: E731
    set_timeout = lambda self, seconds: None  # noqa: E731
    get_server_version = lambda self: self._ask()  # noqa: E731

    def _ask(self):
        if not self.answers:
            self.machine.time.sleep(2.0)
            raise RuntimeError('time-out')
        return '0.9.15'

    def step(self, snapshot, *, details, is_first, tire_angle):
        return self.world.frame()

    def control(self, control):
        reverse = getattr(control, 'reverse', False)
        values = (getattr(control, 'throttle', 0.0), getattr(control, 'brake', 0.0),
                  -control.steer * self.world.lock, reverse)
        self.wrote(*values)
        if self.answers:
            self.apply(*values)

    def take(self, end, data):
        """Take a call of the second way."""
        with suppress(Exception):
            call = msgspec.msgpack.Decoder().decode(data)
            if call[2] == 'apply_control_to_vehicle':
                throttle, steer, brake = call[3][2][:3]
                self.wrote(throttle, brake, -steer * self.world.lock)
                if self.answers:
                    self.apply(*self.writes[-1][1:])

    def can_write(self):
        return super().can_write() and self.answers

    # Messages of the process.
    def send_bytes(self, data):
        message = pickle.loads(data)
        if isinstance(message, Frame):
            self.world.deliver(message)
        elif message is not None:
            self.machine.at(0.0, lambda: self.source.take(message), 'node')

    def start(self):
        self.source._probe = probe = carla9_source_module.Connection('127.0.0.1', 2000)
        probe.open()
        self.source._ego = 7
        self.machine.process = 'helper'
        self.machine.Thread(target=self.client.serve, args=(self.pipe,)).start()
        if self.is_ticking:
            self.machine.Thread(target=self._tick).start()
        self.machine.process = 'node'

    def _tick(self):
        with suppress(RuntimeError):
            self.client._tick()

    def frame_leaves(self, frame):
        if self.is_helper_alive and not self.is_ticking:
            self.machine.at(0.0, lambda: self.is_helper_alive and self.client._send(
                self.get_snapshot(), is_first=False), 'helper')


class Sumo(Helped):

    name = 'sumo'

    def __init__(self, world):
        own = replace(world.settings.of(sumo_simulator_module.SumoParameters), config='a.sumocfg')
        super().__init__(world, sumo_source_module.StartedSumo(own, world.settings, world.report))
        self.commands = sumo_source_module.SumoCommands(self.source)
        self.machine.process = 'helper'
        self.driver = sumo_process_module.DriverRequests(
            sumo_source_module.Run(own, 1.0, False, True), self.pipe)
        self.machine.process = 'node'
        self.place = (0.0, 0.0, 0.0)
        vehicle = SimpleNamespace(
            getLength=lambda name: 4.5, setSpeedMode=self.ignore, setMaxSpeed=self.ignore,
            setLaneChangeMode=self.ignore, getIDList=lambda: ['ego'], moveToXY=self.move)
        self.ego = sumo_process_module.SumoEgo(SimpleNamespace(vehicle=vehicle), is_lent=False,
                                               is_driven=True)
        self.last = None

    def ignore(self, *_):
        pass

    def move(self, name, edge, lane, x, y, angle, *_):
        self.place = (x, y, math.radians(90.0 - angle))

    @property
    def speed(self):
        body = self.ego._body
        return 0.0 if body is None else body.speed

    def start(self):
        self.machine.process = 'helper'
        self.machine.Thread(target=self._work).start()
        self.machine.process = 'node'

    def _work(self):
        with suppress(EOFError):
            while self.driver.await_step(TICK_S):
                command = self.driver.command
                kinematics = np.zeros((1, 13))
                kinematics[0, :2], kinematics[0, 2:7] = self.place[:2], (
                    0, 0, 0, math.sin(self.place[2] / 2), math.cos(self.place[2] / 2))
                frame = SimpleNamespace(ego=0, names=['ego'], kinematics=kinematics)
                self.ego.advance(command, frame, TICK_S)
                if command is not None and self.ego._body is not None:
                    self.wrote(command.throttle, command.brake,
                               self.ego._body.steering_angle, command.reverse)
                    self.apply(*self.writes[-1][1:])
                self.vehicle.x += self.speed * TICK_S
                self.world.advance()

    def advance(self):
        pass

    def frame_leaves(self, frame):
        self.world.deliver(frame)


SIMULATORS = {each.name: each for each in (Monodrive, Carla, Carla9, Sumo)}


class FakeNode:
    """The part of a node that the commands use; ``publishers`` by topic."""

    def __init__(self):
        self.callbacks, self.publishers, self.fail = {}, {}, None

    def resolve_topic_name(self, name):
        return name.replace('~', '/state_sensor')

    def create_service(self, *_):
        return None

    def create_publisher(self, *_, **__):
        return SimpleNamespace(publish=lambda message: None)

    def create_subscription(self, type_name, topic, callback, qos, event_callbacks=None,
                            **_):
        name = self.resolve_topic_name(topic)
        is_latched = qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
        made = SimpleNamespace(topic_name=name, is_latched=is_latched, callback=callback,
                               events=event_callbacks)
        self.callbacks.setdefault(name, []).append(made)
        for publisher in self.publishers.get(name, []):
            if is_latched and publisher.latched is not None:
                self.world.machine.at(0.005, lambda p=publisher: made in self.callbacks[
                    name] and callback(p.latched, self.world.info()), 'node')
        return made

    def destroy_subscription(self, made):
        self.callbacks[made.topic_name].remove(made)

    def destroy_publisher(self, _):
        pass

    def count_publishers(self, topic):
        if self.fail == 'graph':
            raise RuntimeError('the graph')
        return len(self.publishers.get(topic, ()))

    def get_publishers_info_by_topic(self, topic):
        return [SimpleNamespace(node_name=each.name, node_namespace='/', endpoint_gid=each.gid,
                                qos_profile=SimpleNamespace(durability=each.durability))
                for each in self.publishers.get(topic, ())]

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=0))


GIDS = cycle(range(256))


class Publisher:

    def __init__(self, node, name, topic, *, is_latched=False):
        self.node, self.name, self.topic, self.latched = node, name, topic, None
        self.durability = (DurabilityPolicy.TRANSIENT_LOCAL if is_latched
                           else DurabilityPolicy.VOLATILE)
        self.is_latched, self.gid = is_latched, [next(GIDS)]
        node.publishers.setdefault(topic, []).append(self)
        self.match(1)

    def publish(self, message, delay_s=0.001):
        world = self.node.world
        stamp_s = world.machine.time.time() + world.stack_offset_s
        if self.is_latched:
            self.latched = message
        for made in list(self.node.callbacks.get(self.topic, ())):
            if made.is_latched and not self.is_latched:
                continue
            world.machine.at(delay_s, lambda made=made: world.call(
                made, message, stamp_s), 'node')

    def leave(self):
        self.node.publishers[self.topic].remove(self)
        self.match(-1)

    def match(self, change):
        for made in self.node.callbacks.get(self.topic, ()):
            if made.is_latched <= self.is_latched:
                made.events.matched(SimpleNamespace(current_count_change=change))


class World:
    """
    One run of a plan.

    :param plan: with ``simulator``, ``control_input``, ``vehicle``, ``is_ticking``,
        ``is_held``, ``parameters``.
    """

    def __init__(self, plan):
        self.plan, self.machine = plan, Machine()
        self.network, self.node = Network(self.machine), FakeNode()
        self.node.world = self
        self.lines, self.defects, self.statuses, self.health = [], [], [], Health()
        self.settings = checked_settings(plan.parameters)
        self.control = self.settings.of(ego_commands_module.ControlParameters)
        self.lock = self.control.full_steering_angle
        self.game_time, self.stack_offset_s, self.log_fails = 0.0, 0.0, False
        self.snapshot, self.frame_fault, self.is_late = None, '', 0.0
        self.is_frozen = self.is_paused = self.are_frames_lost = False
        self.has_ego, self.n_egos, self.has_speed = True, 1, True
        self.frame_period, self.n_ticks = 1, 0
        self.fails = ''
        self._stack = ExitStack()
        self._patch()
        self.simulator = SIMULATORS[plan.simulator](self)
        self.is_closed = False

    def _patch(self):
        machine, network = self.machine, self.network
        process_os = SimpleNamespace(_exit=self._exit, read=lambda *a: machine.wait(
            None, lambda: False), set_blocking=lambda *a: None)
        fcntl = SimpleNamespace(ioctl=lambda pipe, request, values: values.__setitem__(
            0, pipe.unread_bytes()))
        changes = [(module, name, getattr(machine, name)) for module in MODULES
                   for name in ('threading', 'time') if hasattr(module, name)]
        changes += [(module, name, machine.Queue) for module in MODULES
                    for name in ('Queue', 'SimpleQueue') if hasattr(module, name)]
        changes += [
            (connection_module, 'socket', network.module()),
            (connection_module, 'os', SimpleNamespace(write=network.write)),
            (commanding_module, 'DriveMark', lambda address: SimpleNamespace(
                was_left=self.plan.is_held, set=lambda: None,
                close=lambda *, is_kept: None)),
            (connection_module, 'look_up', lambda host, port, closed: [
                (2, 1, 6, '', (host, port))]),
            (carla_process_module, 'os', process_os),
            (child_process_module, 'fcntl', fcntl),
            (commanding_module, 'message_class', lambda name: _message_class),
            (commanding_module, 'import_module', lambda name: SimpleNamespace(
                ControlModeCommand=None)),
            (commanding_module, 'speed_along', lambda frame, row: frame.given_speed),
            (commanding_module, 'speed_by_positions', lambda before, _, frame, row: (
                frame.x - before.x) / (frame.game_time - before.game_time)),
            (commanding_module, 'climb_of', lambda frame, row: self.plan.vehicle.slope),
            (commanding_module, 'await_delivery', lambda *a: None),
            (commanding_module, 'Time', lambda nanoseconds: SimpleNamespace(to_msg=lambda: 0))]
        self._stack.enter_context(replaced(changes))

    def _exit(self, code):
        raise Ended

    def start(self):
        """Start the simulator, and the node's commands."""
        self.simulator.start()
        self.machine.process = 'node'
        log = SimpleNamespace(warn=self.report, defect=self.defects.append,
                              info=lambda text: None)
        self.commanding = commanding_module.Commanding(
            self.node, self.settings, self.simulator.commands, self._snapshot,
            getattr(self.simulator, 'source', self).health, 'simulator', log)
        if not (self.plan.is_ticking or self.plan.simulator == 'sumo'):
            self.machine.at(TICK_S, self._tick, 'simulator')
        self.machine.at(0.0, self._status, 'node')

    def _snapshot(self):
        if self.fails == 'snapshot':
            raise RuntimeError('the snapshot')
        return self.snapshot

    def report(self, kind, text):
        if self.fails == 'report':
            raise RuntimeError('the log')
        self.lines.append((self.machine.now_s, kind, text))

    def _status(self):
        if not self.is_closed:
            self.machine.at(0.5, self._status, 'node')
            self.statuses.append((self.machine.now_s, self.commanding.status()))

    def info(self, stamp_s=None):
        now_s = self.machine.time.time()
        return {'source_timestamp': round((stamp_s or now_s) * 1e9),
                'received_timestamp': round(now_s * 1e9)}

    def call(self, made, message, stamp_s):
        if self.is_closed or made not in self.node.callbacks[made.topic_name]:
            return
        made.callback(message, self.info(stamp_s))

    def _tick(self):
        self.advance()
        self.machine.at(TICK_S, self._tick, 'simulator')

    def advance(self):
        """Advance the world by a step, and send its frame."""
        self.n_ticks += 1
        if not self.is_frozen:
            self.game_time += TICK_S
            self.simulator.frame = self.n_ticks
            self.simulator.advance()
        if not self.n_ticks % self.frame_period and not self.plan.is_ticking:
            self.simulator.frame_leaves(self.frame())

    def frame(self):
        return Frame(self.game_time, self.simulator.speed, self.plan.vehicle.x, self.has_ego,
                     self.n_egos, self.simulator.pedals, has_speed=self.has_speed)

    def deliver(self, frame):
        """Have the node decode a frame."""
        if not self.are_frames_lost:
            self.machine.at(0.005 + self.is_late, lambda: self._decoded(frame), 'node')

    def _decoded(self, frame):
        if self.is_closed or (self.snapshot is not None
                              and frame.game_time == self.snapshot.frame.game_time):
            return
        self.snapshot = snapshot_of(frame, self.machine.time.perf_counter_ns())
        self.commanding.frame_arrived()

    def run(self, seconds):
        self.machine.run(seconds)

    def close(self):
        self.is_closed = True
        self.machine.close()
        self._stack.close()


class _message_class(SimpleNamespace):  # noqa: N801
    ORIGIN_COMMAND = 3

    def __init__(self, **values):
        super().__init__(header=SimpleNamespace(stamp=0, frame_id=''), **values)
