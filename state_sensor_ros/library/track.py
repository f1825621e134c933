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

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from state_sensor_ros import parameters
from state_sensor_ros.errors import importing, StateError
from state_sensor_ros.files.actor_rows import FLOAT_NAMES, FrameRows, RowMaker
from state_sensor_ros.frame import Floats, Frame, Rows
from state_sensor_ros.library.notebook import track_html
from state_sensor_ros.pipeline.stamps import Step
from state_sensor_ros.rotations import rpy_from_quaternion, slerp

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    import pandas as pd

# Columns of the numbers of a track, and their names in a table.
_POSITION, _ORIENTATION, _VELOCITY = slice(0, 3), slice(3, 7), slice(7, 10)
_TURNING, _ACCELERATION, _SPEED, _LANE = slice(10, 13), slice(13, 16), 16, slice(17, 21)
_NAMES = ('x', 'y', 'z', 'qx', 'qy', 'qz', 'qw', 'vx', 'vy', 'vz', 'wx', 'wy', 'wz', 'ax', 'ay',
          'az', 'speed', 'road_id', 'section_id', 'lane_id', 's')
_FLOATS = [FLOAT_NAMES.index(name) for name in _NAMES[:_LANE.start]]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Track:
    """
    One actor over T instants; all arrays are float64, and NaN if a value is unknown.

    :ivar name: raw name of the actor.
    :ivar game_time: (T,) times, s.
    :ivar position_xyz: (T, 3) m, global frame.
    :ivar orientation_xyzw: (T, 4) global frame, of unit length.
    :ivar velocity_xyz: (T, 3) m/s, axes of the global frame.
    :ivar angular_velocity_xyz: (T, 3) rad/s, axes of the global frame.
    :ivar acceleration_xyz: (T, 3) m/s2, axes of the global frame: the source's, else central
        differences.
    :ivar speed: (T,) m/s along the actor's own x axis, negative backward.
    :ivar road_id: (T,) OpenDRIVE id of the road.
    :ivar section_id: (T,) number of the lane section.
    :ivar lane_id: (T,) OpenDRIVE id of the lane: negative to the right of the middle.
    :ivar s: (T,) m along the road.

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
    position_xyz: Floats
    orientation_xyzw: Floats
    velocity_xyz: Floats
    angular_velocity_xyz: Floats
    acceleration_xyz: Floats
    speed: Floats
    road_id: Floats
    section_id: Floats
    lane_id: Floats
    s: Floats
    # Number of the step of the clock: a jump shows an absence.
    _steps: Rows = field(kw_only=True)
    # (T, 21) all of them, of which the arrays are views.
    _numbers: Floats = field(kw_only=True)

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for member in fields(self)[1:]:
            getattr(self, member.name).setflags(write=False)

    def __len__(self) -> int:
        """Return the number of instants, T."""
        return len(self.game_time)

    def __repr__(self) -> str:
        times = f', {self.game_time[0]:.2f} to {self.game_time[-1]:.2f} s' if len(self) else ''
        return f'Track({self.name!r}, {len(self)} frames{times})'

    def _repr_html_(self) -> str:
        return track_html(self)

    @property
    def yaw(self) -> Floats:
        """(T,) rad, heading: 0 along x of the global frame, + = to the left."""
        return rpy_from_quaternion(self.orientation_xyzw)[:, 2]

    def at(self, times: npt.ArrayLike) -> Track:
        """
        Interpolate the track: numbers along lines, orientations by slerp.

        The lane and ``s`` are those of the instant before. While the actor is absent, also before
        its first and after its last frame, all numbers are NaN.

        :param times: (K,) game times, s.
        :returns: a track of K instants.
        :raises StateError: if the game time of the recording goes back: select one run.
        """
        wanted, known = np.array(times, np.float64, ndmin=1), self.game_time
        if (np.diff(known) <= 0.0).any():
            raise StateError('game_time', 'a time that goes back', 'a track of one run of the '
                             'simulator: select(start=…, end=…)')
        numbers = np.full((len(wanted), len(_NAMES)), np.nan)
        steps = np.full(len(wanted), -1, np.int64)
        if len(self):
            after = np.searchsorted(known, wanted, 'right').clip(1, max(len(self) - 1, 1))
            before, after = after - 1, np.minimum(after, len(self) - 1)
            with np.errstate(all='ignore'):
                shares = np.nan_to_num((wanted - known[before]) / (known[after] - known[before]))
                is_whole = (known[before] == wanted) | (known[after] == wanted)
                is_known = (wanted >= known[0]) & (wanted <= known[-1]) & (
                    is_whole | (self._steps[after] - self._steps[before] <= 1))
                mixed = self._between(before, after, shares)
            numbers[is_known] = mixed[is_known]
            steps[is_known] = self._steps[np.where(shares < 1.0, before, after)][is_known]
        return _track(self.name, wanted, steps, numbers)

    def _between(self, before: Rows, after: Rows, shares: Floats) -> Floats:
        """Return the numbers between rows ``before`` and ``after``."""
        first, last, share = self._numbers[before], self._numbers[after], shares[:, None]
        # At a known instant, its numbers are used even if those of the other end are NaN.
        mixed: Floats = np.where(share == 0.0, first, np.where(
            share == 1.0, last, first + share * (last - first)))
        mixed[:, _ORIENTATION] = slerp(first[:, _ORIENTATION], last[:, _ORIENTATION], shares)
        mixed[:, _LANE] = np.where(share < 1.0, first[:, _LANE], last[:, _LANE])
        return mixed

    def plot(self) -> Figure:
        """
        Return a figure of the path, and of the speed over time.

        :raises MissingLibraryError: if matplotlib is not installed.
        """
        with importing('plot'):
            from state_sensor_ros.drawing.picture import track_figure
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


def _track(name: str, times: Floats, steps: Rows, numbers: Floats) -> Track:
    vectors = [numbers[:, columns] for columns in (
        _POSITION, _ORIENTATION, _VELOCITY, _TURNING, _ACCELERATION)]
    return Track(name, times, *vectors, *numbers[:, _SPEED:].T, _steps=steps, _numbers=numbers)


def track_of(frames: Iterable[Frame], name: str | None) -> Track:
    """
    Return the track of an actor.

    :param frames: all frames in their order; one whose clock did not advance is dropped.
    :param name: its raw name; None for the ego, whose name may change.
    :raises StateError: if no frame has it.
    """
    maker, made, others = RowMaker(), list[FrameRows](), set[str]()
    for frame in frames:
        row = frame.ego if name is None else frame.row(name) if name in frame else None
        made += maker.add(frame.select([] if row is None else [row]))
        others.update(frame.names)
    made = [each for each in made + maker.flush(is_end=True)
            if each.frame.n_actors and each.stamp_ns is not None
            and each.step is not Step.REPEATED]
    if not made:
        raise StateError('names', 'no ego', 'one, or open_recording(…, ego=NAME)') \
            if name is None else StateError('names', f'no actor {name!r}', 'an actor of the '
                                            'recording' + parameters.near_names([name], others))
    numbers = np.full((len(made), len(_NAMES)), np.nan)
    numbers[:, :_LANE.start] = np.concatenate([each.floats for each in made])[:, _FLOATS]
    numbers[~np.concatenate([each.frame.has_pose() for each in made]), _ORIENTATION] = np.nan
    numbers[:, _ORIENTATION] /= np.linalg.norm(numbers[:, _ORIENTATION], axis=1, keepdims=True)
    for row, lanes in enumerate(each.frame.lanes for each in made):
        if len(lanes):
            numbers[row, _LANE] = (*lanes.ids[0], lanes.s[0])
    return _track(made[0].frame.names[0], np.array([each.frame.game_time for each in made]),
                  np.array([each.number for each in made]), numbers)
