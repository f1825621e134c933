# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Ground truth against itself is perfect: each topic of a stack, each format of TRUTH."""

import json

from budgets import one_of
from paths import SAMPLE
import pytest
from real_recordings import FILES, path_of
from stack_bags import (
    changed,
    DERIVED,
    DETECTION,
    EGO,
    GROUND_TRUTH,
    messages_of,
    N_CARS,
    N_FRAMES,
    OUTPUTS,
    PREDICTED,
    TRACKING,
    VISION,
    write_bag,
)

from state_sensor_ros.commands.cli import main

OBJECTS = (TRACKING, DETECTION, PREDICTED, GROUND_TRUTH, DERIVED, VISION)
WITHOUT_IDS = (DETECTION,)


def check_perfect(result, topic=TRACKING):
    """Check that every number is that of a perfect stack."""
    assert result['frames'] > 0
    assert result['frames_without_truth'] == 0
    detection = result['detection']
    assert detection['map'] == pytest.approx(1.0, abs=1e-9)
    for scores in detection['classes'].values():
        assert list(scores['ap'].values()) == pytest.approx([1.0] * 4, abs=1e-9)
        assert (scores['recall'], scores['precision']) == (1.0, 1.0)
        assert scores['truths'] == scores['detections'] > 0
        for name in ('ate', 'ase', 'aoe', 'ave'):
            assert scores[name] is None if (topic, name) == (VISION, 'ave') \
                else scores[name] < 1e-6
    assert ('tracking' in result) is (topic not in WITHOUT_IDS)
    if 'tracking' in result:
        tracking = result['tracking']
        assert [tracking[name] for name in ('hota', 'mota', 'idf1')] == pytest.approx(
            [1.0] * 3, abs=1e-9)
        assert tracking['motp'] < 1e-6
        assert tracking['mostly_tracked'] == tracking['tracks'] > 0
        assert all(tracking[name] == 0 for name in (
            'identity_switches', 'fragmentations', 'false_positives', 'misses', 'mostly_lost'))
    assert ('prediction' in result) is (topic == PREDICTED)


@pytest.mark.parametrize('topic', one_of(OBJECTS, n_always=3))
def test_drive_against_itself(evaluate, stack, topic):
    result = evaluate(stack, '--topic', topic)
    check_perfect(result, topic)
    assert 'ego' not in result
    assert (result['frames'], result['truth_frames']) == (N_FRAMES, N_FRAMES)
    assert result['detection']['classes']['car']['truths'] == N_CARS * N_FRAMES


def test_prediction_of_the_drive_itself(evaluate, stack):
    """The last 3 and 5 s have no ground truth for a whole path."""
    prediction = evaluate(stack, '--topic', PREDICTED)['prediction']
    assert prediction.keys() == {'3.0', '5.0', '8.0'}
    assert prediction['8.0']['min_ade'] is None
    for horizon in ('3.0', '5.0'):
        scores = prediction[horizon]
        assert scores['min_ade'] < 1e-6, horizon
        assert scores['min_fde'] < 1e-6
        assert scores['miss_rate'] == 0.0


def test_usual_topics_are_tracking_and_the_ego(evaluate, stack):
    result = evaluate(stack)
    check_perfect(result)
    assert result['ego']['ate_rmse'] < 1e-6
    assert result['ego']['rpe_rmse'] < 1e-6


@pytest.mark.thorough
@pytest.mark.parametrize('file', [None, *FILES], ids=lambda file: file or 'sample')
def test_recordings_against_themselves(tmp_path, evaluate, file):
    """Public recordings: persons, boxes with permuted axes, signs, velocities with null."""
    path = SAMPLE if file is None else path_of(file)
    assert main(['convert', str(path), str(tmp_path / 'bag'), *OUTPUTS, '-q']) == 0
    for topic in OBJECTS:
        result = evaluate(tmp_path / 'bag', '--topic', topic, truth=path)
        check_perfect(result, topic)
        for scores in result.get('prediction', {}).values():
            assert scores['min_ade'] is None or scores['min_ade'] < 1e-6
    ego = evaluate(tmp_path / 'bag', '--topic', EGO, truth=path)['ego']
    assert ego['ate_rmse'] < 1e-6
    assert ego['rpe_rmse'] is None or ego['rpe_rmse'] < 1e-6


@pytest.mark.parametrize('file_format', one_of((
    'bag', 'trace.osi', 'table.parquet', 'sqlite3', 'trace.osi.mcap'), n_always=2))
def test_truth_of_any_form(tmp_path, evaluate, drive, stack, file_format):
    if 'osi' in file_format:
        pytest.importorskip('osi3')
    options = ['--storage', file_format] if file_format == 'sqlite3' else []
    assert main(['convert', str(drive), str(tmp_path / file_format), '-q', *options]) == 0
    check_perfect(evaluate(stack, '--topic', TRACKING, truth=tmp_path / file_format))


def test_truth_of_another_program(evaluate, stack):
    """A bag of TrackedObjects without frames, and the ego by its odometry."""
    result = evaluate(stack, truth=stack)
    check_perfect(result)
    assert result['ego']['ate_rmse'] < 1e-6
    assert evaluate(stack, '--range', 40, truth=stack)['detection']['classes']['car'][
        'truths'] < N_CARS * N_FRAMES


def test_utc_stamps(tmp_path, evaluate, drive):
    """Both sides use the same clock, whose stamps are too great for exact float64 seconds."""
    options = ('-p', 'stamp_source:=utc')
    assert main(['convert', str(drive), str(tmp_path / 'bag'), *OUTPUTS, '-p', 'frame:=true',
                 *options, '-q']) == 0
    check_perfect(evaluate(tmp_path / 'bag', *options, '--topic', TRACKING))
    check_perfect(evaluate(tmp_path / 'bag', '--topic', TRACKING, truth=tmp_path / 'bag'))


def test_stamps_between_those_of_the_truth(tmp_path, evaluate, stack):
    """Truth at half the rate: interpolated positions are off by the curvature of tracks only."""
    count = iter(range(1000))
    half = changed(stack, tmp_path / 'truth', lambda message, log_ns: None)
    kept = [each for each in messages_of(half) if next(count) % 2 == 0]
    truth = write_bag(tmp_path / 'half', kept)
    result = evaluate(stack, '--topic', TRACKING, truth=truth)
    assert (result['frames'], result['truth_frames']) == (N_FRAMES, N_FRAMES / 2)
    assert result['detection']['classes']['car']['ate'] < 0.02
    assert result['tracking']['hota'] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize('has_ends', [False, True])
def test_ego_beside_the_truth_moves_on(tmp_path, evaluate, drive, stack, has_ends):
    """Up to 0.1 s beside its frames, before a gap of more than 1 s and after it too."""
    frames = json.loads(drive.read_text())
    kept = [*frames[:20], *frames[40:]] if has_ends else frames[1:-1]
    truth = tmp_path / 'drive.json'
    truth.write_text(json.dumps(kept))
    result = evaluate(stack, '--topic', EGO, truth=truth)
    assert (result['frames'], result['truth_frames']) == (
        (N_FRAMES - 18, N_FRAMES - 20) if has_ends else (N_FRAMES, N_FRAMES - 2))
    # 0.1 s is 2 m; what remains is due to acceleration.
    assert result['ego']['ate_rmse'] < 0.01
    assert result['ego']['rpe_rmse'] < 0.01


def test_frames_without_truth_are_counted(tmp_path, evaluate, drive, stack):
    """Of 6 s of the stack, the ground truth has those from 2 s to 5 s."""
    frames = json.loads(drive.read_text())
    first_s = frames[0]['game_time']
    part = [frame for frame in frames if 1.99 < frame['game_time'] - first_s < 5.01]
    (tmp_path / 'part.json').write_text(json.dumps(part))
    result = evaluate(stack, '--topic', TRACKING, truth=tmp_path / 'part.json')
    # One more on either side is nearer than 0.1 s, or as near: rounding decides.
    assert abs(result['frames'] - len(part)) <= 2
    assert result['frames'] + result['frames_without_truth'] == N_FRAMES
