# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
HOTA, MOTA and IDF1 of tracks by trackeval (extra ``[evaluate]``), all classes together.

The similarity of two objects is 1 at distance 0 and 0 at 4 m, so that MOTA and IDF1 match within
2 m.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
import math
from typing import Any, Final

import numpy as np

from state_sensor_ros.classes import CLASS_NAMES, UNKNOWN
from state_sensor_ros.evaluation.clear_mot import (
    average_scores,
    clear_scores,
    ClearScores,
    collect_tracks,
    frame_counts,
    matched_pairs,
)
from state_sensor_ros.evaluation.matching import distances_between
from state_sensor_ros.evaluation.object_set import EVALUATED_CLASSES, EvaluatedFrame
from state_sensor_ros.frame import Floats, Rows

ZERO_SIMILARITY_M: Final = 4.0
# The memory of IDF1 grows with the square of the number of ids: 5000 take 0.6 GB.
MAX_IDS: Final = 5000


@dataclass(frozen=True, slots=True)
class TrackingScores:
    """
    The scores of tracks.

    ``hota`` (mean over its thresholds), ``mota``, ``idf1`` None without truths or above MAX_IDS
    ids, of which there are ``n_ids``; ``clear`` the other CLEAR MOT metrics; ``averages`` AMOTA
    and AMOTP (m) of each class that has truths, None if not requested; ``frame_counts`` (F, 5) as
    :func:`frame_counts` returns them.
    """

    hota: float | None
    mota: float | None
    idf1: float | None
    n_ids: int
    clear: ClearScores
    averages: dict[str, tuple[float, float]] | None
    frame_counts: Floats


class _Similarities(Sequence[Floats]):
    """The similarities of each frame, computed at each use: all would fill the memory."""

    def __init__(self, frames: Sequence[EvaluatedFrame]) -> None:
        self._frames = frames

    def __len__(self) -> int:
        return len(self._frames)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401
        frame = self._frames[index]
        similarity: Floats = np.maximum(
            0.0, 1.0 - distances_between(frame.truth, frame.stack) / ZERO_SIMILARITY_M)
        return similarity

    def __iter__(self) -> Iterator[Floats]:
        return (self[index] for index in range(len(self)))


def load_trackeval() -> None:
    """
    Import trackeval; called early, so that work is not lost if it is missing.

    :raises ImportError: if it is not installed.
    """
    # It prints the packages that are missing for benchmarks which are not used here.
    with redirect_stdout(StringIO()):
        from trackeval import metrics  # noqa: F401


def score_tracks(frames: Sequence[EvaluatedFrame], *, with_averages: bool) -> TrackingScores:
    """
    Score the tracks of a stack; :func:`load_trackeval` has been called.

    :param frames: frames in the order of time, with the ids of the stack's objects.
    :param with_averages: whether AMOTA and AMOTP are computed.
    """
    from trackeval.metrics import CLEAR, HOTA, Identity
    truth_numbers: dict[str, int] = {}
    stack_numbers: dict[str, int] = {}
    truth_ids = [_numbered(frame.truth.ids, truth_numbers) for frame in frames]
    stack_ids = [_numbered(frame.stack.ids, stack_numbers) for frame in frames]
    n_ids = len(truth_numbers) + len(stack_numbers)
    tracks = collect_tracks(frames, truth_ids, stack_ids)
    pairs = matched_pairs(tracks, np.ones(len(tracks.pair_truths), np.bool_))
    counts = frame_counts(tracks, pairs)
    clear = clear_scores(tracks, pairs, np.ones(len(tracks.truth_ids), np.bool_),
                         len(tracks.stack_ids))
    averages = None if not with_averages else {
        EVALUATED_CLASSES[number]: average_scores(tracks, number)
        for number in np.unique(tracks.truth_classes).tolist()}
    if not truth_numbers or n_ids > MAX_IDS:
        return TrackingScores(None, None, None, n_ids, clear, averages, counts)
    data = {
        'gt_ids': truth_ids, 'tracker_ids': stack_ids,
        'similarity_scores': _Similarities(frames), 'num_timesteps': len(frames),
        'num_gt_ids': len(truth_numbers), 'num_tracker_ids': len(stack_numbers),
        'num_gt_dets': sum(map(len, truth_ids)), 'num_tracker_dets': sum(map(len, stack_ids))}
    quiet = {'PRINT_CONFIG': False}
    return TrackingScores(
        float(np.mean(HOTA().eval_sequence(data)['HOTA'])),
        float(CLEAR(quiet).eval_sequence(data)['MOTA']),
        float(Identity(quiet).eval_sequence(data)['IDF1']), n_ids, clear, averages, counts)


def _numbered(ids: tuple[str, ...], numbers: dict[str, int]) -> Rows:
    """Return numbers of ids, from 0; a second object with an id in a frame has its own number."""
    found, used = [], set()
    for text in ids:
        name = text
        while name in used:
            name += '+'
        used.add(name)
        found.append(numbers.setdefault(name, len(numbers)))
    return np.array(found, np.int64)


def mean_averages(averages: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """
    Return AMOTA and AMOTP (m), the means over classes without "unknown", NaN without any.

    :param averages: AMOTA and AMOTP of each class.
    """
    numbers = [both for name, both in averages.items() if name != CLASS_NAMES[UNKNOWN]]
    if not numbers:
        return math.nan, math.nan
    amota, amotp = np.mean(numbers, axis=0).tolist()
    return amota, amotp
