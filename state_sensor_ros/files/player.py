# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A recording as a live source: paced by its times, paused, stepped, sought, looped.

Without times the pace is 20 Hz. The state of a source is in ``health.state``; any thread may
request a change, and the iterating thread makes it between two frames:

========  =============================================  ========
state     event                                          next
========  =============================================  ========
PLAYING   pause(), step()                                PAUSED
PAUSED    resume()                                       PLAYING
PLAYING   the last frame, without loop and seek          ENDED
PAUSED    step(), seek(): a frame, even after the last   PAUSED
ENDED     frames() is called again                       PLAYING
any       close()                                        CLOSED
========  =============================================  ========
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from enum import Enum
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


class _Request(Enum):
    """The last request of another thread."""

    PLAY = 'play'
    PAUSE = 'pause'
    CLOSE = 'close'


class _Turn(Enum):
    PLAY = 'play'
    SKIP = 'skip'
    REWIND = 'rewind'
    END = 'end'


class FileSource:
    """
    Frames of a recording at its own pace; each loop appears as a restart of the simulator.

    One thread iterates over :meth:`frames`; the other methods may be called from any.

    :param rate: pace against real time; 0 for no pace.
    :param follower: follower that links its frames, closed with the recording; None for none.
    """

    def __init__(self, recording: RecordingReader, *, rate: float = 1.0, loop: bool = False,
                 follower: LookAhead | None = None) -> None:
        self._follower = follower
        self._schedule = Schedule(_checked(rate))
        self._loop = loop
        self._recording = recording
        self.health = Health(state=SourceState.PLAYING, n_connects=1)
        self._changed = threading.Condition()
        self._request = _Request.PLAY
        self._is_iterating = False
        self._n_steps = 0
        self._sought: float | None = None
        # Time from the beginning to the last frame that was played or skipped, s; -1 for none.
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

    @property
    def is_paused(self) -> bool:
        """Whether only steps are taken."""
        return self._request is _Request.PAUSE

    def pause(self) -> None:
        """Stop before the next frame; steps that are left are not taken."""
        with self._changed:
            self._n_steps = 0
            self._submit(_Request.PAUSE)

    def resume(self) -> None:
        """Continue after a pause."""
        with self._changed:
            self._n_steps = 0
            self._submit(_Request.PLAY)

    def step(self, n_frames: int = 1) -> None:
        """Play frames at once, and pause after them."""
        if n_frames < 1:
            raise ConfigError('step', str(n_frames), '1 frame or more')
        with self._changed:
            self._n_steps += n_frames
            self._submit(_Request.PAUSE)

    def seek(self, seconds: float) -> None:
        """
        Continue with the first frame at or after a time, even while paused.

        A seek backward appears as a restart of the simulator.
        """
        if not math.isfinite(seconds):
            raise ConfigError('seek', str(seconds), 'seconds from the beginning')
        with self._changed:
            self._sought = max(seconds, 0.0)
            self._changed.notify_all()

    def restart(self) -> None:
        """Continue with the first frame, even while paused."""
        self.seek(0.0)

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
            self._submit(_Request.CLOSE)
            if not self._is_iterating:
                self._close_files()

    def _submit(self, request: _Request) -> None:
        """Set the request and wake the iterating thread; nothing follows a close."""
        if not self._is_closed():
            self._request = request
        self._changed.notify_all()

    def _is_closed(self) -> bool:
        return self._request is _Request.CLOSE

    def frames(self) -> Iterator[Frame]:
        """Yield the frames until the end of the recording; a further call plays it again."""
        with self._changed:
            if self._is_closed():
                return
            self._is_iterating = True
        try:
            turn = yield from self._pass(is_again=False)
            while turn is not _Turn.END:
                turn = yield from self._pass(is_again=True)
        except TrajectoryFormatError as error:
            self.health.last_error = str(error)
            raise
        finally:
            with self._changed:
                self._is_iterating = False
                self.health.state = SourceState.CLOSED if self._is_closed() else SourceState.ENDED
                if self._is_closed():
                    self._close_files()

    def _pass(self, is_again: bool) -> Generator[Frame, None, _Turn]:
        """Play from the beginning; return what to do afterward."""
        self._position, last_s, is_behind_gap = -1.0, math.nan, is_again
        frames = self._frames()
        for frame in frames if self._follower is None else self._follower.follow(frames):
            gap = frame.game_time - last_s
            # NaN compares false with everything.
            gap = gap if 0.0 < gap <= MAX_GAP_S else PERIOD_S
            position = 0.0 if math.isnan(last_s) else self._position + gap
            last_s = frame.game_time
            turn = self._turn(position, gap)
            if turn in (_Turn.REWIND, _Turn.END):
                return turn
            self._position = position
            if turn is _Turn.SKIP:
                is_behind_gap = True
                continue
            self.health.n_packets += 1
            yield replace(frame, is_behind_gap=True) if is_behind_gap else frame
            is_behind_gap = False
        if self._recording.cut is not None:
            # It appears in the log; all frames have been played.
            self.health.last_error = self._recording.cut.warning
        if self._position < 0.0:
            raise no_frames(self._recording.name)
        return self._turn_at_end()

    def _frames(self) -> Iterator[Frame]:
        """Yield the frames of the recording; a follower may read many of them at once."""
        for frame in self._recording.frames():
            if self._is_closed():
                return
            yield frame

    def _close_files(self) -> None:
        self._recording.close()
        if self._follower is not None:
            self._follower.close()

    def _turn(self, position: float, gap: float) -> _Turn:
        """Wait until the next frame is to be played or skipped."""
        # position: time of that frame, s from the beginning.
        # gap: time between it and the frame before, s.
        with self._changed:
            while not self._is_closed():
                if self._sought is not None:
                    return self._turn_while_seeking(position, self._sought)
                wait_s: float | None = None
                if self._request is not _Request.PAUSE:
                    self.health.state = SourceState.PLAYING
                    wait_s = self._schedule.time_left(gap)
                elif self._n_steps:
                    self._n_steps -= 1
                    wait_s = 0.0
                else:
                    self.health.state = SourceState.PAUSED
                    self._schedule.restart()
                if wait_s == 0.0:
                    return _Turn.PLAY
                self._changed.wait(wait_s)
        return _Turn.END

    def _turn_while_seeking(self, position: float, sought: float) -> _Turn:
        if sought <= self._position:
            return _Turn.REWIND
        if position < sought:
            return _Turn.SKIP
        self._sought = None
        self._schedule.restart()
        return _Turn.PLAY

    def _turn_at_end(self) -> _Turn:
        """Wait for the end of a pause; then begin again if ``loop`` or a seek requires it."""
        with self._changed:
            if self._sought is not None and self._sought > self._position:
                self._sought = None
            while self._request is _Request.PAUSE and self._sought is None and not self._loop:
                self.health.state = SourceState.PAUSED
                self._n_steps = 0
                self._changed.wait()
            again = self._loop or self._sought is not None
            return _Turn.REWIND if again and not self._is_closed() else _Turn.END


def _checked(rate: float) -> float:
    """Return ``rate`` if it is in range."""
    rule = rule_of('rate')
    assert rule.high is not None
    if not 0.0 <= rate <= rule.high:
        raise ConfigError('rate', f'{rate:g}', f'0 to {rule.high:g}: {rule.help}')
    return rate
