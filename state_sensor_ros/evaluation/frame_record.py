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

from collections.abc import Callable, Mapping, Sequence
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
from state_sensor_ros.evaluation.spooled_rows import SpooledRows
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
# Frames that are added at once: numpy's call overhead dominates in a frame.
_N_BATCH = 64
Records = npt.NDArray[np.void]

_N_DISTANCES = len(MATCH_DISTANCES_M)
_DETECTION = np.dtype([
    ('frame', np.int32), ('score', np.float64), ('are_matches', np.bool_, _N_DISTANCES),
    ('bands', np.int8, _N_DISTANCES), ('distance', np.float32),
    ('errors', np.float64, len(ERROR_NAMES))])
_TRUTH = np.dtype([('frame', np.int32), ('band', np.int8)])
_FRAME = np.dtype([
    ('stamp_ns', np.int64), ('message', np.int64), ('n_missed', np.int32), ('n_false', np.int32),
    ('n_matches', np.int32), ('error', np.float64)])


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The R matches at 2 m of some frames, in their order."""

    frames: Rows  # (R,) index of the frame
    stamps_ns: Rows  # (R,)
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


def _matches_of(frames: Sequence[EvaluatedFrame], first: int) -> Matches:
    """Return the matches of frames, of which the first one has the index ``first``."""
    pairs = [np.flatnonzero(frame.matches[I_ERRORS] >= 0) for frame in frames]
    joined = [(frame, rows, frame.matches[I_ERRORS][rows])
              for frame, rows in zip(frames, pairs, strict=True)]
    counts = [len(rows) for rows in pairs]
    stack = np.concatenate([frame.stack.states[rows] for frame, rows, _ in joined])
    truth = np.concatenate([frame.truth.states[rows] for frame, _, rows in joined])
    classes = np.concatenate([frame.stack.classes[rows] for frame, rows, _ in joined])
    return Matches(
        first + np.repeat(np.arange(len(frames)), counts),
        np.repeat(np.array([frame.stamp_ns for frame in frames], np.int64), counts), stack, truth,
        classes, np.concatenate([frame.stack.scores[rows] for frame, rows, _ in joined]),
        np.concatenate([frame.distances[rows] for frame, _, rows in joined]),
        error_rows(stack, truth, classes),
        tuple([frame.stack.ids[row] for frame, rows, _ in joined for row in rows.tolist()]),
        tuple([frame.truth.ids[row] for frame, _, rows in joined for row in rows.tolist()]))


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

    detections: SpooledRows
    truths: SpooledRows


def _bands_of(distances: Floats) -> npt.NDArray[np.int8]:
    bands = np.searchsorted(_BAND_LIMITS, distances, side='right')
    return np.where(np.isfinite(distances), bands, NO_BAND).astype(np.int8)


class FrameRecorder:
    """Records the frames of a topic."""

    # observe: called with the matches of some frames, in the order of time; None for no call.

    def __init__(self, observe: Callable[[Matches], None] | None = None) -> None:
        self._observe = observe
        self._waiting: list[EvaluatedFrame] = []
        self._messages: list[int] = []
        self._frames = SpooledRows(_FRAME)
        self._detections = [SpooledRows(_DETECTION) for _ in EVALUATED_CLASSES]
        self._truths = [SpooledRows(_TRUTH) for _ in EVALUATED_CLASSES]
        self.n_frames = 0

    def add(self, frame: EvaluatedFrame, message: int) -> None:
        self.n_frames += 1
        self._waiting.append(frame)
        self._messages.append(message)
        if len(self._waiting) == _N_BATCH:
            self._flush()

    def _flush(self) -> None:
        frames = self._waiting
        if not frames:
            return
        first = self.n_frames - len(frames)
        matches = _matches_of(frames, first)
        self._add_objects(frames, first, matches)
        counts: Rows = np.array([(len(frame.truth.classes), len(frame.stack.classes))
                                 for frame in frames], np.int64)
        places = matches.frames - first
        n_matches = np.bincount(places, minlength=len(frames))
        rows = np.zeros(len(frames), _FRAME)
        rows['stamp_ns'] = [frame.stamp_ns for frame in frames]
        rows['message'] = self._messages
        rows['n_missed'], rows['n_false'] = counts.T - n_matches
        rows['n_matches'] = n_matches
        rows['error'] = np.bincount(places, matches.errors[:, 0], len(frames))
        self._frames.add(rows)
        if self._observe is not None:
            self._observe(matches)
        self._waiting, self._messages = [], []

    def _add_objects(self, frames: Sequence[EvaluatedFrame], first: int, matches: Matches) -> None:
        truth_counts = [len(frame.truth.classes) for frame in frames]
        counts = [len(frame.stack.classes) for frame in frames]
        numbers = np.arange(first, first + len(frames))
        matching = np.concatenate([frame.matches for frame in frames], axis=1)
        truth_distances = np.concatenate([frame.distances for frame in frames])
        truth_bands = _bands_of(truth_distances)
        rows = np.zeros(matching.shape[1], _DETECTION)
        rows['frame'] = np.repeat(numbers, counts)
        rows['score'] = np.concatenate([frame.stack.scores for frame in frames])
        are_matches = matching >= 0
        rows['are_matches'] = are_matches.T
        bands = np.broadcast_to(_bands_of(np.concatenate(
            [distances_from(frame.ego_xyz, frame.stack) for frame in frames])),
            matching.shape).copy()
        first_truths = np.repeat(np.cumsum(truth_counts) - truth_counts, counts)
        bands[are_matches] = truth_bands[(matching + first_truths)[are_matches]]
        rows['bands'] = bands.T
        rows['distance'], rows['errors'] = np.nan, np.nan
        rows['distance'][are_matches[I_ERRORS]] = matches.distances
        rows['errors'][are_matches[I_ERRORS]] = matches.errors
        truths = np.zeros(len(truth_bands), _TRUTH)
        truths['frame'], truths['band'] = np.repeat(numbers, truth_counts), truth_bands
        for objects, records, columns in (
                ([frame.stack for frame in frames], rows, self._detections),
                ([frame.truth for frame in frames], truths, self._truths)):
            classes = np.concatenate([each.classes for each in objects])
            for number in np.unique(classes).tolist():
                columns[number].add(records[classes == number])

    def finish(self) -> FrameRecord:
        self._flush()
        return FrameRecord(self._frames.read_all(), {
            name: Detections(detections, truths) for name, detections, truths in zip(
                EVALUATED_CLASSES, self._detections, self._truths, strict=True)
            if len(detections) or len(truths)})


@dataclass(frozen=True, slots=True, eq=False)
class FrameRecord:
    # (F,) with the fields ``stamp_ns``, ``message`` index of the message in the topic,
    # ``n_missed`` and ``n_false`` objects without a match at 2 m, ``n_matches``, ``error`` sum of
    # their translation errors, m.
    frames: Records
    classes: dict[str, Detections]  # the detections by the name of the class

    @property
    def stamps_ns(self) -> Rows:
        """Stamps of the messages, (F,)."""
        return self.frames['stamp_ns']

    def matches(self) -> Records:
        """Return the detections with a match at 2 m."""
        parts = [np.zeros(0, _DETECTION)]
        for detections in self.classes.values():
            rows = detections.detections.read_all()
            parts.append(rows[rows['are_matches'][:, I_ERRORS]])
        return np.concatenate(parts)
