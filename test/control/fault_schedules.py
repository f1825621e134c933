# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Schedules of a stack and of faults, and what must hold after each step of each of them."""

from dataclasses import dataclass, field
import math
from types import SimpleNamespace

from driven_world import Publisher, TICK_S, Vehicle, World
from hypothesis import strategies

# Longest time from the reason to brake until the brake is written, after its own time, s.
PERIOD_S = 0.3
# The node looks this often at what no message tells it, and tries a lost way again, s.
RETRY_S = 0.75
INPUTS = {'vehicle_control': '/state_sensor/command', 'ackermann':
          '/state_sensor/command_ackermann', 'twist': '/state_sensor/command_velocity',
          'autoware': '/control/command/control_cmd'}
GEAR = '/control/command/gear_cmd'
DRIVE, REVERSE, PARK = 2, 20, 22
OWN = {'monodrive': {'control_port': 8999, 'desired_tags': ['vehicle']},
       'carla': {'control_port': 2000}, 'carla9': {}, 'sumo': {'sumo.ego': 'ego'}}


@dataclass
class Plan:
    """A schedule: ``acts`` of the stack and the faults, (time, name, value) each."""

    simulator: str = 'monodrive'
    control_input: str = 'twist'
    acts: tuple = ()
    mass: float = 1.0
    delay_s: float = 0.0
    slope: float = 0.0
    top_speed: float = 60.0
    is_ticking: bool = False
    is_held: bool = False
    own: dict = field(default_factory=dict)
    seconds: float = 12.0

    @property
    def vehicle(self):
        return Vehicle(self.mass, self.delay_s, self.slope, self.top_speed)

    @property
    def parameters(self):
        return {'source': self.simulator, 'control_input': self.control_input,
                **OWN[self.simulator], **({'carla9.tick': True} if self.is_ticking else {}),
                **self.own}


class BrokenError(AssertionError):
    """An invariant does not hold."""


class Run:
    """Plays a plan; raises :class:`BrokenError` at the first step after which one is broken."""

    def __init__(self, plan):
        self.plan = plan
        self.vehicle = plan.vehicle
        plan_with_vehicle = SimpleNamespace(
            simulator=plan.simulator, control_input=plan.control_input, vehicle=self.vehicle,
            is_ticking=plan.is_ticking, is_held=plan.is_held, parameters=plan.parameters)
        self.world = World(plan_with_vehicle)
        self.machine, self.sim = self.world.machine, self.world.simulator
        self.limits = self.world.control
        self.speed, self.acceleration, self.angle = 0.0, 0.0, 0.0
        self.delay_s, self.is_speaking, self.period_s = 0.001, True, 0.05
        self.gear = None
        self.publisher = self.gear_publisher = self.second = None
        self.last_ok_s = self.begun_s = self.turned_s = self.machine.now_s
        self.wanted_since_s = self.reason_since_s = math.inf
        self.open_since_s = self.slower_since_s = self.faster_since_s = self.machine.now_s
        self.frame_s, self.frame_time, self.frame = -math.inf, math.nan, None
        self.farthest, self.has_ended, self.faults_s = None, False, -math.inf
        self.changed_s = self.alike_s = self.begun_s
        self.history = []
        self.is_gone = self.is_held_lost = False
        self.has_late_frames = any(name == 'frames' and value[0] == 'late'
                                   for _, name, value in plan.acts)
        self._deliver, self.world._decoded = self.world._decoded, self._decoded

    # The stack.

    def message(self):
        kind = self.plan.control_input
        if kind == 'vehicle_control':
            return SimpleNamespace(
                throttle=max(self.speed, 0.0) / 10.0 if self.speed <= 10 else 1.0,
                brake=0.0 if self.speed else 1.0, steer=math.nan, steering_angle=self.angle,
                hand_brake=False, reverse=False)
        if kind == 'ackermann':
            return SimpleNamespace(drive=SimpleNamespace(
                speed=self.speed, acceleration=self.acceleration, steering_angle=self.angle))
        if kind == 'twist':
            return SimpleNamespace(twist=SimpleNamespace(
                linear=SimpleNamespace(x=self.speed), angular=SimpleNamespace(z=0.0)))
        return SimpleNamespace(
            longitudinal=SimpleNamespace(velocity=self.speed, acceleration=self.acceleration,
                                         is_defined_acceleration=True),
            lateral=SimpleNamespace(steering_tire_angle=self.angle))

    def speak(self):
        if self.is_speaking and self.publisher is not None:
            self.publisher.publish(self.message(), self.delay_s)
            self.base_s = min(self.base_s, self.delay_s)
            is_late = self.delay_s - self.base_s >= self.limits.timeout
            if not is_late and 'node' not in self.machine.stopped:
                self.last_ok_s = self.machine.now_s
        self.machine.at(self.period_s, self.speak, 'stack')

    def join(self):
        # The clock of a new publisher may be another: its first messages are not late.
        self.base_s = math.inf
        self.publisher = Publisher(self.world.node, 'stack', INPUTS[self.plan.control_input])
        if self.plan.control_input == 'autoware':
            self.gear_publisher = Publisher(self.world.node, 'stack', GEAR, is_latched=True)

    # The acts.

    def act(self, name, value):
        self.faults_s = self.machine.now_s if name not in ('speed', 'gear') else self.faults_s
        self.changed_s = self.machine.now_s
        getattr(self, f'do_{name}')(value)

    def later(self, seconds, call):
        def with_note():
            self.faults_s = self.machine.now_s
            # What failed in the last period is of the fault that ends.
            self.machine.failures.clear()
            call()
        self.machine.at(seconds, with_note, 'schedule')

    def do_speed(self, value):
        before = self.speed
        self.speed, self.acceleration, self.angle = value
        if self.plan.control_input == 'ackermann':
            self.acceleration = abs(self.acceleration)
        if (before < 0) != (self.speed < 0) or not before * self.speed:
            self.farthest, self.turned_s = None, self.machine.now_s
        if self.publisher is None:
            self.join()
            if self.plan.control_input == 'autoware':
                self.do_gear(REVERSE if self.speed < 0 else DRIVE)

    def do_gear(self, value):
        if self.gear_publisher is not None:
            self.gear = value
            self.gear_publisher.publish(SimpleNamespace(command=value))

    def do_silence(self, seconds):
        self.is_speaking = False
        self.later(seconds, lambda: setattr(self, 'is_speaking', True))

    def do_late(self, value):
        delay_s, seconds = value
        self.delay_s = delay_s
        self.later(seconds, lambda: setattr(self, 'delay_s', 0.001))

    def do_flood(self, n):
        for i in range(n):
            if self.publisher is not None:
                self.last_ok_s = self.machine.now_s
                self.publisher.publish(self.message(), 0.001 + i * 1e-4)

    def do_rival(self, seconds):
        if self.second is not None or self.publisher is None:
            return
        self.second = Publisher(self.world.node, 'other', INPUTS[self.plan.control_input])

        def leave():
            self.second.leave()
            self.second = None
        self.later(seconds, leave)

    def do_successor(self, seconds):
        """Kill the stack, whose publishers stay for a while; another one takes its place."""
        if self.publisher is None or self.second is not None:
            return
        old, old_gear = self.publisher, self.gear_publisher
        self.join()
        self.second = old
        if self.plan.control_input == 'autoware':
            self.do_gear(PARK)

        def leave():
            old.leave()
            if old_gear is not None:
                old_gear.leave()
            self.second = None
            # Messages of two publishers cannot be told apart: the way of the one that is left is
            # measured anew, and a delay that is there by then is taken for its clock.
            self.base_s = math.inf
        self.later(seconds, leave)

    def do_replies(self, value):
        delay_s, seconds = value
        if not hasattr(self.sim, 'reply_s'):
            return
        self.sim.reply_s, self.sim.replies = delay_s, delay_s < 50
        self.later(seconds, lambda: (setattr(self.sim, 'reply_s', 0.002),
                                     setattr(self.sim, 'replies', True)))

    def do_deaf(self, _):
        """Have the simulator take commands, and keep the pedals as they are."""
        self.sim.apply = lambda *_: None

    def do_rpc(self, seconds):
        if hasattr(self.sim, 'answers'):
            self.sim.answers = False
            self.later(seconds, lambda: setattr(self.sim, 'answers', True))

    def do_blocked(self, seconds):
        for port in (8999, 2002):
            self.world.network.set_blocked(port, True)
            self.later(seconds, lambda port=port: self.world.network.set_blocked(port, False))

    def do_cut(self, seconds):
        """Lose the control connection; a new one is accepted, and silent for a while."""
        if self.plan.simulator == 'monodrive':
            self.do_replies((60.0, seconds))
            self.world.network.cut(8999)
            self.sim.cut_s = self.machine.now_s

    def do_frames(self, value):
        kind, seconds = value
        world = self.world
        if kind == 'late':
            world.is_late = 0.8
            self.later(seconds, lambda: setattr(world, 'is_late', 0.0))
        elif kind == 'slow':
            world.frame_period = 36
            self.later(seconds, lambda: setattr(world, 'frame_period', 1))
        elif kind == 'frozen':
            world.is_frozen = True
            self.later(seconds, lambda: setattr(world, 'is_frozen', False))
        elif kind == 'lost':
            world.are_frames_lost = True
            self.later(seconds, lambda: setattr(world, 'are_frames_lost', False))
        elif kind == 'stall':
            # The simulator drives on and sends none.
            world.frame_period = 1 << 30
            self.later(seconds, lambda: setattr(world, 'frame_period', 1))
        elif kind == 'no ego':
            world.has_ego = False
            self.later(seconds, lambda: setattr(world, 'has_ego', True))
        elif kind == 'no speed':
            world.has_speed = False
            self.later(seconds, lambda: setattr(world, 'has_speed', True))
        elif kind == 'two egos':
            world.n_egos = 2
            self.later(seconds, lambda: setattr(world, 'n_egos', 1))
        else:
            world.game_time = max(world.game_time - 5.0, 0.0)

    def do_clock(self, seconds):
        self.machine.wall_offset_s += seconds
        self.world.stack_offset_s -= seconds

    def do_descriptors(self, seconds):
        self.world.network.has_descriptors = False
        self.later(seconds, lambda: setattr(self.world.network, 'has_descriptors', True))

    def do_exception(self, value):
        where, seconds = value
        if where == 'decision':
            gate = self.world.commanding._driver._gate
            gate.passed = self.fail
            self.later(seconds, lambda: vars(gate).pop('passed', None))
        elif where == 'graph':
            self.world.node.fail = 'graph'
            self.later(seconds, lambda: setattr(self.world.node, 'fail', None))
        else:
            self.world.fails = where
            self.later(seconds, lambda: setattr(self.world, 'fails', ''))

    def fail(self, *_):
        raise RuntimeError('a defect')

    def do_pause(self, seconds):
        """Pause by the service; another client ticks the world, if ``seconds`` is negative."""
        source = getattr(self.sim, 'source', None)
        if not (self.plan.is_ticking or self.plan.simulator == 'sumo') or source.is_paused:
            return
        source.pause()
        if seconds < 0 and self.plan.is_ticking:
            until_s = self.machine.now_s - seconds

            def other():
                if self.machine.now_s < until_s and source.is_paused:
                    self.world.advance()
                    self.machine.at(TICK_S, other, 'simulator')
            self.machine.at(0.1, other, 'simulator')
        self.later(abs(seconds), lambda: source.resume())

    def do_stop(self, value):
        process, seconds = value
        self.machine.stop(process)
        self.later(seconds, lambda: self.machine.go_on(process))

    def do_kill_helper(self, _):
        if hasattr(self.sim, 'kill_helper') and not self.plan.is_ticking:
            self.sim.kill_helper()

    def do_end(self, _):
        if not self.sim.can_write():
            return
        self.has_ended = True
        self.machine.Thread(target=self.world.commanding.end).start()

    # The checks.

    def _decoded(self, frame):
        before = self.world.snapshot
        self._deliver(frame)
        if self.world.snapshot is not before:
            self.frame = frame
            if frame.row >= 0:
                self.frame_s = self.machine.now_s

    def reasons(self):
        """Return why the ego has to brake now."""
        now_s, found = self.machine.now_s, []
        if self.has_ended:
            found.append('the node ends')
        if now_s - self.last_ok_s > self.limits.timeout:
            found.append('silence')
        # Without the graph it is not seen, and no command is accepted: the time-out brakes.
        # Late commands are refused when they arrive; until then the time-out brakes.
        if self.second is not None and self.is_speaking and self.delay_s < PERIOD_S \
                and self.world.node.fail != 'graph':
            found.append('two publishers')
        if self.is_paused():
            self.frame_s = now_s
        elif now_s - self.frame_s > self.world.settings.stale_after:
            found.append('no new frame')
        if self.frame is not None and self.frame.row < 0:
            found.append('no speed')
        if self.frame is not None and self.frame.n_egos > 1:
            found.append('two egos')
        if self.plan.control_input == 'autoware' and self.gear == PARK:
            found.append('park')
        if 'passed' in vars(self.world.commanding._driver._gate):
            found.append('a defect')
        return found

    def is_paused(self):
        source = getattr(self.sim, 'source', None)
        return source is not None and source.is_paused

    def check(self):
        now_s, writes = self.machine.now_s, self.sim.writes
        is_running = 'node' not in self.machine.stopped
        is_open = is_running and self.sim.can_write()
        if not is_open:
            self.open_since_s = math.inf
        elif math.isinf(self.open_since_s):
            self.open_since_s = now_s
        found = self.reasons()
        if not found:
            self.reason_since_s = math.inf
        elif math.isinf(self.reason_since_s):
            self.reason_since_s = now_s
        last = writes[-1] if writes else None
        since_s = max(self.reason_since_s + PERIOD_S,
                      self.open_since_s + RETRY_S if self.open_since_s > self.begun_s
                      else self.begun_s)
        is_braking = last is not None and last[1] == 0.0 and (last[2] > 0.0 or found == ['park'])
        if last is not None and now_s >= since_s and not is_braking and not (
                self.plan.simulator == 'sumo' and self.is_paused()):
            self.broken(f'no brake although: {", ".join(found)}; last write {last}')
        if last is None or abs(self.sim.pedals[0] - last[1]) < 0.01:
            self.alike_s = now_s
        self.check_speed(last, is_open, found)
        self.check_status(found, is_open)

    def check_speed(self, last, is_open, found):
        now_s, speed, limits = self.machine.now_s, self.sim.speed, self.limits
        self.history.append((now_s, speed))
        if self.is_paused() or self.world.is_late:
            # What is written has no effect, and of SUMO it is not seen; what is measured is past.
            self.faults_s = now_s
        changed_s = self.changed_s + self.delay_s
        is_reachable = is_open and now_s - self.open_since_s > 1.0
        is_speed = self.plan.control_input != 'vehicle_control'
        # An ego that was out of reach, or that another node has left moving, has to slow first.
        is_new = self.open_since_s == self.begun_s and not self.plan.is_held
        is_long = is_new or now_s - self.open_since_s > 4.0
        # A speed of 0.8 s ago: throttle and slope have gone on.
        excess = 3.5 if self.has_late_frames else 0.7
        if last is not None and is_open and is_long and abs(speed) > limits.max_speed + excess:
            self.broken(f'{speed:.1f} m/s with max_speed {limits.max_speed:g}')
        if last is not None and abs(last[3]) > limits.max_steering_angle + 1e-6:
            self.broken(f'steering {last[3]:.3f} rad')
        is_settled = now_s - changed_s > 0.3 and now_s - self.faults_s > 0.5
        if last is not None and is_open and is_settled and not found and last[2] < 1.0 \
                and self.plan.control_input in ('ackermann', 'autoware') \
                and abs(last[3] - self.world.control.steering(self.angle)[0]) > 0.01:
            self.broken(f'steering {last[3]:.3f} rad, wanted {self.angle:.3f}')
        measured = self.frame.speed if self.frame is not None else math.nan
        is_slower = is_speed and self.speed * measured >= 0.0 \
            and abs(self.speed) < abs(measured) - 0.3
        if not is_slower or not is_open or now_s - self.faults_s < 1.0 or now_s < changed_s:
            self.slower_since_s = now_s
        if last is not None and now_s - self.slower_since_s > 0.15 and last[1] > 0.02:
            self.broken(f'throttle {last[1]:.2f} at {measured:.1f} m/s, wanted {self.speed:g}')
        # Also between two frames, of which the last one says less.
        is_faster = is_speed and self.speed * speed >= 0.0 and abs(speed) > abs(self.speed) + 1.2
        if not is_faster or not is_open or now_s < changed_s + 0.5 or self.has_late_frames \
                or now_s - self.faults_s < 0.5:
            self.faster_since_s = now_s
        if last is not None and now_s - self.faster_since_s > 0.3 and last[1] > 0.02:
            self.broken(f'throttle {last[1]:.2f} at {speed:.1f} m/s, wanted {self.speed:g}')
        sign = -1 if self.speed < 0 else 1
        x = self.vehicle.x * sign
        if self.farthest is None:
            # It may have to stop first, and no command of this direction may have arrived.
            is_known = last is not None and is_speed and self.last_ok_s > self.turned_s
            self.farthest = x if speed * sign >= 0.0 and is_known else None
        elif x > self.farthest:
            self.farthest = x
        elif self.farthest - x > 0.3 and is_reachable \
                and abs(speed) < 3.0 and now_s > max(changed_s + 2.0, self.faults_s + 3.0):
            self.broken(f'{self.farthest - x:.2f} m against the wanted direction')
        since_s = max(self.changed_s, self.faults_s)
        self.check_autoware(last, found, since_s)

    def check_autoware(self, last, found, since_s):
        plan, speed, wanted = self.plan, self.sim.speed, min(self.speed, self.limits.max_speed)
        if plan.control_input != 'autoware' or last is None or found or (
                plan.mass, plan.delay_s, plan.slope, self.faults_s) != (1.0, 0.0, 0.0, -math.inf):
            return
        elapsed_s = self.machine.now_s - since_s
        allowed = max(abs(self.acceleration), 0.5) + 1.5
        if self.speed == 0.0 and self.acceleration < 0.0 and speed > 1.0 and \
                0.3 < elapsed_s < 2.0 and last[2] * 8.0 > allowed:
            self.broken(f'brakes with {last[2] * 8.0:.1f}, wanted {self.acceleration}')
        error = abs(speed - wanted)
        if elapsed_s > 6.0 + wanted / 3.0 and wanted > 1.0 and last[1] < 0.9 \
                and error > max(0.02 * wanted, 0.1):
            self.broken(f'{speed:.2f} m/s for long, wanted {wanted:g}')

    def check_status(self, found, is_open):
        if not self.world.statuses or 'node' in self.machine.stopped or self.has_ended:
            return
        now_s, (at_s, status) = self.machine.now_s, self.world.statuses[-1]
        if now_s - at_s > TICK_S * 1.5:
            return
        last = self.sim.writes[-1:]
        is_behind = not self.sim.applied or now_s - self.alike_s > 3.0
        if int(status.level) == 0 and status.message == 'commands are sent' and last and is_behind:
            self.broken(f'status "{status.message}", but the simulator takes none')
        is_braking = self.speed == 0.0 or found
        n = round(3.0 / TICK_S)
        if is_braking and now_s - max(self.changed_s, self.faults_s) > 3.5 and last \
                and len(self.history) > n and self.history[-n][1] > 1.0 \
                and self.history[-1][1] > self.history[-n][1] - 0.2 \
                and now_s - self.reason_since_s > 3.5 and not self.is_paused() \
                and int(status.level) < 2:
            self.broken(f'the ego does not obey, status "{status.message}"')
        if self.plan.is_held and not last and now_s - self.begun_s > 3.0 \
                and int(status.level) == 0:
            self.broken(f'moves at {self.sim.speed:.1f} m/s, status "{status.message}"')

    def broken(self, what):
        raise BrokenError(f'{what} (at {self.machine.now_s - self.begun_s:.2f} s)')

    def play(self):
        """Play the plan."""
        world, machine = self.world, self.machine
        try:
            if self.plan.is_held:
                self.vehicle.speed, self.sim.pedals = 10.0, (0.4, 0.0, False)
            world.start()
            machine.process = 'schedule'
            machine.at(0.05, self.speak, 'stack')
            for at_s, name, value in self.plan.acts:
                machine.at(at_s, lambda n=name, v=value: self.act(n, v), 'schedule')
            while machine.now_s - self.begun_s < self.plan.seconds:
                world.run(TICK_S)
                self.check()
                if machine.failures and not self.world.fails and not self.world.node.fail:
                    raise machine.failures[0]
                machine.failures.clear()
        finally:
            world.close()


def tenths(low, high):
    """Return a strategy of times with one decimal."""
    return strategies.integers(round(low * 10), round(high * 10)).map(lambda n: n / 10)


SECONDS = tenths(0.5, 6.0)
SPEEDS = strategies.tuples(
    strategies.sampled_from([0.0, 0.0, 0.5, 3.0, 5.0, 8.0, 9.5, 15.0, 30.0, -3.0]),
    strategies.sampled_from([0.0, 1.0, 2.0, -1.0, 8.0]), strategies.sampled_from([0.0, 0.2]))
FAULTS = {
    'silence': SECONDS, 'late': strategies.tuples(tenths(0.2, 2.5), tenths(1.0, 9.0)),
    'flood': strategies.just(50), 'rival': SECONDS, 'successor': SECONDS,
    'replies': strategies.tuples(strategies.sampled_from([0.3, 3.0, 60.0]), SECONDS),
    'rpc': SECONDS, 'blocked': SECONDS, 'cut': SECONDS,
    'frames': strategies.tuples(strategies.sampled_from(
        ['late', 'slow', 'frozen', 'lost', 'stall', 'no ego', 'no speed', 'two egos',
         'time back']), SECONDS),
    'clock': strategies.sampled_from([-100.0, -2.0, 2.0, 100.0]), 'descriptors': SECONDS,
    'exception': strategies.tuples(strategies.sampled_from(
        ['graph', 'snapshot', 'report', 'decision']),
                                   SECONDS),
    'pause': strategies.sampled_from([2.0, 5.0, -5.0]),
    'stop': strategies.tuples(strategies.sampled_from(['node', 'helper']), tenths(0.3, 3.0)),
    'kill_helper': strategies.none(), 'end': strategies.none(),
    'gear': strategies.sampled_from([DRIVE, PARK, REVERSE])}


@strategies.composite
def plans(draw, simulators=tuple(OWN), faults=tuple(FAULTS)):
    """Draw a plan: a speed at first, then speeds and faults."""
    control_input = draw(strategies.sampled_from(tuple(INPUTS)))
    acts = [(0.3, 'speed', (draw(strategies.sampled_from([5.0, 9.5, 15.0, 30.0])),
                            draw(strategies.sampled_from([0.0, 2.0, 8.0])), 0.0))]
    missing = draw(strategies.sampled_from(['', '', '', '', 'no ego', 'no speed']))
    if missing:
        acts.append((0.0, 'frames', (missing, draw(strategies.sampled_from([2.0, 60.0])))))
    for _ in range(draw(strategies.integers(1, 4))):
        at_s = draw(tenths(0.5, 6.0))
        if draw(strategies.booleans()):
            acts.append((at_s, 'speed', draw(SPEEDS)))
        else:
            name = draw(strategies.sampled_from(faults))
            acts.append((at_s, name, draw(FAULTS[name])))
    simulator = draw(strategies.sampled_from(simulators))
    slope = draw(strategies.sampled_from([0.0, 0.0, 0.0, -0.3, -0.12, 0.12, 0.3]))
    own = draw(strategies.sampled_from([
        {}, {}, {'control.max_speed': 10.0}, {'control.max_acceleration': 1.0},
        {'control.max_steering_angle': 0.5}]))
    if simulator == 'monodrive':
        own = {**own, 'sample_rate': draw(strategies.sampled_from([0.0, 10.0]))}
    # At full throttle, an ego of twice the mass does not climb the steepest slope.
    mass = 1.0 if abs(slope) > 0.2 else draw(strategies.sampled_from([1.0, 1.0, 2.0]))
    is_held = draw(strategies.integers(0, 9)) == 9 and simulator in ('monodrive', 'carla9')
    return Plan(
        simulator, control_input, () if is_held else tuple(sorted(acts, key=lambda a: a[0])),
        mass, draw(strategies.sampled_from([0.0, 0.1, 0.2])),
        0.0 if simulator == 'sumo' else slope,
        60.0, simulator == 'carla9' and draw(strategies.booleans()) and not is_held, is_held, own,
        draw(strategies.sampled_from([8.0, 8.0, 12.0])))
