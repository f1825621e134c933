# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The state of the ego in each frame: its pose, its box, and the numbers that are plotted."""

from __future__ import annotations

from dataclasses import dataclass, field
import math

import numpy as np
import rerun as rr

from state_sensor_ros.frame import Floats, Frame, speed_along
from state_sensor_ros.objects.criticality import Situation
from state_sensor_ros.rotations import body_from_global, CONJUGATE_XYZW, quaternion_product
from state_sensor_ros.viewing.columns import Instances, Timelines

SPEED, ACCELERATION, STEERING, STEERING_ANGLE, LANE, GAP, HEADWAY, COLLISION = (
    'speed', 'acceleration', 'steering', 'steering_angle', 'lane', 'gap', 'time_headway',
    'time_to_collision')
# Names of the plotted numbers with their units.
PLOTS = {SPEED: 'speed, m/s', ACCELERATION: 'acceleration, m/s²',
         STEERING: 'steering, -1..1, + = left', STEERING_ANGLE: 'steering angle, rad, + = left',
         LANE: 'lane, OpenDRIVE id', GAP: 'gap to the lead vehicle, m',
         HEADWAY: 'time headway, s', COLLISION: 'time to collision, s'}
# Longer times, s, say nothing about safety, and would flatten the plot.
_MAX_TIME_S = 10.0
EGO = 'world/ego'
# A longer step is a gap: nothing is known about the acceleration in it.
_MAX_GAP_S = 1.0


@dataclass(slots=True)
class _Series:
    """The known numbers of a plot that were not sent yet, with the rows of their frames."""

    rows: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


class EgoLog:
    """Collects the states of the ego over frames."""

    # start_xyz: first position, m, None before there is an ego.

    def __init__(self) -> None:
        self.plots: set[str] = set()
        self.start_xyz: tuple[float, ...] | None = None
        self._box = Instances(EGO, rr.Boxes3D, 'centers', 'half_sizes', 'quaternions')
        self._rows: list[int] = []
        self._poses: list[Floats] = []
        self._series = {name: _Series() for name in PLOTS}
        self._last: tuple[float, float] = (math.nan, math.nan)

    def add(self, frame: Frame, row: int | None, poses: Floats, box: Floats | None,
            i_frame: int) -> None:
        """Append a frame."""
        # poses: (N + M, 13) float64, of the actors and the boxes, unit quaternions.
        # box: (10,) float64, pose and full edges of the ego's box, None without an ego.
        if row is None or box is None:
            self._box.add((), *_no_box())
            return
        pose = poses[row]
        if self.start_xyz is None:
            self.start_xyz = tuple(pose[:3].tolist())
        self._rows.append(i_frame)
        self._poses.append(pose[:7])
        orientation = pose[None, 3:7]
        self._box.add(
            (frame.names[row],),
            body_from_global(orientation, (box[:3] - pose[:3])[None, None])[0],
            0.5 * box[None, 7:10],
            quaternion_product(orientation * CONJUGATE_XYZW, box[None, 3:7]))
        for name, value in self._numbers(frame, row):
            if math.isfinite(value):
                self._series[name].rows.append(i_frame)
                self._series[name].values.append(value)

    def _numbers(self, frame: Frame, row: int) -> list[tuple[str, float]]:
        """Return the plotted numbers of a frame by name, NaN if unknown."""
        speed = speed_along(frame, row)
        last_time, last_speed = self._last
        elapsed = frame.game_time - last_time
        acceleration = (speed - last_speed) / elapsed if 0.0 < elapsed <= _MAX_GAP_S else math.nan
        if elapsed != 0.0:
            self._last = frame.game_time, speed
        numbers = [(SPEED, speed), (ACCELERATION, acceleration)]
        if frame.inputs is not None:
            numbers += zip((STEERING, STEERING_ANGLE), frame.inputs[row, 2:4].tolist(),
                           strict=True)
        i_lane = int(frame.lanes.actor.searchsorted(row))
        if i_lane < len(frame.lanes) and frame.lanes.actor[i_lane] == row:
            numbers.append((LANE, float(frame.lanes.lane_id[i_lane])))
        found = Situation(frame).criticality(row)
        numbers.append((GAP, found.gap))
        return numbers + [(name, value) for name, value in (
            (HEADWAY, found.time_headway), (COLLISION, found.time_to_collision))
            if value <= _MAX_TIME_S]

    def send(self, stream: rr.RecordingStream, timelines: Timelines) -> None:
        """Send the collected states, and remove them."""
        if self._rows:
            poses = np.array(self._poses, np.float32)
            stream.send_columns(EGO, timelines.columns(self._rows), rr.Transform3D.columns(
                translation=poses[:, :3], quaternion=poses[:, 3:7]), strict=True)
        self._box.send(stream, timelines)
        for name, series in self._series.items():
            if not series.rows:
                continue
            if name not in self.plots:
                self.plots.add(name)
                stream.log(f'plots/{name}', rr.SeriesLines(names=PLOTS[name]), static=True,
                           strict=True)
            stream.send_columns(f'plots/{name}', timelines.columns(series.rows),
                                rr.Scalars.columns(scalars=series.values), strict=True)
            series.rows, series.values = [], []
        self._rows.clear()
        self._poses.clear()


def _no_box() -> tuple[Floats, Floats, Floats]:
    return np.zeros((0, 3)), np.zeros((0, 3)), np.zeros((0, 4))
