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
from typing import Any, Final

import numpy as np

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
from state_sensor_ros.frame import Floats
from state_sensor_ros.rotations import plane_rotations, wrapped

BEV: Final = 'bev'
SOLID: Final = '3d'
_N_RECALLS = 40
_CORNERS: Floats = np.array(((0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)))


def ious(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """
    Return the IoU of boxes from above and in 3D.

    :param first: (P, 9) float64, states.
    :param second: (P, 9) float64, states; NaN in one of them makes 0.
    :returns: (P,) float64 each.
    """
    with np.errstate(all='ignore'):
        shared = _shared_areas(first, second)
        areas = [states[:, 6] * states[:, 7] for states in (first, second)]
        flat = shared / (areas[0] + areas[1] - shared)
        halves = [0.5 * states[:, 8] for states in (first, second)]
        height = np.minimum(first[:, 2] + halves[0], second[:, 2] + halves[1]) - np.maximum(
            first[:, 2] - halves[0], second[:, 2] - halves[1])
        volume = shared * np.maximum(height, 0.0)
        solid = volume / (areas[0] * first[:, 8] + areas[1] * second[:, 8] - volume)
    return np.nan_to_num(flat), np.nan_to_num(solid)


def _shared_areas(first: Floats, second: Floats) -> Floats:
    """Return the areas of the intersections of rectangles, (P,), m2."""
    corners, lines = [], []
    for states in (first, second):
        axes = plane_rotations(states[:, YAW])
        local = _CORNERS * states[:, None, SIZE][..., :2]
        # About the first box: far from the origin small differences would be lost.
        places = (states[:, XY] - first[:, XY])[:, None] + local @ axes.transpose(0, 2, 1)
        corners.append(places)
        lines.append(np.roll(places, -1, axis=1) - places)
    points, are_used = [], []
    for own, states in ((0, second), (1, first)):
        offsets = corners[own] - (states[:, XY] - first[:, XY])[:, None]
        inside = np.abs(offsets @ plane_rotations(states[:, YAW])) <= \
            0.5 * states[:, None, SIZE][..., :2] + 1e-9
        points.append(corners[own])
        are_used.append(inside.all(axis=2))
    way = corners[1][:, None] - corners[0][:, :, None]
    edges, others = lines[0][:, :, None], lines[1][:, None]
    turn = _cross(edges, others)
    along, across = _cross(way, others) / turn, _cross(way, edges) / turn
    points.append((corners[0][:, :, None] + along[..., None] * edges).reshape(-1, 16, 2))
    are_used.append(((along >= 0.0) & (along <= 1.0) & (across >= 0.0) & (across <= 1.0))
                    .reshape(-1, 16))
    places, chosen = np.concatenate(points, axis=1), np.concatenate(are_used, axis=1)
    places = np.where(chosen[..., None], places, 0.0)
    middle = places.sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)[:, None]
    # Points that are not used become the middle, and have no part in the area.
    places = np.where(chosen[..., None], places - middle[:, None], 0.0)
    angles = np.where(chosen, np.arctan2(places[..., 1], places[..., 0]), np.inf)
    order = angles.argsort(axis=1)
    ring = np.take_along_axis(places, order[..., None], axis=1)
    n_used = chosen.sum(axis=1)
    last = np.take_along_axis(ring, np.maximum(n_used - 1, 0)[:, None, None].repeat(2, 2), axis=1)
    areas: Floats = 0.5 * (_cross(ring[:, :-1], ring[:, 1:]).sum(axis=1)
                           + _cross(last, ring[:, :1])[:, 0])
    return np.where(n_used > 2, areas, 0.0)


def _cross(a: Floats, b: Floats) -> Floats:
    product: Floats = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return product


class IouScorer:
    """Scores detections frame by frame at thresholds, each of a kind, BEV or SOLID."""

    def __init__(self, thresholds: Sequence[tuple[str, float]]) -> None:
        self._thresholds = thresholds
        self._rows = SpooledRows(np.dtype([
            ('class', np.int8), ('score', np.float64),
            # Share of the heading that is right, NaN without a match.
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

    def finish(self) -> dict[str, dict[str, Any]]:
        """Return AP and APH by class, and by kind and threshold."""
        rows = self._rows.read_all()
        # Of equal confidences the later one is first.
        rows = rows[np.argsort(rows['score'], kind='stable')[::-1]]
        result: dict[str, dict[str, Any]] = {}
        for number in np.flatnonzero(self._n_truths).tolist():
            headings = rows['heading'][rows['class'] == number]
            averages = [tuple(_average(np.nan_to_num(weights), np.isfinite(column), int(
                self._n_truths[number])) for weights in (np.isfinite(column) * 1.0, column))
                for column in headings.T]
            result[EVALUATED_CLASSES[number]] = iou_of(
                list(zip(self._thresholds, averages, strict=True)))
        return result


def iou_of(averages: Sequence[tuple[tuple[str, float], tuple[float, ...]]]) -> dict[str, Any]:
    """Return AP and APH of kinds and thresholds with the keys of the result."""
    found: dict[str, Any] = {}
    for (kind, threshold), (ap, aph) in averages:
        found.setdefault(f'iou_{kind}', {})[f'{threshold:g}'] = {'ap': ap, 'aph': aph}
    return found


def _average(weights: Floats, are_matches: Any, n_truths: int) -> float:  # noqa: ANN401
    """Return the mean of the greatest precision from each recall on."""
    positives = np.cumsum(are_matches)
    precision = np.cumsum(weights) / np.arange(1, len(weights) + 1)
    greatest = np.maximum.accumulate(precision[::-1])[::-1]
    wanted = np.arange(1, _N_RECALLS + 1) / _N_RECALLS * n_truths - 1e-9
    places = np.searchsorted(positives, wanted)
    return float(np.append(greatest, 0.0)[places].mean())
