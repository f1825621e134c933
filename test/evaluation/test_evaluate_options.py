# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Options of `state_sensor evaluate`: IoU, areas, the ego of /tf, patterns of topics."""

import json
import math

import numpy as np
import pytest
from stack_bags import changed, EGO, messages_of, N_CARS, TRACKING, write_bag

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.evaluation.iou_metrics import ious, IouScorer
from state_sensor_ros.evaluation.matching import (
    are_inside,
    EVALUATED_CLASSES,
    EvaluatedFrame,
    match,
    ObjectSet,
)

TF = 'tf2_msgs/msg/TFMessage'


def boxes(random, n_boxes):
    states = np.zeros((n_boxes, 9))
    states[:, :3] = random.uniform(-3.0, 3.0, (n_boxes, 3)) * (1.0, 1.0, 0.3)
    states[:, 3] = random.uniform(-4.0, 4.0, n_boxes)
    states[:, 6:] = random.uniform(0.5, 6.0, (n_boxes, 3))
    return states


def test_ious_are_those_of_shapely():
    affinity, geometry = (pytest.importorskip(f'shapely.{name}')
                          for name in ('affinity', 'geometry'))
    random = np.random.default_rng(0)
    first, second = boxes(random, 600), boxes(random, 600)
    # Equal ones, moved along an edge, and turned by a right angle.
    second[:60] = first[:60]
    second[20:40, 0] += 0.5
    second[40:60, 3] += math.pi / 2
    origin = np.array((5e5, 4e6, *[0.0] * 7))
    flat, solid = ious(first + origin, second + origin)
    for i, pair in enumerate(zip(first, second, strict=True)):
        one, other = (affinity.translate(affinity.rotate(
            geometry.box(-box[6] / 2, -box[7] / 2, box[6] / 2, box[7] / 2), box[3], (0, 0),
            use_radians=True), *box[:2]) for box in pair)
        shared = one.intersection(other).area
        assert flat[i] == pytest.approx(shared / one.union(other).area, abs=1e-8)
        height = min(box[2] + box[8] / 2 for box in pair) - max(
            box[2] - box[8] / 2 for box in pair)
        volume = shared * max(height, 0.0)
        assert solid[i] == pytest.approx(
            volume / (one.area * pair[0][8] + other.area * pair[1][8] - volume), abs=1e-8)
    assert ious(first[:1] * np.nan, second[:1]) == ([0.0], [0.0])


def test_precision_by_iou_worked_out_by_hand():
    """Of four cars one is missed, one a fifth of its length off, one turned by 18 degrees."""
    truth = np.zeros((4, 9))
    truth[:, 0], truth[:, 6:] = 20.0 * np.arange(4), (4.0, 4.0, 2.0)
    stack = np.vstack((truth[:3], truth[:1] + (0, 9, 0, 0, 0, 0, 0, 0, 0)))
    stack[1, 0] += 0.8
    stack[2, 3] = math.pi / 10
    cars = np.full(4, EVALUATED_CLASSES.index('car'))
    truth, stack = (ObjectSet(tuple('abcd'), cars, states, scores) for states, scores in (
        (truth, np.ones(4)), (stack, np.array((0.9, 0.8, 0.7, 0.95)))))
    scorer = IouScorer([('bev', 0.5), ('bev', 0.7), ('3d', 0.5)])
    scorer.add(EvaluatedFrame(0, stack, truth, match(stack, truth), np.zeros(3)))
    found = scorer.finish()['car']
    # Precisions 0 (false), 1/2, 2/3, 3/4: the greatest from each recall on is 3/4 up to 75 %.
    assert found['iou_bev']['0.5']['ap'] == pytest.approx(0.75 * 0.75)
    assert found['iou_bev']['0.5']['aph'] == pytest.approx(0.75 * (3.0 - 0.1) / 4.0)
    # IoU of the second one is 3.2 / 4.8: two matches are left, precisions 1/2, 1/3, 2/4.
    assert found['iou_bev']['0.7']['ap'] == pytest.approx(0.5 * 0.5)
    assert found['iou_3d'] == {'0.5': found['iou_bev']['0.5']}


def test_iou_in_the_result(evaluate, stack, drive, capsys):
    result = evaluate(stack, '--topic', TRACKING, '--iou-3d', '0.7,0.5', '--iou-bev', '0.9')
    for scores in result['detection']['classes'].values():
        assert scores['iou_3d'] == {'0.5': {'ap': 1.0, 'aph': pytest.approx(1.0)},
                                    '0.7': {'ap': 1.0, 'aph': pytest.approx(1.0)}}
        assert scores['iou_bev']['0.9']['ap'] == 1.0
    capsys.readouterr()
    assert main(['evaluate', str(drive), str(stack), '--topic', TRACKING, '--iou-3d', '0.7',
                 '--fail-below', 'detection/classes/car/iou_3d/0.7/aph=0.9']) == 0
    assert 'APH 0.7' in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(['evaluate', str(drive), str(stack), '--iou-3d', '7'])
    assert '7 is greater than 1' in capsys.readouterr().err


def test_polygons():
    """With a notch, in both directions."""
    area = np.array(((0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (2.0, 1.0), (0.0, 4.0)))
    places = np.array(((1.0, 1.0), (2.0, 2.0), (3.5, 2.5), (5.0, 1.0), (2.0, 0.5)))
    for each in (area, area[::-1]):
        assert are_inside(each, places).tolist() == [True, False, True, False, True]


@pytest.mark.parametrize('as_geojson', [False, True])
def test_false_positives_in_areas_do_not_count(tmp_path, evaluate, stack, as_geojson):
    """The last car of each message is moved to a place without ground truth."""
    def moved(message, log_ns):
        pose = message.objects[-1].kinematics.pose_with_covariance.pose
        pose.position.x, pose.position.y = 5000.0, 5000.0
    bag = changed(stack, tmp_path / 'moved', moved)
    ring = [[4900.0, 4900.0], [5100.0, 4900.0], [5100.0, 5100.0], [4900.0, 5100.0]]
    areas = tmp_path / 'areas.json'
    areas.write_text(json.dumps([ring] if not as_geojson else {
        'type': 'FeatureCollection', 'features': [{'type': 'Feature', 'geometry': {
            'type': 'Polygon', 'coordinates': [[*ring, ring[0]]]}}]}))
    before = evaluate(bag)['tracking']
    after = evaluate(bag, '--ignore-areas', areas)['tracking']
    assert before['false_positives'] > 0
    assert (after['false_positives'], after['misses']) == (0, before['misses'])
    # Ground truth in an area and its matches count.
    areas.write_text('[[[-1e6, -1e6], [1e6, -1e6], [1e6, 1e6], [-1e6, 1e6]]]')
    assert evaluate(stack, '--ignore-areas', areas)['tracking'] == evaluate(stack)['tracking']


@pytest.mark.parametrize('text', ['', '{}', '[]', '[[[0, 0], [1, 1]]]', '[["a"]]', '[1]'])
def test_areas_that_are_none(tmp_path, evaluate, stack, text):
    path = tmp_path / 'areas.json'
    path.write_text(text)
    assert f'{path}: found no polygon' in evaluate(stack, '--ignore-areas', path, code=1)


def test_ego_of_the_transforms(tmp_path, evaluate, stack):
    """From map through odom to base_footprint, which moves, and a static edge to base_link."""
    from stack_bags import typestore
    types = typestore().types
    header, stamped, transform, vector, message_type = (types[name] for name in (
        'std_msgs/msg/Header', 'geometry_msgs/msg/TransformStamped',
        'geometry_msgs/msg/Transform', 'geometry_msgs/msg/Vector3', TF))

    def edge(stamp, parent, child, place, rotation):
        return stamped(header(stamp, parent), child, transform(vector(*place), rotation))

    messages = []
    for _, _, log_ns, message in messages_of(stack, (EGO,)):
        pose, stamp = message.pose.pose, message.header.stamp
        none = types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0)
        if not messages:
            messages.append(('/tf_static', TF, log_ns, message_type([
                edge(stamp, 'map', 'odom', (10.0, 0.0, 0.0), none),
                edge(stamp, 'base_footprint', 'base_link', (0.0, 0.0, 0.0), none)])))
        place = pose.position.x - 10.0, pose.position.y + 0.3, pose.position.z
        messages.append(('/tf', TF, log_ns, message_type([
            edge(stamp, 'odom', 'base_footprint', place, pose.orientation)])))
    bag = write_bag(tmp_path / 'bag', messages)
    ego = evaluate(bag, '--ego-tf')['ego']
    assert ego['ate_rmse'] == pytest.approx(0.3, abs=1e-3)
    assert ego['ate']['rotation']['rmse'] == pytest.approx(0.0, abs=1e-6)
    assert ego['speed_error']['rmse'] is None
    assert 'no topic to evaluate' in evaluate(bag, code=1)
    del messages[0]
    assert 'found no moving transform to base_link; expected those from map' in evaluate(
        write_bag(tmp_path / 'none', messages), '--ego-tf', code=1)


def test_topic_of_objects_by_a_pattern(tmp_path, evaluate, stack):
    bag = write_bag(tmp_path / 'bag', [
        (name, type_name, log_ns, message)
        for topic, type_name, log_ns, message in messages_of(stack, (TRACKING, EGO))
        for name in (['/a/tracks', '/b/tracks'] if topic == TRACKING else [topic])])
    result = evaluate(bag, '--objects-topic', '/b/*')
    assert result['tracking']['hota'] == pytest.approx(1.0)
    assert 'ego' in result
    assert 'to be named by --objects-topic' in evaluate(bag, '--objects-topic', '*', code=1)
    assert 'one of /a/tracks, /b/tracks' in evaluate(bag, '--objects-topic', '/c', code=1)


def test_warnings_of_what_is_wrong(tmp_path, drive, stack, capsys):
    def wrong(message, log_ns):
        if hasattr(message, 'objects'):
            message.objects[0].existence_probability = math.nan
            message.objects[0].shape.dimensions.x = -4.0
        else:
            message.pose.pose.position.y += 25.0
    bag = changed(stack, tmp_path / 'bag', wrong, (TRACKING, EGO))
    n_messages = sum(1 for _ in messages_of(stack, (TRACKING,)))
    assert main(['evaluate', str(drive), str(bag), '-q']) == 0
    errors = capsys.readouterr().err
    assert f'{n_messages} objects with a negative size, taken as unknown' in errors
    assert 'half of the positions of the ego are more than 25 m off' in errors


def test_many_bags_have_a_row_of_means(tmp_path, drive, stack, capsys):
    half = changed(stack, tmp_path / 'half', lambda message, log_ns: message.objects.__delitem__(
        slice(N_CARS // 2, None)))
    assert main(['evaluate', str(drive), str(stack), str(half), '--topic', TRACKING,
                 '--jobs', '1']) == 0
    heading, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert heading[:3] == ['bag', 'mAP', 'NDS']
    assert [row[0] for row in rows][-1] == 'mean'
    for column in range(1, 6):
        numbers = [row[column] for row in rows]
        if '-' not in numbers:
            assert float(numbers[2]) == pytest.approx(
                (float(numbers[0]) + float(numbers[1])) / 2.0, abs=1e-4)
