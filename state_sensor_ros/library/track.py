# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""One actor of a recording over time, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import importing, StateError
from state_sensor_ros.frame import Floats, Frame, Rows, speed_along
from state_sensor_ros.library.notebook import track_html
from state_sensor_ros.parameters import near_names
from state_sensor_ros.rotations import rpy_from_quaternion, slerp

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    import pandas as pd

# Longest time between two frames for which an acceleration is computed, s: as in tables.
_MAX_GAP_S = 1.0
# Columns of the numbers of a track.
_POSITION, _ORIENTATION = slice(0, 3), slice(3, 7)
_VELOCITY, _TURNING = slice(7, 10), slice(10, 13)
_ACCELERATION, _SPEED, _LANE = slice(13, 16), 16, slice(17, 21)
_N_COLUMNS = 21
_NAMES = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz', 'ax', 'ay',
          'az', 'speed', 'road_id', 'section_id', 'lane_id', 's')


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Track:
    """
    One actor over T instants; all arrays are float64, and NaN if a value is unknown.

    :ivar name: raw name of the actor.
    :ivar game_time: (T,) times, s.

    >>> import state_sensor_ros as sensor
    >>> with sensor.open_recording('drive.json') as recording:
    ...     track: sensor.Track = recording.ego_track()
    >>> track.position_xyz.shape, track.speed.shape
    ((10, 3), (10,))
    >>> halfway = track.at([0.5 * (track.game_time[0] + track.game_time[-1])])
    >>> len(halfway)
    1
    """

    name: str
    game_time: Floats
    # Number of the step of the clock: a jump shows an absence.
    _steps: Rows
    _numbers: Floats

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.game_time, self._steps, self._numbers):
            array.setflags(write=False)

    def __len__(self) -> int:
        """Return the number of instants, T."""
        return len(self.game_time)

    def __repr__(self) -> str:
        times = f', {self.game_time[0]:.2f} to {self.game_time[-1]:.2f} s' if len(self) else ''
        return f'Track({self.name!r}, {len(self)} frames{times})'

    def _repr_html_(self) -> str:
        return track_html(self)

    @property
    def position_xyz(self) -> Floats:
        """(T, 3) m, global frame."""
        return self._numbers[:, _POSITION]

    @property
    def orientation_xyzw(self) -> Floats:
        """(T, 4) global frame, of unit length."""
        return self._numbers[:, _ORIENTATION]

    @property
    def velocity_xyz(self) -> Floats:
        """(T, 3) m/s, axes of the global frame."""
        return self._numbers[:, _VELOCITY]

    @property
    def angular_velocity_xyz(self) -> Floats:
        """(T, 3) rad/s, axes of the global frame."""
        return self._numbers[:, _TURNING]

    @property
    def acceleration_xyz(self) -> Floats:
        """(T, 3) m/s2, axes of the global frame: the source's, else central differences."""
        return self._numbers[:, _ACCELERATION]

    @property
    def speed(self) -> Floats:
        """(T,) m/s along the actor's own x axis, negative backward."""
        return self._numbers[:, _SPEED]

    @property
    def yaw(self) -> Floats:
        """(T,) rad, heading: 0 along x of the global frame, + = to the left."""
        return rpy_from_quaternion(self.orientation_xyzw)[:, 2]

    @property
    def road_id(self) -> Floats:
        """(T,) OpenDRIVE id of the road."""
        return self._numbers[:, _LANE.start]

    @property
    def section_id(self) -> Floats:
        """(T,) number of the lane section."""
        return self._numbers[:, _LANE.start + 1]

    @property
    def lane_id(self) -> Floats:
        """(T,) OpenDRIVE id of the lane: negative to the right of the middle."""
        return self._numbers[:, _LANE.start + 2]

    @property
    def s(self) -> Floats:
        """(T,) m along the road."""
        return self._numbers[:, _LANE.start + 3]

    def at(self, times: npt.ArrayLike) -> Track:
        """
        Interpolate the track: numbers along lines, orientations by slerp.

        The lane and ``s`` are those of the instant before. While the actor is absent, also before
        its first and after its last frame, all numbers are NaN.

        :param times: (K,) game times, s.
        :returns: a track of K instants.
        :raises StateError: if the game time of the recording goes back: select one run.
        """
        wanted = np.array(times, np.float64, ndmin=1)
        if (np.diff(self.game_time) <= 0.0).any():
            raise StateError('game_time', 'a time that goes back', 'a track of one run of the '
                             'simulator: select(start=…, end=…)')
        numbers = np.full((len(wanted), _N_COLUMNS), np.nan)
        steps = np.full(len(wanted), -1, np.int64)
        if len(self):
            after = np.clip(np.searchsorted(self.game_time, wanted, 'right'), 1,
                            max(len(self) - 1, 1))
            before = after - 1
            after = np.minimum(after, len(self) - 1)
            with np.errstate(all='ignore'):
                shares = np.nan_to_num((wanted - self.game_time[before])
                                       / (self.game_time[after] - self.game_time[before]))
                is_whole = (self.game_time[before] == wanted) | (self.game_time[after] == wanted)
                is_known = (wanted >= self.game_time[0]) & (wanted <= self.game_time[-1]) & (
                    is_whole | (self._steps[after] - self._steps[before] <= 1))
                mixed = self._between(before, after, shares)
            numbers[is_known] = mixed[is_known]
            steps[is_known] = np.where(shares < 1.0, self._steps[before],
                                       self._steps[after])[is_known]
        return Track(self.name, wanted, steps, numbers)

    def _between(self, before: Rows, after: Rows, shares: Floats) -> Floats:
        """Return the numbers between rows ``before`` and ``after``."""
        first, last = self._numbers[before], self._numbers[after]
        # At a known instant, its numbers are used even if those of the other end are NaN.
        mixed: Floats = np.where(shares[:, None] == 0.0, first, np.where(
            shares[:, None] == 1.0, last, first + shares[:, None] * (last - first)))
        mixed[:, _ORIENTATION] = slerp(first[:, _ORIENTATION], last[:, _ORIENTATION], shares)
        mixed[:, _LANE] = np.where(shares[:, None] < 1.0, first[:, _LANE], last[:, _LANE])
        return mixed

    def plot(self) -> Figure:
        """
        Return a figure of the path, and of the speed over time.

        :raises MissingLibraryError: if matplotlib is not installed.
        """
        with importing('plot'):
            from state_sensor_ros.drawing.figures import track_figure
        return track_figure(self.name, self.game_time, self.position_xyz[:, :2], self.speed)

    def to_pandas(self) -> pd.DataFrame:
        """
        Return a table with a row for each instant, of the columns of `state_sensor convert`.

        :raises MissingLibraryError: if pandas is not installed.
        """
        with importing('to_pandas'):
            import pandas as pd
        columns = dict(zip(_NAMES, self._numbers.T, strict=True))
        return pd.DataFrame({'game_time': self.game_time, **columns, 'yaw': self.yaw})


class TrackCollector:
    """Collect the track of an actor from frames in their order."""

    # name: raw name of the actor; None for the ego, whose name may change.

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._names: list[str] = []
        # Names of other actors, for the error.
        self._others: set[str] = set()
        self._times: list[float] = []
        self._steps: list[int] = []
        self._n_steps = 0
        self._last_time = math.nan
        self._rows: list[Floats] = []

    def add(self, frame: Frame) -> None:
        """Add a frame; one whose clock did not advance is dropped."""
        if math.isnan(frame.game_time) or frame.game_time == self._last_time:
            return
        self._last_time = frame.game_time
        self._n_steps += 1
        row = frame.ego if self._name is None else (
            frame.row(self._name) if self._name in frame else None)
        if row is None:
            if self._name is not None and not self._times:
                self._others.update(frame.names)
            return
        self._names.append(frame.names[row])
        self._times.append(frame.game_time)
        self._steps.append(self._n_steps)
        self._rows.append(_numbers_of(frame, row))

    def track(self) -> Track:
        if not self._times:
            if self._name is None:
                raise StateError('names', 'no ego', 'one, or open_recording(…, ego=NAME)')
            raise StateError('names', f'no actor {self._name!r}', 'an actor of the recording'
                             + near_names([self._name], self._others))
        numbers = np.array(self._rows)
        times, steps = np.array(self._times), np.array(self._steps, np.int64)
        _set_accelerations(times, steps, numbers)
        return Track(self._names[0], times, steps, numbers)


def _numbers_of(frame: Frame, row: int) -> Floats:
    numbers = np.full(_N_COLUMNS, np.nan)
    numbers[:13] = frame.kinematics[row]
    numbers[_ORIENTATION] /= np.linalg.norm(numbers[_ORIENTATION]) \
        if frame.has_pose()[row] else np.nan
    numbers[_SPEED] = speed_along(frame, row)
    if frame.accelerations is not None:
        numbers[_ACCELERATION] = frame.accelerations[row]
    lane = np.flatnonzero(frame.lanes.actor == row)
    if len(lane):
        numbers[_LANE] = (*frame.lanes.ids[lane[0]], frame.lanes.s[lane[0]])
    return numbers


def _set_accelerations(times: Floats, steps: Rows, numbers: Floats) -> None:
    """Set unknown accelerations to central differences of the velocity."""
    if len(times) < 3:
        return
    elapsed = np.diff(times)
    is_near = (elapsed > 0.0) & (elapsed <= _MAX_GAP_S) & (np.diff(steps) == 1)
    known = is_near[:-1] & is_near[1:] & np.isnan(numbers[1:-1, _ACCELERATION]).all(axis=1)
    change = numbers[2:, _VELOCITY] - numbers[:-2, _VELOCITY]
    numbers[1:-1, _ACCELERATION][known] = (change / (times[2:] - times[:-2])[:, None])[known]
