# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Motions between two frames that are impossible: named with their actor, and never changed.

What is derived from a pair of frames, such as an acceleration, leaves such a pair out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from state_sensor_ros import frame as frames
from state_sensor_ros.frame import Bools, Floats, Frame
from state_sensor_ros.rotations import global_from_body
from state_sensor_ros.texts import counted

# No road user is faster, m/s, or changes its speed by more, m/s2: Formula 1 brakes with 6 g. Of
# numbers with few digits, m and m/s: less is rounding.
MAX_SPEED, MAX_ACCELERATION = 150.0, 60.0
_ROUNDING = 0.2
POSITION, SPEED = 'position', 'speed'
UNITS = {POSITION: 'm', SPEED: 'm/s2'}


class Pair:
    """Two frames, and the actors that have a pose in both."""

    def __init__(self, last: Frame, frame: Frame) -> None:
        self.last, self.frame = last, frame
        self.elapsed = frame.game_time - last.game_time
        known = {name: row for row, name in enumerate(last.names)}
        both = [(known[name], row) for row, name in enumerate(frame.names) if name in known]
        self.n_absent = last.n_actors + frame.n_actors - 2 * len(both)
        before, rows = np.array(both, np.int64).reshape(-1, 2).T
        usable = last.has_pose()[before] & frame.has_pose()[rows]
        self.before, self.rows = before[usable], rows[usable]
        self.n_poseless = len(rows) - len(self.rows)
        self.moved = frame.position_xyz[self.rows] - last.position_xyz[self.before]
        self.are_derived: Bools = last.is_derived(frames.DERIVED_VELOCITY)[self.before] \
            | frame.is_derived(frames.DERIVED_VELOCITY)[self.rows]

    def names(self, chosen: Bools) -> list[str]:
        """Return the names of the chosen ones of the rows."""
        return [self.frame.names[row] for row in self.rows[chosen].tolist()]


class Jumps:
    """Names the motions of single actors that are impossible for the step in which they occur."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        # The greatest of each kind: its size, m or m/s2, the actor and the place.
        self.greatest: dict[str, tuple[float, str, str]] = {}
        self._last: Frame | None = None

    @property
    def lines(self) -> list[str]:
        """Return a line for each kind of motion."""
        return [f'{counted(self.counts[kind], "jump")} of the {kind}, the greatest {size:.4g} '
                f'{UNITS[kind]} ({name}, {place})'
                for kind, (size, name, place) in self.greatest.items()]

    def add(self, frame: Frame, place: str = '') -> dict[str, frozenset[str]]:
        """Count the motions into a frame; return the actors with impossible ones by kind."""
        last, self._last = self._last, with_velocities(frame)
        if last is None or not frame.game_time > last.game_time:
            return {POSITION: frozenset(), SPEED: frozenset()}
        pair = Pair(last, self._last)
        return {kind: frozenset(pair.names(are_wild))
                for kind, are_wild in self.note(pair, place).items()}

    @np.errstate(all='ignore')
    def note(self, pair: Pair, place: str) -> dict[str, Bools]:
        """Count the motions of a pair; return which of its rows have an impossible one."""
        changes = norm(pair.frame.velocity_xyz[pair.rows] - pair.last.velocity_xyz[pair.before])
        sizes = {POSITION: norm(pair.moved),
                 SPEED: np.where(pair.are_derived, 0.0, changes / pair.elapsed)}
        found = {POSITION: sizes[POSITION] > MAX_SPEED * pair.elapsed + _ROUNDING,
                 SPEED: sizes[SPEED] > MAX_ACCELERATION + _ROUNDING / pair.elapsed}
        for kind, are_wild in found.items():
            for size, name in zip(sizes[kind][are_wild].tolist(), pair.names(are_wild),
                                  strict=True):
                self.counts[kind] += 1
                self.greatest[kind] = max(self.greatest.get(kind, (0.0, '', '')), (
                    size, name, place or f'{pair.frame.game_time:.6g} s'))
        return found


@np.errstate(invalid='ignore')
def are_impossible(moved: Floats, changed: Floats, elapsed: float | Floats) -> Bools:
    """
    Return which motions are beyond one of the limits; not those of which nothing is known.

    :param moved: (N, 3) float64, m.
    :param changed: (N, 3) float64, changes of the velocity, m/s.
    :param elapsed: time of all or of each, s.
    """
    beyond: Bools = (norm(moved) > MAX_SPEED * elapsed + _ROUNDING) | (
        norm(changed) > MAX_ACCELERATION * elapsed + _ROUNDING)
    return beyond


def possible(accelerations: Floats) -> Floats:
    """
    Replace accelerations that are impossible by NaN.

    :param accelerations: (..., 6) float64 of velocities and angular velocities.
    """
    sizes = np.einsum('...i,...i', accelerations[..., :3], accelerations[..., :3])
    beyond = sizes > MAX_ACCELERATION ** 2
    return np.where(beyond[..., None], np.nan, accelerations) if beyond.any() else accelerations


def with_velocities(frame: Frame) -> Frame:
    """Return a frame with velocities made of forward speeds; exact unless an actor slides."""
    if frame.forward_speed is None:
        return frame
    kinematics = frame.kinematics.copy()
    with np.errstate(invalid='ignore'):
        forward = global_from_body(frame.orientation_xyzw)[:, :, 0]
    kinematics[:, 7:10] = frame.forward_speed[:, None] * forward
    return replace(frame, kinematics=kinematics, forward_speed=None)


def norm(vectors: Floats) -> Floats:
    """Return the lengths of vectors."""
    length: Floats = np.sqrt(np.einsum('ij,ij->i', vectors, vectors))
    return length
