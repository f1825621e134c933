# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Values of confidence intervals: worked out by hand, and of recordings without each block.

A drive of 100 frames at 10 Hz has ten blocks of ten frames.
"""

import numpy as np
import pytest

from state_sensor_ros.evaluation.confidence import intervals_of
from state_sensor_ros.evaluation.detection_metrics import score_classes
from state_sensor_ros.evaluation.evaluation_result import (
    against,
    changes,
    number_at,
    numbers_of,
    result_of,
)
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import FrameRecorder
from state_sensor_ros.evaluation.ground_truth import GroundTruthBuilder
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
    PathOfObject,
)
from state_sensor_ros.evaluation.prediction_metrics import PathScorer
from state_sensor_ros.evaluation.resampling import time_blocks
from state_sensor_ros.evaluation.track_record import TrackRecorder
from state_sensor_ros.evaluation.tracking_metrics import load_trackeval, score_tracks

N_BLOCKS, N_IN_BLOCK = 10, 10
N_FRAMES = N_BLOCKS * N_IN_BLOCK
PERIOD_NS, STEP_NS = 100_000_000, 500_000_000
BLOCK_OF = np.arange(N_FRAMES) // N_IN_BLOCK
# A car in each band of distances.
CARS = {'a': 10.0, 'b': 40.0, 'c': 80.0}
N_PATHS, N_POSES = 7, 17


def objects(rows):
    """Return cars of rows of id, x, y, and a confidence other than 1."""
    states = np.zeros((len(rows), 9))
    states[:, :2] = np.array([row[1:3] for row in rows], np.float64).reshape(-1, 2)
    states[:, 6:] = (4.0, 2.0, 1.5)
    return ObjectSet(tuple(row[0] for row in rows),
                     np.full(len(rows), EVALUATED_CLASSES.index('car')), states,
                     np.array([row[3] if row[3:] else 1.0 for row in rows], np.float64))


def evaluated(stacks, sums=None):
    """
    Return the result of three standing cars, with its intervals.

    :param stacks: rows of the stack in each frame.
    :param sums: of predictions in each frame.
    """
    recorder, tracks = FrameRecorder(), TrackRecorder()
    truth = objects([(name, x, 0.0) for name, x in CARS.items()])
    for i, rows in enumerate(stacks):
        stack = objects(rows)
        frame = EvaluatedFrame(i * PERIOD_NS, stack, truth, match(stack, truth), np.zeros(3))
        recorder.add(frame)
        tracks.add(frame)
    record = recorder.finish()
    blocks = time_blocks(record.stamps_ns)
    load_trackeval()
    found = TopicResult('topic', len(stacks), record=record, prediction=sums,
                        classes=score_classes(record.classes, blocks),
                        tracking=score_tracks(tracks.finish(), blocks, None))
    result = result_of([found], len(stacks))
    result['confidence'] = intervals_of([found], dict(numbers_of(result)), 'plain')
    return result


def right(**shifts):
    """Return the rows of cars, some of them off by meters along y; None for a miss."""
    return [(name, x, shifts.get(name, 0.0)) for name, x in CARS.items()
            if shifts.get(name, 0.0) is not None]


def test_two_blocks_with_all_misses():
    """Without one of them 100/9 misses, without another 200/9: the standard error is 40/3."""
    result = evaluated([right(a=None) if block in (4, 7) else right() for block in BLOCK_OF])
    confidence = result['confidence']
    # Student's t of nine degrees of freedom is 2.262. The deviations, -80/9 twice, 20/9 eight
    # times, have squares of 197.5 and cubes of -1317: skew 30.16 * 1317 / (6 * 197.5^2) = 0.1697,
    # and 30.16 / (1 - 0.1697) = 36.3.
    assert confidence['intervals']['tracking/misses'] == [0, 57]
    assert result['tracking']['misses'] == 20
    assert confidence['deviations']['tracking/misses'] == pytest.approx(
        [-80.0 / 9.0 if i in (4, 7) else 20.0 / 9.0 for i in range(N_BLOCKS)], rel=1e-3)
    # 1 - 20/300, on the scale of the logit: 2.262 * 0.0444 / (0.0667 * 0.9333) = 1.616.
    odds = 14.0 * np.exp(np.array((-1.616 / (1.0 - 0.1697), 1.616 / (1.0 + 0.1697))))
    assert confidence['intervals']['detection/classes/car/recall'] == pytest.approx(
        odds / (1.0 + odds), abs=1e-3)
    assert set(confidence['units'].values()) == {10}


def test_events_of_one_block_alone_have_no_interval():
    for blocks in ((), (4,)):
        result = evaluated([right(a=None) if block in blocks else right() for block in BLOCK_OF])
        assert result['tracking']['misses'] == 10 * len(blocks)
        assert result['confidence']['intervals'].keys().isdisjoint((
            'tracking/misses', 'tracking/mota' if blocks else 'tracking/identity_switches',
            'detection/classes/car/recall'))


@pytest.mark.parametrize('n_levels', [1, 2])
def test_average_precision_of_equal_confidences(n_levels):
    """The second half is right, the first half has as many false ones; the later are first."""
    stacks = []
    for i, block in enumerate(BLOCK_OF):
        level = 1.0 - 0.5 * (i % n_levels)
        rows = right() if block >= 5 else [*right(), *((f'f{x}', x, 9.0) for x in CARS.values())]
        stacks.append([(*row, level) for row in rows])
    result = evaluated(stacks)
    intervals = result['confidence']['intervals']
    point, (low, high) = result['detection']['map'], intervals['detection/map']
    # Precision 1 up to half of the recall, and falling to 2/3; 2/3 all along is another number.
    assert point > 0.85 if n_levels == 1 else point > 0.7
    assert low < point - 0.02 < point + 0.02 < high
    # Of equal confidences nuScenes' errors are those of single matches.
    assert ('detection/nds' in intervals) == (n_levels == 2)


def test_equal_blocks_have_no_width():
    shifts = np.linspace(0.0, 1.8, N_IN_BLOCK)
    stacks = []
    for i in range(N_FRAMES):
        number = i % N_IN_BLOCK
        rows = right(a=shifts[number], b=0.5, c=None if number < 3 else 0.0)
        stacks.append([(*row, 0.9 - 0.04 * number - 0.01 * j) for j, row in enumerate(
            [*rows, ('f', 40.0, 9.0)])])
    result = evaluated(stacks, drawn_sums(path_offsets()[BLOCK_OF * 0]))
    intervals = result['confidence']['intervals']
    assert {'tracking/misses', 'detection/classes/car/bands/50+/recall'} <= intervals.keys()
    assert intervals['tracking/misses'] == [30, 30]
    for path, interval in intervals.items():
        assert interval == pytest.approx([number_at(result, path)] * 2, abs=1e-9), path


def path_offsets():
    """Return (100, 7) how far each path of the car is off, m, the most likely first."""
    random = np.random.default_rng(5)
    largest = random.uniform(1.0, 5.0, N_BLOCKS)[BLOCK_OF]
    return random.uniform(0.0, 1.0, (N_FRAMES, N_PATHS)) * largest[:, None]


def drawn_sums(offsets, are_there=None):
    """
    Return the sums of a car that drives along x with another one 5 m beside it.

    :param offsets: (100, 7), how far each path is off toward the other car.
    :param are_there: (100,) whether the stack has the car.
    """
    builder, names = GroundTruthBuilder('truth'), ('a', 'b')
    for i in range(N_FRAMES + 85):
        x = 0.1 * i
        builder.add(i * PERIOD_NS, objects([('a', x, 0.0), ('b', x, 5.0)]),
                    np.ones(len(names), np.bool_))
    truth = builder.finish(None)
    scorer = PathScorer(truth)
    for i, sideways in enumerate(offsets.tolist()):
        poses = np.zeros((N_PATHS, N_POSES, 7))
        poses[:, :, 0] = 0.1 * i + 0.5 * np.arange(N_POSES)
        poses[:, :, 1], poses[:, :, 6] = np.array(sideways)[:, None], 1.0
        stack = objects([('a', 0.1 * i, 0.0)])
        stack = ObjectSet(stack.ids, stack.classes, stack.states, stack.scores, (tuple(
            PathOfObject(STEP_NS, each, 1.0 - 0.1 * rank) for rank, each in enumerate(poses)),))
        stack = stack.select(np.array([are_there is None or are_there[i]]))
        found = truth.at(i * PERIOD_NS)[0]
        scorer.add(EvaluatedFrame(i * PERIOD_NS, stack, found, match(stack, found),
                                  np.full(3, np.nan)), i * PERIOD_NS)
    return scorer.finish()


def without_blocks(values):
    """Return the mean of a number over the frames without each block, less their mean."""
    means = np.array([values[block != BLOCK_OF].mean() for block in range(N_BLOCKS)])
    return means - means.mean()


@pytest.mark.parametrize('scale', [1.0, 2.0])
def test_paths_without_each_block(scale):
    """A path that is off by d has minADE and minFDE d, misses above 2 m, overlaps above 3 m."""
    offsets = scale * path_offsets() / 2.0
    result = evaluated([right() for _ in range(N_FRAMES)], drawn_sums(offsets))
    least = offsets.min(axis=1)
    of_frames = {'min_ade': least, 'min_fde': least, 'min_ade_argoverse': least,
                 'miss_rate': least > 2.0, 'miss_rate_nuscenes': least > 2.0,
                 'overlap_rate': offsets[:, 0] > 3.0}
    for horizon in ('3.0', '5.0', '8.0'):
        for name, values in of_frames.items():
            path = f'prediction/{horizon}/{name}'
            assert number_at(result, path) == pytest.approx(values.mean())
            if name.startswith(('miss', 'overlap')) and values.mean() in (0.0, 1.0):
                assert path not in result['confidence']['intervals']
                continue
            assert result['confidence']['deviations'][path] == pytest.approx(
                without_blocks(values), rel=1e-3, abs=1e-12), path
            low, high = result['confidence']['intervals'][path]
            assert low <= number_at(result, path) <= high
        assert result['prediction'][horizon]['objects'] == N_FRAMES


def perturbed(scale, seed=7):
    """Return rows of frames with misses, errors and false ones, more in later blocks."""
    random = np.random.default_rng(seed)
    shifts = scale * random.uniform(0.0, 0.09 * (1.0 + BLOCK_OF[:, None]), (N_FRAMES, 3))
    are_seen = random.random((N_FRAMES, 3)) < 1.0 - 0.05 * BLOCK_OF[:, None]
    have_false = random.random((N_FRAMES, 3)) < 0.06 * BLOCK_OF[:, None]
    return [[row for j, (name, x) in enumerate(CARS.items()) for row in (
        *([(name, x, shifts[i, j])] if are_seen[i, j] else []),
        *([(f'f{j}', x, 9.0)] if have_false[i, j] else []))] for i in range(N_FRAMES)]


@pytest.mark.thorough
def test_numbers_without_each_block_are_those_of_the_other_frames():
    stacks = perturbed(1.0)
    result = evaluated(stacks)
    others = [evaluated([rows for rows, block in zip(stacks, BLOCK_OF, strict=True)
                         if block != left_out]) for left_out in range(N_BLOCKS)]
    for path in ('tracking/mota', 'tracking/motp', 'detection/classes/car/recall',
                 'detection/classes/car/precision', 'detection/classes/car/ate'):
        numbers = np.array([number_at(other, path) for other in others])
        assert result['confidence']['deviations'][path] == pytest.approx(
            numbers - numbers.mean(), rel=2e-3, abs=1e-9), path
        low, high = result['confidence']['intervals'][path]
        assert low < number_at(result, path) < high
    misses = [number_at(other, 'tracking/misses') * 10.0 / 9.0 for other in others]
    assert result['confidence']['deviations']['tracking/misses'] == pytest.approx(
        np.array(misses) - np.mean(misses), rel=1e-3, abs=1e-9)


def test_difference_of_paired_blocks():
    """The same recording with errors that are 2 % less: each number alone is known much worse."""
    old, new = evaluated(perturbed(1.0)), evaluated(perturbed(0.98))
    [change] = [each for each in changes(new, old) if each.path == 'tracking/motp']
    low, high = new['confidence']['intervals']['tracking/motp']
    assert change.is_better
    assert change.is_significant
    assert low < change.old < high
    assert change.half < 0.1 * (high - low)
    assert against(new, old)['intervals']['tracking/motp'] == pytest.approx(
        [change.new - change.old - change.half, change.new - change.old + change.half])
    # Another drive in the same blocks: more noise than difference.
    [change] = [each for each in changes(evaluated(perturbed(0.98, 8)), old)
                if each.path == 'tracking/motp']
    assert change.is_significant is False
    # Other blocks, or an earlier version: it is not tested.
    for confidence in ({}, {**old['confidence'], 'begin_s': 100.0}):
        [change] = [each for each in changes(new, {**old, 'confidence': confidence})
                    if each.path == 'tracking/motp']
        assert change.is_significant is None


def test_numbers_that_are_lost():
    old = evaluated(perturbed(1.0))
    new = evaluated([[] for _ in range(N_FRAMES)])
    del new['detection']['classes']['car']['recall']
    lost = {each.path for each in changes(new, old) if each.new is None}
    assert lost == {'tracking/motp', 'detection/classes/car/recall',
                    'detection/classes/car/precision', 'detection/classes/car/ate',
                    'detection/classes/car/ase', 'detection/classes/car/aoe',
                    'detection/classes/car/ave', 'detection/classes/car/aae',
                    'tracking/longest_gap_duration', 'tracking/track_initialization_duration'}
    assert against(new, old)['lost'] == [
        each.path for each in changes(new, old) if each.new is None]


def test_band_without_objects_has_no_interval():
    result = evaluated([right(c=None) for _ in range(N_FRAMES)])
    intervals = result['confidence']['intervals']
    assert not any(path.startswith('detection/classes/car/bands/50+/') for path in intervals)
