# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ground truth over time: objects, ego and frames, interpolated at any instant."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros import rotations
from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.evaluation import matching
from state_sensor_ros.evaluation.messages import decode_flat, nanoseconds, unit_pose
from state_sensor_ros.frame import Bools, Floats, Frame, Ints, Rows
from state_sensor_ros.jumps import Jumps
from state_sensor_ros.naming import Actor, Registry
from state_sensor_ros.objects.criticality import Assumptions
from state_sensor_ros.objects.object_maker import ObjectMaker, origin_twists, transported
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.transforms import BASE_LINK, BaseLink

# Greatest distance of an instant with truth from a stamp of the truth: 0.1 s, and 10 us because
# times of recordings are float32.
MAX_DISTANCE_NS: Final = 100_010_000
# Longest time between two frames that are interpolated.
MAX_GAP_NS: Final = 1_000_000_000
TF_TYPE: Final = 'tf2_msgs/msg/TFMessage'
TF_TOPIC, STATIC_TF_TOPIC = '/tf', '/tf_static'
# Longer chains of frames are loops.
_MAX_DEPTH = 100
# Actors (K,), index in the names, ascending; classes (K,), index in EVALUATED_CLASSES; states
# (K, 10), of a frame.
TruthRows = tuple[npt.NDArray[np.int32], npt.NDArray[np.int8], Floats]
# Orientation (4,) xyzw and origin (3,) of a frame in another one.
Placed = tuple[Floats, Floats]


def brackets(stamps_ns: Rows, wanted_ns: Rows) -> tuple[Rows, Rows, Floats, Bools]:
    """
    Return the stamps before and after some times.

    :param stamps_ns: (T,) int64, ascending, at least one.
    :param wanted_ns: (K,) int64.
    :returns: rows before and after, equal for a time that has no interval of at most MAX_GAP_NS
        around it; share of the way between them; whether a stamp is within MAX_DISTANCE_NS.
    """
    after = np.searchsorted(stamps_ns, wanted_ns).clip(0, len(stamps_ns) - 1)
    before = np.maximum(after - 1, 0)
    is_inside = (stamps_ns[before] <= wanted_ns) & (wanted_ns <= stamps_ns[after]) \
        & (stamps_ns[after] - stamps_ns[before] <= MAX_GAP_NS)
    to_before, to_after = (np.abs(stamps_ns[rows] - wanted_ns) for rows in (before, after))
    nearest = np.where(to_before < to_after, before, after)
    is_near: Bools = np.minimum(to_before, to_after) <= MAX_DISTANCE_NS
    before, after = np.where(is_inside, before, nearest), np.where(is_inside, after, nearest)
    return before, after, _share(stamps_ns, before, after, wanted_ns), is_near


def _share(stamps_ns: Rows, before: Rows, after: Rows, wanted_ns: Rows) -> Floats:
    """Return which part of the way between two stamps some times are, 0 for equal ones."""
    gap = stamps_ns[after] - stamps_ns[before]
    share: Floats = np.where(gap > 0, (wanted_ns - stamps_ns[before]) / np.maximum(gap, 1), 0.0)
    return share


@dataclass(frozen=True, slots=True, eq=False)
class EgoTrack:
    """The ego over time, global frame."""

    stamps_ns: Rows  # (T,) ascending
    # (T, 11) of base_link position xyz (m), orientation xyzw of unit length, and speed along its x
    # axis (m/s), NaN if unknown; origin of the ego xyz (m).
    states: Floats
    frames: frozenset[str]  # names of the frames at the origin
    offset: Floats  # (3,) of base_link in the axes of the ego, m

    def at(self, stamps_ns: Rows) -> Floats:
        """
        Return (K, 11) states at some times, NaN if there is no truth; ``stamps_ns``: (K,) int64.

        A time that has no frame on one side continues the motion between the two frames on the
        other side.
        """
        before, after, share, is_near = brackets(self.stamps_ns, stamps_ns)
        is_alone = (before == after) & (self.stamps_ns[before] != stamps_ns)
        # Below 0 or above 1; 0 without an interval of at most MAX_GAP_NS on that side.
        is_later = stamps_ns > self.stamps_ns[before]
        first = np.maximum(before - (is_alone & is_later), 0)
        last = np.minimum(after + (is_alone & ~is_later), len(self.stamps_ns) - 1)
        is_long = self.stamps_ns[last] - self.stamps_ns[first] > MAX_GAP_NS
        before, after = np.where(is_long, before, first), np.where(is_long, after, last)
        share = _share(self.stamps_ns, before, after, stamps_ns)
        begin, end = self.states[before], self.states[after]
        found: Floats = begin + share[:, None] * (end - begin)
        found[:, 3:7] = rotations.slerp(begin[:, 3:7], end[:, 3:7], share)
        found[~is_near] = np.nan
        return found


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

    def at(self, stamp_ns: int) -> tuple[matching.ObjectSet, Bools] | None:
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
        elapsed_ns = stamp_ns - int(self.stamps_ns[nearest])
        if elapsed_ns:
            moved = states.copy()
            velocities = np.nan_to_num(states[:, matching.VELOCITY])
            moved[:, matching.XY] += velocities * elapsed_ns * 1e-9
            change = self._change(int(other), actors, states)
            states = moved if other == nearest else np.where(
                np.isnan(change[:, :1]), moved, states + share * change)
        return matching.ObjectSet(tuple([self.names[actor] for actor in actors.tolist()]),
                                  classes.astype(np.int64), states, np.ones(len(actors))), \
            self.are_selected[actors]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def states_of(self, names: Sequence[str], stamps_ns: Rows) -> Floats:
        """Return states of actors (K,) while they are present, (K, P, 10), NaN otherwise."""
        actors = np.array([self._numbers[name] for name in names], np.int64)
        found: Floats = np.full((len(actors), len(stamps_ns), matching.N_COLUMNS), np.nan)
        before, after, share, _ = brackets(self.stamps_ns, stamps_ns)
        # Exactly at a stamp the other frame is not needed.
        before = np.where(self.stamps_ns[after] == stamps_ns, after, before)
        for i in np.flatnonzero((before != after) | (self.stamps_ns[after] == stamps_ns)).tolist():
            found[:, i] = self._states_in(int(before[i]), actors)
            if before[i] != after[i]:
                found[:, i] += share[i] * self._change(int(after[i]), actors, found[:, i])
        return found

    def _change(self, frame: int, actors: Ints | Rows, states: Floats) -> Floats:
        """Return the change of states (K, 10) of actors up to a frame, NaN without them there."""
        change = self._states_in(frame, actors) - states
        change[:, matching.YAW] = rotations.wrapped(change[:, matching.YAW])
        return change

    def _states_in(self, frame: int, actors: Ints | Rows) -> Floats:
        """Return (K, 10) states of actors in a frame, NaN for those that it does not have."""
        present, _, states = self.frames[frame]
        if not len(present):
            return np.full((len(actors), matching.N_COLUMNS), np.nan)
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

    def add(self, stamp_ns: int, objects: matching.ObjectSet, are_selected: Bools) -> None:
        """Add a frame; ``are_selected``: (K,) bool, which counts in an object's first frame."""
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
    """Collects the objects and the ego of frames."""

    def __init__(self, name: str, settings: Settings,
                 selects: Callable[[str, tuple[str, ...]], bool],
                 report: Callable[[str, str], None]) -> None:
        self._name, self._selects = name, selects
        self._builder, self._objects = GroundTruthBuilder(name), ObjectMaker(settings)
        self._base_link, self._registry = BaseLink(settings, report), Registry(settings)
        self._stamper = Stamper(settings.stamp_source)
        self.assumptions, self.jumps = Assumptions(), Jumps()
        self._ego: list[tuple[int, tuple[float, ...]]] = []
        self._offset: Floats = np.zeros(3)
        self._ego_frames: set[str] = set()

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
        states = np.empty((len(objects.rows), matching.N_COLUMNS))
        states[:, matching.XYZ] = objects.poses[:, :3]
        states[:, matching.YAW] = np.arctan2(objects.axes[:, 1, 0], objects.axes[:, 0, 0])
        states[:, matching.VELOCITY] = objects.twists[:, :2]
        states[:, matching.SIZE], states[:, matching.PERIOD] = objects.sizes, 2.0 * np.pi
        named = [(frame.names[row], frame.tags[row]) for row in objects.rows.tolist()]
        self._builder.add(stamp_ns, matching.ObjectSet(
            tuple([name for name, _ in named]), objects.classes.astype(np.int64), states,
            np.ones(len(named))), np.array([self._selects(*each) for each in named], np.bool_))
        i_ego = actor_list.i_ego
        if i_ego >= 0 and frame.has_pose()[i_ego]:
            self._add_ego(frame, i_ego, actor_list.actors[i_ego], stamp_ns)

    def _add_ego(self, frame: Frame, i_ego: int, ego: Actor, stamp_ns: int) -> None:
        origin = frame.position_xyz[i_ego]
        orientation = rotations.normalized(frame.orientation_xyzw[i_ego:i_ego + 1])
        self._offset = self._base_link.offset(frame, i_ego)
        axes = rotations.global_from_unit(orientation)[0]
        base = origin + axes @ self._offset
        twist = transported(origin_twists(frame)[i_ego][None], (base - origin)[None],
                            is_finite=False)[0]
        self._ego.append((stamp_ns, (*base, *orientation[0], twist[:3] @ axes[:, 0], *origin)))
        self._ego_frames.add(ego.frame_id)

    def finish(self) -> GroundTruth:
        stamps_ns, states = zip(*self._ego, strict=True) if self._ego else ((), ())
        return self._builder.finish(EgoTrack(
            np.array(stamps_ns, np.int64), np.array(states), frozenset(
                self._ego_frames - {BASE_LINK}), self._offset) if self._ego else None)


class FrameTransforms:
    """The transforms of a bag: from any frame to any other one at a given time."""

    def __init__(self, messages: Iterable[tuple[bytes, bool]]) -> None:
        self._parents: dict[str, str] = {}
        # Stamps and 7 numbers for each: a long bag has millions of transforms.
        found: dict[str, tuple[array[int], array[float]]] = {}
        self._static: dict[str, Floats] = {}
        for data, is_static in messages:
            for each in decode_flat(data, TF_TYPE).transforms:
                child, values = _plain(each.child_frame_id), unit_pose(each.transform.values)
                if values is None:
                    continue
                self._parents[child] = _plain(each.header.frame_id)
                if is_static:
                    self._static[child] = values
                else:
                    times, poses = found.setdefault(child, (array('q'), array('d')))
                    times.append(nanoseconds(each.header.stamp))
                    poses.extend(values)
        self._moving: dict[str, tuple[Rows, Floats]] = {}
        for child, (times, poses) in found.items():
            stamps, order = np.unique(np.array(times), return_index=True)
            self._moving[child] = stamps, np.array(poses).reshape(-1, 7)[order]

    def between(self, target: str, source: str, stamp_ns: int) -> Placed | None:
        """
        Return the orientation (4,) xyzw and the origin (3,) of a frame in another one.

        :param stamp_ns: time; a moving frame needs a transform within 0.1 s of it.
        """
        (root, turn, origin), (other, back, target_origin) = (
            self._to_root(_plain(name), stamp_ns) for name in (source, target))
        if root != other or turn is None or back is None:
            return None
        back = back * rotations.CONJUGATE_XYZW
        return rotations.quaternion_product(back, turn), turned(back, origin - target_origin)

    def _to_root(self, name: str, stamp_ns: int) -> tuple[str, Floats | None, Floats]:
        """Return the root above a frame, its orientation, None if unknown, and its origin."""
        turn: Floats = np.array(rotations.IDENTITY_XYZW)
        origin: Floats = np.zeros(3)
        for _ in range(_MAX_DEPTH):
            if name not in self._parents:
                return name, turn, origin
            values = self._at(name, stamp_ns)
            if values is None:
                break
            turn = rotations.quaternion_product(values[3:], turn)
            origin = turned(values[3:], origin) + values[:3]
            name = self._parents[name]
        return name, None, origin

    def _at(self, child: str, stamp_ns: int) -> Floats | None:
        """Return translation xyz and rotation xyzw of a frame in its parent."""
        if child not in self._moving:
            return self._static[child]
        stamps, moving = self._moving[child]
        [before], [after], [share], [is_near] = brackets(stamps, np.array([stamp_ns]))
        if not is_near or (before == after and stamps[before] != stamp_ns):
            return None
        values: Floats = moving[before] + share * (moving[after] - moving[before])
        turns = moving[[before], 3:], moving[[after], 3:]
        values[3:] = rotations.slerp(*turns, np.array([share]))[0]
        return values


def turned(orientation_xyzw: Floats, vector_xyz: Floats) -> Floats:
    """Return a vector turned by a rotation; ``orientation_xyzw``: (4,) float64, of unit length."""
    vector: Floats = rotations.global_from_unit(orientation_xyzw[None])[0] @ vector_xyz
    return vector


def _plain(name: str) -> str:
    """Return a frame without the leading slash of ROS 1."""
    return name.removeprefix('/')
