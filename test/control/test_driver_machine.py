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

from contextlib import ExitStack
import math
from pathlib import Path
import re
from types import SimpleNamespace

from budgets import is_large
from driven_ego import DrivenEgo, FRAME_S, STALE_S
from hypothesis import settings, strategies
from hypothesis.stateful import initialize, rule, RuleBasedStateMachine, run_state_machine_as_test
from paths import ROOT

from state_sensor_ros.control.command_inputs import INPUTS
from state_sensor_ros.control.ego_driver import DriverState
from state_sensor_ros.control.speed_controller import limited, pedals, Setpoint
from state_sensor_ros.control.witness import FROZEN_S, OBEY_S

PAGE = ROOT / 'doc' / 'safety_case.md'
MAX_SPEED, TIMEOUT_S = 15.0, 0.5
# Defaults, m/s2 and rad/s, and by how much the speed changes between frames, m/s.
MAX_LATERAL, MAX_RATE, SPEED_STEP = 8.0, 0.7, 1.0
# A brake is written within some frames of its reason, a write that has failed again after 0.1 s.
PROMPT_S = 0.2
# From the largest speed to a stand.
STOP_S = 2.5
# Kinds of faults: after how long the ego has to brake, s, by some way.
FAULTS = {
    'silence': TIMEOUT_S, 'late': TIMEOUT_S, 'two publishers': 0.0, 'moved': 0.0,
    'lost': STALE_S, 'no ego': 0.0, 'no speed': 0.0, 'two egos': 0.0, 'fault': 0.0,
    'stopped': TIMEOUT_S,
    'frozen': FROZEN_S, 'frozen pose': FROZEN_S, 'alternating': 0.5,
    'path lost': TIMEOUT_S, 'half-open': TIMEOUT_S, 'all paths lost': math.inf,
    'all half-open': math.inf, 'two drivers': math.inf, 'two in turns': math.inf,
    'pause': math.inf}
# The ego brakes without another state: it may be back in the next frame, or nothing decides.
UNSEEN = {'no ego', 'no speed', 'stopped'}
UNWRITTEN = {'stopped', 'all paths lost', 'all half-open', 'pause'}
UNREACHED = UNWRITTEN | {'two drivers', 'two in turns'}
PATHS = {'path lost': ('lost', 'open'), 'half-open': ('half-open', 'open'),
         'all paths lost': ('lost', 'lost'), 'all half-open': ('half-open', 'half-open')}
CANNOT_WRITE = {*PATHS, 'stopped'}
FROZEN = {'frozen', 'frozen pose'}
OF_FRAMES = ('lost', 'no ego', 'no speed', 'two egos', 'alternating', *sorted(FROZEN))
UNJUDGED = {*OF_FRAMES, 'stopped', 'pause'}
RIVALS = {'two drivers': 'always', 'two in turns': 'late'}
# One of each group at a time, any groups together.
GROUPS = (('silence', 'late', 'two publishers', 'moved'), OF_FRAMES, tuple(PATHS), tuple(RIVALS),
          ('fault',), ('stopped',), ('pause',))

SECONDS = strategies.sampled_from((0.1, 0.1, 0.5, 0.5, 2.0, 4.0))
ANGLES, NUMBERS = strategies.floats(-1.0, 1.0), strategies.floats(
    allow_nan=False, allow_infinity=False)
ONE = strategies.sampled_from


class Drive(RuleBasedStateMachine):
    """A stack that goes on publishing, and faults, of which several may be present."""

    @initialize(slope=ONE((0.0, 0.1, -0.1)), delay_s=ONE((0.0, 0.1)), keeps=strategies.booleans())
    def begin(self, slope, delay_s, keeps):
        self.ego = DrivenEgo(slope, delay_s, keeps, max_speed=MAX_SPEED, max_steering_angle=0.5)
        self.wanted, self.angle = None, 0.0
        # Faults, each with its begin and the speed then; when the ego has to brake because of
        # them, and the speed that it may have then.
        self.faults, self.due_s, self.speed, self.is_frozen = {}, math.inf, 0.0, False
        # Since when what is written has an effect, and the ego has been ordered to slow.
        self.reached_s = self.slowing_s = self.ego.now_s
        # Until when the speed was not above that at the begin of a fault.
        self.above_s = self.ego.now_s
        # When a path was lost last, and when one was open again.
        self.path_s = self.open_s = -math.inf

    def speak(self):
        """Publish as the present faults let it arrive."""
        driver, faults = self.ego.driver, self.faults
        if self.wanted is None or 'silence' in faults or 'stopped' in faults:
            return
        if 'two publishers' in faults:
            driver.refuse('two publishers', blocks=True)
        else:
            driver.accept(self.wanted, 1, 3.0 if 'late' in faults else 0.0)

    @rule(speed=ONE((0.0, 0.5, 5.0, 14.0, 40.0, -3.0)), angle=ANGLES,
          limit=ONE((math.inf, 1.0, 8.0)), seconds=SECONDS)
    def want_speed(self, speed, angle, limit, seconds):
        self.wanted = limited(Setpoint(speed=speed, steering_angle=angle, max_acceleration=limit),
                              self.ego.parameters)
        self.drive(seconds)

    @rule(throttle=ONE((0.0, 0.3, 1.0)), brake=ONE((0.0, 0.4)), angle=ANGLES,
          reverse=strategies.booleans(), seconds=SECONDS)
    def want_pedals(self, throttle, brake, angle, reverse, seconds):
        self.wanted = pedals(throttle, brake, math.nan, angle, self.ego.parameters,
                             reverse=reverse and abs(self.ego.vehicle.speed) < 0.1)
        self.drive(seconds)

    @rule(speed=strategies.one_of(ONE((0.0, -0.0, -3.0, 14.0)), NUMBERS), rate=strategies.one_of(
        ONE((0.0, 0.01, 1e-310)), NUMBERS), seconds=SECONDS)
    def want_twist(self, speed, rate, seconds):
        self.wanted = INPUTS['twist'](self.ego.parameters).wanted(None, SimpleNamespace(
            twist=SimpleNamespace(linear=SimpleNamespace(x=speed),
                                  angular=SimpleNamespace(z=rate))))
        self.drive(seconds)

    @rule(fault=ONE(('', '', '', *FAULTS)), seconds=SECONDS)
    def fail(self, fault, seconds):
        """Begin a fault, in place of another one of its group, or end it, or all with ''."""
        ego, now_s, before = self.ego, self.ego.now_s, self.faults
        group = next((group for group in GROUPS if fault in group), FAULTS)
        self.faults = after = {kind: begin for kind, begin in before.items() if kind not in group}
        if fault and fault not in before:
            after[fault] = now_s, abs(ego.vehicle.speed)
        if (before.keys() | after.keys()) & (UNREACHED | FROZEN):
            self.reached_s = now_s + abs(ego.vehicle.speed) / 6.0
        if (before.keys() | after.keys()) & UNWRITTEN:
            self.open_s = now_s + TIMEOUT_S
        # What is frozen may also stand, until it is to move: others count before it.
        counted = after.keys() - FROZEN or after.keys()
        self.is_frozen = bool(counted & FROZEN)
        self.due_s, self.speed = min(((max(after[kind][0], self.open_s) + FAULTS[kind],
                                       after[kind][1]) for kind in counted),
                                     default=(math.inf, 0.0))
        # A brake that does not arrive comes by another path; a command that stays, also that of a
        # fault that has ended, is not written again before its time.
        is_cut = after.keys() & {'path lost', 'half-open'}
        self.due_s += TIMEOUT_S if is_cut and len(before.keys() | after.keys()) > 1 else 0.0
        frames, paths, rivals = (next((kind for kind in kinds if kind in after), '')
                                 for kinds in (OF_FRAMES, PATHS, RIVALS))
        ego.frames, ego.rival = frames or 'all', RIVALS.get(rivals, '')
        ego.fault = 'another client steps' if 'fault' in after else ''
        ego.main, ego.spare = PATHS.get(paths, ('open', 'open'))
        ego.is_paused, ego.is_stopped = 'pause' in after, 'stopped' in after
        if 'moved' in before and 'moved' not in after:
            ego.vehicle.place, ego.vehicle.heading = (-40.0, 9.0, 0.0), 2.0
            self.hold.close()
        elif 'moved' in after and 'moved' not in before:
            self.hold = ExitStack()
            self.hold.enter_context(ego.driver.held())
        self.drive(seconds)

    def drive(self, seconds):
        for _ in self.ego.advance(seconds, self.speak):
            self.check()

    def check(self):
        """Check what must hold at each tick."""
        ego, held, now_s = self.ego, self.ego.held, self.ego.now_s
        speed = abs(ego.vehicle.speed)
        if self.faults.keys() & CANNOT_WRITE:
            self.path_s = now_s
        if held is None:
            self.reached_s, self.slowing_s = now_s + abs(ego.vehicle.speed) / 6.0, now_s
            return
        self.check_steering(held, now_s)
        kinds = self.faults.keys() - (set() if ego.keeps else {'stopped'})
        # On a slope an ego that cannot be reached gains speed.
        if not kinds & (UNREACHED | FROZEN) and now_s > self.reached_s + 4.0:
            assert speed < MAX_SPEED + 1.0
        left_s = -math.inf if self.wanted is None or kinds & UNWRITTEN \
            else now_s - self.due_s - PROMPT_S
        # Down a slope an ego rolls that seems to stand.
        if speed < self.speed + 1.0 or left_s < 0.0 or kinds & UNREACHED \
                or now_s < self.reached_s or (self.is_frozen and ego.vehicle.slope):
            self.above_s = now_s
        told = self.faults, self.speed, speed, ego.driver.state, held
        assert now_s < self.above_s + FROZEN_S * self.is_frozen + STOP_S, told
        if left_s > 0.0 and not self.is_frozen:
            assert (held.throttle, held.brake) == (0.0, 1.0), told
            assert self.faults.keys() & UNSEEN or ego.driver.state not in (
                DriverState.DRIVING, DriverState.IDLE), told
        self.check_witness(held, now_s)

    def check_witness(self, held, now_s):
        """Check that a brake that has no effect is named; the other client drives forward."""
        if 'two drivers' not in self.faults or self.faults.keys() & UNJUDGED \
                or held.brake < 1.0 or self.ego.vehicle.speed < 0.5:
            self.slowing_s = now_s
        elif now_s - self.slowing_s > OBEY_S + 1.0:
            assert self.ego.driver.disobedience

    def check_steering(self, held, now_s):
        """Check the angle that the simulator has, and its change, by the last measured speed."""
        ego, before = self.ego, self.angle
        self.angle, last = held.steering_angle, ego.watch.last
        speed = abs(last.speed) if last.pose else math.nan
        slowest, fastest = (math.atan2(MAX_LATERAL * ego.parameters.wheelbase, each ** 2)
                            for each in (max(speed - SPEED_STEP, 0.0), speed + SPEED_STEP))
        assert abs(self.angle) <= ego.parameters.max_steering_angle + 1e-9
        is_lost = now_s - self.path_s < 2 * TIMEOUT_S
        assert is_lost or math.isnan(speed) or abs(self.angle) < slowest + 1e-9
        # The rest of one frame and the next one may meet; the speed counts more than the rate.
        # What is not proven yet counts as written.
        assert abs(self.angle - before) < 2 * MAX_RATE * FRAME_S + 1e-9 or (
            abs(self.angle) < abs(before) and abs(before) > fastest) or is_lost

    def teardown(self):
        """End: the last write is the brake, and nothing comes afterward."""
        if not hasattr(self, 'ego'):
            return
        ego = self.ego
        ego.main = ego.spare = 'open'
        self.faults, ego.is_stopped = {}, False
        ego.driver.end()
        assert ego.last is None or (
            self.wanted is not None and (ego.last.throttle, ego.last.brake) == (0.0, 1.0))
        n_sent = len(ego.sent)
        self.speak()
        ego.decide()
        assert len(ego.sent) == n_sent


def test_safety_case_has_each_fault_with_its_time_and_what_shows_it():
    text, tests = PAGE.read_text(encoding='utf-8'), Path(__file__).read_text(encoding='utf-8')
    found = {}
    for seconds, shown in re.findall(r'^\|.*\| ([\d.–]+) \| (`.*`) \|$', text, re.MULTILINE):
        for name in re.findall('`(.*?)`', shown):
            assert name in FAULTS or (ROOT / name).is_file() or f'def {name}(' in tests, name
            found.setdefault(name, math.inf if seconds == '–' else float(seconds))
    assert {name: found.get(name) for name in FAULTS} == FAULTS


# 20,000 steps in `make test-all`, 1,000 in `make test`.
def test_no_acts_and_faults_break_an_invariant():
    run_state_machine_as_test(Drive, settings=settings(
        max_examples=400 if is_large() else 20, stateful_step_count=50))
