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

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import replace
import math
import threading

from state_sensor_ros import classes, errors
from state_sensor_ros.files.recording import forwarded, PERIOD_S, RecordingReader
from state_sensor_ros.frame import Frame, FutureFrame
from state_sensor_ros.objects.object_maker import centers_of, default_sizes
from state_sensor_ros.objects.predicted_paths import HORIZON_S
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.source import Health, MAX_GAP_S, Schedule, SourceState


class FileSource:
    """
    Frames of a recording at its own pace; each loop appears as a restart of the simulator.

    One thread iterates over :meth:`frames`; the other methods may be called from any.

    :param settings: pace against real time (``rate``, 0 for no pace), ``loop``, and the outputs,
        some of which need frames with ``upcoming``.
    :ivar is_paused: whether only steps are taken.
    :ivar position: time from the first frame to the last one that was played, s.
    """

    faults = forwarded('_recording', 'faults')

    def __init__(self, recording: RecordingReader, settings: Settings = DEFAULTS) -> None:
        self._recording, self._settings = recording, settings
        self._schedule = Schedule(settings.rate)
        self.health = Health(state=SourceState.PLAYING, n_connects=1)
        self._changed = threading.Condition()
        self.is_paused = self._is_closed = self._is_restart = self._is_iterating = False
        self._n_steps, self._is_in_step = 0, False
        self.position = 0.0

    @property
    def details(self) -> bool:
        """Whether boxes, wheels or inputs are used; predicted paths end in boxes."""
        return self._recording.details

    @details.setter
    def details(self, details: bool) -> None:
        self._recording.details = details or needs_upcoming(self._settings)

    @property
    def is_stepping(self) -> bool:
        """Whether frames that were requested in the pause are outstanding."""
        with self._changed:
            return self.is_paused and (self._n_steps > 0 or self._is_in_step or self._is_restart)

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
            raise errors.ConfigError('step', str(n_frames), '1 frame or more')
        with self._changed:
            self.is_paused = True
            self._n_steps += n_frames
            self._changed.notify_all()

    def restart(self) -> None:
        """Continue with the first frame, even while paused."""
        with self._changed:
            self._is_restart = True
            self._changed.notify_all()

    def reconfigure(self, settings: Settings) -> None:
        """Use the rate of ``settings``, from any thread; a wait that has begun ends by it."""
        with self._changed:
            self._schedule.rate = settings.rate
            self._changed.notify_all()

    def close(self) -> None:
        """End :meth:`frames` at once, from any thread; closing twice is quiet."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            if not self._is_iterating:
                self._recording.close()

    def frames(self) -> Iterator[Frame]:
        """Yield the frames until the end of the recording; a further call plays it again."""
        with self._changed:
            if self._is_closed:
                return
            self._is_iterating, is_again = True, False
        try:
            while (yield from self._pass(is_again)):
                is_again = True
        except errors.TrajectoryFormatError as error:
            self.health.last_error = str(error)
            raise
        finally:
            with self._changed:
                self._is_iterating = False
                self.health.state = SourceState.CLOSED if self._is_closed else SourceState.ENDED
                if self._is_closed:
                    self._recording.close()

    def _pass(self, is_again: bool) -> Generator[Frame, None, bool]:
        """Play from the beginning; return whether to do so again."""
        self.position, last_s, n_frames = 0.0, math.nan, 0
        with self._changed:
            if self._is_restart:
                self._is_restart, self._n_steps = False, int(self.is_paused)
                self._schedule.restart()
        for frame in with_upcoming(self._recording.frames(), self._settings):
            gap = frame.game_time - last_s
            # NaN compares false with everything.
            gap = gap if 0.0 < gap <= MAX_GAP_S else PERIOD_S
            if not self._is_due(gap):
                return not self._is_closed
            last_s = frame.game_time
            self.position += gap if n_frames else 0.0
            n_frames += 1
            self.health.n_packets += 1
            yield replace(frame, is_behind_gap=True) if is_again and n_frames == 1 else frame
            self._is_in_step = False
        if self._recording.cut is not None:
            # It appears in the log; all frames have been played.
            self.health.last_error = self._recording.cut.warning
        if not n_frames:
            raise errors.no_frames(self._recording.name)
        with self._changed:
            while self.is_paused and not (
                    self._is_closed or self._is_restart or self._settings.loop):
                self.health.state = SourceState.PAUSED
                self._n_steps = 0
                self._changed.wait()
            return (self._settings.loop or self._is_restart) and not self._is_closed

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
                    self._is_in_step, wait_s = True, 0.0
                else:
                    self.health.state = SourceState.PAUSED
                    self._schedule.restart()
                if wait_s == 0.0:
                    return True
                self._changed.wait(wait_s)
        return False


def needs_upcoming(settings: Settings) -> bool:
    """Return whether an output has predicted paths, which are those that come true."""
    return 'autoware' in settings.outputs and 'predicted' in settings.autoware_objects


def with_upcoming(frames: Iterator[Frame], settings: Settings) -> Iterator[Frame]:
    """
    Link each frame of a recording with those that follow, if an output needs them.

    Frames are read HORIZON_S ahead, so that the memory does not depend on the length of the
    recording; an error is raised after the frames before it.
    """
    return _linked(frames, settings) if needs_upcoming(settings) else frames


def _linked(frames: Iterator[Frame], settings: Settings) -> Iterator[Frame]:
    sizes = default_sizes(settings)
    # Each frame that has not been yielded, and its link.
    waiting: deque[tuple[Frame, FutureFrame]] = deque()
    before: Frame | None = None
    last: FutureFrame | None = None
    sample_count = 0
    names: tuple[str, ...] = ()
    try:
        for frame in frames:
            # As the stamps: a clock or a count that goes back begins a new run.
            if before is not None and last is not None and (
                    frame.begins_run(last.game_time, before.identity)
                    or 0 < frame.sample_count < sample_count):
                last = None
                yield from _complete(waiting, last)
            before, sample_count = frame, frame.sample_count or sample_count
            # The same object for equal names: they are then compared by identity.
            names = names if frame.names == names else frame.names
            if last is None or frame.game_time > last.game_time:
                link = FutureFrame(frame.game_time, names, centers_of(
                    frame, sizes, classes.classes_of(frame.kinds.tolist(), frame.tags)).poses,
                    frame.has_pose())
                if last is not None:
                    last.following = link
                last = link
            waiting.append((frame, last))
            yield from _complete(waiting, last)
    except errors.TrajectoryFormatError:
        yield from _complete(waiting, None)
        raise
    yield from _complete(waiting, None)


def _complete(waiting: deque[tuple[Frame, FutureFrame]],
              last: FutureFrame | None) -> Iterator[Frame]:
    """Yield the frames that have all links within the horizon; ``last`` None at their end."""
    while waiting and (last is None or last.game_time > waiting[0][1].game_time + HORIZON_S):
        frame, link = waiting.popleft()
        yield replace(frame, upcoming=link)
