# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The thread that sends commands to the ego: what the gate passes, and again while it brakes.

What others order (IDLE before the first command, BLOCKED and LEFT brake), then the gate, then the
witness decide about the state; each other one than DRIVING is full brake:

    order    --accept--> DRIVING   IDLE --brake_left--> LEFT   any --refuse(blocks)--> BLOCKED
    DRIVING  --gate, witness--> DRIVING, TIMED_OUT, SEVERAL, FAULT, STALE, UNANSWERED, DISOBEYED
    any      --exception--> DEFECT, for one step   any --end--> CLOSED, after the last brake
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
import math
from queue import Full, Queue
import threading
import time
from typing import ParamSpec, TypeVar

from state_sensor_ros.control import ego_commands, speed_controller
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, EgoCommands
from state_sensor_ros.control.gate import DriverState, EgoMotion, Gate
from state_sensor_ros.control.speed_controller import Setpoint
from state_sensor_ros.control.witness import Witness
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.source import Report

# Period of a repeated brake, s: the simulator may have been restarted since. Of a command that
# drives, or has not been sent.
_BRAKE_PERIOD_S, _PERIOD_S = 0.5, 0.1
# What changes with the time is looked at this much later.
_LATER_S = 0.001
# Shortest time between two equal commands of a stack, s.
_SHORTEST_S = 0.002
# A command that is not proven for longer is worth a word, s.
_UNPROVEN_S = 0.25
# Limits of the end, s: until another thread sends the last brake, and for the end of the
# simulator's commands as a whole. A program has to end within 2 s of a signal.
_PROMPT_S, _END_S = 0.1, 0.65
_N_LATENCIES, _MOST_WAITING, _MOST_UNPROVEN = 4096, 1000, 64
# Pedals of a stack that brake at least so much, and a speed so much below the ego's, m/s, are
# orders to slow.
_BRAKES, _SLOWER = 0.5, 1.0
_Given = ParamSpec('_Given')
_Result = TypeVar('_Result')


@dataclass(slots=True)
class CommandCounters:
    """
    Numbers of commands, which never decrease.

    ``n_sent`` includes brakes; ``n_unsent`` failed attempts; ``latencies_ns`` from the receipt of
    a command until it is written, without repeated commands.
    """

    n_received: int = 0
    n_refused: int = 0
    n_sent: int = 0
    n_unsent: int = 0
    n_timeouts: int = 0
    last_refusal: str = ''
    latencies_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_N_LATENCIES))


class LateCalls:
    """Make calls in their order in a thread; drop new ones while too many wait."""

    def __init__(self, on_defect: Callable[[Exception], None]) -> None:
        self._on_defect = on_defect
        self._waiting: Queue[Callable[[], object] | None] = Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True, name='reports')
        self._thread.start()

    def late(self, call: Callable[_Given, object]) -> Callable[_Given, None]:
        """Return a function that has a call made soon, and returns at once."""
        return lambda *given, **named: self._put(partial(call, *given, **named))

    def close(self, seconds: float) -> None:
        """Wait until the calls are made; what takes longer is dropped."""
        self._put(None)
        self._thread.join(seconds)

    def _put(self, call: Callable[[], object] | None) -> None:
        with suppress(Full):
            self._waiting.put_nowait(call)

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                call()
            except Exception as error:  # noqa: BLE001
                # A defect in the code of a report must not end the other reports.
                self._on_defect(error)


class EgoDriver:
    """
    Decide what is sent to the ego, and send it: in a thread of its own after :meth:`start`.

    All methods but :meth:`step` are called from any thread. Without a thread the caller calls
    :meth:`step` after each change, and at :attr:`next_s`. What it calls, but for the commands,
    must not wait, as for a log.

    :param parameters: gains, limits and the time-out.
    :param commands: sender of the simulator.
    :param motion: returns the ego's motion.
    :param stale_after: age of the last frame of the ego above which it brakes, s.
    :param follows_speed: whether a controller of the simulator follows wanted speeds.
    :param on_sent: called with each command that was written.
    :param before_first: called before a command is written while none has been.
    :param report: called with a kind, for throttling, and a line.
    :param on_defect: called with an unexpected exception.
    :param clock: returns the steady time, s.
    :ivar state: what the driver does.
    :ivar failure: why the last write has failed, empty if it has not.
    :ivar next_s: steady time at which to decide again without a change; -inf for now.
    """

    def __init__(self, parameters: ControlParameters, commands: EgoCommands,
                 motion: Callable[[], EgoMotion], *, stale_after: float,
                 on_sent: Callable[[EgoCommand], None], report: Report,
                 on_defect: Callable[[Exception], None], follows_speed: bool = False,
                 before_first: Callable[[], None] = lambda: None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.counters = CommandCounters()
        self._parameters, self._commands, self._motion = parameters, commands, motion
        self._stale_after = stale_after
        self._on_sent, self._report, self._on_defect = on_sent, report, on_defect
        self._before_first, self._clock = before_first, clock
        self._gate, self._witness = Gate(parameters, stale_after), Witness(parameters)
        self._controller = speed_controller.SpeedController(
            parameters, follows_speed=follows_speed)
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self.state = self._order = DriverState.IDLE
        self._wanted: Setpoint | EgoCommand | None = None
        self._is_closed = False
        # When the wanted command was accepted, s, and received, 0 once that is noted.
        self._accepted_s, self._received_ns = -math.inf, 0
        # Commands that were sent earlier are for another place of the ego; set by each brake.
        self._placed_s, self._has_braked = -math.inf, threading.Event()
        # Whether to write although nothing has changed.
        self._is_new, self.next_s = False, math.inf
        # When it was last attempted to write a command, and to brake in another way.
        self._written_s = self._otherwise_s = -math.inf
        self._last = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)
        # Steering angles of the last command that was written, and of the last one that is proven.
        self._angle = self._proven_angle = 0.0
        self.failure = ''
        # Times, angles and proofs of the last writes without one, and since when there are some.
        self._unproven: deque[tuple[float, float, ego_commands.Proof]] = deque()
        self._since_s, self._unproven_s = math.inf, 0.0
        # Set when the last brake was sent or, without a command before, is not needed.
        self._is_released = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Decide in a thread from now on."""
        self._thread = threading.Thread(target=self._work, daemon=True, name='commands')
        self._thread.start()

    @property
    def disobedience(self) -> str:
        """Return what is known of an ego that is measured to do otherwise, empty if it obeys."""
        fault, age_s = self._witness.fault, self._motion().age_s
        why = f'not written: {self.failure}' if self.failure \
            else f'not proven for {self._unproven_s:.1f} s' if self._unproven_s > _UNPROVEN_S \
            else f'written; its last new frame is {age_s:.1f} s old' if age_s > 1.0 \
            else 'written; another client or a slope drives it, or its brakes are weak'
        return f'the ego does not obey: {fault}, {why}' if fault else ''

    def accept(self, wanted: Setpoint | EgoCommand, received_ns: int, age_s: float = 0.0) -> None:
        """
        Send a command; it replaces one that waits. One that is older than the time-out is refused.

        :param wanted: command within its limits.
        :param received_ns: ``time.perf_counter_ns()`` at its receipt.
        :param age_s: time that it waited before, s.
        """
        if age_s >= self._parameters.timeout:
            self.refuse(f'the command waited {age_s:.3g} s, longer than control.timeout')
            return
        with self._changed:
            if self._clock() - age_s < self._placed_s:
                self.refuse('the command was sent before the ego was moved to another place')
                return
            self.counters.n_received += 1
            self._wanted, self._received_ns = wanted, received_ns
            self._accepted_s = self._clock() - age_s
            self._wake(DriverState.DRIVING)

    def revise(self, wanted: Setpoint | EgoCommand) -> None:
        """Replace the last accepted command, whose age stays."""
        with self._changed:
            if self._wanted is not None and wanted != self._wanted:
                self._wanted = wanted
                self._wake(self._order)

    def refuse(self, why: str, *, blocks: bool = False) -> None:
        """
        Count a command that is not used; it does not restart the time-out.

        :param why: reason, one line.
        :param blocks: whether to brake until the next command is accepted.
        """
        with self._changed:
            self.counters.n_received += 1
            self.counters.n_refused += 1
            self.counters.last_refusal = why
            if blocks and self._order is not DriverState.BLOCKED:
                self._wake(DriverState.BLOCKED)

    def brake_left(self) -> None:
        """Brake an ego that another node has left, until the next command is accepted."""
        with self._changed:
            if self._order is DriverState.IDLE:
                self._wake(DriverState.LEFT)

    @contextmanager
    def held(self) -> Iterator[bool]:
        """
        Brake an ego that was driven; afterward it brakes until a command that is sent later.

        Provides whether the brake was written in time.
        """
        with self._changed:
            self._placed_s = math.inf
            self._has_braked.clear()
            if is_driven := self._order is not DriverState.IDLE:
                self._wake(DriverState.BLOCKED)
        try:
            yield not is_driven or self._has_braked.wait(_END_S if self._thread else 0.0)
        finally:
            self._placed_s = self._clock()

    def frame_arrived(self) -> None:
        """Decide again: the ego's motion has changed."""
        if self.state is not DriverState.IDLE:
            with self._changed:
                self.next_s = -math.inf
                self._changed.notify_all()

    def end(self) -> None:
        """
        Send full brake, if anything was ordered before, and nothing afterward.

        It waits for :data:`_PROMPT_S` at most, and may be called from any thread.
        """
        with self._changed:
            self._is_closed = True
            self.state = DriverState.CLOSED
            self._changed.notify_all()
        if self._thread is None:
            self._finish()
        elif self._order is not DriverState.IDLE and not self._is_released.wait(_PROMPT_S):
            # It is in a call of the simulator, which should not wait, or the process is slow.
            last = threading.Thread(target=self._send_last, daemon=True)
            last.start()
            last.join(_PROMPT_S)

    def close(self) -> None:
        """As :meth:`end`; then end within :data:`_END_S`."""
        until_s = time.monotonic() + _END_S
        self.end()
        if self._thread is not None:
            self._thread.join(max(until_s - time.monotonic(), 0.0))

    def _wake(self, order: DriverState) -> None:
        if not self._is_closed:
            self._order, self._is_new, self.next_s = order, True, -math.inf
            self._changed.notify_all()

    def _work(self) -> None:
        while self._await_due():
            self.step()
        self._finish()

    def _await_due(self) -> bool:
        """Wait until it is to be decided again; return False at the end."""
        with self._changed:
            while not self._is_closed and (left_s := self.next_s - self._clock()) > 0.0:
                self._changed.wait(min(left_s, threading.TIMEOUT_MAX))
            return not self._is_closed

    def _finish(self) -> None:
        if self._order is not DriverState.IDLE:
            self._send_last()
        self._is_released.set()
        self._attempt(self._commands.close)

    def _send_last(self) -> None:
        self._send(self._last.full_brake(), 0)
        # A simulator that is late gives a connection up when it cannot reply to what waits there.
        self._brake_otherwise()

    def step(self) -> None:
        """Decide what may be written now, and write it if it is new or to be repeated."""
        try:
            self._drive()
        except Exception as error:  # noqa: BLE001
            # What decides has failed: that must neither end a thread nor leave the ego.
            self._on_defect(error)
            self.state = DriverState.DEFECT
            if self._order is not DriverState.IDLE:
                self._send(self._last.full_brake(), 0)
            # No tight loop.
            self.next_s = self._clock() + _PERIOD_S

    def _drive(self) -> None:
        # What changes from here on is decided in the next step.
        self.next_s = math.inf
        motion, now_s = self._motion(), self._clock()
        self._look_for_proofs(motion, now_s)
        elapsed_s = self._gate.see(motion, now_s)
        with self._changed:
            if self._is_closed or self._order is DriverState.IDLE:
                return
            is_new, self._is_new = self._is_new, False
            received_ns, self._received_ns = self._received_ns, 0
            state, before = self._decided(now_s), self.state
            self.state = state
            # What is not proven in time is not written.
            angle = self._proven_angle if state is DriverState.UNANSWERED else self._angle
            command = self._gate.steered(self._command(state, motion, elapsed_s, now_s), angle)
        if state is not before:
            self.counters.n_timeouts += state is DriverState.TIMED_OUT
            # A state that is stale after another fault, or from the start, is not news.
            if state not in (DriverState.DRIVING, DriverState.BLOCKED) and (
                    state is not DriverState.STALE or before is DriverState.DRIVING):
                self._report(f'control {state.name}', state.value)
        # A flood of equal commands is not passed on.
        if command != self._last or now_s >= self._written_s + (
                _SHORTEST_S if is_new else self._period_s):
            self._send(command, received_ns if state is DriverState.DRIVING else 0)
        self._observe(motion, now_s)
        # When the time alone changes what may be written.
        now_s, at_s = self._clock(), self._written_s + self._period_s
        if state is DriverState.DRIVING:
            at_s = min(at_s, now_s + command.left_s(now_s) + _LATER_S)
        with self._changed:
            self.next_s = min(self.next_s, at_s)

    def _decided(self, now_s: float) -> DriverState:
        if self._order is not DriverState.DRIVING:
            return self._order
        state = self._gate.state(now_s - self._accepted_s, self._unproven_s)
        return DriverState.DISOBEYED if state is DriverState.DRIVING and self._witness.fault \
            else state

    def _look_for_proofs(self, motion: EgoMotion, now_s: float) -> None:
        """Note for how long a command has been without a proof; a newer proof is enough."""
        waiting = self._unproven
        for place, (_, angle, proof) in reversed([*enumerate(waiting)]):
            if proof():
                self._proven_angle = angle
                for _ in range(place + 1):
                    waiting.popleft()
                self._since_s = max(self._since_s, waiting[0][0]) if waiting else math.inf
                break
        if motion.is_paused and not motion.fault:
            # Nothing can show it while time stands.
            self._since_s = max(self._since_s, now_s)
        self._unproven_s = max(now_s - self._since_s, 0.0)

    def _command(self, state: DriverState, motion: EgoMotion, elapsed_s: float,
                 now_s: float) -> EgoCommand:
        wanted, stack_s = self._wanted, now_s - self._accepted_s
        if state is not DriverState.DRIVING or elapsed_s < 0.0 or not isinstance(wanted, Setpoint):
            # Another controller, the stack's pedals or the brake drive; or in a new run another
            # ego, which may move, although the one before was driven from its stand.
            self._controller.reset()
        if state is not DriverState.DRIVING or wanted is None:
            return self._last.full_brake()
        if isinstance(wanted, EgoCommand):
            return self._gate.passed(wanted, stack_s)
        wanted = speed_controller.steered(wanted, motion.speed, self._angle,
                                          self._parameters.wheelbase)
        command = self._controller.command(wanted, motion.speed, elapsed_s, motion.climb,
                                           motion.elapsed_s)
        return self._gate.passed(command, stack_s, wanted.speed)

    def _observe(self, motion: EgoMotion, now_s: float) -> None:
        """Compare what is ordered with what is measured; brake on each way if it differs."""
        last, wanted = self._last, self._wanted
        # What the stack, and what the gate orders.
        speed = wanted.speed if isinstance(wanted, Setpoint) else math.nan
        is_slower = abs(speed) < abs(motion.speed) - _SLOWER
        deceleration = 0.0
        if math.isfinite(last.speed):
            # A controller of the simulator has the pedals.
            deceleration = last.max_acceleration if is_slower else 0.0
        elif last.brake >= _BRAKES or is_slower:
            deceleration = self._parameters.full_brake * last.brake
        self._witness.note(last, deceleration, _direction_of(wanted), motion, now_s)
        if now_s < self._otherwise_s + _BRAKE_PERIOD_S:
            return
        if self._witness.fault:
            self._report('control witness', self.disobedience)
        if self._witness.fault or self._unproven_s > self._gate.patience_s:
            self._brake_otherwise()

    def _brake_otherwise(self) -> None:
        self._otherwise_s = self._clock()
        self._attempt(self._commands.brake)

    @property
    def _period_s(self) -> float:
        """Return the time after which a command is written again although it is the same."""
        return _PERIOD_S if self.failure or self.state is DriverState.DRIVING else _BRAKE_PERIOD_S

    def _attempt(self, call: Callable[[], _Result]) -> tuple[_Result | None, str]:
        """Make a call that must not end this thread; return its result, or why it has failed."""
        try:
            return call(), ''
        except (StateSensorError, OSError) as error:
            return None, str(error) or repr(error)
        except Exception as error:  # noqa: BLE001
            self._on_defect(error)
            return None, f'internal error: {error}'

    def _send(self, command: EgoCommand, received_ns: int) -> None:
        self._written_s = self._clock()
        self._last = command = command.now(self._written_s)
        if not self.counters.n_sent:
            self._attempt(self._before_first)
        proof, self.failure = self._attempt(partial(self._commands.write, command))
        if len(self._unproven) == _MOST_UNPROVEN:
            # The oldest one is the next whose proof comes, however late that is.
            del self._unproven[1]
        self._unproven.append((self._written_s, command.steering_angle, proof or (lambda: False)))
        self._since_s = min(self._since_s, self._written_s)
        if proof is None:
            self.counters.n_unsent += 1
            self._report('control', f'a command was not sent: {self.failure}')
            if command.brake >= 1.0:
                self._brake_otherwise()
            return
        self._angle = command.steering_angle
        if command.brake >= 1.0:
            self._has_braked.set()
        self.counters.n_sent += 1
        if received_ns:
            self.counters.latencies_ns.append(time.perf_counter_ns() - received_ns)
        self._on_sent(command)


def _direction_of(wanted: Setpoint | EgoCommand | None) -> float:
    """Return 1 for a wanted movement forward, -1 backward, 0 for none."""
    if isinstance(wanted, EgoCommand):
        return 0.0 if not wanted.throttle else -1.0 if wanted.reverse else 1.0
    return 0.0 if wanted is None or abs(wanted.speed) < ego_commands.STANDSTILL_SPEED / 2 \
        else math.copysign(1.0, wanted.speed)
