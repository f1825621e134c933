# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Scenes, and the numbers that nuscenes-devkit makes of them; it is imported by the fixture.

All confidences of a detection scene differ: nuscenes-devkit's errors are interpolated over them.
At the end of its curves they are the plain mean over all matches.
"""

import math
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from scipy.spatial.distance import cdist

# nuscenes-devkit imports OpenCV for images, and of scikit-learn uses one function here.
REPLACED = {name: ModuleType(name) for name in ('cv2', 'sklearn', 'sklearn.metrics')}
REPLACED['sklearn'].metrics = REPLACED['sklearn.metrics']
REPLACED['sklearn.metrics'].pairwise = SimpleNamespace(euclidean_distances=cdist)
sys.modules |= REPLACED

from nuscenes.eval.common.config import config_factory  # noqa: E402, I100
from nuscenes.eval.common.data_classes import EvalBoxes  # noqa: E402
from nuscenes.eval.common.utils import center_distance  # noqa: E402
from nuscenes.eval.detection.algo import accumulate, calc_ap, calc_tp  # noqa: E402
from nuscenes.eval.detection.data_classes import DetectionBox, DetectionMetrics  # noqa: E402
from nuscenes.eval.tracking.algo import TrackingEvaluation  # noqa: E402
from nuscenes.eval.tracking.data_classes import TrackingBox  # noqa: E402
from nuscenes.eval.tracking.loaders import interpolate_tracks  # noqa: E402

for replaced in REPLACED:
    del sys.modules[replaced]

CLASSES = ('car', 'truck', 'bus')
DISTANCES = (0.5, 1.0, 2.0, 4.0)
# Errors of matches at 2 m, in the order of ClassScores.errors.
ERRORS = ('trans_err', 'scale_err', 'orient_err', 'vel_err', 'attr_err')
MOVING_SPEED = 0.2


def made_box(token, random, name, score):
    """Return a box anywhere in a small field, so that several are near each other."""
    yaw = random.uniform(-math.pi, math.pi)
    # Some of them stand.
    velocity = tuple(random.normal(0.0, 5.0, 2) * (random.uniform() > 0.3))
    return DetectionBox(
        sample_token=token, translation=(*random.uniform(0.0, 30.0, 2), 1.0),
        size=tuple(random.uniform(1.0, 6.0, 3)),
        rotation=(math.cos(yaw / 2.0), 0.0, 0.0, math.sin(yaw / 2.0)),
        velocity=velocity, detection_name=name, detection_score=score,
        attribute_name=attribute(velocity))


def attribute(velocity):
    """Return the attribute of a vehicle."""
    return 'vehicle.moving' if math.hypot(*velocity) > MOVING_SPEED else 'vehicle.stopped'


def moved(token, box, random, spread, score):
    """Return a detection of a box, with errors."""
    x, y, z = box.translation
    turn = math.atan2(box.rotation[3], box.rotation[0]) + random.normal(0.0, 0.3)
    velocity = tuple(np.array(box.velocity) + random.normal(0.0, 0.15, 2))
    return DetectionBox(
        sample_token=token, translation=(*np.array((x, y)) + random.normal(0.0, spread, 2), z),
        size=tuple(np.array(box.size) * random.uniform(0.7, 1.3, 3)),
        rotation=(math.cos(turn), 0.0, 0.0, math.sin(turn)),
        velocity=velocity, detection_name=box.detection_name, detection_score=score,
        attribute_name=attribute(velocity))


def made_scene(seed):
    """Return truths and detections of 12 samples; the seed decides how bad they are."""
    random = np.random.default_rng(seed)
    truths, detections = EvalBoxes(), EvalBoxes()
    n_false, p_missed, spread = ((0, 0.0, 0.1), (3, 0.2, 0.7), (8, 0.5, 2.0))[seed % 3]
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
                       for each in ERRORS],
            'recall_errors': [calc_tp(at_2, 0.1, each) for each in ERRORS]}
    return scores


def detection_score(scores):
    """Return NDS of the classes that have truths."""
    metrics = DetectionMetrics(config_factory('detection_cvpr_2019'))
    metrics.cfg.class_names = list(scores)
    for name, each in scores.items():
        for distance, precision in zip(DISTANCES, each['ap'], strict=True):
            metrics.add_label_ap(name, distance, precision)
        for error, value in zip(ERRORS, each['recall_errors'], strict=True):
            metrics.add_label_tp(name, error, value)
    # Those of other classes are infinite, not zero, in a new object.
    metrics._label_aps = {name: metrics._label_aps[name] for name in scores}
    return metrics.nd_score


def made_tracks(seed):
    """Return rows of truths and of a stack for 40 frames: id, class, score, x, y."""
    random = np.random.default_rng(seed)
    p_missed, p_switch, spread, n_false = ((0.05, 0.0, 0.2, 0), (0.2, 0.05, 0.6, 1),
                                           (0.7, 0.1, 1.2, 3))[seed % 3]
    tracks = [{'id': f't{i}', 'class': CLASSES[i % 2], 'xy': random.uniform(0.0, 14.0, 2),
               'v': random.normal(0.0, 0.5, 2), 'span': sorted(random.integers(0, 40, 2).tolist()),
               'name': f's{i}', 'score': random.uniform(0.3, 1.0)} for i in range(10)]
    truths, stacks, count = [], [], 100
    for frame in range(40):
        present = [each for each in tracks if each['span'][0] <= frame <= each['span'][1]]
        stack = []
        for each in present:
            if random.uniform() < p_switch:
                each['name'], count = f's{count}', count + 1
            if random.uniform() >= p_missed:
                stack.append((each['name'], each['class'], each['score'] + random.uniform(-0.2, 0),
                              each['xy'] + each['v'] * frame + random.normal(0.0, spread, 2)))
        for _ in range(n_false):
            stack.append((f's{count}', CLASSES[count % 2], random.uniform(0.0, 0.6),
                          random.uniform(0.0, 14.0, 2)))
            count += random.uniform() > 0.5
        # Two false objects may have one id.
        names = [name for name, *_ in stack]
        truths.append([[each['id'], each['class'], -1.0,
                        *(each['xy'] + each['v'] * frame).round(3).tolist()] for each in present])
        stacks.append([[name, kind, round(float(score), 4), *xy.round(3).tolist()]
                       for i, (name, kind, score, xy) in enumerate(stack)
                       if name not in names[:i]])
    return truths, stacks


def tracking_boxes(frames):
    """Return rows of frames as boxes by time, with the mean confidence of each track."""
    scores = {}
    for rows in frames:
        for name, _, score, *_ in rows:
            scores.setdefault(name, []).append(score)
    return {'scene': {i: [TrackingBox(
        sample_token=str(i), translation=(x, y, 0.0), size=(1.0, 1.0, 1.0),
        rotation=(1.0, 0.0, 0.0, 0.0), tracking_id=name, tracking_name=kind,
        tracking_score=float(np.mean(scores[name]))) for name, kind, _, x, y in rows]
        for i, rows in enumerate(frames)}}


def expected_tracking(truths, stacks):
    """Return the numbers of nuScenes for each class, of tracks that its loader interpolates."""
    config = config_factory('tracking_nips_2019')
    tracks = [{'scene': interpolate_tracks(boxes['scene'])}
              for boxes in (tracking_boxes(truths), tracking_boxes(stacks))]
    classes = {}
    for name in CLASSES[:2]:
        data = TrackingEvaluation(
            *tracks, name, config.dist_fcn_callable, config.dist_th_tp, config.min_recall,
            config.num_thresholds, config.metric_worst, verbose=False).accumulate()
        classes[name] = {
            average: float(np.where(np.isnan(values), config.metric_worst[average], values).mean())
            for values, average in ((np.array(data.motar), 'amota'),
                                    (np.array(data.motp), 'amotp'))}
        best = np.nanargmax(data.mota)
        classes[name] |= {ours: float(data.get_metric(theirs)[best]) for ours, theirs in (
            ('mota', 'mota'), ('motp', 'motp'), ('identity_switches', 'ids'))}
    return {'classes': classes}
