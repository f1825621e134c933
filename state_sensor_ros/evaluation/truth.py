# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ground truth over time: objects and ego of a recording, interpolated at any instant of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.evaluation.matching import (
    N_COLUMNS,
    ObjectSet,
    PERIOD,
    SIZE,
    VELOCITY,
    XY,
    XYZ,
    YAW,
)
from state_sensor_ros.frame import Bools, Floats, Frame, Ints, Rows
from state_sensor_ros.jumps import Jumps
from state_sensor_ros.naming import Actor, registry_of
from state_sensor_ros.objects.assumptions import Assumptions
from state_sensor_ros.objects.object_maker import ObjectMaker, origin_twist, transported
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.rotations import global_from_unit, normalized, slerp, wrapped
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.transforms import BASE_LINK, BaseLink

# Greatest distance of an instant with truth from a stamp of the truth: 0.1 s, and 10 us because
# times of recordings are float32.
MAX_DISTANCE_NS: Final = 100_010_000
# Longest time between two frames that are interpolated.
MAX_GAP_NS: Final = 1_000_000_000
_EGO_ROW = np.dtype([('stamp_ns', np.int64), ('origin', np.float64, 3),
                     ('pose', np.float64, 7), ('speed', np.float64)])
# Actors (K,), index in the names, ascending; classes (K,), index in EVALUATED_CLASSES; states
# (K, 9), of a frame.
TruthRows = tuple[npt.NDArray[np.int32], npt.NDArray[np.int8], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class EgoTrack:
    """The ego over time, global frame."""

    stamps_ns: Rows  # (T,) ascending
    origins: Floats  # (T, 3) m
    poses: Floats  # (T, 7) base_link, position xyz (m), orientation xyzw of unit length
    speeds: Floats  # (T,) m/s, of base_link along its x axis, NaN if unknown
    frames: frozenset[str]  # names of the frames at the origin
    offset: Floats  # (3,) of base_link in the axes of the ego, m

    def at(self, stamps_ns: Rows) -> tuple[Floats, Floats, Floats]:
        """
        Return origins, poses and speeds at some times, NaN if there is no truth.

        A time that has no frame on one side continues the motion between the two frames on the
        other side.

        :param stamps_ns: (K,) int64.
        :returns: (K, 3), (K, 7) and (K,) float64.
        """
        found = np.full((len(stamps_ns), 11), np.nan)
        if len(self.stamps_ns):
            before, after, share, is_near = brackets(self.stamps_ns, stamps_ns)
            alone = np.flatnonzero((before == after) & (self.stamps_ns[before] != stamps_ns))
            if len(alone):
                before[alone], after[alone], share[alone] = _last_steps(
                    self.stamps_ns, before[alone], stamps_ns[alone])
            first, last = (
                np.column_stack((self.origins[rows], self.speeds[rows], self.poses[rows]))
                for rows in (before, after))
            between = first + share[:, None] * (last - first)
            between[:, 7:] = slerp(first[:, 7:], last[:, 7:], share)
            found[is_near] = between[is_near]
        return found[:, :3], found[:, 4:], found[:, 3]


def brackets(stamps_ns: Rows, wanted_ns: Rows) -> tuple[Rows, Rows, Floats, Bools]:
    """Return the stamps before and after some times."""
    # stamps_ns: (T,) int64, ascending, at least one.
    # wanted_ns: (K,) int64.
    # Returns rows before and after, equal for a time that has no interval of at most MAX_GAP_NS
    # around it; share of the way between them; whether a stamp is within MAX_DISTANCE_NS.
    after = np.searchsorted(stamps_ns, wanted_ns).clip(0, len(stamps_ns) - 1)
    before = np.maximum(after - 1, 0)
    gap = stamps_ns[after] - stamps_ns[before]
    is_inside = (stamps_ns[before] <= wanted_ns) & (wanted_ns <= stamps_ns[after]) \
        & (gap <= MAX_GAP_NS)
    to_before, to_after = (np.abs(stamps_ns[rows] - wanted_ns) for rows in (before, after))
    nearest = np.where(to_before < to_after, before, after)
    is_near: Bools = np.minimum(to_before, to_after) <= MAX_DISTANCE_NS
    before, after = np.where(is_inside, before, nearest), np.where(is_inside, after, nearest)
    share = np.where(before < after, (wanted_ns - stamps_ns[before]) / np.maximum(gap, 1), 0.0)
    return before, after, share, is_near


def _last_steps(stamps_ns: Rows, nearest: Rows, wanted_ns: Rows) -> tuple[Rows, Rows, Floats]:
    """
    Return the stamps between which the motion up to some times was the last that is known.

    :param stamps_ns: (T,) int64, ascending.
    :param nearest: (K,) int64, row of the stamp beside each time.
    :param wanted_ns: (K,) int64, times that lie between no two stamps.
    :returns: rows before and after, both ``nearest`` if there is no interval of at most
        MAX_GAP_NS; share of the way between them, below 0 or above 1.
    """
    are_later = wanted_ns > stamps_ns[nearest]
    before = np.maximum(nearest - are_later, 0)
    after = np.minimum(nearest + ~are_later, len(stamps_ns) - 1)
    gap = stamps_ns[after] - stamps_ns[before]
    has_step = (gap > 0) & (gap <= MAX_GAP_NS)
    before, after = np.where(has_step, before, nearest), np.where(has_step, after, nearest)
    share = np.where(has_step, (wanted_ns - stamps_ns[before]) / np.maximum(gap, 1), 0.0)
    return before, after, share


@dataclass(frozen=True, eq=False)
class GroundTruth:
    """The objects of T frames."""

    name: str  # of the recording
    stamps_ns: Rows  # (T,) int64 ascending
    frames: tuple[TruthRows, ...]
    names: tuple[str, ...]
    are_selected: Bools  # (A,) bool of each of ``names``
    ego: EgoTrack | None  # None if the recording has none
    repeated: tuple[int, str] | None  # stamp, ns, and the id of several objects of one frame

    def at(self, stamp_ns: int) -> tuple[ObjectSet, Bools] | None:
        """
        Return the objects at a time, and which of them are selected; None without truth.

        They are the objects of the nearest frame: interpolated if the frame on the other side also
        has them, and moved by their velocity otherwise.
        """
        [before], [after], [share], [is_near] = brackets(
            self.stamps_ns, np.array([stamp_ns], np.int64))
        if not is_near:
            return None
        nearest, other, share = (after, before, 1.0 - share) if share > 0.5 else (
            before, after, share)
        actors, classes, states = self.frames[nearest]
        if stamp_ns != self.stamps_ns[nearest]:
            moved = states.copy()
            moved[:, XY] += np.nan_to_num(states[:, VELOCITY]) * (
                stamp_ns - int(self.stamps_ns[nearest])) * 1e-9
            change = self._change(int(other), actors, states)
            states = moved if other == nearest else np.where(
                np.isnan(change[:, :1]), moved, states + share * change)
        return ObjectSet(tuple([self.names[actor] for actor in actors.tolist()]),
                         classes.astype(np.int64), states, np.ones(len(actors))), \
            self.are_selected[actors]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def actors_of(self, names: Sequence[str]) -> Rows:
        """Return the indices of names, (K,) int64."""
        actors: Rows = np.array([self._numbers[name] for name in names], np.int64)
        return actors

    def states_at(self, actors: Ints | Rows, stamps_ns: Rows) -> Floats:
        """Return states of actors (K,) while they are present, (K, P, 9), NaN otherwise."""
        found: Floats = np.full((len(actors), len(stamps_ns), N_COLUMNS), np.nan)
        before, after, share, _ = brackets(self.stamps_ns, stamps_ns)
        # Exactly at a stamp the other frame is not needed.
        before = np.where(self.stamps_ns[after] == stamps_ns, after, before)
        is_known = (before != after) | (self.stamps_ns[after] == stamps_ns)
        for i in np.flatnonzero(is_known).tolist():
            found[:, i] = self._states_of(int(before[i]), actors)
            if before[i] != after[i]:
                found[:, i] += share[i] * self._change(int(after[i]), actors, found[:, i])
        return found

    def _change(self, frame: int, actors: Ints | Rows, states: Floats) -> Floats:
        """Return the change of states (K, 10) of actors up to a frame, NaN without them there."""
        change = self._states_of(frame, actors) - states
        change[:, YAW] = wrapped(change[:, YAW])
        return change

    def _states_of(self, frame: int, actors: Ints | Rows) -> Floats:
        """Return (K, 9) states of actors in a frame, NaN for those that it does not have."""
        present, _, states = self.frames[frame]
        if not len(present):
            return np.full((len(actors), N_COLUMNS), np.nan)
        places = np.minimum(np.searchsorted(present, actors), len(present) - 1)
        return np.where((present[places] == actors)[:, None], states[places], np.nan)


class GroundTruthBuilder:
    """Collects the objects frame by frame."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._numbers: dict[str, int] = {}
        self._selected: list[bool] = []
        self._stamps_ns: list[int] = []
        self._frames: list[TruthRows] = []
        self._repeated: tuple[int, str] | None = None

    def add(self, stamp_ns: int, objects: ObjectSet, are_selected: Bools) -> None:
        """Add a frame."""
        # are_selected: (K,) bool; for each object, the value in its first frame is used.
        if self._stamps_ns and stamp_ns <= self._stamps_ns[-1]:
            raise TrajectoryFormatError(
                self._name, f'{self._stamps_ns[-1] * 1e-9:.3f} s, then {stamp_ns * 1e-9:.3f} s',
                'ground truth of one run, with increasing stamps')
        names, counts = list(objects.ids), Counter(objects.ids)
        for i, name in enumerate(names):
            if counts[name] > 1:
                self._repeated = self._repeated or (stamp_ns, name)
                names[i] = f'{name} {i}'
        for name, is_selected in zip(names, are_selected.tolist(), strict=True):
            if self._numbers.setdefault(name, len(self._numbers)) == len(self._selected):
                self._selected.append(is_selected)
        actors = np.array([self._numbers[name] for name in names], np.int32)
        order = actors.argsort()
        self._stamps_ns.append(stamp_ns)
        self._frames.append((actors[order], objects.classes[order].astype(np.int8),
                             objects.states[order]))

    def finish(self, ego: EgoTrack | None) -> GroundTruth:
        return GroundTruth(
            self._name, np.array(self._stamps_ns, np.int64), tuple(self._frames),
            tuple(self._numbers), np.array(self._selected, np.bool_), ego, self._repeated)


class FrameGroundTruth:

    def __init__(self, name: str, settings: Settings,
                 selects: Callable[[str, tuple[str, ...]], bool],
                 report: Callable[[str, str], None]) -> None:
        self._name = name
        self._builder = GroundTruthBuilder(name)
        self._objects = ObjectMaker(settings)
        self._base_link = BaseLink(settings, report)
        self._registry = registry_of(settings)
        self._selects = selects
        self._stamper = Stamper(settings.stamp_source)
        self.assumptions, self.jumps = Assumptions(), Jumps()
        self._ego: list[npt.NDArray[np.void]] = []
        self._offset: Floats = np.zeros(3)
        self._ego_frames = {BASE_LINK}

    def add(self, frame: Frame, stamp_ns: int | None = None) -> None:
        """Add a frame; one whose clock did not advance is dropped."""
        self.assumptions.add(frame)
        self.jumps.add(frame)
        try:
            step = self._stamper.step(frame, 0)
        except DecodeError as error:
            raise TrajectoryFormatError(self._name, error.found, error.expected) from error
        if step is Step.REPEATED:
            return
        stamp_ns = self._stamper.stamp_ns if stamp_ns is None else stamp_ns
        actor_list = self._registry.update(frame)
        objects = self._objects.of(frame, actor_list)
        states = np.empty((len(objects.rows), N_COLUMNS))
        states[:, XYZ] = objects.poses[:, :3]
        states[:, YAW] = np.arctan2(objects.axes[:, 1, 0], objects.axes[:, 0, 0])
        states[:, VELOCITY] = objects.twists[:, :2]
        states[:, SIZE], states[:, PERIOD] = objects.sizes, 2.0 * np.pi
        rows = objects.rows.tolist()
        are_selected: Bools = np.array([self._selects(frame.names[row], frame.tags[row])
                                        for row in rows], np.bool_)
        self._builder.add(stamp_ns, ObjectSet(
            tuple([frame.names[row] for row in rows]), objects.classes.astype(np.int64), states,
            np.ones(len(rows))), are_selected)
        i_ego = actor_list.i_ego
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            self._add_ego(frame, i_ego, actor_list.actors[i_ego], stamp_ns)

    def _add_ego(self, frame: Frame, i_ego: int, ego: Actor, stamp_ns: int) -> None:
        origin = frame.position_xyz[i_ego]
        orientation = normalized(frame.orientation_xyzw[i_ego:i_ego + 1])
        self._offset = self._base_link.offset(frame, i_ego)
        axes = global_from_unit(orientation)[0]
        base = origin + axes @ self._offset
        twist = transported(origin_twist(frame, i_ego)[None], (base - origin)[None],
                            is_finite=False)[0]
        self._ego.append(np.array((stamp_ns, origin, (*base, *orientation[0]),
                                   twist[:3] @ axes[:, 0]), _EGO_ROW))
        self._ego_frames.add(ego.frame_id)

    def finish(self) -> GroundTruth:
        ego = None
        if self._ego:
            rows = np.stack(self._ego)
            ego = EgoTrack(
                rows['stamp_ns'].copy(), rows['origin'].copy(), rows['pose'].copy(),
                rows['speed'].copy(), frozenset(self._ego_frames - {BASE_LINK}), self._offset)
        return self._builder.finish(ego)
