# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The selected part of a recording or stream: actors by tag and name, a span of time, a rate."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain
import math
import re
from typing import Any

import numpy as np

from state_sensor_ros import classes, errors, parameters, texts
from state_sensor_ros.classes import EGO_TAG, has_ego_tag, TagRule
from state_sensor_ros.files.recording import forwarded, RecordingReader
from state_sensor_ros.frame import Frame

# Some simulators round times to float32; none sends 10,000 frames per second.
_TOLERANCE_S = 1e-4


@dataclass(frozen=True, slots=True)
class RecordingSelection:
    # desired_tags, undesired_tags: as the parameters of these names.
    desired_tags: tuple[str, ...] = ()
    undesired_tags: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()  # raw names, empty for all
    start_s: float = 0.0  # start_s, end_s: from the first frame
    end_s: float = math.inf
    rate_hz: float | None = None  # largest rate of frames, None for all
    ego: str = ''  # tag that the ego is to have, with `ego_from`
    ego_from: str = ''  # option or parameter that selects the ego, as given
    ego_name: str = ''  # name or tag of the actor that is tagged ego instead of others

    @property
    def has_all_frames(self) -> bool:
        return self.start_s <= 0.0 and math.isinf(self.end_s) and self.rate_hz is None

    @property
    def has_all_actors(self) -> bool:
        return not self.actors and TagRule(self.desired_tags, self.undesired_tags).passes_all

    @property
    def has_all(self) -> bool:
        """Return whether nothing is omitted and the ego is that of the recording."""
        return self.has_all_frames and self.has_all_actors and not (self.ego_from or self.ego_name)


EVERYTHING = RecordingSelection()


def outside(selection: RecordingSelection, n_frames: int, end_s: float) -> list[str]:
    """
    Return a line for a selected time after the end of a recording.

    :param n_frames: number of frames of the recording.
    :param end_s: time from its first frame to its last one, s.
    """
    # Three seconds at 20 Hz have their last frame at 2.95 s.
    until_s = end_s + end_s / max(n_frames - 1, 1) + _TOLERANCE_S
    return [f'the selected {name}, {value:.6g} s, is after the end of the recording, '
            f'{end_s:.6g} s after its first frame' for name, value in (
                ('start', selection.start_s), ('end', selection.end_s))
            if until_s < value < math.inf][:1]


class SelectedNames:
    """The names, tags and the ego that are selected, and the names that the frames have."""

    def __init__(self, selection: RecordingSelection) -> None:
        self._selection = selection
        self._is_used = not selection.has_all_actors or bool(selection.ego_from)
        self.names: set[str] = set()
        self._tags: set[str] = set()

    def add(self, frame: Frame) -> None:
        """Note what a frame with all actors has."""
        if self._is_used:
            self.names.update(frame.names)
            self._tags.update(chain.from_iterable(frame.tags))

    def lines(self, *, is_empty: bool) -> list[str]:
        """Return a line for what matches nothing; ``is_empty`` whether no actor passed."""
        lines, selection = [], self._selection
        if missing := {*selection.actors} - self.names:
            names = texts.shortened(', '.join(sorted(missing)))
            lines.append(f'no selected frame has the actor {names}'
                         + parameters.near_names(missing, self.names))
        known = {tag.lower() for tag in self._tags}
        unknown = sorted(tag for tag in {*selection.desired_tags, *selection.undesired_tags}
                         if tag and tag.lower() not in known)
        if is_empty or (unknown and self.names):
            rule = ' and '.join(f'{name} {" ".join(tags)}' for name, tags in (
                ('desired_tags', selection.desired_tags),
                ('undesired_tags', selection.undesired_tags)) if tags)
            what = f'actor that passes {rule}' if is_empty \
                else f'actor with the tag {", ".join(unknown)}'
            lines.append(f'no selected frame has an {what}'
                         + (parameters.near_names(unknown, self._tags) if unknown else ''))
        if selection.ego_from and self.names and not has_ego_tag(self._tags, selection.ego):
            option, wanted = re.split('[= ](?!.*[= ])', selection.ego_from)
            known = {*(() if '.ego' in option else self._tags),
                     *(() if 'tag' in option else self.names)}
            lines.append(f'{selection.ego_from}: no selected frame has this ego'
                         + parameters.near_names([wanted], known))
        return lines


@dataclass(slots=True)
class FrameTimes:
    """The times of frames, counted from the first one, and which of the frames are selected."""

    selection: RecordingSelection
    n_frames: int = 0  # so far, selected or not
    elapsed_s: float = 0.0  # from the first frame to the last one
    _last_s: float = math.nan
    _first_s: float = math.nan  # elapsed at the first selected frame
    _n_due: int = 0

    def keeps(self, time_s: float) -> bool:
        """Return whether the next frame is selected; a NaN is the time of the frame before."""
        self.n_frames += 1
        if time_s > self._last_s:
            self.elapsed_s += time_s - self._last_s
        if not math.isnan(time_s):
            self._last_s = time_s
        selection, elapsed_s = self.selection, self.elapsed_s
        if not selection.start_s - _TOLERANCE_S <= elapsed_s <= selection.end_s + _TOLERANCE_S:
            return False
        if math.isnan(self._first_s):
            self._first_s = elapsed_s
        if selection.rate_hz is None:
            return True
        n_periods = (elapsed_s - self._first_s + _TOLERANCE_S) * selection.rate_hz
        if n_periods < self._n_due:
            return False
        self._n_due = math.floor(n_periods) + 1
        return True


class SelectedRecording:
    """
    The selected part of a recording, itself a recording.

    :ivar reader: the recording.
    """

    (faults, details, is_timed, cut, position, name, format_name, simulator, total, unit, payload,
     n_bytes) = (forwarded('reader', name) for name in (
         'faults', 'details', 'is_timed', 'cut', 'position', 'name', 'format_name', 'simulator',
         'total', 'unit', 'payload', 'n_bytes'))

    def __init__(self, reader: RecordingReader, selection: RecordingSelection) -> None:
        self.reader, self._selection = reader, selection
        self._rule = TagRule(selection.desired_tags, selection.undesired_tags)
        self._actors = frozenset(selection.actors)
        self._seen = SelectedNames(selection)
        # Actors of the selected frame with the most, -1 before the first.
        self._n_most = -1
        self._times = FrameTimes(selection)

    def frames(self, mark: Any = None) -> Iterator[Frame]:  # noqa: ANN401
        """Return the selected frames with their selected actors, from a mark on."""
        inner, times = mark or (None, FrameTimes(self._selection))
        self._times = copy(times)
        frames = self.reader.frames(inner)
        return frames if self._selection.has_all else (
            self._with_actors(frame) for frame in frames if self._times.keeps(frame.game_time))

    def mark(self) -> Any:  # noqa: ANN401
        """Return where the next frame of the last loop begins, None if it is unknown."""
        inner = self.reader.mark()
        return inner and (inner, copy(self._times))

    def close(self) -> None:
        self.reader.close()

    @property
    def unmatched(self) -> list[str]:
        """Return lines about selected times, names, tags and an ego that match nothing so far."""
        has_named = not self._actors or not self._actors.isdisjoint(self._seen.names)
        return [*self._seen.lines(is_empty=not self._n_most and has_named
                                  and not self._rule.passes_all),
                *(outside(self._selection, self._times.n_frames, self._times.elapsed_s)
                  if self._times.n_frames else ()), *getattr(self.reader, 'unmatched', ())]

    def without_frames(self) -> errors.TrajectoryFormatError:
        """Return the error for a selection that has no frame."""
        return errors.no_frames(self.name, is_part=not self._selection.has_all_frames,
                                end_s=self._times.elapsed_s)

    def check(self, n_frames: int) -> None:
        """Refuse a selection of no frame, or by names or tags of no actor in any of them."""
        if not n_frames:
            raise self.without_frames()
        if not self._n_most and not self._selection.has_all_actors:
            raise errors.TrajectoryFormatError(self.name, 'no selected actor in any frame',
                                               'at least one actor')

    def _with_actors(self, frame: Frame) -> Frame:
        """Return a frame with the selected actors, itself if these are all."""
        if self._selection.ego_name:
            frame = self._with_ego(frame)
        self._seen.add(frame)
        if self._actors:
            rows = np.flatnonzero([name in self._actors for name in frame.names])
            if len(rows) < frame.n_actors:
                frame = frame.select(rows)
        frame = self._rule.select(frame)
        self._n_most = max(self._n_most, frame.n_actors)
        return frame

    def _with_ego(self, frame: Frame) -> Frame:
        """Return a frame in which the chosen actor alone has the tag of the ego."""
        wanted = self._selection.ego_name
        ego = frame.names.index(wanted) if wanted in frame.names \
            else classes.ego_row(frame.tags, wanted)
        others = [tuple(tag for tag in tags if tag.lower() != EGO_TAG) for tags in frame.tags]
        return replace(frame, tags=tuple([
            (*tags, EGO_TAG) if row == ego else tags for row, tags in enumerate(others)]))
