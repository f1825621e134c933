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

from state_sensor_ros.control.ego_commands import ControlParameters
from state_sensor_ros.control.ego_driver import EgoDriver
from state_sensor_ros.control.gate import DriverState
from state_sensor_ros.control.witness import EgoFrame, EgoWatch
from state_sensor_ros.errors import TransportError

TICK_S, STALE_S, FRAME_S = 0.025, 2.0, 0.05


class Vehicle:
    """An ego for which 4 and 8 m/s2 are full throttle and brake; pedals act after a delay."""

    def __init__(self, slope=0.0, delay_s=0.0):
        self.slope, self.speed = slope, 0.0
        self._pedals = deque([(0.0, 0.0, False)], maxlen=1 + round(delay_s / TICK_S))

    def advance(self, throttle, brake, reverse):
        self._pedals.append((throttle, brake, reverse))
        throttle, brake, reverse = self._pedals[0]
        push = 4.0 * throttle * (-1 if reverse else 1) - 9.81 * math.sin(self.slope)
        if self.speed == 0.0 and abs(push) <= 8.0 * brake:
            return
        speed = self.speed + TICK_S * push
        self.speed = math.copysign(max(abs(speed) - TICK_S * 8.0 * brake, 0.0), speed)


class DrivenEgo:
    """
    The world in which a driver drives: it is also the sender of the simulator.

    As a simulator that keeps a command does, it uses ``command.now()`` at each tick.

    :ivar is_open: whether a write arrives, ``is_taken`` whether one that arrived has an effect.
    :ivar is_stopped: whether the process of the driver stands.
    :ivar frames: what frames have of the ego: 'all', 'lost', 'no ego', 'no speed', 'two egos'.
    """

    def __init__(self, slope=0.0, delay_s=0.0, **own):
        self.now_s, self.vehicle = 100.0, Vehicle(slope, delay_s)
        self.parameters = ControlParameters(**own)
        self.is_open, self.is_taken, self.is_stopped = True, True, False
        self.is_paused, self.fault, self.frames, self.game_time = False, '', 'all', 0.0
        self.last, self.sent, self.reports, self.n_brakes = None, [], [], 0
        self._unanswered_s = self._frame_s = None
        self.watch = EgoWatch(self.clock)
        self.driver = EgoDriver(
            self.parameters, self, lambda: self.watch.motion(self.fault, is_paused=self.is_paused),
            stale_after=STALE_S, on_sent=self.sent.append, on_defect=self.defect,
            report=lambda kind, text: self.reports.append((kind, text)), clock=self.clock)
        self.deliver()

    def clock(self):
        return self.now_s

    def defect(self, error):
        raise error

    def send(self, command):
        if not self.is_open:
            raise TransportError('simulator', 'nothing', 'a reply')
        if not self.is_taken:
            self._unanswered_s = self._unanswered_s or self.now_s
            return
        self._unanswered_s, self.last = None, command

    def unanswered_s(self):
        return self.now_s - self._unanswered_s if self._unanswered_s else 0.0

    def brake(self):
        """Brake by the other way, which works."""
        self.n_brakes += 1
        if self.last is not None:
            self.last = self.last.full_brake()

    def close(self):
        """End: nothing is kept."""

    def deliver(self):
        """Deliver a frame as ``frames`` says."""
        if self.frames != 'lost' and not self.is_stopped:
            has_ego = self.frames != 'no ego'
            self.watch.see(EgoFrame(
                self.now_s, self.game_time,
                self.vehicle.speed if self.frames in ('all', 'two egos') else math.nan,
                self.vehicle.slope, has_ego, 2 if self.frames == 'two egos' else int(has_ego)))
            self.driver.frame_arrived()
        self._frame_s = self.now_s

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
                command = self.last and self.last.now(self.now_s)
                pedals = (command.throttle, command.brake, command.reverse) if command \
                    else (0.0, 0.0, False)
                self.vehicle.advance(*pedals)
                if self.now_s - self._frame_s > FRAME_S - TICK_S / 2:
                    self.deliver()
            self.decide()
            yield
