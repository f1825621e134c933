# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The thread that sends commands to the ego: the newest one, or full brake."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
import math
from queue import Empty, Full, Queue
import threading
import time

from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, EgoCommands
from state_sensor_ros.control.speed_controller import Setpoint, SpeedController, SpeedLimiter
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.payloads import Report

_MOST_WAITING = 1000
# Period of a repeated brake: the simulator may have been restarted since.
_BRAKE_PERIOD_S = 0.5
# Time from a command that could not be sent to the next attempt.
_RETRY_S = 0.1
# The age of the ego is read this much after it may be too old.
_FRESH_S = 0.001
# Limits of the end, s: until another thread sends the last brake, for the end of the simulator's
# commands as a whole, and for the last reports. A program has to end within 2 s of a signal.
_PROMPT_S, _END_S, _REPORTS_S = 0.1, 0.65, 0.4
_N_LATENCIES = 4096


class LateCalls:
    """
    Make calls in their order in a thread; drop new ones while too many wait.

    :param on_defect: called with the unexpected exception of a call.
    :ivar n_dropped: number of calls that were dropped.
    """

    def __init__(self, on_defect: Callable[[Exception], None]) -> None:
        self.n_dropped = 0
        self._on_defect = on_defect
        self._waiting: Queue[Callable[[], None] | None] = Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True, name='reports')
        self._thread.start()

    def put(self, call: Callable[[], None]) -> None:
        """
        Have a call made soon; return at once.

        :param call: function without parameters.
        """
        try:
            self._waiting.put_nowait(call)
        except Full:
            self.n_dropped += 1

    def close(self, seconds: float) -> None:
        """
        Wait until the calls are made; what takes longer is dropped.

        :param seconds: longest wait.
        """
        with_end = False
        while not with_end:
            try:
                self._waiting.put_nowait(None)
                with_end = True
            except Full:
                self._drop_oldest()
        self._thread.join(seconds)

    def _drop_oldest(self) -> None:
        try:
            self._waiting.get_nowait()
            self.n_dropped += 1
        except Empty:
            pass

    def _work(self) -> None:
        while (call := self._waiting.get()) is not None:
            try:
                call()
            except Exception as error:  # noqa: BLE001
                # A defect in the code of a report must not end the other reports.
                self._on_defect(error)


class DriverState(Enum):
    """What the driver does; the values are the texts of the diagnostics."""

    IDLE = 'the simulator drives the ego'
    DRIVING = 'commands are sent'
    STALE = 'the ego brakes: it is not in new frames'
    TIMED_OUT = 'the ego brakes: no command arrives'
    BLOCKED = 'the ego brakes: the commands are refused'
    CLOSED = 'closed'


@dataclass(slots=True)
class CommandCounters:
    """
    Numbers of commands, which never decrease.

    ``n_sent`` includes brakes; ``n_unsent`` failed attempts; ``latencies_ns`` from the receipt of
    a command until the simulator has it, without repeated commands.
    """

    n_received: int = 0
    n_refused: int = 0
    n_sent: int = 0
    n_unsent: int = 0
    n_timeouts: int = 0
    last_refusal: str = ''
    latencies_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_N_LATENCIES))


@dataclass(frozen=True, slots=True)
class EgoMotion:
    """
    The ego in the last frame.

    ``speed`` along its x axis, m/s, NaN if unknown; ``game_time`` of the frame, s; ``age_s`` time
    since the last frame with the ego was received, without that of a pause, s.
    """

    speed: float = math.nan
    game_time: float = math.nan
    age_s: float = math.inf


class EgoDriver:
    """
    Send commands in a thread of its own; the other methods are called from any thread.

    :param parameters: gains, limits and the time-out.
    :param commands: sender of the simulator.
    :param motion: returns the ego's motion.
    :param stale_after: age of the last frame of the ego above which it brakes, s.
    :param follows_speed: whether a controller of the simulator follows wanted speeds.
    :param on_sent: called with each command that the simulator has, by the thread of the reports.
    :param report: called with a kind, for throttling, and a line.
    :param on_defect: called with an unexpected exception.
    """

    def __init__(self, parameters: ControlParameters, commands: EgoCommands,
                 motion: Callable[[], EgoMotion], *, stale_after: float,
                 on_sent: Callable[[EgoCommand], None], report: Report,
                 on_defect: Callable[[Exception], None], follows_speed: bool = False) -> None:
        self.counters = CommandCounters()
        self._parameters, self._commands, self._motion = parameters, commands, motion
        self._stale_after = stale_after
        self._on_sent, self._report, self._on_defect = on_sent, report, on_defect
        self._reports = LateCalls(on_defect)
        self._controller = (SpeedLimiter if follows_speed else SpeedController)(parameters)
        self._game_time = math.nan
        # Guards all below; notified at each change.
        self._changed = threading.Condition()
        self._state = DriverState.IDLE
        self._wanted: Setpoint | EgoCommand | None = None
        self._accepted_s = 0.0
        self._received_ns = 0
        self._is_due = False
        self._repeat_s = math.inf
        self._last = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)
        # Whether the last brake was sent or, without a command before, is not needed.
        self._is_released = False
        self._thread = threading.Thread(target=self._work, daemon=True, name='commands')
        self._thread.start()

    @property
    def state(self) -> DriverState:
        """Return what the driver does."""
        return self._state

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
            if self._state is DriverState.CLOSED:
                return
            self.counters.n_received += 1
            self._wanted, self._received_ns = wanted, received_ns
            self._accepted_s = time.monotonic() - age_s
            if not self._is_driving:
                self._drive()
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
            if self._state not in (DriverState.BLOCKED, DriverState.CLOSED):
                self._state = DriverState.BLOCKED
                self._wake()

    def frame_arrived(self) -> None:
        """Evaluate the wanted speed again: the ego's motion has changed."""
        if self._state is DriverState.DRIVING and isinstance(self._wanted, Setpoint):
            with self._changed:
                self._wake()
        elif self._state is DriverState.STALE:
            with self._changed:
                self._changed.notify_all()

    def end(self) -> None:
        """
        Send full brake, if a command was accepted before, and nothing afterward.

        It waits for :data:`_PROMPT_S` at most, and may be called from any thread.
        """
        with self._changed:
            self._state = DriverState.CLOSED
            self._changed.notify_all()
            if self._changed.wait_for(lambda: self._is_released, _PROMPT_S) \
                    or not self._has_driven():
                return
        # The thread waits for the simulator, such as for the reply to an earlier command. So may
        # this one, in a simulator that has no other way.
        last = threading.Thread(target=self._send, args=(self._full_brake(), 0), daemon=True)
        last.start()
        last.join(_PROMPT_S)

    def close(self) -> None:
        """As :meth:`end`; then end within :data:`_END_S`."""
        until_s = time.monotonic() + _END_S
        self.end()
        self._thread.join(max(until_s - time.monotonic(), 0.0))
        self._reports.close(_REPORTS_S)

    @property
    def _is_driving(self) -> bool:
        """Whether commands are accepted and have not timed out."""
        return self._state in (DriverState.DRIVING, DriverState.STALE)

    def _drive(self) -> None:
        """Drive; another controller, or the brake, has driven since."""
        self._controller.reset()
        self._game_time = math.nan
        self._state = DriverState.DRIVING

    def _wake(self) -> None:
        self._is_due = True
        self._changed.notify_all()

    def _work(self) -> None:
        while (due := self._next()) is not None:
            self._send(*due)
        if self._has_driven():
            self._send(self._full_brake(), 0)
        with self._changed:
            self._is_released = True
            self._changed.notify_all()
        try:
            self._commands.close()
        except Exception as error:  # noqa: BLE001
            self._reports.put(partial(self._on_defect, error))

    def _has_driven(self) -> bool:
        return self._wanted is not None or self.counters.n_sent > 0

    def _next(self) -> tuple[EgoCommand, int] | None:
        """Wait until a command is due; return it and its receipt, ns, 0 for a repeated one."""
        with self._changed:
            while self._state is not DriverState.CLOSED:
                now_s = time.monotonic()
                left_s = self._update_state(now_s)
                if self._is_due or now_s >= self._repeat_s:
                    self._is_due, self._repeat_s = False, math.inf
                    received_ns, self._received_ns = self._received_ns, 0
                    return self._command(), received_ns
                until_s = min(self._repeat_s - now_s, left_s)
                self._changed.wait(until_s if math.isfinite(until_s) else None)
        return None

    def _update_state(self, now_s: float) -> float:
        """Change the state with the time; return the time until the next such change, s."""
        if not self._is_driving:
            return math.inf
        left_s = self._accepted_s + self._parameters.timeout - now_s
        if left_s <= 0.0:
            self._time_out()
            return math.inf
        # A pause ends the age of the ego, and begins it: it is read again at times.
        fresh_s = self._stale_after - self._motion().age_s
        if fresh_s < 0.0:
            self._go_stale()
            return left_s
        if self._state is DriverState.STALE:
            self._drive()
            self._is_due = True
        return min(left_s, fresh_s + _FRESH_S)

    def _go_stale(self) -> None:
        if self._state is DriverState.DRIVING:
            self._state = DriverState.STALE
            self._is_due = True
            self._reports.put(partial(
                self._report, 'control stale', 'no new frame with the ego for '
                f'{self._stale_after:g} s (stale_after): the ego brakes'))

    def _time_out(self) -> None:
        self._state = DriverState.TIMED_OUT
        self._is_due = True
        self.counters.n_timeouts += 1
        self._reports.put(partial(
            self._report, 'control time-out',
            f'no command for {self._parameters.timeout:g} s: the ego brakes'))

    def _command(self) -> EgoCommand:
        wanted = self._wanted
        if self._state is not DriverState.DRIVING or wanted is None:
            return self._full_brake()
        until_s = self._accepted_s + self._parameters.timeout
        if isinstance(wanted, EgoCommand):
            return replace(wanted, until_s=until_s)
        motion = self._motion()
        elapsed_s, self._game_time = motion.game_time - self._game_time, motion.game_time
        if elapsed_s < 0.0:
            # A new run: this ego may move, although the one before was driven from its stand.
            self._controller.reset()
        return replace(self._controller.command(wanted, motion.speed, elapsed_s), until_s=until_s)

    def _full_brake(self) -> EgoCommand:
        """Return full brake with the last steering angle."""
        return self._last.full_brake()

    def _send(self, command: EgoCommand, received_ns: int) -> None:
        if time.monotonic() >= command.until_s:
            # The process was stopped since: the time-out brakes.
            return
        self._last = command
        try:
            self._commands.send(command)
        except StateSensorError as error:
            self._note_unsent()
            self._reports.put(partial(
                self._report, 'control', f'a command was not sent: {error}'))
        except Exception as error:  # noqa: BLE001
            # A defect in the simulator's code must not end the thread that brakes.
            self._note_unsent()
            self._reports.put(partial(self._on_defect, error))
        else:
            self.counters.n_sent += 1
            if received_ns:
                self.counters.latencies_ns.append(time.perf_counter_ns() - received_ns)
            self._reports.put(partial(self._on_sent, command))
            self._repeat(_BRAKE_PERIOD_S if self._state is not DriverState.DRIVING else math.inf)

    def _note_unsent(self) -> None:
        self.counters.n_unsent += 1
        self._repeat(_RETRY_S)

    def _repeat(self, seconds: float) -> None:
        with self._changed:
            self._repeat_s = time.monotonic() + seconds
