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
import csv
import json
import math
import os
import re
from threading import Thread

from blocked_modules import environment_without
from budgets import AWAIT_S, first_of, one_of
from message_store import typestore
import numpy as np
from paths import ROOT
from programs import run_python
import pytest
from rosbags.rosbag2 import Writer
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
from state_sensor_ros.commands import evaluate as evaluate_command
from state_sensor_ros.commands.cli import main
from state_sensor_ros.evaluation.evaluation_result import numbers_of, possible_result

KEYS = {'frames', 'frames_without_truth', 'truth_frames', 'version', 'detection', 'tracking',
        'ego'}
CLASS_KEYS = {'ap', 'ate', 'ase', 'aoe', 'ave', 'aae', 'recall', 'precision', 'truths',
              'detections', 'nuscenes', 'bands'}
MEAN_KEYS = {'map', 'nds', 'mate', 'mase', 'maoe', 'mave', 'maae'}
TRACKING_KEYS = {
    'hota', 'mota', 'idf1', 'motp', 'identity_switches', 'fragmentations', 'false_positives',
    'misses', 'objects', 'tracks', 'mostly_tracked', 'partially_tracked', 'mostly_lost',
    'track_initialization_duration', 'longest_gap_duration'}
EGO_KEYS = {'ate_rmse', 'rpe_rmse', 'ate', 'rpe', 'longitudinal_error', 'lateral_error',
            'speed_error', 'alignment', 'scale'}
# 2.4 s: the time of a run is that of its frames.
N_FRAMES = 24
STATISTICS = {'rmse', 'mean', 'median', 'std', 'min', 'max', 'sse'}


def test_json_has_the_keys_of_the_interface(evaluate, stack):
    result = evaluate(stack)
    assert result.keys() == KEYS
    assert result['version'] == f'state_sensor_ros {sensor.__version__}'
    assert result['detection'].keys() == MEAN_KEYS | {'classes', 'definition'}
    assert result['detection']['classes'].keys() == {'car'}
    assert result['detection']['classes']['car'].keys() == CLASS_KEYS
    assert result['detection']['classes']['car']['ap'].keys() == {'0.5', '1.0', '2.0', '4.0'}
    bands = result['detection']['classes']['car']['bands']
    assert bands.keys() == {'0-30', '30-50', '50+'}
    assert sum(band['truths'] for band in bands.values()) == N_CARS * N_FRAMES
    assert all(band.keys() == CLASS_KEYS - {'bands'} for band in bands.values())
    assert result['tracking'].keys() == TRACKING_KEYS
    assert result['ego'].keys() == EGO_KEYS
    assert result['ego']['rpe'].keys() == {'1m', '10m', '100m', '1s', '5s', '10s'}
    assert result['ego']['ate']['rotation'].keys() == STATISTICS
    assert result['ego']['lateral_error'].keys() == STATISTICS | {'bias'}


def test_guide_writes_csv_and_rows_for_latex(tmp_path, monkeypatch, capsys, evaluate, stack):
    page = (ROOT / 'doc' / 'guide' / 'evaluation.md').read_text(encoding='utf-8')
    [block] = re.findall('```python\n(.*?)```', page, re.DOTALL)
    result = evaluate(stack)
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'result.json').write_text(json.dumps(result))
    exec(block, {})
    assert capsys.readouterr().out == 'car & 1.000 & 0.000 & 1.000 \\\\\n'
    with open('result.csv', newline='') as file:
        numbers = dict(csv.reader(file))
    assert float(numbers['tracking/hota']) == result['tracking']['hota']
    assert float(numbers['ego/rpe/1m/translation/rmse']) == result['ego']['rpe_rmse']
    assert int(numbers['detection/classes/car/bands/0-30/truths']) > 0


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
    assert 'tracking  HOTA 1.0000  MOTA 1.0000  IDF1 1.0000' in lines


@pytest.mark.parametrize(('words', 'text'), [
    (['--desired-tags', 'egoo'], 'desired_tags egoo; did you mean ego?'),
    (['--undesired-tags', 'vehicle'], 'no selected frame has an actor that passes'),
    (['--actors', 'nobody'], 'no selected frame has the actor nobody; there are ')])
def test_selection_without_objects_is_an_error(evaluate, stack, words, text):
    """A misspelled tag or name gave an evaluation against no objects."""
    errors = evaluate(stack, '--topic', TRACKING, *words, code=1)
    assert text in errors
    assert 'found no selected object in any frame; expected at least one selected object' in errors


def test_actor_that_a_truth_of_objects_does_not_have_is_an_error(evaluate, stack):
    errors = evaluate(stack, '--topic', TRACKING, '--actors', 'nobody', truth=stack, code=1)
    assert 'warning: --actors nobody: the ground truth has no such object; there are ' in errors
    assert 'found no selected object in any frame' in errors


def test_counts_without_objects_are_whole_numbers(capsys, drive, stack):
    assert main(['evaluate', str(drive), str(stack), '--topic', TRACKING, '--range', '0.1']) == 0
    assert 'IDS 0  FRAG -  FP 0  FN 0' in capsys.readouterr().out


def test_assumed_sizes_are_named_once(tmp_path, capsys, stack):
    truth = tmp_path / 'truth.json'
    assert main(['synth', str(truth), '-q', '--frames', '9']) == 0
    without = re.sub(r'"oriented_bounding_box":\[[^]]*\]', '"oriented_bounding_box":[]',
                     truth.read_text())
    truth.write_text(without)
    assert main(['evaluate', '-q', str(truth), str(stack), '--topic', TRACKING]) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if 'by class' in line]
    assert re.fullmatch(f'warning: {truth}: sizes of [^:]+ are assumed by class', line)


def test_tag_that_objects_have_is_no_error(capsys, drive, stack):
    assert main(['evaluate', '-q', str(drive), str(stack), '--topic', TRACKING,
                 '--desired-tags', 'vehicle']) == 0
    assert not capsys.readouterr().err


@pytest.mark.parametrize(('options', 'code', 'error'), first_of(n_always=4, cases=[
    (['--fail-below', 'detection/map=0.9'], 0, ''),
    (['--fail-above', 'ego/ate_rmse=0.1', '--fail-below', 'tracking/hota=0.5'], 0, ''),
    (['--fail-below', 'detection/classes/car/ap/2.0=1.5'], 1,
     'detection/classes/car/ap/2.0: found 1; expected at least 1.5'),
    (['--fail-above', 'frames=23'], 1, 'frames: found 24; expected at most 23'),
    (['--fail-below', 'detection/classes/bus/ate=1'], 1,
     'found no bus in detection/classes; there are car; expected at least 1'),
    (['--fail-below', 'detection/clas=1'], 2,
     '--fail-below detection/clas: no clas in detection; did you mean classes?'),
    (['--fail-below', 'detection=1'], 2,
     '--fail-below detection: found a group of numbers; expected detection/'),
    (['--fail-above', 'frames/x=1'], 2,
     '--fail-above frames/x: no x in frames, which is not a group')]))
def test_bounds(capsys, drive, stack, options, code, error):
    assert main(['evaluate', str(drive), str(stack), '-q', *options]) == code
    captured = capsys.readouterr()
    assert error in captured.err
    assert (captured.out, captured.err.count('\n')) == ('', bool(code))


@pytest.mark.parametrize(('path', 'words', 'error'), [
    ('detection/classes/tram/ate', [], 'no tram in detection/classes'),
    ('trakcing/hota', [], 'no trakcing in the result'),
    ('map', [], '--fail-above map: no map in the result; did you mean detection/map?'),
    ('prediction/3/min_ade', [], 'no 3 in prediction; there are 3.0, 5.0, 8.0'),
    ('prediction/3.0/min_ade', ['--horizons', '6,2'], 'no 3.0 in prediction; did you mean 6.0'),
    ('tracking/amota', [], 'amota is not computed; --definition nuscenes adds it'),
    ('against/frames', [], 'against/frames is not computed; --against OLD.json adds it'),
    ('ego/alignment', [], 'found none')])
def test_bound_of_no_number_is_refused_before_the_evaluation(refusal, monkeypatch, drive, stack,
                                                             path, words, error):
    """In one bag and in many; no message is read."""
    monkeypatch.setattr(evaluate_command, 'evaluated', None)
    for bags in ([stack], [stack, stack.parent / 'none']):
        assert error in refusal('evaluate', drive, *bags, *words, '--fail-above', f'{path}=1',
                                code=2)


@pytest.mark.parametrize('definition', ['plain', 'nuscenes'])
def test_all_numbers_of_a_result_may_have_bounds(tmp_path, evaluate, stack, definition):
    words = ['--topic', PREDICTED, '--topic', EGO, '--definition', definition]
    earlier = tmp_path / 'old.json'
    earlier.write_text(json.dumps(evaluate(stack, *words)))
    result = evaluate(stack, *words, '--against', earlier)
    possible = dict(numbers_of(possible_result(
        definition, has_earlier=True, horizons_s=(3.0, 5.0, 8.0), path_counts=(1, 6))))
    paths = [path for path, _ in numbers_of(result)]
    assert len(paths) > 200
    assert [path for path in paths if path not in possible] == []
    # The other way round only classes and bands are more.
    parts = dict(numbers_of(result))
    assert [path for path in possible if path not in parts and '/classes/' not in path] == []


def test_bound_of_what_is_undefined_fails(tmp_path, refusal, drive, stack):
    bag = changed(stack, tmp_path / 'bag', no_twist, (DETECTION,))
    assert 'found no value; expected at most 100' in refusal('evaluate', drive, bag, '-q',
                                                             '--fail-above',
                                                             'detection/classes/car/ave=100')


def no_twist(message, log_ns):
    for each in message.objects:
        each.kinematics.has_twist = False


@pytest.mark.parametrize('words', [
    ['--fail-below', 'x'], ['--fail-above', 'x=y'], ['--fail-above', '=1'],
    ['--fail-above', 'x=nan'], ['--range', '0'], ['--range', '-1'], ['--classes', 'tram'],
    ['--at', 'now'], ['--rate', '0'], ['--start', '-1'], ['--jobs', '0']])
def test_wrong_options_are_refused(capsys, drive, stack, words):
    with pytest.raises(SystemExit) as caught:
        main(['evaluate', str(drive), str(stack), *words])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count('\n') == 1


@pytest.mark.parametrize(('words', 'error'), [
    (['--parquet', 'out', '--html', './out', '--force'], '--html ./out is the file of --parquet'),
    (['--parquet', 'drive.json', '--force'], '--parquet drive.json is the file of TRUTH'),
    (['--html', 'stack', '--force'], '--html stack is the file of STACK'),
    (['--parquet', 'out.csv'], '--parquet out.csv does not end with .parquet'),
    (['--html', 'out.pdf'], '--html out.pdf does not end with .html'),
    (['--html', '-', '--json'], '--html - is for one STACK without --json')])
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


@pytest.mark.usefixtures('without_pictures')
def test_output_on_standard_output_is_alone_there(capfd, drive, stack):
    assert main(['evaluate', str(drive), str(stack), '--html', '-']) == 0
    captured = capfd.readouterr()
    assert (captured.out[:15], captured.out[-8:]) == ('<!DOCTYPE html>', '</html>\n')
    assert 'tracking  HOTA 1.0000  MOTA 1.0000  IDF1 1.0000\n' in captured.err


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


def test_start_after_the_end_names_the_end(evaluate, stack):
    error = evaluate(stack, '--start', '100', code=1)
    assert re.search(r'--start: found 100 s; expected a time from the first frame to the last '
                     r'one, [\d.]+ s, of ', error)


def test_another_drive_is_a_warning(tmp_path, capsys, drive, stack):
    other = tmp_path / 'other.json'
    assert main(['synth', '-q', str(other), '--seed', '9', '--frames', '30']) == 0
    capsys.readouterr()
    for truth, is_warned in ((other, True), (drive, False)):
        assert main(['evaluate', '-q', str(truth), str(stack), '--topic', TRACKING]) == 0
        assert ('are TRUTH and STACK from the same drive' in capsys.readouterr().err) is is_warned


def test_selection_by_range(evaluate, stack):
    near = evaluate(stack, '--topic', TRACKING, '--range', 30)['detection']['classes']['car']
    far = evaluate(stack, '--topic', TRACKING)['detection']['classes']['car']
    assert 0 < near['truths'] < far['truths']
    assert near['truths'] == near['detections']


def test_selection_by_class(evaluate, stack):
    assert evaluate(stack, '--topic', TRACKING, '--classes', 'truck')['detection'] == {
        **dict.fromkeys(MEAN_KEYS), 'classes': {}, 'definition': 'plain'}


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


def test_unusable_poses_are_dropped(tmp_path, capsys, evaluate, stack, drive):
    def spoiled(message, log_ns):
        pose = message.objects[0].kinematics.pose_with_covariance.pose
        pose.position.x = math.nan
        pose = message.objects[1].kinematics.pose_with_covariance.pose
        pose.orientation.x = pose.orientation.y = pose.orientation.z = pose.orientation.w = 0.0
    bag = changed(stack, tmp_path / 'bag', spoiled)
    car = evaluate(bag)['detection']['classes']['car']
    assert car['recall'] == pytest.approx((N_CARS - 2) / N_CARS)
    assert main(['evaluate', str(drive), str(bag), '-q']) == 0
    assert f'dropped {2 * N_FRAMES} poses that are not finite or not rotations' in \
        capsys.readouterr().err


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
def test_unusable_poses_of_the_ego_are_dropped(tmp_path, capsys, evaluate, drive, stack, length):
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
    assert main(['evaluate', str(drive), str(bag), '-q']) == 0
    assert capsys.readouterr().err == (
        f'warning: {bag}: {EGO}: dropped {N_FRAMES // 2} poses that are not finite '
        'or not rotations\n')
    count = iter([0] * N_FRAMES)
    assert f'found {N_FRAMES} poses that are not finite or not rotations; expected' in evaluate(
        changed(stack, tmp_path / 'all', spoiled, (EGO,)), code=1)
    # The same poses as the ground truth of another program.
    truth = write_bag(tmp_path / 'truth', [*messages_of(bag), *messages_of(stack, (TRACKING,))])
    assert evaluate(stack, '--topic', EGO, truth=truth)['ego']['rpe_rmse'] < 0.02


def test_truth_of_either_byte_order_has_its_stamps(tmp_path, drive, stack, evaluate):
    truth = tmp_path / 'truth'
    assert main(['convert', str(drive), str(truth), '-q']) == 0
    big_endian = write_bag(tmp_path / 'big', [
        (topic, type_name, log_ns, bytes(typestore().serialize_cdr(
            message, type_name, little_endian=False)))
        for topic, type_name, log_ns, message in messages_of(truth, ('/state_sensor/frame',))])
    assert evaluate(stack, truth=big_endian) == evaluate(stack, truth=truth)


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


def test_equal_ids_in_a_message(tmp_path, evaluate, stack):
    def equal(message, log_ns):
        for each in message.objects:
            each.object_id = message.objects[0].object_id
    tracking = evaluate(changed(stack, tmp_path / 'bag', equal))['tracking']
    assert all(0.0 <= tracking[name] <= 1.0 + 1e-9 for name in ('hota', 'mota', 'idf1'))


def test_ids_without_end(tmp_path, capsys, drive, stack):
    """Each object of each message has an id of its own: trackeval would take 1 GB."""
    count = iter(range(10 ** 6))

    def new(message, log_ns):
        more = []
        for each in message.objects:
            for _ in range(8):
                other = copy.copy(each)
                other.object_id = copy.copy(each.object_id)
                number = next(count)
                other.object_id.uuid = np.frombuffer(number.to_bytes(16, 'little'), np.uint8)
                more.append(other)
        message.objects = more
    bag = changed(stack, tmp_path / 'bag', new)
    assert main(['evaluate', str(drive), str(bag), '--json']) == 0
    captured = capsys.readouterr()
    tracking = json.loads(captured.out)['tracking']
    n_truths = N_CARS * N_FRAMES
    assert tracking['false_positives'] == n_truths * 7
    # Each car is found by another of eight objects in each frame.
    assert tracking['mota'] == pytest.approx(1.0 - 7.0 - (n_truths - N_CARS) / n_truths)
    assert captured.err == ''


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
    assert f'{TRACKING}: found {size} bytes' in error


def test_count_beyond_the_message_is_an_error(tmp_path, evaluate, stack):
    def bags():
        for topic, type_name, log_ns, message in messages_of(stack, (TRACKING,)):
            message.header.frame_id = 'map'
            data = bytearray(typestore().serialize_cdr(message, type_name))
            # After the stamp, the length of 'map' and its four bytes.
            data[20:24] = b'\xff\xff\xff\xff'
            yield topic, type_name, log_ns, bytes(data)
    error = evaluate(write_bag(tmp_path / 'bag', bags()), code=1)
    assert error.count('\n') == 1


def test_another_definition_is_refused(tmp_path, evaluate):
    from rosbags.typesys import get_types_from_msg, get_typestore, Stores
    store = get_typestore(Stores.ROS2_JAZZY)
    name = 'autoware_perception_msgs/msg/TrackedObjects'
    store.register(get_types_from_msg('std_msgs/Header header\nfloat64[] objects', name))
    with Writer(tmp_path / 'bag', version=9) as writer:
        connection = writer.add_connection(TRACKING, name, typestore=store)
        writer.write(connection, 1, bytes(64))
    error = evaluate(tmp_path / 'bag', code=1)
    assert 'the definition of this version' in error
    assert error.count('\n') == 1


@pytest.mark.parametrize(('frame_id', 'expected'), [
    ('', None), ('/map', None), ('base_link', 'no transform from its frame to map')])
def test_frames_of_messages(tmp_path, evaluate, stack, frame_id, expected):
    def framed(message, log_ns):
        message.header.frame_id = frame_id
    bag = changed(stack, tmp_path / 'bag', framed)
    if expected is None:
        assert evaluate(bag)['detection']['map'] == pytest.approx(1.0)
    else:
        assert expected in evaluate(bag, code=1)


@pytest.mark.parametrize(('topic', 'member'), [(DERIVED, 'objects'), (VISION, 'detections')])
def test_frame_that_only_the_objects_name(tmp_path, evaluate, stack, topic, member):
    def framed(message, log_ns):
        message.header.frame_id = ''
        for each in getattr(message, member):
            each.header.frame_id = 'lidar'
    bag = changed(stack, tmp_path / 'bag', framed, (topic,))
    assert 'no transform from its frame to map' in evaluate(bag, code=1)


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
    assert 'which is not a topic of' in error
    assert f'expected one of {EGO}, ' in error
    assert f'can be evaluated; expected {TRACKING}\n' in evaluate(
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
def test_many_bags_by_one_truth(tmp_path, capsys, drive, stack):
    changed(stack, tmp_path / 'runs' / 'good', lambda message, log_ns: None)
    changed(stack, tmp_path / 'runs' / 'late', late)
    assert main(['evaluate', str(drive), str(tmp_path / 'runs'), '--json', '--jobs', '2']) == 1
    captured = capsys.readouterr()
    good, bad = map(json.loads, captured.out.splitlines())
    assert (good['detection']['map'], good['error']) == (pytest.approx(1.0), None)
    assert 'found stamps' in bad['error']
    assert captured.err.splitlines()[-1].startswith(
        'error: evaluate: 1 of 2 bags failed')


def late(message, log_ns):
    message.header.stamp.sec += 1000


@pytest.mark.thorough
@pytest.mark.usefixtures('without_pictures')
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
    assert 'mAP<b>1.000</b>' in page
    for option in (['--curves', '-'], ['--curves', 'c.txt'], ['--parquet', '-'],
                   ['--parquet', 'p.parquet', '--html', 'p.parquet'], ['--force'],
                   ['--parquet', 'p.parquet', '--dask', 'tcp://127.0.0.1:9']):
        assert option[0] in refusal(*words, *option, code=2)


@pytest.mark.thorough
@pytest.mark.usefixtures('without_pictures')
def test_tables_and_comparison_of_many_bags(tmp_path, capsys, refusal, drive, stack):
    """Rows of both bags with their names; each is compared with the earlier one of its name."""
    pq, csv = (pytest.importorskip(f'pyarrow.{name}') for name in ('parquet', 'csv'))

    def off(meters):
        def move(message, log_ns):
            for position in positions_of(message.objects):
                position.x += meters
        return move
    for folder, shifts in (('old', (0.1, 0.2)), ('new', (0.3, 0.1))):
        for name, shift in zip(('one', 'two'), shifts, strict=True):
            changed(stack, tmp_path / folder / name, off(shift))
    old = tmp_path / 'old.json'
    words = ['evaluate', str(drive), '--topic', TRACKING, '--jobs', '2']
    assert main([*words, str(tmp_path / 'old'), '--json']) == 0
    old.write_text(capsys.readouterr().out)
    matches, curves, page = (tmp_path / name for name in ('m.parquet', 'c.csv', 'page.html'))
    bags = [str(tmp_path / 'new' / name) for name in ('one', 'two')]
    words += [*bags, '--against', str(old)]
    outputs = ['--parquet', str(matches), '--curves', str(curves), '--html', str(page)]
    assert main([*words, '--json', *outputs]) == 0
    one, two = map(json.loads, capsys.readouterr().out.splitlines())
    for record, difference in ((one, 0.2), (two, -0.1)):
        assert record['against']['detection']['classes']['car']['ate'] == pytest.approx(difference)
    table = pq.read_table(matches).to_pydict()
    assert list(table)[:2] == ['bag', 'topic']
    for bag, error in zip(bags, (0.3, 0.1), strict=True):
        errors = [ate for name, ate in zip(table['bag'], table['ate'], strict=True)
                  if name == bag]
        assert errors == pytest.approx([error] * N_FRAMES * N_CARS)
    assert csv.read_csv(curves).to_pydict()['bag'] == [bag for bag in bags for _ in range(404)]
    assert 'against before</small>' in page.read_text()
    assert 'a file of that name exists' in refusal(*words, *outputs)
    assert main([*words, '--fail-above', 'against/detection/classes/car/ate=0.1']) == 1
    captured = capsys.readouterr().out
    assert 'against/detection/classes/car/ate: found 0.2; expected at most 0.1' in captured
    assert f'{bags[1]}: ' in captured.split('against ' + str(old))[1]
    # A pipe has its content once.
    pipe = tmp_path / 'pipe'
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(old.read_bytes(),), daemon=True)
    writer.start()
    assert main([*words[:-1], str(pipe)]) == 0
    writer.join(AWAIT_S)
    assert f'{bags[1]}: ' in capsys.readouterr().out.split(f'against {pipe}')[1]
    other = changed(stack, tmp_path / 'three', off(0.0))
    assert main([*words[:-2], str(other), '--against', str(old)]) == 1
    assert f'found no result of {other}; expected one' in capsys.readouterr().out


@pytest.mark.usefixtures('without_pictures')
def test_comparison_with_an_earlier_run(tmp_path, capsys, refusal, evaluate, drive, stack):
    """Cars off by 0.3 m, after cars off by 0.1 m and 0.2 s of misses."""
    count = iter(range(1000))

    def old_errors(message, log_ns):
        for position in positions_of(message.objects):
            position.x += 0.1
        if next(count) < 2:
            message.objects = message.objects[2:]

    def new_errors(message, log_ns):
        for position in positions_of(message.objects):
            position.x += 0.3
    old, new = (changed(stack, tmp_path / name, errors)
                for name, errors in (('old', old_errors), ('new', new_errors)))
    earlier = tmp_path / 'old.json'
    earlier.write_text(json.dumps(evaluate(old)))
    against = evaluate(new, '--against', earlier)['against']
    car = against['detection']['classes']['car']
    assert (car['ate'], against['tracking']['misses']) == (pytest.approx(0.2), -4)
    assert car['recall'] == pytest.approx(4 / (N_FRAMES * N_CARS))
    words = ['evaluate', str(drive), str(new), '--against', str(earlier)]
    page = tmp_path / 'page.html'
    assert main([*words, '--html', str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    [worse] = [line.split() for line in lines if 'detection/classes/car/ate ' in line]
    assert worse[:5] == ['worse', 'detection/classes/car/ate', '0.1000', '->', '0.3000']
    [better] = [line.split() for line in lines if 'tracking/misses' in line]
    assert better[:5] == ['better', 'tracking/misses', '4', '->', '0']
    assert '<td>tracking/misses</td><td>4</td><td>0</td>' in page.read_text()
    error = refusal(*words, '-q', '--fail-above', 'against/detection/classes/car/ate=0.1')
    assert 'against/detection/classes/car/ate: found 0.2' in error
    assert main([*words, '-q', '--fail-below', 'against/detection/map=-1']) == 0
    # With itself nothing differs.
    assert main(['evaluate', str(drive), str(old), '--against', str(earlier)]) == 0
    assert f'no number differs from {earlier}' in capsys.readouterr().out


@pytest.mark.parametrize('text', [
    '', '[]', '{}', '{"frames": ', 'null', '[' * 10000, '{"frames": 1}\n{"frames": 2}', '\xff'])
def test_earlier_run_that_is_not_a_result(tmp_path, evaluate, stack, text):
    earlier = tmp_path / 'old.json'
    earlier.write_text(text, encoding='latin-1')
    assert f'{earlier}: found no ' in evaluate(stack, '--against', earlier, code=1)


@pytest.mark.parametrize(('options', 'error'), [
    (['--definition', 'nuscenes'], 'detection/definition: found plain; expected nuscenes, as'),
    (['--align', 'se3'], 'ego/alignment: found none; expected se3, as')])
def test_earlier_run_of_another_definition(tmp_path, capsys, monkeypatch, evaluate, drive, stack,
                                           options, error):
    earlier = tmp_path / 'old.json'
    result = evaluate(stack)
    earlier.write_text(json.dumps(result))
    monkeypatch.setattr(evaluate_command, 'evaluated', None)
    words = ['evaluate', str(drive), str(stack), *options, '--against', str(earlier)]
    assert main(words) == 1
    assert capsys.readouterr().err == f'error: {earlier}: {error} {options[0]} of this run\n'
    assert main([*words, '--jobs', '1']) == 1
    assert f'{earlier}: {error}' in capsys.readouterr().out
    # Earlier versions did not name it.
    del result['detection']['definition'], result['ego']['alignment']
    earlier.write_text(json.dumps(result))
    monkeypatch.undo()
    assert 'detection' in evaluate(stack, *options, '--against', earlier)['against']


@pytest.mark.parametrize('suffix', ['.csv', '.parquet'])
def test_curves_are_a_table(tmp_path, refusal, drive, stack, suffix):
    pq, csv = (pytest.importorskip(f'pyarrow.{name}') for name in ('parquet', 'csv'))
    out = tmp_path / f'curves{suffix}'
    bag = changed(stack, tmp_path / 'bag', lambda message, log_ns: setattr(
        message, 'objects', message.objects[:N_CARS // 2]))
    words = ['evaluate', str(drive), str(bag), '--topic', TRACKING, '-q', '--curves', str(out)]
    assert main(words) == 0
    table = (csv.read_csv if suffix == '.csv' else pq.read_table)(out).to_pydict()
    assert list(table) == ['topic', 'class', 'match_distance', 'recall', 'precision', 'confidence']
    assert len(table['recall']) == 4 * 101
    found = [(recall, precision) for recall, precision, distance in zip(
        table['recall'], table['precision'], table['match_distance'], strict=True)
        if distance == 2.0]
    share = (N_CARS // 2) / N_CARS
    assert all(precision == (recall <= share + 1e-9) for recall, precision in found)
    assert main(words) == 1
    assert 'does not end with .parquet or .csv' in refusal(*words[:-1], 'curves.txt', code=2)


def test_bounds_hold_in_each_of_many(tmp_path, capsys, drive, stack):
    words = ['evaluate', str(drive), str(stack), '--jobs', '1', '--fail-below']
    assert main([*words, 'detection/map=0.9']) == 0
    assert main([*words, 'detection/map=1.1']) == 1
    assert 'detection/map: found 1; expected at least 1.1' in capsys.readouterr().out


def test_parameters_of_the_truth(evaluate, stack):
    assert evaluate(stack, '-p', 'ego_tag:=vehicle') == evaluate(stack, '--ego-tag', 'vehicle')


def test_odometry_that_is_not_in_order_is_sorted_and_a_second_run_refused(
        drive, stack, evaluate, tmp_path, capsys):
    messages = list(messages_of(stack, (EGO,)))
    expected = evaluate(write_bag(tmp_path / 'sorted', messages))['ego']['ate_rmse']
    swapped = [messages[i ^ 1] for i in range(len(messages) // 2 * 2)]
    log_ns = [each[2] for each in messages]
    late = [(topic, type_name, at_ns, message) for (topic, type_name, _, message), at_ns in zip(
        swapped, log_ns, strict=False)]
    capsys.readouterr()
    assert main(['evaluate', str(drive), str(write_bag(tmp_path / 'late', late))]) == 0
    assert f'sorted {len(late) // 2} stamps out of order' in capsys.readouterr().err
    assert evaluate(tmp_path / 'late')['ego']['ate_rmse'] == pytest.approx(expected, abs=1e-9)
    again = messages + [(*each[:2], each[2] + 10 ** 10, each[3]) for each in messages]
    assert main(['evaluate', str(drive), str(write_bag(tmp_path / 'again', again))]) == 1
    assert 'the clock begins again' in capsys.readouterr().err
