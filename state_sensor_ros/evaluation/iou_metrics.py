# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Average precision by the intersection over union of boxes, from above and in 3D (KITTI, Waymo).

In the order of falling confidence, a detection takes the free ground-truth object of its class
with the greatest IoU, if that reaches the threshold. AP is the mean of the greatest precision from
each of 40 recalls on, 2.5 % to 100 % (KITTI); for APH a match counts as its heading is right,
1 - angle / pi (Waymo).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.evaluation.frame_record import Records
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    near_pairs,
    SIZE,
    take_in_turn,
    XY,
    YAW,
)
from state_sensor_ros.evaluation.spooled_rows import SpooledRows
from state_sensor_ros.frame import Bools, Floats, Rows
from state_sensor_ros.rotations import plane_rotations, wrapped

BEV: Final = 'bev'
SOLID: Final = '3d'
_N_RECALLS = 40
_CORNERS: Floats = np.array(((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)))
# A little less than half the size of a box.
_LESS = 0.5 - 1e-12


def ious(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """
    Return the IoU of boxes from above and in 3D.

    :param first: (P, 9) float64, states.
    :param second: (P, 9) float64, states; NaN in one of them makes 0.
    :returns: (P,) float64 each.
    """
    with np.errstate(all='ignore'):
        shared = shared_areas(first, second)
        areas = [states[:, 6] * states[:, 7] for states in (first, second)]
        flat = shared / (areas[0] + areas[1] - shared)
        halves = [0.5 * states[:, 8] for states in (first, second)]
        height = np.minimum(first[:, 2] + halves[0], second[:, 2] + halves[1]) - np.maximum(
            first[:, 2] - halves[0], second[:, 2] - halves[1])
        volume = shared * np.maximum(height, 0.0)
        solid = volume / (areas[0] * first[:, 8] + areas[1] * second[:, 8] - volume)
    return np.nan_to_num(flat), np.nan_to_num(solid)


def shared_areas(first: Floats, second: Floats) -> Floats:
    """
    Return the areas of the intersections of rectangles, (P,), m2; NaN makes 0.

    The border of an intersection consists of the parts of each rectangle's edges within the other
    one; each part adds the area of its triangle with the origin (Green's theorem).
    """
    # About the first box: far from the origin small differences would be lost.
    ways = second[:, XY] - first[:, XY]
    # The second one is a little smaller, so that edges on each other are counted once.
    boxes = [(center, plane_rotations(states[:, YAW]), scale * states[:, SIZE][:, :2])
             for center, states, scale in ((0.0 * ways, first, 0.5), (ways, second, _LESS))]
    areas: Floats = np.zeros(len(ways))
    for (center, axes, half), (other_center, other_axes, other_half) in (boxes, boxes[::-1]):
        corners = center[:, None] + (_CORNERS * half[:, None]) @ axes.transpose(0, 2, 1)
        edges = np.roll(corners, -1, axis=1) - corners
        # In the axes of the other rectangle; an edge is within from the last of the lines that
        # bound it to the first one.
        at, edge = (corners - other_center[:, None]) @ other_axes, edges @ other_axes
        with np.errstate(all='ignore'):
            limits = [(side * other_half[:, None] - at) / edge for side in (-1.0, 1.0)]
        begin = np.minimum(*limits).max(axis=2).clip(0.0, None)
        end = np.maximum(*limits).min(axis=2).clip(None, 1.0)
        twice = corners[..., 0] * edges[..., 1] - corners[..., 1] * edges[..., 0]
        areas += 0.5 * (np.fmax(end - begin, 0.0) * twice).sum(axis=1)
    return np.nan_to_num(areas)


@dataclass(frozen=True, slots=True, eq=False)
class IouMatches:
    """The detections of some frames, or bags, at thresholds, each of a kind, BEV or SOLID."""

    thresholds: Sequence[tuple[str, float]]
    # (N,) with the fields ``class``, ``score`` and ``heading``, the share of the heading that is
    # right at each threshold, NaN without a match.
    rows: Records
    n_truths: Rows  # (C,) ground-truth objects by class

    def scores(self) -> dict[str, dict[str, Any]]:
        """Return AP and APH by class, and by kind and threshold."""
        # Of equal confidences the later one is first.
        rows = self.rows[np.argsort(self.rows['score'], kind='stable')[::-1]]
        result: dict[str, dict[str, Any]] = {}
        for number in np.flatnonzero(self.n_truths).tolist():
            of_class = result[EVALUATED_CLASSES[number]] = {}
            headings = rows['heading'][rows['class'] == number]
            for (kind, threshold), column in zip(self.thresholds, headings.T, strict=True):
                are_matches, n_truths = np.isfinite(column), int(self.n_truths[number])
                of_class.setdefault(f'iou_{kind}', {})[f'{threshold:g}'] = {
                    'ap': _average(are_matches, are_matches, n_truths),
                    'aph': _average(np.nan_to_num(column), are_matches, n_truths)}
        return result


class IouScorer:
    """Matches detections frame by frame at thresholds, each of a kind, BEV or SOLID."""

    def __init__(self, thresholds: Sequence[tuple[str, float]]) -> None:
        self._thresholds = thresholds
        self._rows = SpooledRows(np.dtype([
            ('class', np.int8), ('score', np.float64),
            ('heading', np.float64, (len(thresholds),))]))
        self._n_truths = np.zeros(len(EVALUATED_CLASSES), np.int64)

    def add(self, frame: EvaluatedFrame) -> None:
        """Add a frame."""
        stack, truth = frame.stack, frame.truth
        self._n_truths += np.bincount(truth.classes, minlength=len(self._n_truths))
        rows = np.zeros(len(stack.ids), self._rows.dtype)
        rows['class'], rows['score'], rows['heading'] = stack.classes, stack.scores, np.nan
        sizes = [states[:, SIZE][:, :2] for states in (stack.states, truth.states)]
        reach = sum(0.5 * float(np.hypot(*size.T).max(initial=0.0, where=np.isfinite(
            size).all(axis=1))) for size in sizes)
        detections, truths, _ = near_pairs(
            stack.states[:, XY], truth.states[:, XY], max(reach, 1e-3))
        alike = stack.classes[detections] == truth.classes[truths]
        detections, truths = detections[alike], truths[alike]
        found = dict(zip((BEV, SOLID), ious(stack.states[detections], truth.states[truths]),
                         strict=True))
        turns = np.abs(wrapped(stack.states[detections, YAW] - truth.states[truths, YAW]))
        for i, (kind, threshold) in enumerate(self._thresholds):
            order = np.lexsort((truths, -found[kind], -detections, -stack.scores[detections]))
            order = order[found[kind][order] >= threshold]
            row = np.full(len(rows), -1)
            take_in_turn(row, detections[order], truths[order])
            taken = row[detections] == truths
            rows['heading'][detections[taken], i] = 1.0 - turns[taken] / np.pi
        self._rows.add(rows)

    def finish(self) -> IouMatches:
        return IouMatches(self._thresholds, self._rows.read_all(), self._n_truths)


def _average(weights: npt.NDArray[Any], are_matches: Bools, n_truths: int) -> float:
    """Return the mean of the greatest precision from each recall on."""
    positives = np.cumsum(are_matches)
    precision = np.cumsum(weights) / np.arange(1, len(weights) + 1)
    greatest = np.maximum.accumulate(precision[::-1])[::-1]
    wanted = np.arange(1, _N_RECALLS + 1) / _N_RECALLS * n_truths - 1e-9
    places = np.searchsorted(positives, wanted)
    return float(np.append(greatest, 0.0)[places].mean())
