# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Link each frame of a recording with the frames that follow, for predicted paths that come true.

The recording is read a second time, HORIZON_S ahead, for the poses alone, so that the memory does
not depend on the length of the recording.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from itertools import tee

import numpy as np

from state_sensor_ros.classes import class_of
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.frame import Frame, FutureFrame, Kinds
from state_sensor_ros.objects.object_maker import centers_of, default_sizes
from state_sensor_ros.objects.predicted_paths import HORIZON_S
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import FrameReader


def is_needed(settings: Settings) -> bool:
    """Return whether an output has predicted paths."""
    return 'autoware' in settings.outputs and 'predicted' in settings.autoware_objects


class LookAhead:
    """Give frames of a recording the frames that follow."""

    # reader: another reader of the same recording, closed by :meth:`close`; None if it can be
    # read once only: its frames are then kept until their turn.

    def __init__(self, reader: FrameReader | None, settings: Settings) -> None:
        self._reader = reader
        if reader is not None:
            reader.details = settings.include_obb
        self._default_sizes = default_sizes(settings)
        self._frame: Frame | None = None
        self._classes: Kinds = np.zeros(0, np.uint8)

    def follow(self, frames: Iterator[Frame]) -> Iterator[Frame]:
        """Yield the same frames, each with ``upcoming``."""
        if self._reader is None:
            frames, ahead = tee(frames)
        else:
            ahead = self._reader.frames()
        links = self._links(ahead)
        # Number of the run and link of each frame that has not been yielded.
        waiting: deque[tuple[int, FutureFrame | None]] = deque()
        for frame in frames:
            while not waiting or not _is_whole(waiting):
                link = next(links, None)
                if link is None:
                    break
                waiting.append(link)
            yield replace(frame, upcoming=waiting.popleft()[1] if waiting else None)

    def close(self) -> None:
        """Close the reader; closing twice is quiet."""
        if self._reader is not None:
            self._reader.close()

    def _links(self, ahead: Iterator[Frame]) -> Iterator[tuple[int, FutureFrame | None]]:
        i_run, last, sample_count = 0, None, 0
        identity: int | None = None
        try:
            for frame in ahead:
                # As the stamps: a clock or a count that goes back begins a new run.
                if last is not None and (frame.begins_run(last.game_time, identity)
                                         or 0 < frame.sample_count < sample_count):
                    i_run, last = i_run + 1, None
                sample_count, identity = frame.sample_count or sample_count, frame.identity
                if last is None or frame.game_time > last.game_time:
                    link = self._link(frame)
                    if last is not None:
                        last.following = link
                    last = link
                yield i_run, last
        except TrajectoryFormatError:
            # The reader of the played frames reports it.
            return

    def _link(self, frame: Frame) -> FutureFrame:
        before, names = self._frame, frame.names
        if before is not None and names == before.names:
            # The same object for equal names: they are then compared by identity.
            names = before.names
        if before is None or names is not before.names or frame.tags != before.tags \
                or (frame.kinds != before.kinds).any():
            self._classes = np.array([class_of(kind, tags) for kind, tags in zip(
                frame.kinds.tolist(), frame.tags, strict=True)], np.uint8)
        self._frame = replace(frame, names=names)
        poses = centers_of(frame, self._default_sizes, self._classes).poses
        return FutureFrame(frame.game_time, names, poses, frame.has_pose())


def _is_whole(waiting: deque[tuple[int, FutureFrame | None]]) -> bool:
    (i_run, first), (last_run, last) = waiting[0], waiting[-1]
    return first is None or i_run != last_run or (
        last is not None and last.game_time > first.game_time + HORIZON_S)
