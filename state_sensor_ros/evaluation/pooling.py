# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Several bags as one, as nuScenes pools its scenes: detections, tracks and predicted paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
import pickle
from typing import Any

import numpy as np

from state_sensor_ros.evaluation.confidence import intervals_of
from state_sensor_ros.evaluation.detection_metrics import score_classes
from state_sensor_ros.evaluation.evaluation_result import numbers_of, result_of
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import Detections, FrameRecord
from state_sensor_ros.evaluation.prediction_metrics import PathSums
from state_sensor_ros.evaluation.resampling import TimeBlocks
from state_sensor_ros.evaluation.spooled_rows import SpooledRows
from state_sensor_ros.evaluation.track_record import TrackArrays
from state_sensor_ros.evaluation.tracking_metrics import load_trackeval, score_tracks


def write_part(path: str, topic_results: Sequence[TopicResult], n_truth_frames: int) -> None:
    """Write what a bag adds to the pool, of its first topic of objects."""
    for found in topic_results:
        if found.record is not None:
            Path(path).write_bytes(pickle.dumps((found, found.record, n_truth_frames)))
            return


def pooled_result(paths: Sequence[str], definition: str) -> dict[str, Any] | None:
    """Return the result of all bags with their parts; its intervals rest on bags."""
    if not paths:
        return None
    parts: tuple[TopicResult, ...]
    records: tuple[FrameRecord, ...]
    parts, records, n_truth_frames = zip(*[
        pickle.loads(Path(path).read_bytes()) for path in paths], strict=True)
    firsts = np.cumsum([0, *(len(record.frames) for record in records)])
    blocks = TimeBlocks(np.repeat(np.arange(len(parts)), np.diff(firsts)), len(parts), 0.0)
    classes: dict[str, Detections] = {}
    for record, first in zip(records, firsts.tolist(), strict=False):
        for name, of_bag in record.classes.items():
            both = [rows.read_all().copy() for rows in (of_bag.detections, of_bag.truths)]
            if name not in classes:
                classes[name] = Detections(*(SpooledRows(rows.dtype) for rows in both))
            for spooled, rows in zip((classes[name].detections, classes[name].truths), both,
                                     strict=True):
                rows['frame'] += first
                spooled.add(rows)
    found = TopicResult(
        'pooled', sum(part.n_frames for part in parts),
        sum(part.n_without_truth for part in parts), classes=score_classes(classes, blocks),
        record=FrameRecord(np.concatenate([record.frames for record in records]), classes))
    tracks = [part.tracks for part in parts]
    if all(each is not None for each in tracks):
        load_trackeval()
        plain, interpolated = zip(*tracks, strict=True)
        found.tracking = score_tracks(
            _joined(plain), blocks, None if interpolated[0] is None else _joined(interpolated))
    paths_of = [part.prediction for part in parts if part.prediction is not None]
    if len(paths_of) == len(parts):
        found.prediction = PathSums(
            paths_of[0].horizons_s, paths_of[0].path_counts,
            np.concatenate([each.sums for each in paths_of]),
            sum(each.n_matched for each in paths_of))
    ious = [part.iou for part in parts if part.iou is not None]
    if ious:
        found.iou = replace(ious[0], rows=np.concatenate([each.rows for each in ious]),
                            n_truths=np.sum([each.n_truths for each in ious], axis=0))
    result = result_of([found], sum(n_truth_frames), definition=definition)
    with np.errstate(all='ignore'):
        result['confidence'] = intervals_of([found], dict(numbers_of(result)), definition, blocks)
    return result


def _joined(parts: Sequence[TrackArrays]) -> Any:  # noqa: ANN401
    """Return the tracks of several bags, none of which goes on in another one."""
    lengths = {'frames': [len(part.times_s) for part in parts],
               'truth_ids': [part.n_truth_ids for part in parts],
               'stack_ids': [part.n_stack_ids for part in parts],
               'pair_truths': [len(part.truth_ids) for part in parts],
               'pair_stacks': [len(part.stack_ids) for part in parts]}
    firsts = {name: np.cumsum([0, *counts]) for name, counts in lengths.items()}
    joined: dict[str, Any] = {}
    for name in (member.name for member in fields(TrackArrays)):
        values = [getattr(part, name) for part in parts]
        if name.startswith('n_'):
            joined[name] = sum(values)
            continue
        offsets = firsts.get('frames' if name.endswith('_frames') else name)
        joined[name] = np.concatenate(values if offsets is None else [
            column + first for column, first in zip(values, offsets.tolist(), strict=False)])
    return TrackArrays(**joined)
