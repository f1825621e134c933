# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Measures of criticality of an actor in one frame, from the boxes of all actors.

And of how many actors the numbers are assumed, derived or unknown.

Definitions: lead vehicle, clearance and time gap as in ISO 15622; time to collision as in Hayward
(1972), here of the boxes and not of points; required deceleration to the speed of the lead vehicle
as in Almqvist (1991). Westhofen et al., Criticality Metrics for Automated Driving (2023), compare
them. All are of the plane, exact for rectangles: two of them overlap if their projections overlap
on each of the four directions of their edges, and a rectangle that moves past another touches it
from the moment when the last of these projections begins to overlap until the first one ends.
Actors above or below each other do not conflict.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
import math

import numpy as np

from state_sensor_ros.classes import cached_class_of, CLASSES, classes_of, PERSON, UNKNOWN
from state_sensor_ros.frame import Bools, DERIVED_SIZE, DERIVED_VELOCITY, Floats, Frame, Rows
from state_sensor_ros.objects import object_maker
from state_sensor_ros.settings import DEFAULTS
from state_sensor_ros.texts import counted

_SIGNS: Floats = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
# Below this speed, m/s, an actor is stationary: it has no time headway, and its path is straight.
_STATIONARY, _TURNS_ABOVE = 0.1, 1.0
# A vehicle whose heading differs by more from that of the path, rad, crosses it and does not lead.
_MAX_ANGLE = math.pi / 4.0
# The way to a vehicle that follows a lane has half of its turn; to one that comes toward the
# actor, it has 90 degrees less or more.
_COMES_TOWARD = math.cos(math.radians(75.0))
# Half the width of a lane, m.
_HALF_LANE = 1.75
# Range of the path that is predicted, m: beyond, a constant yaw rate predicts nothing.
_MAX_PATH = 200.0
_SIZES = object_maker.default_sizes(DEFAULTS)


@dataclass(frozen=True, slots=True, eq=False)
class PlanarBoxes:
    """Rectangles of K actors in the plane of the global frame."""

    centers: Floats  # (K, 2) m
    headings: Floats  # (K, 2) unit vectors along the lengths
    halves: Floats  # (K, 2) half the length and half the width, m
    velocities: Floats  # (K, 2) of the centers, m/s, NaN if unknown
    turning: Floats  # (K,) yaw rate, rad/s, NaN if unknown
    # (K, 2) lowest and highest point, m. In a function of two, they have equal K, or one of them
    # has K = 1.
    heights: Floats

    def __len__(self) -> int:
        return len(self.centers)

    def at(self, rows: Rows | Bools | slice) -> PlanarBoxes:
        """Return some of the rectangles; ``rows``: index of each, (K,) bool, or a slice."""
        return PlanarBoxes(*(getattr(self, name)[rows] for name in _MEMBERS))

    def speeds(self) -> Floats:
        """Return (K,) m/s along the headings, negative for backward, NaN if unknown."""
        return _dot(self.velocities, self.headings)


_MEMBERS = tuple(each.name for each in fields(PlanarBoxes))


def planar_boxes(frame: Frame, centers: object_maker.Centers) -> PlanarBoxes:
    """
    Return the rectangles of the N actors of a frame.

    Those of actors without a usable pose have no meaning. An actor that points straight up has the
    heading of the x axis.

    :param frame: frame in SI units and REP-103 axes.
    """
    headings = centers.axes[:, :2, 0]
    lengths = np.hypot(headings[:, 0], headings[:, 1])
    with np.errstate(all='ignore'):
        headings = np.where(lengths[:, None] > 0.0, headings / lengths[:, None], (1.0, 0.0))
        twists = object_maker.center_twists(frame, centers)
        is_known: Bools = np.logical_and.reduce(np.isfinite(frame.velocity_xyz[:, :2]), axis=1) \
            if frame.forward_speed is None else np.isfinite(frame.forward_speed)
        height, half = centers.poses[:, 2], 0.5 * centers.sizes[:, 2]
    return PlanarBoxes(
        centers.poses[:, :2], headings, 0.5 * centers.sizes[:, :2],
        np.where(is_known[:, None], twists[:, :2], np.nan), twists[:, 5],
        np.column_stack((height - half, height + half)))


def share_height(some: PlanarBoxes, others: PlanarBoxes) -> Bools:
    """Return (K,) whether two actors are partly at the same height, not one above the other."""
    shared: Bools = (some.heights[:, 0] <= others.heights[:, 1]) \
        & (others.heights[:, 0] <= some.heights[:, 1])
    return shared


def overlap(some: PlanarBoxes, others: PlanarBoxes) -> Bools:
    """Return (K,) whether rectangles have a common point."""
    offsets, reaches, _ = _projections(some, others)
    common: Bools = np.logical_and.reduce(np.abs(offsets) <= reaches)
    return common


def distances(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """Return (K,) distances between rectangles, m; 0 if they have a common point."""
    nearest = np.minimum(_corners_to(some, others), _corners_to(others, some))
    found: Floats = np.where(overlap(some, others), 0.0, nearest)
    return found


def times_to_collision(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """Return the times until rectangles touch if all keep their velocities and headings."""
    # Returns (K,) s; 0 if they have a common point now; NaN if they never do, or if a velocity is
    # unknown.
    offsets, reaches, speeds = _projections(some, others)
    with np.errstate(all='ignore'):
        passes = np.stack(((-reaches - offsets) / speeds, (reaches - offsets) / speeds))
    begins, ends = np.minimum(*passes), np.maximum(*passes)
    is_still = speeds == 0.0
    is_common = np.abs(offsets) <= reaches
    begins = np.where(is_still, np.where(is_common, -np.inf, np.inf), begins)
    ends = np.where(is_still, np.where(is_common, np.inf, -np.inf), ends)
    begin, end = np.max(begins, axis=0), np.min(ends, axis=0)
    found: Floats = np.where((begin <= end) & (end >= 0.0), np.maximum(begin, 0.0), np.nan)
    return found


def _dot(a: Floats, b: Floats) -> Floats:
    product: Floats = a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]
    return product


def cross(a: Floats, b: Floats) -> Floats:
    """Return (K,) z components of the cross products of (K, 2) vectors."""
    product: Floats = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return product


def to_axes(vectors: Floats, headings: Floats) -> Floats:
    """Return vectors in the axes of rectangles."""
    # vectors: (K, 2) float64, axes of the plane.
    # headings: (K, 2) float64, unit vectors along the lengths.
    # Returns (K, 2) float64, along the length and to the left.
    return np.column_stack((_dot(vectors, headings), cross(headings, vectors)))


def _projections(some: PlanarBoxes, others: PlanarBoxes) -> tuple[Floats, Floats, Floats]:
    """Project pairs on the directions of their edges."""
    # Returns (4, K) each: distances of the centers, m; sums of the half projections, m; speeds of
    # the centers from the first to the second, m/s.
    way, motion = others.centers - some.centers, others.velocities - some.velocities
    cosines = np.abs(_dot(some.headings, others.headings))
    sines = np.abs(cross(some.headings, others.headings))
    (length, width), (other_length, other_width) = some.halves.T, others.halves.T
    offsets = np.stack((*to_axes(way, some.headings).T, *to_axes(way, others.headings).T))
    speeds = np.stack((*to_axes(motion, some.headings).T, *to_axes(motion, others.headings).T))
    reaches = np.stack((length + cosines * other_length + sines * other_width,
                        width + sines * other_length + cosines * other_width,
                        other_length + cosines * length + sines * width,
                        other_width + sines * length + cosines * width))
    return offsets, reaches, speeds


def _corners_to(some: PlanarBoxes, others: PlanarBoxes) -> Floats:
    """Return (K,) smallest distances from the corners of ``some`` to ``others``, m."""
    middles = to_axes(some.centers - others.centers, others.headings)
    cosines = _dot(others.headings, some.headings)[:, None]
    sines = cross(others.headings, some.headings)[:, None]
    along, across = (_SIGNS * some.halves[:, None, :]).transpose(2, 0, 1)
    outside = np.stack((
        np.abs(middles[:, :1] + cosines * along - sines * across) - others.halves[:, :1],
        np.abs(middles[:, 1:] + sines * along + cosines * across) - others.halves[:, 1:]))
    nearest: Floats = np.hypot(*np.maximum(outside, 0.0)).min(axis=1)
    return nearest


@dataclass(frozen=True, slots=True)
class Criticality:
    """Measures of one actor in one frame, NaN where undefined."""

    gap: float = math.nan  # from its box to that of the lead vehicle along the lane, m
    time_headway: float = math.nan  # gap by its speed, s
    # That brings it to the speed of the lead vehicle within the gap, m/s2.
    required_deceleration: float = math.nan
    time_to_collision: float = math.nan  # smallest of all objects, s
    closest_distance: float = math.nan  # to the nearest box, m
    # Rows, -1 if there is none; ``partner`` is that of the time to collision.
    lead: int = -1
    partner: int = -1
    closest: int = -1
    # Of all K objects beside it: rows, distances, m, and times to a collision, s.
    rows: Rows = field(default_factory=lambda: np.zeros(0, np.int64), compare=False)
    distances: Floats = field(default_factory=lambda: np.zeros(0), compare=False)
    times: Floats = field(default_factory=lambda: np.zeros(0), compare=False)


class Situation:
    """The boxes and lanes of the N actors of a frame."""

    # boxes: (N,) boxes in the plane.
    # have_boxes: (N,) bool; others have the size of their class.
    # are_objects: (N,) bool, whether an actor has a usable pose, and a box or a class.

    def __init__(self, frame: Frame) -> None:
        n_actors = frame.n_actors
        classes = classes_of(frame.kinds.tolist(), frame.tags)
        centers = object_maker.centers_of(frame, _SIZES, classes)
        self.boxes = planar_boxes(frame, centers)
        self.have_boxes = centers.have_boxes
        self.are_objects: Bools = frame.has_pose() & ((classes != UNKNOWN) | centers.have_boxes)
        self._may_lead = self.are_objects & (classes != UNKNOWN) & (classes != PERSON)
        # Road, section, lane and s. NaN without a lane.
        self.lanes: Floats = np.full((n_actors, 4), np.nan)
        lanes = frame.lanes
        self.lanes[lanes.actor, :3] = lanes.ids
        self.lanes[lanes.actor, 3] = lanes.s

    def others(self, row: int) -> Rows:
        """Return (K,) int64, rows of the objects beside one actor."""
        are_others = self.are_objects.copy()
        are_others[row] = False
        rows: Rows = are_others.nonzero()[0]
        return rows

    def criticality(self, row: int, turning: float = math.nan) -> Criticality:
        """Return the measures of an actor; ``turning``: rad/s, if the frame has no yaw rate."""
        own, rows = self.boxes.at(slice(row, row + 1)), self.others(row)
        if np.isnan(own.turning[0]):
            own = replace(own, turning=np.array([turning]))
        rows = rows[share_height(own, self.boxes.at(rows))]
        if not self.are_objects[row] or not len(rows):
            return Criticality()
        others = self.boxes.at(rows)
        away, times = distances(own, others), times_to_collision(own, others)
        closest = int(away.argmin())
        facing = self._same_section(row, rows) & (self.lanes[rows, 2] * self.lanes[row, 2] < 0.0)
        if facing.any() and abs(own.turning[0]) < math.inf:
            # Those in lanes of the other direction follow the bend as the actor does.
            times[facing] = times_to_collision(*_straightened(own, others.at(facing)))
        lead, gap, is_in_lane = self._lead(row, own, rows, others)
        speed = float(own.speeds()[0])
        excess = speed - float(self.boxes.speeds()[lead]) if lead >= 0 else math.nan
        if is_in_lane and not math.isnan(excess):
            # Both follow the lane, whatever its curve.
            times[rows == lead] = gap / excess if excess > 0.0 else math.nan
        partner = int(np.where(np.isnan(times), np.inf, times).argmin())
        return Criticality(
            gap, gap / speed if speed >= _STATIONARY else math.nan, _required(gap, excess),
            float(times[partner]), float(away[closest]), lead,
            -1 if math.isnan(times[partner]) else int(rows[partner]), int(rows[closest]),
            rows, away, times)

    def _lead(self, row: int, own: PlanarBoxes, rows: Rows,
              others: PlanarBoxes) -> tuple[int, float, bool]:
        """
        Return the row of the lead vehicle, its gap, m, and whether its lane is known.

        :returns: -1, NaN and False if there is none.
        """
        along, deviations, angles = path_of(own, others)
        reaches = np.abs(np.sin(angles)) * others.halves[:, 0] \
            + np.abs(np.cos(angles)) * others.halves[:, 1]
        in_path = (np.abs(deviations) < own.halves[0, 1] + reaches) & (along > 0.0) \
            & (along < _MAX_PATH) & (np.abs(angles) < _MAX_ANGLE)
        # In one section of a road, the lane decides; elsewhere the path does.
        own_lane, lanes = self.lanes[row], self.lanes[rows]
        ahead = lanes[:, 3] - own_lane[3]
        same_section = self._same_section(row, rows) & np.isfinite(ahead)
        in_lane = same_section & (lanes[:, 2] == own_lane[2])
        turns, ways = _turns_and_ways(own, others)
        if own_lane[2] > 0.0 and in_lane.any():
            # Against the road, or in left-hand traffic along it: the nearest one decides.
            nearest = int(np.where(in_lane, np.abs(ahead), np.inf).argmin())
            ahead = ahead * (np.sign(ahead[nearest]) * np.sign(ways[nearest, 0]) or -1.0)
        # Not one that comes toward it.
        in_lane = in_lane & (ahead > 0.0) & (
            np.cos(np.arctan2(ways[:, 1], ways[:, 0]) - turns) > _COMES_TOWARD)
        leading = np.where(same_section, in_lane, in_path) & self._may_lead[rows]
        if not leading.any():
            return -1, math.nan, False
        gaps = np.where(leading, _gaps(own, others, turns, ways), np.inf)
        nearest = int(gaps.argmin())
        return int(rows[nearest]), float(gaps[nearest]), bool(same_section[nearest])

    def _same_section(self, row: int, rows: Rows) -> Bools:
        same: Bools = (self.lanes[rows, :2] == self.lanes[row, :2]).all(axis=1)
        return same


def path_of(own: PlanarBoxes, others: PlanarBoxes) -> tuple[Floats, Floats, Floats]:
    """Place boxes along the path on which an actor goes on with its speed and yaw rate."""
    # own: its box, K = 1; above 1 m/s, an unknown yaw rate makes all of them NaN.
    # Returns (K,) each: distance along the path, m; deviation to its left, m; heading, rad, from
    # that of the path there.
    ahead = to_axes(others.centers - own.centers, own.headings)
    directions = to_axes(others.headings, own.headings)
    angles = np.arctan2(directions[:, 1], directions[:, 0])
    speed = float(own.speeds()[0])
    curvature = float(own.turning[0]) / speed if speed > _TURNS_ABOVE else 0.0
    if abs(curvature) < 1e-6:
        return ahead[:, 0], ahead[:, 1], angles
    radius = 1.0 / curvature
    side = math.copysign(1.0, radius)
    to_center = radius - ahead[:, 1]
    turned = np.arctan2(ahead[:, 0], side * to_center)
    deviations = radius - side * np.hypot(ahead[:, 0], to_center)
    angles -= turned * side
    return abs(radius) * turned, deviations, np.arctan2(np.sin(angles), np.cos(angles))


def _straightened(own: PlanarBoxes, others: PlanarBoxes) -> tuple[PlanarBoxes, PlanarBoxes]:
    """Return an actor and others in axes of which the path of the actor is x."""
    along, deviations, angles = path_of(own, others)
    headings = np.column_stack((np.cos(angles), np.sin(angles)))
    return (replace(own, centers=np.zeros((1, 2)), headings=np.array([(1.0, 0.0)]),
                    velocities=to_axes(own.velocities, own.headings)),
            replace(others, centers=np.column_stack((along, deviations)), headings=headings,
                    velocities=others.speeds()[:, None] * headings))


def _gaps(own: PlanarBoxes, others: PlanarBoxes, turns: Floats, ways: Floats) -> Floats:
    """
    Return (K,) distances from a front to rears, m, along two arcs between the centers.

    ``turns`` and ``ways`` are those of :func:`_turns_and_ways`.

    The arcs are tangent to the headings and to each other, with tangents of one length (a biarc):
    exact on bends of one radius. What is beside the other by up to half a lane is on its lane.
    """
    # In the axes of the mean of the headings, which are turned by -turns and turns from it.
    cosines, sines = np.cos(turns), np.sin(turns)
    along = ways[:, 0] * cosines + ways[:, 1] * sines
    beside = ways[:, 1] * cosines - ways[:, 0] * sines
    beside -= np.clip(beside, -_HALF_LANE, _HALF_LANE)
    shifts = 0.5 * (along ** 2 + beside ** 2) / np.maximum(
        along * cosines + np.hypot(along, beside * sines), 1e-9) * sines
    lengths = sum(_arcs(0.5 * along, 0.5 * beside + way * shifts, way * turns) for way in (-1, 1))
    gaps: Floats = np.maximum(lengths - own.halves[0, 0] - others.halves[:, 0], 0.0)
    return gaps


def _arcs(x: Floats, y: Floats, headings: Floats) -> Floats:
    """Return (K,) lengths of arcs, m, from their chords and the heading at one end, rad."""
    cosines, sines = np.cos(headings), np.sin(headings)
    angles = np.arctan2(y * cosines - x * sines, x * cosines + y * sines)
    lengths: Floats = np.hypot(x, y) / np.sinc(angles / np.pi)
    return lengths


def _turns_and_ways(own: PlanarBoxes, others: PlanarBoxes) -> tuple[Floats, Floats]:
    """Return half the differences of the headings (K,), rad, and the ways (K, 2), m."""
    turns = 0.5 * np.arctan2(cross(own.headings, others.headings),
                             (own.headings * others.headings).sum(axis=1))
    return turns, to_axes(others.centers - own.centers, own.headings)


def _required(gap: float, excess: float) -> float:
    """Return the deceleration that ends an excess of speed, m/s, within a gap, m/s2."""
    if not excess > 0.0:
        return 0.0 if excess <= 0.0 else math.nan
    return excess * excess / (2.0 * gap) if gap > 0.0 else math.inf


class Assumptions:
    """Counts the actors whose numbers are not the source's, each once for each kind of number."""

    def __init__(self) -> None:
        self._names: tuple[set[str], ...] = set(), set(), set()
        self._classes: dict[str, int] = {}
        self._last: tuple[object, bytes] | None = None

    def add(self, frame: Frame) -> None:
        """Take note of a frame with its boxes."""
        has_box: Bools = np.zeros(frame.n_actors, np.bool_)
        if frame.boxes is not None:
            has_box[frame.boxes.actor] = True
        assumed = frame.is_derived(DERIVED_SIZE)
        velocities = np.isnan(frame.forward_speed) if frame.forward_speed is not None \
            else np.isnan(frame.velocity_xyz).any(axis=1)
        flags = np.stack((~has_box | assumed, frame.is_derived(DERIVED_VELOCITY) & ~velocities,
                          velocities)) & frame.has_pose()
        key = frame.names, flags.tobytes()
        if key == self._last:
            return
        self._last = key
        for which, names in zip(flags, self._names, strict=True):
            for row in which.nonzero()[0].tolist():
                class_ = cached_class_of(int(frame.kinds[row]), frame.tags[row])
                # Actors without a class and a box are no objects.
                if class_ != UNKNOWN or has_box[row]:
                    names.add(frame.names[row])
                    self._classes[frame.names[row]] = class_

    @property
    def lines(self) -> list[str]:
        """Return a line for each kind of number that is not the source's."""
        texts = ('sizes of {} are assumed by class', 'velocities of {} are derived from positions',
                 'velocities of {} are unknown')
        return [text.format(self._listed(names))
                for text, names in zip(texts, self._names, strict=True) if names]

    def _listed(self, names: set[str]) -> str:
        counts = Counter(CLASSES[self._classes[name]].name for name in names)
        listed = ', '.join(f'{name} {count}' for name, count in sorted(counts.items()))
        return f'{counted(len(names), "actor")} ({listed})'
