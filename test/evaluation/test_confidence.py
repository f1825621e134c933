# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Values of confidence intervals: worked out by hand, and of frames that are drawn again one by one.

A drive of 100 frames at 10 Hz has ten blocks of ten frames. How often one of them is drawn in a
resample of ten has the binomial distribution B(10, 0.1): its quantiles at 2.5 % and 97.5 % are
0 and 3. The quantiles of B(10, 0.5), for five blocks, are 2 and 8.
"""

from itertools import product

import numpy as np
import pytest

from state_sensor_ros.evaluation.confidence import intervals_of
from state_sensor_ros.evaluation.detection_metrics import score_classes
from state_sensor_ros.evaluation.evaluation_result import number_at, result_of
from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.frame_record import BANDS, FrameRecorder
from state_sensor_ros.evaluation.ground_truth import GroundTruthBuilder
from state_sensor_ros.evaluation.matching import (
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
    PathOfObject,
)
from state_sensor_ros.evaluation.prediction_metrics import PathScorer
from state_sensor_ros.evaluation.resampling import mean_interval, time_blocks
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


def result_and_intervals(stacks, sums=None):
    """
    Return the result of three standing cars, and its intervals.

    :param stacks: rows of the stack in each frame.
    :param sums: of predictions in each frame.
    """
    recorder, tracks = FrameRecorder(), TrackRecorder()
    truth = objects([(name, x, 0.0) for name, x in CARS.items()])
    for i, rows in enumerate(stacks):
        stack = objects(rows)
        frame = EvaluatedFrame(i * PERIOD_NS, stack, truth, match(stack, truth), np.zeros(3))
        recorder.add(frame, i)
        tracks.add(frame)
    record = recorder.finish()
    blocks = time_blocks(record.stamps_ns)
    load_trackeval()
    found = TopicResult('topic', len(stacks), record=record, prediction=sums,
                        classes=score_classes(record.classes, blocks),
                        tracking=score_tracks(tracks.finish(), blocks, with_averages=False))
    return (result_of([found], len(stacks)),
            intervals_of([found], 'plain')['intervals'])


def right(**shifts):
    """Return the rows of cars, some of them off by metres along y; None for a miss."""
    return [(name, x, shifts.get(name, 0.0)) for name, x in CARS.items()
            if shifts.get(name, 0.0) is not None]


def test_one_block_in_ten_is_drawn_three_times_at_most():
    """In it a is missed, b is off by 1 m and has a false one beside it, c is another track."""
    stacks = [right() for _ in range(30)]
    stacks += [[*right(a=None, b=1.0, c=None), ('c2', 80.0, 0.0), ('f', 40.0, 9.0)]
               for _ in range(10)]
    stacks += [[*right(c=None), ('c2', 80.0, 0.0)] for _ in range(60)]
    result, intervals = result_and_intervals(stacks)
    car = 'detection/classes/car'
    expected = {
        'tracking/misses': (0, 10, 30), 'tracking/false_positives': (0, 10, 30),
        'tracking/identity_switches': (0, 1, 3),
        'tracking/mota': (1.0 - 63 / 300, 1.0 - 21 / 300, 1.0),
        'tracking/motp': (0.0, 10 / 290, 30 / 270),
        f'{car}/recall': (0.9, 29 / 30, 1.0), f'{car}/precision': (0.9, 29 / 30, 1.0),
        f'{car}/ate': (0.0, 10 / 290, 30 / 270),
        f'{car}/bands/0-30/recall': (0.7, 0.9, 1.0),
        f'{car}/bands/0-30/precision': (1.0, 1.0, 1.0),
        f'{car}/bands/0-30/ate': (0.0, 0.0, 0.0),
        f'{car}/bands/30-50/recall': (1.0, 1.0, 1.0),
        f'{car}/bands/30-50/precision': (100 / 130, 100 / 110, 1.0),
        f'{car}/bands/30-50/ate': (0.0, 0.1, 0.3),
        f'{car}/bands/50+/recall': (1.0, 1.0, 1.0), f'{car}/bands/50+/ate': (0.0, 0.0, 0.0)}
    for path, numbers in expected.items():
        assert (intervals[path][0], number_at(result, path), intervals[path][1]) == pytest.approx(
            numbers, rel=1e-12), path


def test_average_precision_of_one_block_of_misses():
    """Without false positives it is the share of the recalls 11 % to 100 % that are reached."""
    result, intervals = result_and_intervals([
        [] if block == 4 else right() for block in BLOCK_OF])
    for path in ('detection/map', 'detection/classes/car/ap/2.0'):
        assert number_at(result, path) == pytest.approx(80 / 90)
        # Whether a recall of just 70 % is reached is a matter of rounding, as in nuscenes-devkit.
        assert intervals[path] == pytest.approx([60 / 90, 1.0], abs=1.01 / 90)


@pytest.mark.parametrize('n_levels', [1, 2])
def test_average_precision_of_equal_confidences(n_levels):
    """The second half is right, the first half has as many false ones; the later are first."""
    stacks = []
    for i, block in enumerate(BLOCK_OF):
        level = 1.0 - 0.5 * (i % n_levels)
        rows = right() if block >= 5 else [*right(), *((f'f{x}', x, 9.0) for x in CARS.values())]
        stacks.append([(*row, level) for row in rows])
    result, intervals = result_and_intervals(stacks)
    point, (low, high) = result['detection']['map'], intervals['detection/map']
    # Precision 1 up to half of the recall, and falling to 2/3; 2/3 all along is another number.
    assert point > 0.85 if n_levels == 1 else point > 0.7
    assert low < point - 0.02 < point + 0.02 < high


def test_half_of_the_blocks():
    """Two to eight of ten: the counts of a resample are those of as many frames."""
    result, intervals = result_and_intervals([
        right(a=None if block % 2 else 0.0) for block in BLOCK_OF])
    assert (intervals['tracking/misses'], result['tracking']['misses']) == ([20.0, 80.0], 50)
    assert intervals['detection/classes/car/bands/0-30/recall'] == pytest.approx([0.2, 0.8])


def test_equal_blocks_have_no_width():
    shifts = np.linspace(0.0, 1.8, N_IN_BLOCK)
    stacks = []
    for i in range(N_FRAMES):
        number = i % N_IN_BLOCK
        rows = right(a=shifts[number], b=0.5, c=None if number < 3 else 0.0)
        stacks.append([(*row, 0.9 - 0.04 * number - 0.01 * j) for j, row in enumerate(
            [*rows, ('f', 40.0, 9.0)])])
    result, intervals = result_and_intervals(stacks, drawn_sums(path_offsets()[BLOCK_OF * 0]))
    assert {'tracking/misses', 'prediction/5.0/k/6/overlap_rate',
            'detection/classes/car/bands/50+/recall'} <= intervals.keys()
    assert intervals['tracking/misses'] == [30.0, 30.0]
    for path, interval in intervals.items():
        # Detections that are drawn three times are one step of a curve; nuScenes' errors at equal
        # confidences are those of one match.
        accuracy = 1e-12 if path.startswith('tracking/') or '/bands/' in path else \
            1e-4 if '/ap/' in path or path.endswith('/map') else 0.02
        assert interval == pytest.approx([number_at(result, path)] * 2, abs=accuracy), path


def path_offsets():
    """Return (100, 7) how far each path of the car is off, m, the most likely first."""
    random = np.random.default_rng(5)
    largest = random.uniform(1.0, 5.0, N_BLOCKS)[BLOCK_OF]
    return random.uniform(0.0, 1.0, (N_FRAMES, N_PATHS)) * largest[:, None]


def drawn_sums(offsets, are_there=None):
    """
    Return the sums of a car that drives along x with another one 5 m beside it.

    :param offsets: (100, 7), how far each path is off towards the other car.
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
    return scorer.frame_sums()


def resampled_frames():
    """Return (1000, 100) frames of resamples: those of ten blocks, drawn with the seed 0."""
    drawn = np.random.default_rng(0).multinomial(N_BLOCKS, [1.0 / N_BLOCKS] * N_BLOCKS, 1000)
    blocks = np.arange(N_FRAMES).reshape(N_BLOCKS, N_IN_BLOCK)
    return np.array([np.repeat(blocks, times, axis=0).ravel() for times in drawn])


def quantiles(numbers):
    return np.percentile(numbers, (2.5, 97.5)).tolist()


@pytest.mark.parametrize('scale', [1.0, 2.0])
def test_intervals_of_paths_are_those_of_frames_drawn_again(scale):
    """A path that is off by d has minADE and minFDE d, misses above 2 m, overlaps above 3 m."""
    offsets = scale * path_offsets() / 2.0
    are_there = np.random.default_rng(6).random(N_FRAMES) < 0.3 + 0.06 * BLOCK_OF
    result, intervals = result_and_intervals(
        [right() for _ in range(N_FRAMES)], drawn_sums(offsets, are_there))
    frames = resampled_frames()
    n_there = are_there[frames].sum(axis=1)
    for places, n_paths in (('', N_PATHS), ('/k/1', 1), ('/k/6', 6)):
        least = offsets[:, :n_paths].min(axis=1)
        of_frames = {'min_ade': least, 'min_fde': least, 'min_ade_argoverse': least,
                     'miss_rate': least > 2.0, 'miss_rate_nuscenes': least > 2.0,
                     'overlap_rate': offsets[:, 0] > 3.0}
        for horizon, (name, values) in product(('3.0', '5.0', '8.0'), of_frames.items()):
            values = np.where(are_there, values, 0.0)
            path = f'prediction/{horizon}{places}/{name}'
            assert number_at(result, path) == pytest.approx(values.sum() / are_there.sum())
            assert intervals[path] == pytest.approx(
                quantiles(values[frames].sum(axis=1) / n_there), abs=1e-12), path
            assert intervals[path][0] <= number_at(result, path) <= intervals[path][1]
    low, high = intervals['prediction/3.0/k/1/overlap_rate']
    assert scale == 1.0 or low < high


@pytest.mark.parametrize('scale', [1.0, 2.0])
def test_intervals_of_bands_and_counts_are_those_of_frames_drawn_again(scale):
    """Misses, false ones, errors and tracks of their own for each frame, more in later blocks."""
    random = np.random.default_rng(7)
    shifts = scale * random.uniform(0.0, 0.09 * (1.0 + BLOCK_OF[:, None]), (N_FRAMES, 3))
    are_seen = random.random((N_FRAMES, 3)) < 1.0 - 0.05 * BLOCK_OF[:, None]
    have_false = random.random((N_FRAMES, 3)) < 0.06 * BLOCK_OF[:, None]
    tracks = random.integers(0, 2, (N_FRAMES, 3))
    stacks, switches, last = [], np.zeros(N_FRAMES), [None] * 3
    for i in range(N_FRAMES):
        rows = []
        for j, x in enumerate(CARS.values()):
            if are_seen[i, j]:
                rows.append((f'{j}_{tracks[i, j]}', x, shifts[i, j]))
                switches[i] += last[j] not in (None, tracks[i, j])
                last[j] = tracks[i, j]
            if have_false[i, j]:
                rows.append((f'f{j}', x, 9.0))
        stacks.append(rows)
    result, intervals = result_and_intervals(stacks)
    frames = resampled_frames()
    seen, false = (flags.astype(np.float64)[frames].sum(axis=1)
                   for flags in (are_seen, have_false))
    errors = np.where(are_seen, shifts, 0.0)[frames].sum(axis=1)
    n_switches = switches[frames].sum(axis=1)
    expected = {
        'tracking/misses': 3.0 * N_FRAMES - seen.sum(axis=1),
        'tracking/false_positives': false.sum(axis=1), 'tracking/identity_switches': n_switches,
        'tracking/motp': errors.sum(axis=1) / seen.sum(axis=1),
        'tracking/mota': 1.0 - (3.0 * N_FRAMES - seen.sum(axis=1) + false.sum(axis=1)
                                + n_switches) / (3.0 * N_FRAMES)}
    for j, band in enumerate(BANDS):
        place = f'detection/classes/car/bands/{band}'
        expected |= {f'{place}/recall': seen[:, j] / N_FRAMES,
                     f'{place}/precision': seen[:, j] / (seen[:, j] + false[:, j]),
                     f'{place}/ate': errors[:, j] / seen[:, j]}
    for path, numbers in expected.items():
        assert intervals[path] == pytest.approx(quantiles(numbers), rel=1e-9), path
        assert intervals[path][0] < number_at(result, path) < intervals[path][1], path


def test_band_without_objects_has_no_interval():
    _, intervals = result_and_intervals([right(c=None) for _ in range(N_FRAMES)])
    assert intervals['detection/classes/car/bands/50+/recall'] == [0.0, 0.0]
    assert 'detection/classes/car/bands/50+/ate' not in intervals
    assert 'detection/classes/car/bands/50+/precision' not in intervals


def test_mean_of_a_few_scenes_by_all_resamples():
    """Of two or three scenes each alone is drawn in more than 2.5 % of all resamples."""
    assert mean_interval([3.0]) is None
    assert mean_interval([3.0, 1.0]) == (1.0, 3.0)
    assert mean_interval([0.5, 2.0, 7.0]) == pytest.approx((0.5, 7.0))
    assert mean_interval([2.0] * 5) == pytest.approx((2.0, 2.0))
    # One of four: B(4, 1/4) is 3 at 97.5 %.
    assert mean_interval([0.0, 0.0, 4.0, 0.0]) == pytest.approx((0.0, 3.0))
    numbers = [1.0, 2.0, 4.0, 8.0, 16.0]
    low, high = mean_interval(numbers)
    means = np.mean(list(product(numbers, repeat=5)), axis=1)
    assert (means <= low).mean() == pytest.approx(0.025, abs=0.01)
    assert (means >= high).mean() == pytest.approx(0.025, abs=0.01)
    assert mean_interval([-2.0 * number for number in numbers]) == pytest.approx(
        (-2.0 * high, -2.0 * low))
