# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The names that a result can have, known before the evaluation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from state_sensor_ros.evaluation.confidence import intervals_of
from state_sensor_ros.evaluation.detection_metrics import ClassScores
from state_sensor_ros.evaluation.ego_metrics import EgoPoses, score_ego
from state_sensor_ros.evaluation.evaluation_result import (
    AGAINST,
    differences,
    NUSCENES,
    result_of,
)
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import BANDS, ERROR_NAMES
from state_sensor_ros.evaluation.ground_truth import GroundTruthBuilder
from state_sensor_ros.evaluation.matching import EVALUATED_CLASSES
from state_sensor_ros.evaluation.prediction_metrics import PathScorer
from state_sensor_ros.evaluation.resampling import time_blocks
from state_sensor_ros.evaluation.track_record import TrackRecorder
from state_sensor_ros.evaluation.tracking_metrics import score_tracks


def possible_result(definition: str, *, is_compared: bool) -> dict[str, Any]:
    """
    Return a result with every name that a result can have; its numbers mean nothing.

    :param definition: one of DEFINITIONS, of the errors of detections.
    :param is_compared: whether there is an earlier result.
    """
    nothing = np.zeros(0, np.int64)
    poses = EgoPoses(nothing, np.zeros((0, 7)), np.zeros(0))
    is_nuscenes = definition == NUSCENES
    tracking = score_tracks(TrackRecorder().finish(), time_blocks(nothing),
                            with_averages=is_nuscenes)
    if tracking.averages is not None:
        tracking.averages.update(dict.fromkeys(EVALUATED_CLASSES, (math.nan, math.nan)))
    found = TopicResult(
        '', classes=[_class_scores(name, is_band=False) for name in EVALUATED_CLASSES],
        tracking=tracking, ego=score_ego(poses, poses, 'none'),
        prediction=PathScorer(GroundTruthBuilder('').finish(None)).frame_sums())
    result = result_of([found], 0, definition=definition)
    result['confidence'] = intervals_of([], definition)
    return {**result, AGAINST: differences(result, result)} if is_compared else result


def _class_scores(name: str, *, is_band: bool) -> ClassScores:
    unknown = np.full(len(ERROR_NAMES), math.nan)
    bands = {} if is_band else {band: _class_scores(band, is_band=True) for band in BANDS}
    return ClassScores(name, 0, 0, 0, None, unknown, unknown, None, bands)
