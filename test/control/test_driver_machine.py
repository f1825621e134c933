# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
Any commands and faults at any time: the speed, the brake and the steering stay within bounds.

Commands and the kinds of faults of ``doc/safety_case.md`` are drawn, on a simulated clock.
"""

import math
from types import SimpleNamespace

from budgets import tries
from driven_ego import DrivenEgo, FRAME_S, STALE_S
from hypothesis import given, settings, strategies

from state_sensor_ros.control.command_inputs import INPUTS
from state_sensor_ros.control.ego_driver import DriverState
from state_sensor_ros.control.speed_controller import limited, pedals, Setpoint

MAX_SPEED, TIMEOUT_S, UNANSWERED_S = 15.0, 0.5, 1.0
# Defaults, m/s2 and rad/s, and by how much the speed changes between frames, m/s.
MAX_LATERAL, MAX_RATE, SPEED_STEP = 8.0, 0.7, 1.0
# A brake is written within some frames of its reason, a write that has failed again after 0.1 s.
PROMPT_S = 0.2
# Kinds of faults: what they do, and after how long the ego has to brake, s.
FAULTS = {
    'silence': TIMEOUT_S, 'late': TIMEOUT_S, 'rival': 0.0, 'lost': STALE_S, 'no ego': 0.0,
    'no speed': 0.0, 'two egos': 0.0, 'fault': 0.0, 'unwritten': math.inf,
    'unanswered': UNANSWERED_S, 'pause': math.inf, 'stopped': TIMEOUT_S}
# The ego brakes without another state: it may be back in the next frame, or nothing decides.
UNSEEN = ('no ego', 'no speed', 'stopped')
UNREACHED = {'unwritten', 'unanswered', 'pause'}
CANNOT_WRITE = ('unwritten', 'stopped')
OF_FRAMES = ('lost', 'no ego', 'no speed', 'two egos')


class Drive:
    """A stack that goes on publishing, and faults, one after the other."""

    def __init__(self, slope, delay_s):
        self.ego = DrivenEgo(slope, delay_s, max_speed=MAX_SPEED, max_steering_angle=0.5)
        self.wanted, self.fault, self.begun_s, self.angle = None, '', 0.0, 0.0
        # Since when what is written has an effect.
        self.reached_s = self.ego.now_s

    def speak(self):
        """Publish as the present fault lets it arrive."""
        driver = self.ego.driver
        if self.wanted is None or self.fault in ('silence', 'stopped'):
            return
        if self.fault == 'rival':
            driver.refuse('two publishers')
            driver.block()
        else:
            driver.accept(self.wanted, 1, 3.0 if self.fault == 'late' else 0.0)

    def want_speed(self, speed, angle, limit):
        self.wanted = limited(Setpoint(speed=speed, steering_angle=angle, max_acceleration=limit),
                              self.ego.parameters)

    def want_pedals(self, throttle, brake, angle, reverse):
        self.wanted = pedals(throttle, brake, math.nan, angle, self.ego.parameters,
                             reverse=reverse and abs(self.ego.vehicle.speed) < 0.1)

    def want_twist(self, speed, rate):
        self.wanted = INPUTS['twist'](self.ego.parameters).wanted(None, SimpleNamespace(
            twist=SimpleNamespace(linear=SimpleNamespace(x=speed),
                                  angular=SimpleNamespace(z=rate))))

    def fail(self, fault):
        """Begin a fault, or end the present one with ''."""
        ego, now_s = self.ego, self.ego.now_s
        if {self.fault, fault} & UNREACHED:
            self.reached_s = now_s
        self.fault, self.begun_s = fault, now_s
        ego.frames = fault if fault in OF_FRAMES else 'all'
        ego.fault = 'another client steps' if fault == 'fault' else ''
        ego.is_open, ego.is_taken = fault != 'unwritten', fault != 'unanswered'
        ego.is_paused, ego.is_stopped = fault == 'pause', fault == 'stopped'

    def drive(self, seconds):
        for _ in self.ego.advance(seconds, self.speak):
            self.check()

    def check(self):
        """Check what must hold at each tick."""
        ego, last = self.ego, self.ego.last
        if ego.sent:
            self.check_steering()
        if last is None:
            self.reached_s = ego.now_s
            assert abs(ego.vehicle.speed) < 0.1 or ego.vehicle.slope, 'moves without a command'
            return
        held = last.now(ego.now_s)
        # On a slope an ego that cannot be reached gains speed.
        if self.fault not in UNREACHED and ego.now_s > self.reached_s + 4.0:
            assert abs(ego.vehicle.speed) < MAX_SPEED + 1.0
        bound_s = FAULTS.get(self.fault, math.inf)
        if self.wanted is not None and ego.now_s > self.begun_s + bound_s + PROMPT_S:
            assert held.throttle == 0.0, (self.fault, ego.driver.state, held)
            assert held.brake == 1.0, (self.fault, ego.driver.state, held)
            assert self.fault in UNSEEN or ego.driver.state not in (
                DriverState.DRIVING, DriverState.IDLE)

    def check_steering(self):
        """Check the angle that was written last, and its change, by the last measured speed."""
        ego, before = self.ego, self.angle
        self.angle, speed = ego.sent[-1].steering_angle, abs(ego.watch.last.speed)
        slowest, fastest = (math.atan2(MAX_LATERAL * ego.parameters.wheelbase, each ** 2)
                            for each in (max(speed - SPEED_STEP, 0.0), speed + SPEED_STEP))
        assert abs(self.angle) <= ego.parameters.max_steering_angle + 1e-9
        assert self.fault in CANNOT_WRITE or math.isnan(speed) or abs(self.angle) < slowest + 1e-9
        # The rest of one frame and the next one may meet; the speed counts more than the rate.
        assert abs(self.angle - before) < 2 * MAX_RATE * FRAME_S + 1e-9 or (
            abs(self.angle) < abs(before) and abs(before) > fastest)

    def end(self):
        """End: the last write is the brake, and nothing comes afterward."""
        ego = self.ego
        self.fail('')
        ego.driver.end()
        assert ego.last is None or (ego.last.throttle, ego.last.brake) == (0.0, 1.0)
        n_sent = len(ego.sent)
        self.speak()
        ego.decide()
        assert len(ego.sent) == n_sent


just, one = strategies.just, strategies.sampled_from
ANGLES, NUMBERS = strategies.floats(-1.0, 1.0), strategies.floats(
    allow_nan=False, allow_infinity=False)
ACTS = strategies.one_of(
    strategies.tuples(just(Drive.want_speed), one((0.0, 0.5, 5.0, 14.0, 40.0, -3.0)), ANGLES,
                      one((math.inf, 1.0, 8.0))),
    strategies.tuples(just(Drive.want_pedals), one((0.0, 0.3, 1.0)), one((0.0, 0.4)), ANGLES,
                      strategies.booleans()),
    strategies.tuples(just(Drive.want_twist), *[
        strategies.one_of(one((0.0, -0.0, -3.0, 14.0)), NUMBERS) for _ in range(2)]),
    strategies.tuples(just(Drive.fail), one(('', *FAULTS))))


# 2,000 acts in `make test`.
@settings(max_examples=tries(80))
@given(one((0.0, 0.1, -0.1)), one((0.0, 0.1)), strategies.lists(
    strategies.tuples(ACTS, one((0.1, 0.5, 2.0, 4.0))), min_size=20, max_size=50))
def test_no_acts_and_faults_break_an_invariant(slope, delay_s, plan):
    drive = Drive(slope, delay_s)
    for (act, *values), seconds in plan:
        act(drive, *values)
        drive.drive(seconds)
    drive.end()
