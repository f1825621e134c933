#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Make golden.json: scenes, and what nuscenes-devkit 1.2.0 makes of them.

It needs NumPy below 2, so it runs in an environment of its own::

    python3.11 -m venv /tmp/nuscenes
    /tmp/nuscenes/bin/pip install nuscenes-devkit==1.2.0 'numpy<2'
    /tmp/nuscenes/bin/python test/data/evaluation/make_golden.py

All confidences of a scene differ: nuscenes-devkit's errors are interpolated over them. At the end
of its curves they are the plain mean over all matches, which is what is compared.
"""

import json
import math
from pathlib import Path

import numpy as np
from nuscenes.eval.common.data_classes import EvalBoxes
from nuscenes.eval.common.utils import center_distance
from nuscenes.eval.detection.algo import accumulate, calc_ap
from nuscenes.eval.detection.data_classes import DetectionBox

CLASSES = ('car', 'truck', 'bus')
DISTANCES = (0.5, 1.0, 2.0, 4.0)
# Errors of matches at 2 m, in the order of ClassScores.errors.
ERRORS = ('trans_err', 'scale_err', 'orient_err', 'vel_err')


def made_box(token, random, name, score):
    """Return a box anywhere in a small field, so that several are near each other."""
    yaw = random.uniform(-math.pi, math.pi)
    return DetectionBox(
        sample_token=token, translation=(*random.uniform(0.0, 30.0, 2), 1.0),
        size=tuple(random.uniform(1.0, 6.0, 3)),
        rotation=(math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0)),
        velocity=tuple(random.normal(0.0, 5.0, 2)), detection_name=name, detection_score=score,
        attribute_name='')


def moved(token, box, random, spread, score):
    """Return a detection of a box, with errors."""
    x, y, z = box.translation
    turn = math.atan2(box.rotation[3], box.rotation[0]) + random.normal(0.0, 0.3)
    return DetectionBox(
        sample_token=token, translation=(*np.array((x, y)) + random.normal(0.0, spread, 2), z),
        size=tuple(np.array(box.size) * random.uniform(0.7, 1.3, 3)),
        rotation=(math.cos(turn), 0.0, 0.0, math.sin(turn)),
        velocity=tuple(np.array(box.velocity) + random.normal(0.0, 1.0, 2)),
        detection_name=box.detection_name, detection_score=score, attribute_name='')


def made_scene(seed):
    """Return truths and detections of 12 samples; the seed decides how bad they are."""
    random = np.random.default_rng(seed)
    truths, detections = EvalBoxes(), EvalBoxes()
    n_false, p_missed, spread = ((0, 0.0, 0.1), (3, 0.2, 0.7), (8, 0.5, 2.0))[seed]
    scores = iter(random.permutation(2000) / 2000.0 + 0.0001)
    for i in range(12):
        token = f'{i:02d}'
        boxes = [made_box(token, random, str(random.choice(CLASSES[:2 + seed % 2])), -1.0)
                 for _ in range(random.integers(4, 12))]
        found = [moved(token, box, random, spread, float(next(scores))) for box in boxes
                 if random.uniform() >= p_missed]
        found += [made_box(token, random, str(random.choice(CLASSES)), float(next(scores)))
                  for _ in range(n_false)]
        truths.add_boxes(token, boxes)
        detections.add_boxes(token, found)
    return truths, detections


def written(boxes):
    """Return boxes as rows of class, score, x, y, z, yaw, velocity and size."""
    return [[[box.detection_name, box.detection_score, *box.translation,
              2.0 * math.atan2(box.rotation[3], box.rotation[0]), *box.velocity, *box.size]
             for box in boxes[token]] for token in boxes.sample_tokens]


def expected(truths, detections):
    """Return the scores of each class that has truths."""
    scores = {}
    for name in CLASSES:
        if not any(box.detection_name == name for box in truths.all):
            continue
        curves = {each: accumulate(truths, detections, name, center_distance, each)
                  for each in DISTANCES}
        at_2 = curves[2.0]
        has_matches = bool(at_2.confidence.any())
        scores[name] = {
            'ap': [calc_ap(curves[each], 0.1, 0.1) for each in DISTANCES],
            'errors': [float(getattr(at_2, each)[-1]) if has_matches else None
                       for each in ERRORS]}
    return scores


def main():
    """Write golden.json beside this script."""
    scenes = []
    for seed in range(3):
        truths, detections = made_scene(seed)
        scenes.append({'truths': written(truths), 'detections': written(detections),
                       'expected': expected(truths, detections)})
    path = Path(__file__).parent / 'golden.json'
    path.write_text(json.dumps(scenes) + '\n', encoding='utf-8')


if __name__ == '__main__':
    main()
