# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The thread that sends commands to the ego: what the gate passes, and again while it brakes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
import math
from queue import Full, Queue
import threading
import time

from state_sensor_ros.control import ego_commands, speed_controller
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, EgoCommands
from state_sensor_ros.control.gate import DriverState, EgoMotion, Gate
from state_sensor_ros.control.speed_controller import Setpoint
from state_sensor_ros.control.witness import Witness
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.source import Report

# Period of a repeated brake: the simulator may have been restarted since.
_BRAKE_PERIOD_S = 0.5
# Time from a command that could not be sent to the next attempt.
_RETRY_S = 0.1
# What changes with the time is looked at this much later.
_LATER_S = 0.001
# A command that passes for longer is written again this much before its end, s.
_RENEW_S = 0.1
# Shortest time between two equal commands of a stack, s.
_SHORTEST_S = 0.002
# A command that is not proven for longer is worth a word, s.
_UNPROVEN_S = 0.25
# Limits of the end, s: until another thread sends the last brake, for the end of the simulator's
# commands as a whole, and for the last reports. A program has to end within 2 s of a signal.
_PROMPT_S, _END_S, _REPORTS_S = 0.1, 0.65, 0.4
_N_LATENCIES, _MOST_WAITING, _MOST_UNPROVEN = 4096, 1000, 64
# Pedals of a stack that brake at least so much, and a speed so much below the ego's, m/s, are
# orders to slow.
_BRAKES, _SLOWER = 0.5, 1.0
_NEVER_S = -math.inf


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

    def put(self, call: Callable[[], object] | None) -> None:
        """Have a call made soon, None to end; return at once."""
        with suppress(Full):
            self._waiting.put_nowait(call)

    def close(self, seconds: float) -> None:
        """Wait until the calls are made; what takes longer is dropped."""
        self.put(None)
        self._thread.join(seconds)

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
    :meth:`step` after each change, and at :attr:`next_s`.

    :param parameters: gains, limits and the time-out.
    :param commands: sender of the simulator.
    :param motion: returns the ego's motion.
    :param stale_after: age of the last frame of the ego above which it brakes, s.
    :param follows_speed: whether a controller of the simulator follows wanted speeds.
    :param on_sent: called with each command that was written, by the thread of the reports.
    :param before_first: called before a command is written while none has been.
    :param report: called with a kind, for throttling, and a line.
    :param on_defect: called with an unexpected exception.
    :param clock: returns the steady time, s.
    :ivar state: what the driver does.
    :ivar failure: why the last write has failed, empty if it has not.
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
        self._controller = (speed_controller.SpeedLimiter if follows_speed
                            else speed_controller.SpeedController)(parameters)
        self._game_time = math.nan
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self.state = DriverState.IDLE
        self._wanted: Setpoint | EgoCommand | None = None
        self._accepted_s = _NEVER_S
        self._is_blocked = self._is_left = self._is_closed = False
        self._received_ns = 0
        # Whether to decide again, and whether to write then although nothing has changed.
        self._is_due = self._is_new = False
        self._look_s = math.inf
        # When it was last attempted to write a command, and to brake in another way.
        self._written_s = self._otherwise_s = _NEVER_S
        self._last = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)
        # Steering angles of the last command that was written, and of the last one that is proven.
        self._angle = self._proven_angle = 0.0
        self.failure = ''
        # Times and angles of the writes after the last one that is proven, with their proofs.
        self._unproven: deque[tuple[float, float, ego_commands.Proof | None]] = deque()
        self._unproven_s = 0.0
        # Whether the last brake was sent or, without a command before, is not needed.
        self._is_released = False
        self._thread: threading.Thread | None = None
        self._reports: LateCalls | None = None

    def start(self) -> None:
        """Decide in a thread from now on, and report in another one."""
        self._reports = LateCalls(self._on_defect)
        self._thread = threading.Thread(target=self._work, daemon=True, name='commands')
        self._thread.start()

    @property
    def next_s(self) -> float:
        """Return the steady time at which to decide again without a change; -inf for now."""
        return -math.inf if self._is_due else self._look_s

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
            if self._is_closed:
                return
            self.counters.n_received += 1
            self._wanted, self._received_ns = wanted, received_ns
            self._accepted_s = self._clock() - age_s
            self._is_blocked = self._is_left = False
            self._wake()

    def revise(self, wanted: Setpoint | EgoCommand) -> None:
        """Replace the last accepted command, whose age stays."""
        with self._changed:
            if self._wanted is not None and wanted != self._wanted:
                self._wanted = wanted
                self._wake()

    def refuse(self, why: str) -> None:
        """
        Count a command that is not used; it does not restart the time-out.

        :param why: reason, one line.
        """
        with self._changed:
            self.counters.n_received += 1
            self.counters.n_refused += 1
            self.counters.last_refusal = why

    def block(self) -> None:
        """Brake until the next command is accepted."""
        with self._changed:
            if not self._is_blocked:
                self._is_blocked = True
                self._wake()

    def brake_left(self) -> None:
        """Brake an ego that another node has left, until the next command is accepted."""
        with self._changed:
            if self._wanted is None and not self._is_left:
                self._is_left = True
                self._wake()

    def frame_arrived(self) -> None:
        """Decide again: the ego's motion has changed."""
        if self.state is not DriverState.IDLE:
            with self._changed:
                self._is_due = True
                self._changed.notify_all()

    def end(self) -> None:
        """
        Send full brake, if a command was accepted before, and nothing afterward.

        It waits for :data:`_PROMPT_S` at most, and may be called from any thread.
        """
        with self._changed:
            self._is_closed = True
            self.state = DriverState.CLOSED
            self._changed.notify_all()
            if self._thread is None:
                self._finish()
            if self._changed.wait_for(lambda: self._is_released, _PROMPT_S) \
                    or not self._has_driven():
                return
        # The thread is in a call of the simulator, which should not wait, or the process is slow.
        last = threading.Thread(target=self._send_last, daemon=True)
        last.start()
        last.join(_PROMPT_S)

    def close(self) -> None:
        """As :meth:`end`; then end within :data:`_END_S`."""
        until_s = time.monotonic() + _END_S
        self.end()
        if self._thread is not None:
            self._thread.join(max(until_s - time.monotonic(), 0.0))
        if self._reports is not None:
            self._reports.close(_REPORTS_S)

    def _wake(self) -> None:
        self._is_due = self._is_new = True
        self._changed.notify_all()

    def _work(self) -> None:
        while self._await_due():
            self.step()
        self._finish()

    def step(self) -> None:
        """Decide what may be written now, and write it if it is new or to be repeated."""
        try:
            self._drive()
        except Exception as error:  # noqa: BLE001
            # What decides has failed: that must neither end a thread nor leave the ego.
            self.state = DriverState.DEFECT
            if self._has_driven():
                self._send(self._last.full_brake(), 0)
            self._late(self._on_defect, error)
            # No tight loop.
            self._look_s = self._clock() + _RETRY_S

    def _finish(self) -> None:
        if self._has_driven():
            self._send_last()
        with self._changed:
            self._is_released = True
            self._changed.notify_all()
        self._attempt(self._commands.close)

    def _late(self, call: Callable[..., None], *given: object) -> None:
        """Have a report made by another thread: a log or a subscriber may block this one."""
        if self._reports is None:
            call(*given)
        else:
            self._reports.put(partial(call, *given))

    def _send_last(self) -> None:
        self._send(self._last.full_brake(), 0)
        # A simulator that is late gives a connection up when it cannot reply to what waits there.
        self._brake_otherwise(self._written_s)

    def _has_driven(self) -> bool:
        return self._wanted is not None or self._is_left or self.counters.n_sent > 0

    def _await_due(self) -> bool:
        """Wait until it is to be decided again; return False at the end."""
        with self._changed:
            while not self._is_closed and (left_s := self.next_s - self._clock()) > 0.0:
                self._changed.wait(left_s if math.isfinite(left_s) else None)
            return not self._is_closed

    def _drive(self) -> None:
        # What changes from here on is decided in the next step.
        self._is_due = False
        motion, now_s = self._motion(), self._clock()
        self._look_for_proofs(motion, now_s)
        with self._changed:
            if self._is_closed:
                return
            is_new, self._is_new = self._is_new, False
            received_ns, self._received_ns = self._received_ns, 0
            state, before = self._decided(motion, now_s), self.state
            self.state = state
            # What is not proven in time is not written.
            angle = self._proven_angle if state is DriverState.UNANSWERED else self._angle
            command = self._gate.steered(self._command(state, motion, now_s), motion, angle)
        if state is not before:
            self._note_change(state, before)
        # What another process keeps may be written for longer, such as in a pause.
        is_repeated = now_s >= self._written_s + self._period_s(state) or (
            self._last.until_s - _RENEW_S <= now_s < command.until_s - 2 * _RENEW_S)
        # A flood of equal commands is not passed on.
        is_new = is_new and (command != self._last or now_s >= self._written_s + _SHORTEST_S)
        if state is not DriverState.IDLE and (
                is_new or is_repeated or state is not before or command != self._last
                or (isinstance(self._wanted, Setpoint) and state is DriverState.DRIVING)):
            self._send(command, received_ns if state is DriverState.DRIVING else 0)
        if state is not DriverState.IDLE:
            self._observe(motion, state, now_s)
        self._look_later(command, motion, state)

    def _decided(self, motion: EgoMotion, now_s: float) -> DriverState:
        if self._is_left:
            return DriverState.LEFT
        if self._is_blocked:
            return DriverState.BLOCKED
        if self._wanted is None:
            return DriverState.IDLE
        state = self._gate.state(motion, now_s - self._accepted_s, self._unproven_s)
        return DriverState.DISOBEYED if state is DriverState.DRIVING and self._witness.fault \
            else state

    def _look_for_proofs(self, motion: EgoMotion, now_s: float) -> None:
        """Note for how long a command has been without a proof; a newer proof is enough."""
        waiting = self._unproven
        for place, (_, angle, proof) in reversed([*enumerate(waiting)]):
            if proof is not None and proof():
                self._proven_angle = angle
                self._unproven = waiting = deque([*waiting][place + 1:])
                break
        if waiting and motion.is_paused and not motion.fault:
            # Nothing can show it while time stands.
            waiting[0] = (now_s, *waiting[0][1:])
        self._unproven_s = now_s - waiting[0][0] if waiting else 0.0

    def _command(self, state: DriverState, motion: EgoMotion, now_s: float) -> EgoCommand:
        wanted = self._wanted
        if state is not DriverState.DRIVING or wanted is None:
            # Another controller, or the brake, drives.
            self._controller.reset()
            self._game_time = math.nan
            return self._last.full_brake()
        if isinstance(wanted, Setpoint):
            wanted = speed_controller.steered(wanted, motion.speed, self._angle,
                                              self._parameters.wheelbase)
            elapsed_s, self._game_time = motion.game_time - self._game_time, motion.game_time
            if elapsed_s < 0.0:
                # A new run: this ego may move, although the one before was driven from its stand.
                self._controller.reset()
            command = self._controller.command(wanted, motion.speed, elapsed_s, motion.climb,
                                               motion.elapsed_s)
            return self._gate.passed(command, motion, now_s - self._accepted_s, now_s,
                                     wanted.speed)
        return self._gate.passed(wanted, motion, now_s - self._accepted_s, now_s)

    def _note_change(self, state: DriverState, before: DriverState) -> None:
        text = state.value
        if state is DriverState.TIMED_OUT:
            self.counters.n_timeouts += 1
            text = f'no command for {self._parameters.timeout:g} s: the ego brakes'
        elif state is DriverState.STALE and before is DriverState.DRIVING:
            text = (f'no new frame with the ego and its speed for {self._stale_after:g} s '
                    '(stale_after): the ego brakes')
        elif state in (DriverState.STALE, DriverState.DRIVING, DriverState.IDLE,
                       DriverState.BLOCKED):
            return
        self._late(self._report, f'control {state.name}', text)

    def _observe(self, motion: EgoMotion, state: DriverState, now_s: float) -> None:
        """Compare what is ordered with what is measured; brake on each way if it differs."""
        last, wanted = self._last, self._wanted
        # What the stack, and what the gate orders.
        speed = wanted.speed if isinstance(wanted, Setpoint) else math.nan
        is_slower = abs(speed) < abs(motion.speed) - _SLOWER
        deceleration = 0.0
        if math.isfinite(last.speed):
            # A controller of the simulator has the pedals.
            deceleration = last.max_acceleration if is_slower else 0.0
        elif state is not DriverState.DRIVING or last.brake >= _BRAKES or is_slower:
            deceleration = self._parameters.full_brake * last.brake
        self._witness.note(last, deceleration, _direction_of(wanted), motion, now_s)
        if now_s < self._otherwise_s + _BRAKE_PERIOD_S:
            return
        if self._witness.fault:
            self._late(self._report, 'control witness', self.disobedience)
        if self._witness.fault or self._unproven_s > self._gate.patience_s(motion):
            self._brake_otherwise(now_s)

    def _brake_otherwise(self, now_s: float) -> None:
        self._otherwise_s = now_s
        self._attempt(self._commands.brake)

    def _attempt(self, call: Callable[[], None]) -> None:
        """Make a call on which neither the usual way nor the end of this thread depends."""
        try:
            with suppress(StateSensorError, OSError):
                call()
        except Exception as error:  # noqa: BLE001
            self._late(self._on_defect, error)

    def _period_s(self, state: DriverState) -> float:
        """Return the time after which a command is written again although it is the same."""
        usual_s = math.inf if state in (DriverState.DRIVING, DriverState.IDLE) else _BRAKE_PERIOD_S
        return _RETRY_S if self.failure else usual_s

    def _look_later(self, command: EgoCommand, motion: EgoMotion, state: DriverState) -> None:
        """Note when the time alone changes what may be written."""
        at_s = self._written_s + self._period_s(state)
        if state is DriverState.DRIVING:
            now_s = self._clock()
            # What was written last ends before what may be written now.
            renewed_s = min(command.until_s, self._last.until_s) - _RENEW_S
            at_s = min(at_s, now_s + command.left_s(now_s) + _LATER_S,
                       renewed_s if renewed_s > now_s else math.inf,
                       self._unproven[0][0] + self._gate.patience_s(motion) + _LATER_S
                       if self._unproven else math.inf)
        with self._changed:
            self._look_s = at_s

    def _send(self, command: EgoCommand, received_ns: int) -> None:
        self._written_s = self._clock()
        self._last = command = command.now(self._written_s)
        proof: ego_commands.Proof | None = None
        if not self.counters.n_sent:
            self._attempt(self._before_first)
        try:
            proof = self._commands.write(command)
        except StateSensorError as error:
            self._note_unsent(str(error), command)
            self._late(self._report, 'control', f'a command was not sent: {error}')
        except Exception as error:  # noqa: BLE001
            # A defect in the simulator's code must not end the thread that brakes.
            self._note_unsent(f'internal error: {error}', command)
            self._late(self._on_defect, error)
        else:
            self.failure, self._angle = '', command.steering_angle
            self.counters.n_sent += 1
            if received_ns:
                self.counters.latencies_ns.append(time.perf_counter_ns() - received_ns)
            self._late(self._on_sent, command)
        if len(self._unproven) == _MOST_UNPROVEN:
            del self._unproven[1]
        self._unproven.append((self._written_s, command.steering_angle, proof))

    def _note_unsent(self, why: str, command: EgoCommand) -> None:
        self.counters.n_unsent += 1
        self.failure = why
        if command.brake >= 1.0:
            self._brake_otherwise(self._written_s)


def _direction_of(wanted: Setpoint | EgoCommand | None) -> float:
    """Return 1 for a wanted movement forward, -1 backward, 0 for none."""
    if isinstance(wanted, EgoCommand):
        return 0.0 if not wanted.throttle else -1.0 if wanted.reverse else 1.0
    return 0.0 if wanted is None or abs(wanted.speed) < ego_commands.STANDSTILL_SPEED / 2 \
        else math.copysign(1.0, wanted.speed)
