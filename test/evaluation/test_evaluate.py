# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor evaluate` from outside: options, outputs, errors, hostile bags, many bags."""

import copy
import json
import math
import re

from blocked_modules import environment_without
from budgets import each_once, first_of, one_of
from message_store import typestore
import numpy as np
from paths import ROOT
from programs import run_python
import pytest
from stack_bags import (
    changed,
    DERIVED,
    DETECTION,
    EGO,
    messages_of,
    N_CARS,
    OUTPUTS,
    positions_of,
    PREDICTED,
    TRACKING,
    VISION,
    write_bag,
)

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.evaluation.evaluator import missing_times
from state_sensor_ros.evaluation.matching import Selection

# 2.4 s: the time of a run is that of its frames.
N_FRAMES = 24


def paths(value, place=''):
    """Yield the path of each number, as --fail-below takes it."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from paths(member, f'{place}/{key}')
    else:
        yield place.removeprefix('/')


def test_json_has_the_keys_of_the_interface(evaluate, stack):
    result = evaluate(stack)
    assert sorted(paths(result)) == (ROOT / 'test' / 'golden' / 'evaluate_keys.txt').read_text(
        'utf-8').splitlines()
    assert result['version'] == f'state_sensor_ros {sensor.__version__}'


def test_table_for_people(capsys, drive, stack):
    assert main(['evaluate', str(drive), str(stack)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (f'{N_FRAMES} frames evaluated, 0 without ground truth; {N_FRAMES} frames '
                        'of ground truth')
    [heading], [car] = ([line for line in lines if line.startswith(name)]
                        for name in ('detection', 'car'))
    # Numbers end below the ends of their headings.
    assert len(heading) == len(car)
    assert car.split() == ['car', *['1.0000'] * 4, *['0.0000'] * 5, '1.0000', '1.0000',
                           *[str(N_CARS * N_FRAMES)] * 2]
    [tracks] = [line.split() for line in lines if line.startswith('all objects')]
    assert tracks[2:6] == ['1.0000', '1.0000', '1.0000', '0.0000']


@pytest.mark.parametrize(('words', 'text'), [
    (['--desired-tags', 'egoo'], "desired_tags egoo; did you mean 'ego'?"),
    (['--undesired-tags', 'vehicle'], 'no selected frame has an actor that passes'),
    (['--actors', 'nobody'], 'no selected frame has the actor nobody; there are ')])
def test_selection_without_objects_is_an_error(evaluate, stack, words, text):
    """A misspelled tag or name gave an evaluation against no objects."""
    errors = evaluate(stack, '--topic', TRACKING, *words, code=1)
    assert text in errors
    assert 'found no selected object in any frame; expected at least one selected object' in errors


@pytest.mark.parametrize(('options', 'code', 'error'), first_of(n_always=4, cases=[
    (['--fail-below', 'detection/map=0.9'], 0, ''),
    (['--fail-above', 'ego/ate_rmse=0.1', '--fail-below', 'tracking/hota=0.5'], 0, ''),
    (['--fail-below', 'detection/classes/car/ap/2.0=1.5'], 1,
     'detection/classes/car/ap/2.0: found 1; expected at least 1.5'),
    (['--fail-above', 'frames=23'], 1, 'frames: found 24; expected at most 23'),
    (['--fail-below', 'detection/classes/bus/ate=1'], 1,
     "found no such number; did you mean 'detection/classes/car/ate'"),
    (['--fail-below', 'detection=1'], 1, 'detection: found no such number; ')]))
def test_bounds(capsys, drive, stack, options, code, error):
    assert main(['evaluate', str(drive), str(stack), '-q', *options]) == code
    captured = capsys.readouterr()
    assert error in captured.err
    assert (captured.out, captured.err.count('\n')) == ('', bool(code))


@pytest.mark.parametrize(('words', 'error'), [
    (['--parquet', 'drive.json', '--force'], '--parquet drive.json does not end with .parquet'),
    (['--html', 'stack', '--force'], '--html stack does not end with .html'),
    (['--parquet', 'out.csv'], '--parquet out.csv does not end with .parquet'),
    (['--html', 'out.pdf'], '--html out.pdf does not end with .html')])
def test_outputs_are_files_of_their_own(refusal, monkeypatch, drive, stack, words, error):
    monkeypatch.chdir(drive.parent)
    assert error in refusal('evaluate', drive, stack, *words, code=2)
    assert not (drive.parent / 'out').exists()


def test_parquet_has_a_row_for_each_match(tmp_path, drive, stack):
    pq = pytest.importorskip('pyarrow.parquet')
    bag = changed(stack, tmp_path / 'bag', lambda message, log_ns: [
        setattr(each, 'x', each.x + 0.25) for each in positions_of(message.objects)] and None)
    out = tmp_path / 'matches.parquet'
    assert main(['evaluate', str(drive), str(bag), '-q', '--parquet', str(out)]) == 0
    table = pq.read_table(out)
    assert table.num_rows == N_CARS * N_FRAMES
    assert table['ate'].to_pylist() == pytest.approx([0.25] * table.num_rows, abs=1e-9)
    assert set(table['class'].to_pylist()) == {'car'}
    assert len(set(table['truth_id'].to_pylist())) == N_CARS
    assert main(['evaluate', str(drive), str(bag), '-q', '--parquet', str(out)]) == 1
    assert main(['evaluate', str(drive), str(bag), '-q', '--parquet', str(out), '--force']) == 0


def test_no_common_time_names_both_spans(tmp_path, evaluate, stack):
    def later(message, log_ns):
        message.header.stamp.sec += 1000
    error = evaluate(changed(stack, tmp_path / 'bag', later), code=1)
    spans = re.search(r'found stamps ([\d.]+) s to ([\d.]+) s; expected stamps within those of '
                      r'\S+, ([\d.]+) s to ([\d.]+) s', error)
    assert spans, error
    begin, end, true_begin, true_end = map(float, spans.groups())
    assert begin - true_begin == pytest.approx(1000.0)
    assert end - true_end == pytest.approx(1000.0)
    assert error.count('\n') == 1


def test_another_drive_is_a_warning(tmp_path, evaluate, drive, stack):
    other = tmp_path / 'other.json'
    assert main(['synth', '-q', str(other), '--seed', '9', '--frames', '30']) == 0
    for truth, is_warned in ((other, True), (drive, False)):
        evaluate(stack, '--topic', TRACKING, truth=truth)
        assert ('are TRUTH and STACK from the same drive' in evaluate.warnings) is is_warned


def test_selection_by_time_and_rate(evaluate, stack):
    assert evaluate(stack, '--start', 0.5, '--end', 1.5)['frames'] == 11
    assert evaluate(stack, '--rate', 2.0)['frames'] == 5


def test_selection_by_actor_ignores_detections_of_others(tmp_path, evaluate, stack, drive):
    """Only false objects that are near no other ground-truth object count against the stack."""
    with sensor.open_recording(drive) as recording:
        first = next(iter(recording))
    name = next(name for name, tags in zip(first.names, first.tags, strict=True)
                if 'ego' not in tags)

    def with_false_object(message, log_ns):
        other = copy.deepcopy(message.objects[0])
        other.kinematics.pose_with_covariance.pose.position.x += 1e4
        other.object_id.uuid = np.full(16, 7, np.uint8)
        message.objects.append(other)
    bag = changed(stack, tmp_path / 'bag', with_false_object)
    car = evaluate(bag, '--actors', name)['detection']['classes']['car']
    assert (car['truths'], car['detections'], car['recall'], car['precision']) == (
        N_FRAMES, 2 * N_FRAMES, 1.0, 0.5)


def test_unusable_poses_are_dropped(tmp_path, evaluate, stack):
    def spoiled(message, log_ns):
        pose = message.objects[0].kinematics.pose_with_covariance.pose
        pose.position.x = math.nan
        pose = message.objects[1].kinematics.pose_with_covariance.pose
        pose.orientation.x = pose.orientation.y = pose.orientation.z = pose.orientation.w = 0.0
    bag = changed(stack, tmp_path / 'bag', spoiled)
    car = evaluate(bag)['detection']['classes']['car']
    assert car['recall'] == pytest.approx((N_CARS - 2) / N_CARS)
    assert f'{2 * N_FRAMES} poses dropped: not finite or not a rotation' in evaluate.warnings


def test_numbers_of_a_large_variance_are_unknown(tmp_path, evaluate, stack):
    def unknown(message, log_ns):
        for each in message.objects:
            each.kinematics.twist_with_covariance.covariance = np.full(36, 1e6)
            each.kinematics.twist_with_covariance.twist.linear.x = 0.0
    car = evaluate(changed(stack, tmp_path / 'bag', unknown))['detection']['classes']['car']
    assert (car['ave'], car['recall']) == (None, 1.0)

    def lost(message, log_ns):
        if next(count) % 3 == 0:
            message.pose.covariance = np.full(36, 2e6)
            message.pose.pose.position.x += 100.0
        message.twist.covariance = np.full(36, 1e6)
    count = iter(range(N_FRAMES))
    result = evaluate(changed(stack, tmp_path / 'ego', lost, (EGO,)))
    assert result['frames'] == N_FRAMES * 2 / 3
    assert result['ego']['ate_rmse'] < 1e-6


@pytest.mark.parametrize('length', one_of([0.0, math.nan, 1e-200, 0.5, 1e200], n_always=2))
def test_unusable_poses_of_the_ego_are_dropped(tmp_path, evaluate, stack, length):
    """As those of objects: a quaternion far from unit length is not a rotation."""
    def spoiled(message, log_ns):
        if next(count) % 2 == 0:
            turn = message.pose.pose.orientation
            turn.x, turn.y, turn.z, turn.w = 0.0, 0.0, 0.0, length
    count = iter(range(N_FRAMES))
    bag = changed(stack, tmp_path / 'bag', spoiled, (EGO,))
    result = evaluate(bag)
    # They are counted once: the ground truth is there.
    assert (result['frames'], result['frames_without_truth']) == (N_FRAMES / 2, 0)
    assert result['ego']['rpe_rmse'] < 1e-9
    assert evaluate.warnings == (
        f'warning: {bag}: {EGO}: {N_FRAMES // 2} poses dropped: not finite or not a rotation\n')
    count = iter([0] * N_FRAMES)
    assert f'found {N_FRAMES} poses that are not finite or not rotations; expected' in evaluate(
        changed(stack, tmp_path / 'all', spoiled, (EGO,)), code=1)
    # The same poses as the ground truth of another program.
    truth = write_bag(tmp_path / 'truth', [*messages_of(bag), *messages_of(stack, (TRACKING,))])
    assert evaluate(stack, '--topic', EGO, truth=truth)['ego']['rpe_rmse'] < 0.02


@pytest.mark.parametrize('number', [math.nan, math.inf, -1.0, 1e308])
def test_absurd_numbers_are_no_crash(tmp_path, evaluate, stack, number):
    def absurd(message, log_ns):
        for each in message.objects:
            each.existence_probability = number if number < 1e38 else math.inf
            each.shape.dimensions.x = number
            each.kinematics.twist_with_covariance.twist.linear.x = number
            each.classification = []
    result = evaluate(changed(stack, tmp_path / 'bag', absurd))
    assert result['detection']['classes']['unknown']['detections'] == N_CARS * N_FRAMES


@pytest.mark.parametrize(('topic', 'n_equal'), each_once(
    [TRACKING, PREDICTED, DERIVED, VISION], [2, N_CARS]))
def test_ids_that_objects_share_are_no_tracks(tmp_path, evaluate, stack, topic, n_equal):
    """One line with the stamp and the id; detection is judged."""
    def equal(message, log_ns):
        objects = getattr(message, 'objects', None) or message.detections
        for each in objects[:n_equal]:
            for name in ('object_id', 'id'):
                if hasattr(each, name):
                    setattr(each, name, getattr(objects[0], name))
    bag = changed(stack, tmp_path / 'bag', equal, (topic,))
    result = evaluate(bag)
    assert (result['tracking'], result['detection']['map']) == (None, 1.0)
    assert re.fullmatch(rf'warning: {bag}: {topic}: [\d.]+ s: {n_equal} objects have the id \S+; '
                        r'tracks are not evaluated\n', evaluate.warnings)
    if topic == TRACKING:
        evaluate(bag, '--fail-below', 'tracking/hota=0', code=1)
        assert evaluate(stack, '--topic', topic, truth=bag)['tracking'] is None
        assert f'{bag}: ' in evaluate.warnings


def without(lost, stack, topic):
    """Return the messages of a topic without those of some numbers."""
    return [each for i, each in enumerate(messages_of(stack, (topic,))) if i not in lost]


@pytest.mark.parametrize('lost', one_of(
    [range(12, 24), [5, 9, 23], range(6), range(8, 14)], n_always=2))
def test_silence_weighs_as_answers_without_objects(tmp_path, evaluate, stack, lost):
    """At the end, at the start, between: the same numbers as of empty messages."""
    lost = set(lost)

    def emptied(message, log_ns):
        if next(numbers) in lost:
            message.objects = []

    def unplaced(message, log_ns):
        if next(numbers) in lost:
            message.header.frame_id = 'lidar'
    numbers = iter(range(N_FRAMES))
    empty = evaluate(changed(stack, tmp_path / 'empty', emptied))
    numbers = iter(range(N_FRAMES))
    other = evaluate(changed(stack, tmp_path / 'unplaced', unplaced))
    assert (other['frames'], other['unanswered_frames']) == (N_FRAMES - len(lost), len(lost))
    assert other['tracking'] == pytest.approx(empty['tracking'], abs=1e-5)
    silent = evaluate(write_bag(tmp_path / 'silent', without(lost, stack, TRACKING)))
    assert (silent['frames'], silent['unanswered_frames']) == (N_FRAMES - len(lost), len(lost))
    assert silent['tracking'] == pytest.approx(empty['tracking'], abs=1e-5)
    assert silent['detection']['classes']['car']['recall'] == pytest.approx(
        1.0 - len(lost) / N_FRAMES)
    assert silent['detection']['map'] == pytest.approx(empty['detection']['map'])


def test_answers_that_are_repeated_count_once(tmp_path, evaluate, stack):
    """A stack that sends its last messages again and again weighs as one that stops."""
    sent = without(range(12, 24), stack, TRACKING)
    silent = evaluate(write_bag(tmp_path / 'silent', sent))
    again = write_bag(tmp_path / 'again', [*sent, *[
        (*each[:2], each[2] + 10 ** 8 * i, each[3]) for i in range(1, 9) for each in sent[-2:]]])
    assert evaluate(again) == silent
    assert '16 messages with the time of another one, not evaluated' in evaluate.warnings


def test_silence_of_the_ego_is_counted_only(tmp_path, evaluate, stack):
    bag = write_bag(tmp_path / 'bag', without(range(10, 15), stack, EGO))
    result = evaluate(bag)
    assert (result['unanswered_frames'], result['ego']['ate_rmse'] < 1e-6) == (5, True)
    assert '5 frames of the ground truth without an answer; --start' in evaluate.warnings
    evaluate(bag, '--end', 0.9)
    assert evaluate.warnings == ''


@pytest.mark.parametrize(('times', 'expected'), [
    ([0, 10, 20], []), ([0, 10, 20, 40], [30]), ([0, 15, 20, 35], []),
    ([0, 10, 20, 60], [30, 40, 50]),
    ([20, 30], [0, 10]), ([0, 10], [20, 30]), ([10, 20, 20], [0, 30]), ([5, 15, 25], []),
    ([10], [0, 20, 30]), ([0, 0.1, 10, 10.1, 20, 20.1, 40], [30.05])])
def test_times_that_are_missing(times, expected):
    """In ms; answers that are given twice are one."""
    end = max(times) if times not in ([0, 10], [10, 20, 20], [10]) else 30
    truth, times_ns = np.arange(0, end + 1, 10) * 10 ** 6, [round(t * 1e6) for t in times]
    missing_ms = missing_times(times_ns, truth, Selection()) / 1e6
    assert missing_ms.tolist() == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize('topic', [TRACKING, DETECTION])
def test_orientation_of_unknown_sign_is_judged_modulo_half_a_turn(tmp_path, evaluate, stack,
                                                                  topic):
    def turned(available):
        def turn(message, log_ns):
            for each in message.objects:
                each.kinematics.orientation_availability = available
                q = each.kinematics.pose_with_covariance.pose.orientation
                q.x, q.y, q.z, q.w = q.y, -q.x, q.w, -q.z
        return turn
    for available, expected in ((1, 0.0), (2, math.pi), (0, None)):
        bag = changed(stack, tmp_path / f'bag{available}', turned(available), (topic,))
        assert evaluate(bag)['detection']['classes']['car']['aoe'] == (
            None if expected is None else pytest.approx(expected, abs=1e-6))


def test_what_messages_leave_out_is_named_once(tmp_path, evaluate, stack):
    def bare(message, log_ns):
        message.header.frame_id = ''
        for each in message.objects:
            each.existence_probability, each.classification = 0.0, []
    evaluate(changed(stack, tmp_path / 'bag', bare))
    for line in (f'{N_CARS * N_FRAMES} objects without a class, evaluated as unknown\n',
                 f'{N_FRAMES} messages without a frame, taken as in the global frame\n',
                 f'{N_CARS * N_FRAMES} objects: all confidences are 0'):
        assert evaluate.warnings.count(line) == 1

    def pathless(message, log_ns):
        message.objects[0].kinematics.predicted_paths = []
    evaluate(changed(stack, tmp_path / 'pathless', pathless, (PREDICTED,)))
    assert f'{N_FRAMES} matched objects without a predicted path' in evaluate.warnings


def test_no_objects_at_all(tmp_path, evaluate, stack):
    def empty(message, log_ns):
        message.objects = []
    result = evaluate(changed(stack, tmp_path / 'bag', empty))
    car = result['detection']['classes']['car']
    assert (car['recall'], car['precision'], car['ate']) == (0.0, None, None)
    assert result['detection']['map'] == 0.0
    assert [result['tracking'][name] for name in ('hota', 'mota', 'idf1')] == [0.0] * 3
    assert (result['tracking']['misses'], result['tracking']['motp']) == (N_CARS * N_FRAMES, None)
    assert result['detection']['nds'] == 0.0


@pytest.mark.parametrize('size', [0, 3, 40, 400])
def test_cut_message_is_an_error_in_one_line(tmp_path, evaluate, stack, size):
    def bags():
        for topic, type_name, log_ns, message in messages_of(stack, (TRACKING,)):
            yield topic, type_name, log_ns, bytes(
                typestore().serialize_cdr(message, type_name))[:size]
    error = evaluate(write_bag(tmp_path / 'bag', bags()), code=1)
    assert error.count('\n') == 1
    assert f'{TRACKING}: autoware_perception_msgs/msg/TrackedObjects: found {size} bytes' in error


def test_frame_with_the_slash_of_ros_1(tmp_path, evaluate, stack):
    bag = changed(stack, tmp_path / 'bag', lambda message, log_ns: setattr(
        message.header, 'frame_id', '/map'))
    assert evaluate(bag)['detection']['map'] == pytest.approx(1.0)


def test_loop_of_transforms_ends(tmp_path, evaluate, stack):
    def looped():
        for topic, type_name, log_ns, message in messages_of(stack, ('/tf', TRACKING)):
            if topic == TRACKING:
                message.header.frame_id = 'a'
            else:
                first, second = message.transforms[0], copy.deepcopy(message.transforms[0])
                first.header.frame_id, first.child_frame_id = 'a', 'b'
                second.header.frame_id, second.child_frame_id = 'b', 'a'
                message.transforms = [first, second]
            yield topic, type_name, log_ns, message
    assert 'no transform' in evaluate(write_bag(tmp_path / 'bag', looped()), code=1)


@pytest.mark.parametrize(('truth', 'bag', 'error'), [
    ('nothing.json', None, 'nothing.json'), (None, 'nothing', 'nothing: no such file'),
    (None, 'drive', 'found a trajectory; expected a bag with the topics')])
def test_files_that_are_not_there(tmp_path, refusal, drive, stack, truth, bag, error):
    truth = drive if truth is None else tmp_path / truth
    bag = {'drive': drive, None: stack}.get(bag, tmp_path / str(bag))
    assert error in refusal('evaluate', truth, bag)


def test_topics_that_cannot_be_evaluated(tmp_path, evaluate, drive, stack):
    error = evaluate(stack, '--topic', '/tf', code=1)
    assert 'is not a topic of' in error
    assert f'; there are {EGO}, ' in error
    assert f'can be evaluated; did you mean {TRACKING!r}?\n' in evaluate(
        stack, '--topic', TRACKING.replace('tracking', 'trakcing'), code=1)
    only_tf = write_bag(tmp_path / 'tf', messages_of(stack, ('/tf',)))
    assert 'no topic to evaluate' in evaluate(only_tf, code=1)
    assert 'a recording with ground truth' in evaluate(stack, truth=only_tf, code=1)
    assert evaluate(stack, '--topic', '/nothing', code=1).count('\n') == 1


def test_topic_that_is_not_clear(tmp_path, evaluate, stack):
    """Two trackers under other names: one is to be named."""
    bag = write_bag(tmp_path / 'bag', ((f'/{name}', type_name, log_ns, message) for name in 'ab'
                                       for _, type_name, log_ns, message in messages_of(
                                           stack, (TRACKING,))))
    assert 'the topics /a, /b; expected one of them to be named by --topic' in evaluate(
        bag, code=1)
    assert evaluate(bag, '--topic', '/b')['detection']['map'] == pytest.approx(1.0)
    assert '--truth-topic' in evaluate(stack, truth=bag, code=1)
    assert evaluate(stack, '--truth-topic', '/a', '--topic', TRACKING, truth=bag)[
        'frames'] == N_FRAMES


def test_range_and_ego_need_an_ego(tmp_path, evaluate, stack):
    truth = write_bag(tmp_path / 'bag', messages_of(stack, (TRACKING,)))
    assert 'from an ego' in evaluate(stack, '--range', 30, truth=truth, code=1)
    assert 'found no ego' in evaluate(stack, '--topic', EGO, truth=truth, code=1)
    assert 'ego' not in evaluate(stack, truth=truth)


def test_buses_and_trailers_of_derived_objects(tmp_path, evaluate, drive):
    """The message has one number for both, so they are evaluated as one class."""
    frames = json.loads(drive.read_text())
    for frame in frames:
        others = [each for each in frame['frame']['vehicles']
                  if 'ego' not in each['state']['tags']]
        for i, tag in enumerate(('bus', 'trailer', 'truck')):
            others[i]['state']['tags'] = [
                *(each for each in others[i]['state']['tags'] if each != 'car'), tag]
    path = tmp_path / 'drive.json'
    path.write_text(json.dumps(frames))
    assert main(['convert', str(path), str(tmp_path / 'bag'), *OUTPUTS, '-q']) == 0
    classes = evaluate(tmp_path / 'bag', '--topic', DERIVED, truth=path)['detection']['classes']
    assert {name: each['truths'] for name, each in classes.items()} == {
        'truck': N_FRAMES, 'car': (N_CARS - 3) * N_FRAMES, 'bus+trailer': 2 * N_FRAMES}
    assert all(each['recall'] == each['precision'] == 1.0 for each in classes.values())
    only = evaluate(tmp_path / 'bag', '--topic', DERIVED, '--classes', 'bus', truth=path)
    assert only['detection']['classes'].keys() == {'bus+trailer'}
    tracked = evaluate(tmp_path / 'bag', '--topic', TRACKING, truth=path)['detection']['classes']
    assert tracked.keys() == {'bus', 'truck', 'trailer', 'car'}


def test_without_optional_packages(tmp_path, drive, stack):
    missing = 'trackeval scipy matplotlib plotly pyarrow'

    def run(*words):
        return run_python(
            '-m', 'state_sensor_ros', 'evaluate', drive, stack, *words, cwd=tmp_path,
            env=environment_without(missing, tmp_path) | {'PYTHONPATH': f'{tmp_path}:{ROOT}'})
    found = run()
    [line] = found.stderr.splitlines()
    assert line.startswith('error: state_sensor evaluate: found no module trackeval; expected the '
                           'library trackeval: ')
    assert (found.returncode, found.stdout) == (1, '')
    # What has no tracks needs none.
    assert run('--topic', DETECTION).returncode == 0


@pytest.mark.thorough
def test_many_bags_by_truths_of_the_same_places(tmp_path, capsys, refusal, drive, stack):
    for name in ('one', 'two'):
        (tmp_path / 'truths').mkdir(exist_ok=True)
        (tmp_path / 'truths' / f'{name}.json').write_bytes(drive.read_bytes())
        changed(stack, tmp_path / 'runs' / name, lambda message, log_ns: None)
    words = ['evaluate', str(tmp_path / 'truths'), str(tmp_path / 'runs')]
    assert main([*words, '--json']) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (tmp_path / 'truths' / 'two.json').unlink()
    assert 'found no recording two' in refusal(*words)
    (tmp_path / 'truths' / 'two.json').write_bytes(drive.read_bytes())
    assert main([*words, '-q', '--html', str(tmp_path / 'page.html')]) == 0
    page = (tmp_path / 'page.html').read_text()
    assert 'Evaluation of 2 bags' in page
    assert '<td>standard deviation</td><td>0.0000</td>' in page
    assert '--parquet' in refusal(*words, '--parquet', '-', code=2)


def test_odometry_that_is_not_in_order_is_sorted_and_a_second_run_refused(
        stack, evaluate, tmp_path):
    messages = list(messages_of(stack, (EGO,)))
    expected = evaluate(write_bag(tmp_path / 'sorted', messages))['ego']['ate_rmse']
    swapped = [messages[i ^ 1] for i in range(len(messages) // 2 * 2)]
    late = [(*one[:2], other[2], one[3]) for one, other in zip(swapped, messages, strict=False)]
    found = evaluate(write_bag(tmp_path / 'late', late))['ego']['ate_rmse']
    assert found == pytest.approx(expected, abs=1e-9)
    assert f'{len(late) // 2} stamps out of order, sorted' in evaluate.warnings
    again = messages + [(*each[:2], each[2] + 10 ** 10, each[3]) for each in messages]
    assert 'the clock begins again' in evaluate(write_bag(tmp_path / 'again', again), code=1)
