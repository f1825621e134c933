# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A recording as a live source: paced by its times, paused, stepped, restarted, looped.

Without times the pace is 20 Hz. The state of a source is in ``health.state``; any thread may
request a change, and the iterating thread makes it between two frames:

========  =============================================  ========
state     event                                          next
========  =============================================  ========
PLAYING   pause(), step()                                PAUSED
PAUSED    resume()                                       PLAYING
PLAYING   the last frame, without loop and restart       ENDED
PAUSED    step(), restart(): a frame                     PAUSED
ENDED     frames() is called again                       PLAYING
any       close()                                        CLOSED
========  =============================================  ========
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
import math
import threading
from typing import TYPE_CHECKING

from state_sensor_ros.errors import ConfigError, no_frames, TrajectoryFormatError
from state_sensor_ros.files.recording import PERIOD_S, RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import rule_of, Settings
from state_sensor_ros.source import Faults, Health, MAX_GAP_S, Schedule, SourceState

if TYPE_CHECKING:
    from state_sensor_ros.files.look_ahead import LookAhead


class FileSource:
    """
    Frames of a recording at its own pace; each loop appears as a restart of the simulator.

    One thread iterates over :meth:`frames`; the other methods may be called from any.

    :param rate: pace against real time; 0 for no pace.
    :param follower: follower that links its frames, closed with the recording; None for none.
    :ivar is_paused: whether only steps are taken.
    """

    def __init__(self, recording: RecordingReader, *, rate: float = 1.0, loop: bool = False,
                 follower: LookAhead | None = None) -> None:
        self._follower = follower
        self._schedule = Schedule(_checked(rate))
        self._loop = loop
        self._recording = recording
        self.health = Health(state=SourceState.PLAYING, n_connects=1)
        self._changed = threading.Condition()
        self.is_paused = self._is_closed = self._is_restart = self._is_iterating = False
        self._n_steps = 0
        # Time from the beginning to the last frame that was played, s; -1 for none.
        self._position = -1.0

    @property
    def faults(self) -> Faults:
        """Return those of the recording."""
        return self._recording.faults

    @property
    def details(self) -> bool:
        """Return whether boxes, wheels or inputs are used."""
        return self._recording.details

    @details.setter
    def details(self, details: bool) -> None:
        self._recording.details = details

    @property
    def position(self) -> float:
        """Seconds of the recording that have been played."""
        return max(self._position, 0.0)

    def pause(self) -> None:
        """Stop before the next frame; steps that are left are not taken."""
        with self._changed:
            self.is_paused, self._n_steps = True, 0
            self._changed.notify_all()

    def resume(self) -> None:
        """Continue after a pause."""
        with self._changed:
            self.is_paused, self._n_steps = False, 0
            self._changed.notify_all()

    def step(self, n_frames: int = 1) -> None:
        """Play frames at once, and pause after them."""
        if n_frames < 1:
            raise ConfigError('step', str(n_frames), '1 frame or more')
        with self._changed:
            self.is_paused = True
            self._n_steps += n_frames
            self._changed.notify_all()

    def restart(self) -> None:
        """Continue with the first frame, even while paused."""
        with self._changed:
            self._is_restart = True
            self._changed.notify_all()

    def set_rate(self, rate: float) -> None:
        """Change the pace against real time."""
        # rate: 1 is real time, 0 is no pace; a wait that has begun ends by the new pace.
        with self._changed:
            self._schedule.rate = _checked(rate)
            self._changed.notify_all()

    def reconfigure(self, settings: Settings) -> None:
        """Use the rate of ``settings``, from any thread."""
        self.set_rate(settings.rate)

    def close(self) -> None:
        """End :meth:`frames` at once, from any thread; closing twice is quiet."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if not self._is_iterating:
                self._close_files()

    def frames(self) -> Iterator[Frame]:
        """Yield the frames until the end of the recording; a further call plays it again."""
        with self._changed:
            if self._is_closed:
                return
            self._is_iterating, is_again = True, False
        try:
            while (yield from self._pass(is_again)):
                is_again = True
        except TrajectoryFormatError as error:
            self.health.last_error = str(error)
            raise
        finally:
            with self._changed:
                self._is_iterating = False
                self.health.state = SourceState.CLOSED if self._is_closed else SourceState.ENDED
                if self._is_closed:
                    self._close_files()

    def _pass(self, is_again: bool) -> Generator[Frame, None, bool]:
        """Play from the beginning; return whether to do so again."""
        self._position, last_s = -1.0, math.nan
        with self._changed:
            if self._is_restart:
                self._is_restart, self._n_steps = False, int(self.is_paused)
                self._schedule.restart()
        frames = self._frames()
        for frame in frames if self._follower is None else self._follower.follow(frames):
            gap = frame.game_time - last_s
            # NaN compares false with everything.
            gap = gap if 0.0 < gap <= MAX_GAP_S else PERIOD_S
            if not self._is_due(gap):
                return not self._is_closed
            last_s = frame.game_time
            is_first = self._position < 0.0
            self._position = 0.0 if is_first else self._position + gap
            self.health.n_packets += 1
            yield replace(frame, is_behind_gap=True) if is_first and is_again else frame
        if self._recording.cut is not None:
            # It appears in the log; all frames have been played.
            self.health.last_error = self._recording.cut.warning
        if self._position < 0.0:
            raise no_frames(self._recording.name)
        with self._changed:
            while self.is_paused and not (self._is_closed or self._is_restart or self._loop):
                self.health.state = SourceState.PAUSED
                self._n_steps = 0
                self._changed.wait()
            return (self._loop or self._is_restart) and not self._is_closed

    def _frames(self) -> Iterator[Frame]:
        """Yield the frames of the recording; a follower may read many of them at once."""
        for frame in self._recording.frames():
            if self._is_closed:
                return
            yield frame

    def _close_files(self) -> None:
        self._recording.close()
        if self._follower is not None:
            self._follower.close()

    def _is_due(self, gap: float) -> bool:
        """Wait until the next frame is to be played; return False if another one is."""
        # gap: time between it and the frame before, s.
        with self._changed:
            while not (self._is_closed or self._is_restart):
                wait_s: float | None = None
                if not self.is_paused:
                    self.health.state = SourceState.PLAYING
                    wait_s = self._schedule.time_left(gap)
                elif self._n_steps:
                    self._n_steps -= 1
                    wait_s = 0.0
                else:
                    self.health.state = SourceState.PAUSED
                    self._schedule.restart()
                if wait_s == 0.0:
                    return True
                self._changed.wait(wait_s)
        return False


def _checked(rate: float) -> float:
    """Return ``rate`` if it is in range."""
    rule = rule_of('rate')
    assert rule.high is not None
    if not 0.0 <= rate <= rule.high:
        raise ConfigError('rate', f'{rate:g}', f'0 to {rule.high:g}: {rule.help}')
    return rate
