# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""An index of a recording from one read: places and times of its frames, actors, lane changes."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, replace
import math
import pickle
from typing import Any, NoReturn, TYPE_CHECKING

from state_sensor_ros import errors, parameters
from state_sensor_ros.classes import class_of, CLASSES, Kind
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import LaneChangeFinder

if TYPE_CHECKING:
    import pandas as pd

# Frames, selected or not, between two marks at first, and the size of all marks above which the
# number doubles, bytes.
_PERIOD, _MOST_BYTES = 64, 1 << 26


@dataclass(frozen=True, slots=True)
class LaneChange:
    """
    A change of an actor to another lane of the same road section.

    :ivar name: raw name of the actor.
    :ivar game_time: time of the first frame in the new lane, s.
    :ivar from_lane: OpenDRIVE id of the lane before the change.
    :ivar to_lane: OpenDRIVE id of the lane after it.
    :ivar direction: ``left`` or ``right``, as the driver sees it.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     changes: list[sensor.LaneChange] = recording.lane_changes()
    >>> changes
    []
    """

    name: str
    game_time: float
    from_lane: int
    to_lane: int
    direction: str


@dataclass(frozen=True, slots=True)
class RecordedActor:
    """
    An actor of a recording.

    :ivar name: raw name of the actor.
    :ivar kind: its kind in its first frame.
    :ivar class_name: its class by the tags in that frame, as in tables.
    :ivar first: game time of its first frame, s.
    :ivar last: game time of its last frame, s.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     actors: dict[str, sensor.RecordedActor] = recording.actors
    >>> [actor.name for actor in actors.values()] == list(actors)
    True
    """

    name: str
    kind: Kind
    class_name: str
    first: float
    last: float


class RecordedActors(dict[str, RecordedActor]):
    """
    Actors of a recording by raw name, in order of appearance.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     actors: sensor.RecordedActors = recording.actors
    >>> actors
    RecordedActors(21: 11 car, 9 unknown, 1 truck)
    """

    def __repr__(self) -> str:
        counts = Counter(actor.class_name for actor in self.values())
        classes = ', '.join(f'{number} {name}' for name, number in counts.most_common())
        return f'RecordedActors({len(self)}: {classes})' if self else 'RecordedActors(0)'

    def __missing__(self, name: str) -> NoReturn:
        raise KeyError(f'no actor {name!r}{parameters.near_names([str(name)], self)}')

    def to_pandas(self) -> pd.DataFrame:
        """
        Return a table with a row for each actor.

        :raises MissingLibraryError: if pandas is not installed.
        """
        with errors.importing('to_pandas'):
            import pandas as pd
        return pd.DataFrame([(actor.name, actor.kind.name.lower(), actor.class_name, actor.first,
                              actor.last) for actor in self.values()],
                            columns=['name', 'kind', 'class', 'first', 'last'])


class FrameIndex:
    """
    Times and actors of a recording, and where every 64th of its frames begins.

    :ivar duration: sum of all steps of the clock forward, s; steps back do not count.
    :ivar generation: generation of the first frame, empty without frames.
    :ivar times: game times of the frames, s, NaN for those without.
    :ivar actors: actors by name, in order of appearance.
    :ivar lane_changes: those of all actors, in order of time.
    """

    def __init__(self, recording: RecordingReader) -> None:
        self.duration, self.generation, self.times = 0.0, '', array('d')
        # Numbers of frames, ascending, and where they begin.
        self._begins, self._marks = [0], list[Any]((None,))
        actors, last_s = dict[str, RecordedActor](), dict[str, float]()
        self.lane_changes = list[LaneChange]()
        finder, newest_s = LaneChangeFinder(), math.nan
        n_marked, period, n_bytes = 0, _PERIOD, 0
        for frame in recording.frames():
            time_s = frame.game_time
            self.generation = self.generation or frame.generation
            self.times.append(time_s)
            if time_s > newest_s:
                self.duration += time_s - newest_s
            newest_s = newest_s if math.isnan(time_s) else time_s
            last_s.update(dict.fromkeys(frame.names, time_s))
            for row, name in enumerate(frame.names):
                if name not in actors:
                    kind = Kind(frame.kinds[row])
                    actors[name] = RecordedActor(
                        name, kind, CLASSES[class_of(kind, frame.tags[row])].name, time_s, time_s)
            self.lane_changes += [LaneChange(frame.names[row], time_s, last, lane, direction)
                                  for row, last, lane, direction in finder.changes(frame)]
            if recording.faults.index >= n_marked + period and (mark := recording.mark()):
                n_marked = recording.faults.index
                self._begins.append(len(self.times))
                self._marks.append(mark)
                n_bytes += len(pickle.dumps(mark))
                if n_bytes > _MOST_BYTES:
                    del self._begins[1::2], self._marks[1::2]
                    period, n_bytes = 2 * period, n_bytes // 2
        self.actors = {name: replace(actor, last=last_s[name]) for name, actor in actors.items()}

    def before(self, i: int) -> tuple[int, Any]:
        """Return the number of the last frame up to ``i`` that has a mark, and the mark."""
        k = bisect_right(self._begins, i) - 1
        return self._begins[k], self._marks[k]
