# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""A driver without its thread, the ego that it drives, and the clock of both."""

from collections import deque
import math

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand
from state_sensor_ros.control.ego_driver import EgoDriver
from state_sensor_ros.control.gate import DriverState, EgoMotion
from state_sensor_ros.control.witness import EgoWatch
from state_sensor_ros.errors import TransportError

TICK_S, STALE_S, FRAME_S = 0.025, 2.0, 0.05
RIVAL = EgoCommand(throttle=1.0, brake=0.0, steer=0.2, steering_angle=0.25)


class Vehicle:
    """An ego for which 4 and 8 m/s2 are full throttle and brake; pedals act after a delay."""

    def __init__(self, slope=0.0, delay_s=0.0, wheelbase=2.9):
        self.slope, self.speed, self._wheelbase = slope, 0.0, wheelbase
        self.place, self.heading = (0.0, 0.0, 0.0), 0.0
        self._commands = deque([None], maxlen=1 + round(delay_s / TICK_S))

    @property
    def pose(self):
        """Return place and quaternion; the body is turned, then looks up the slope."""
        (sine, cosine), (up, flat) = (
            (math.sin(angle / 2), math.cos(angle / 2)) for angle in (self.heading, self.slope))
        return (*self.place, sine * up, -cosine * up, sine * flat, cosine * flat)

    def advance(self, command):
        self._commands.append(command)
        command = self._commands[0]
        if command is None:
            return
        push = 4.0 * command.throttle * (-1 if command.reverse else 1) \
            - 9.81 * math.sin(self.slope)
        if self.speed or abs(push) > 8.0 * command.brake:
            speed = self.speed + TICK_S * push
            self.speed = math.copysign(max(abs(speed) - TICK_S * 8.0 * command.brake, 0.0), speed)
        along = TICK_S * self.speed
        self.heading += along * math.tan(command.steering_angle) / self._wheelbase
        x, y, z = self.place
        self.place = (x + along * math.cos(self.heading), y + along * math.sin(self.heading),
                      z + along * math.sin(self.slope))


class DrivenEgo:
    """
    The world in which a driver drives: it is also the sender of the simulator.

    :param follows: whether the simulator is to follow speeds; it does not: another client drives.
    :ivar main: the path of commands: 'open', 'lost', or 'half-open': nothing arrives.
    :ivar spare: the same of the one of a last brake.
    :ivar keeps: whether the simulator keeps a command as it is, not by its times.
    :ivar is_stopped: whether the process of the driver stands.
    :ivar rival: another client: '', 'late' if it presses after each second command, or 'always'.
    :ivar frames: what frames have of the ego: 'all', 'lost', 'no ego', 'no speed', 'two egos',
        'frozen' as it was, 'frozen pose', or 'alternating' between the last two.
    """

    def __init__(self, slope=0.0, delay_s=0.0, keeps=False, follows=False, **own):
        self.now_s, self.vehicle = 100.0, Vehicle(slope, delay_s)
        self.parameters = ControlParameters(**own)
        self.main = self.spare = 'open'
        self.rival, self.keeps, self.is_stopped = '', keeps, False
        self.is_paused, self.fault, self.frames, self.game_time = False, '', 'all', 0.0
        self.last, self.sent, self.reports, self.n_brakes = None, [], [], 0
        # Writes, those that arrived, also by the last frame, and those that a frame has shown.
        self._n_written = self._n_arrived = self._n_read = self._n_taken = 0
        # The last two frames with the whole truth.
        self._true = deque([(-FRAME_S, 0.0, self.vehicle.pose)], maxlen=2)
        self._frame_s = self.now_s
        self.watch = EgoWatch(self.clock)
        self.driver = EgoDriver(
            self.parameters, self, lambda: self.watch.motion(self.fault, is_paused=self.is_paused),
            stale_after=STALE_S, follows_speed=follows, clock=self.clock,
            on_sent=self.sent.append, on_defect=self.defect,
            report=lambda kind, text: self.reports.append((kind, text)))
        self.deliver()

    def clock(self):
        return self.now_s

    def defect(self, error):
        raise error

    def write(self, command):
        self._n_written = number = self._n_written + 1
        if self.main == 'lost':
            raise TransportError('simulator', 'nothing', 'a reply')
        if self.main == 'open':
            self._n_arrived, self.last = number, command
        return lambda: self._n_taken >= number

    def brake(self):
        """Brake by the other way."""
        self.n_brakes += 1
        if self.spare == 'lost':
            raise TransportError('simulator', 'nothing', 'a reply')
        if self.spare == 'open' and self.last is not None:
            self.last = self.last.full_brake()

    def close(self):
        """End: nothing is kept."""

    @property
    def held(self):
        """Return what the simulator reads now, None before the first command."""
        return self.last if self.keeps or self.last is None else self.last.now(self.now_s)

    def deliver(self):
        """Deliver a frame as ``frames`` says."""
        self._frame_s = self.now_s
        self._n_taken, self._n_read = self._n_read, self._n_arrived
        if not self.frames.startswith(('frozen', 'alternating')):
            self._true.append((self.game_time, self.vehicle.speed, self.vehicle.pose))
        if self.frames == 'lost' or self.is_stopped:
            return
        kept, speed, pose = self._true[-1]
        if self.frames == 'alternating':
            self._true.rotate()
        if self.frames == 'frozen pose':
            speed = self.vehicle.speed
        self.watch.see(EgoMotion(
            math.nan if self.frames == 'no speed' else speed,
            kept if self.frames == 'alternating' else self.game_time, climb=self.vehicle.slope,
            n_egos=1 + (self.frames == 'two egos'),
            pose=() if self.frames == 'no ego' else pose), self.now_s)
        self.driver.frame_arrived()

    def decide(self):
        """Do what the thread of the driver does."""
        while not self.is_stopped and self.driver.state is not DriverState.CLOSED \
                and self.driver.next_s <= self.now_s:
            self.driver.step()

    def advance(self, seconds, speak=lambda: None):
        """Let time pass; ``speak`` is called at 20 Hz, as a stack publishes."""
        for i in range(round(seconds / TICK_S)):
            if i % 2 == 0:
                speak()
            self.decide()
            self.now_s += TICK_S
            if not self.is_paused:
                self.game_time += TICK_S
                is_rival = self.rival == 'always' or (self.rival == 'late' and i % 4 < 2)
                self.vehicle.advance(RIVAL if is_rival else self.held)
                if self.now_s - self._frame_s > FRAME_S - TICK_S / 2:
                    self.deliver()
            self.decide()
            yield
