# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The record of a topic's frames: counts of each, a row for each detection and ground truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
import math
from typing import Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.classes import UNKNOWN
from state_sensor_ros.evaluation.matching import (
    distances_from,
    EVALUATED_CLASSES,
    EvaluatedFrame,
    I_ERRORS,
    MATCH_DISTANCES_M,
    SIZE,
    VELOCITY,
    XY,
    YAW,
)
from state_sensor_ros.frame import Floats, Rows
from state_sensor_ros.rotations import wrapped

# Errors of translation, scale, orientation, velocity and attribute.
ERROR_NAMES: Final = ('ate', 'ase', 'aoe', 'ave', 'aae')
# Speed above which an object moves, m/s, as in the submissions of mmdetection3d to nuScenes.
MOVING_SPEED: Final = 0.2
# Whether a cycle that stands has a rider is in no message.
_CYCLES = np.isin(EVALUATED_CLASSES, ('cyclist', 'motorcycle'))
# Bands of the distance from the ego, m, as in the Waymo Open Dataset.
BANDS: Final[Mapping[str, tuple[float, float]]] = {
    '0-30': (0.0, 30.0), '30-50': (30.0, 50.0), '50+': (50.0, math.inf)}
_BAND_LIMITS = [low for low, _ in BANDS.values()][1:]
NO_BAND: Final = -1
N_MOMENTS: Final = 10
_APART_NS = 500_000_000
# Smaller costs are rounding.
_LEAST_COST = 1e-6
Records = npt.NDArray[np.void]

_N_DISTANCES = len(MATCH_DISTANCES_M)
_DETECTION = np.dtype([
    ('frame', np.int32), ('score', np.float64), ('are_matches', np.bool_, _N_DISTANCES),
    ('bands', np.int8, _N_DISTANCES), ('distance', np.float32),
    ('errors', np.float64, len(ERROR_NAMES))])
_TRUTH = np.dtype([('frame', np.int32), ('band', np.int8)])
_FRAME = np.dtype([('stamp_ns', np.int64), ('n_missed', np.int32), ('n_false', np.int32)])


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The R matches at 2 m of a frame."""

    frame: int  # its index
    stamp_ns: int
    stack: Floats  # stack, truth: (R, 9) states
    truth: Floats
    classes: Rows  # (R,)
    scores: Floats  # (R,)
    distances: Floats  # (R,) of the ground truth from the ego, m
    # (R, 5) translation (m), scale (1 - IoU), orientation (rad), velocity (m/s), attribute (0 or
    # 1), NaN if unknown.
    errors: Floats
    stack_ids: tuple[str, ...]  # stack_ids, truth_ids: R strings
    truth_ids: tuple[str, ...]


def error_rows(stack: Floats, truth: Floats, classes: Rows) -> Floats:
    """Return (R, 5) errors of translation, scale, orientation, velocity and attribute."""
    # stack: (R, 9) float64, states.
    # truth: (R, 9) float64, states.
    # classes: (R,) int64, index in EVALUATED_CLASSES.
    with np.errstate(all='ignore'):
        common = np.minimum(stack[:, SIZE], truth[:, SIZE]).prod(axis=1)
        union = stack[:, SIZE].prod(axis=1) + truth[:, SIZE].prod(axis=1) - common
        scale = 1.0 - common / union
        turn = np.abs(wrapped(truth[:, YAW] - stack[:, YAW]))
        velocity = np.linalg.norm(stack[:, VELOCITY] - truth[:, VELOCITY], axis=1)
        is_moving, truth_moves = (np.linalg.norm(states[:, VELOCITY], axis=1) > MOVING_SPEED
                                  for states in (stack, truth))
    is_known = ~np.isnan(velocity) & (classes != UNKNOWN) & (truth_moves | ~_CYCLES[classes])
    attribute = np.where(is_known, is_moving != truth_moves, np.nan)
    return np.column_stack((np.linalg.norm(stack[:, XY] - truth[:, XY], axis=1), scale, turn,
                            velocity, attribute))


def _matches_of(frame: EvaluatedFrame, number: int) -> Matches:
    of_stack = np.flatnonzero(frame.matches[I_ERRORS] >= 0)
    of_truth = frame.matches[I_ERRORS][of_stack]
    stack, truth = frame.stack.states[of_stack], frame.truth.states[of_truth]
    classes = frame.stack.classes[of_stack]
    return Matches(
        number, frame.stamp_ns, stack, truth, classes, frame.stack.scores[of_stack],
        frame.distances[of_truth], error_rows(stack, truth, classes),
        tuple([frame.stack.ids[row] for row in of_stack.tolist()]),
        tuple([frame.truth.ids[row] for row in of_truth.tolist()]))


@dataclass(frozen=True, slots=True, eq=False)
class Detections:
    """
    The detections of a class in all frames, and its ground-truth objects.

    Fields of ``detections``: ``frame`` index of the frame; ``score`` confidence; ``are_matches``
    (4,) whether it matches at each of MATCH_DISTANCES_M; ``bands`` (4,) index in BANDS of the
    matching ground truth, else of the detection, or NO_BAND; ``distance`` of the ground truth of a
    match at 2 m from the ego, m, or NaN; ``errors`` (5,) at 2 m, NaN without a match. Fields of
    ``truths``: ``frame``, and ``band``, NO_BAND without an ego.
    """

    detections: Records
    truths: Records


def _bands_of(distances: Floats) -> npt.NDArray[np.int8]:
    bands = np.searchsorted(_BAND_LIMITS, distances, side='right')
    return np.where(np.isfinite(distances), bands, NO_BAND).astype(np.int8)


class FrameRecorder:
    """Records the frames of a topic."""

    # observe: called with the matches of each frame, in the order of time; None for no call.

    def __init__(self, observe: Callable[[Matches], None] | None = None) -> None:
        self._observe = observe
        self._frames: list[tuple[int, int, int]] = []
        self._worst: dict[int, tuple[float, EvaluatedFrame]] = {}
        self._detections = [[np.zeros(0, _DETECTION)] for _ in EVALUATED_CLASSES]
        self._truths = [[np.zeros(0, _TRUTH)] for _ in EVALUATED_CLASSES]

    def add(self, frame: EvaluatedFrame) -> None:
        number, stack, truth = len(self._frames), frame.stack, frame.truth
        matches, are_matches = _matches_of(frame, number), frame.matches >= 0
        rows, truths = np.zeros(len(stack.ids), _DETECTION), np.zeros(len(truth.ids), _TRUTH)
        truths['frame'], truths['band'] = number, _bands_of(frame.distances)
        rows['frame'], rows['score'], rows['are_matches'] = number, stack.scores, are_matches.T
        rows['bands'] = np.where(
            are_matches, np.append(truths['band'], NO_BAND)[frame.matches],
            _bands_of(distances_from(frame.ego_xyz, stack))).T
        rows['distance'], rows['errors'] = np.nan, np.nan
        rows['distance'][are_matches[I_ERRORS]] = matches.distances
        rows['errors'][are_matches[I_ERRORS]] = matches.errors
        for classes, records, columns in ((stack.classes, rows, self._detections),
                                          (truth.classes, truths, self._truths)):
            for class_number in np.unique(classes).tolist():
                columns[class_number].append(records[classes == class_number])
        n_missed, n_false = (len(each) - len(matches.classes) for each in (truths, rows))
        self._frames.append((frame.stamp_ns, n_missed, n_false))
        cost = n_missed + n_false + float(matches.errors[:, 0].sum()) / MATCH_DISTANCES_M[I_ERRORS]
        place = frame.stamp_ns // _APART_NS
        if cost > self._worst.get(place, (_LEAST_COST, frame))[0]:
            self._worst[place] = cost, frame
            if len(self._worst) > N_MOMENTS:
                del self._worst[min(self._worst, key=lambda each: self._worst[each][0])]
        if self._observe is not None:
            self._observe(matches)

    def finish(self) -> FrameRecord:
        return FrameRecord(np.array(self._frames, _FRAME), {
            name: Detections(np.concatenate(detections), np.concatenate(truths))
            for name, detections, truths in zip(
                EVALUATED_CLASSES, self._detections, self._truths, strict=True)
            if len(detections) > 1 or len(truths) > 1}, tuple(
                frame for _, frame in sorted(self._worst.values(), key=lambda each: -each[0])))


@dataclass(frozen=True, slots=True, eq=False)
class FrameRecord:
    # (F,) with the fields ``stamp_ns``, and ``n_missed`` and ``n_false``: objects without a match
    # at 2 m.
    frames: Records
    classes: dict[str, Detections]  # the detections by the name of the class
    # The frames of the greatest cost, the worst first, at most one of each half second. The cost
    # is the number of misses and of false positives plus the sum of the errors by 2 m.
    worst: tuple[EvaluatedFrame, ...] = ()

    @property
    def stamps_ns(self) -> Rows:
        """Stamps of the messages, (F,)."""
        return self.frames['stamp_ns']

    def matches(self) -> Records:
        """Return the detections with a match at 2 m."""
        parts = [np.zeros(0, _DETECTION)]
        for detections in self.classes.values():
            rows = detections.detections
            parts.append(rows[rows['are_matches'][:, I_ERRORS]])
        return np.concatenate(parts)
