# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a sensor reports: by seed, name and time alone; each parameter does its own."""

import math

import numpy as np
import pytest
from sensed_scenes import scene, Sensor, SIZE

PLACES = [(10.0 + 7.0 * i, -20.0 + 9.0 * (i % 5), 0.3 * i) for i in range(40)]
NOISE = {'position_std': 0.3, 'yaw_std': 0.1, 'size_std': 0.2, 'velocity_std': 0.5}


def test_nothing_is_on_by_default():
    found = Sensor(seed=5, delay=1.0).perceived(scene(PLACES))
    assert found.objects is found.truth
    assert found.seen is None
    assert found.false_positives == ()


def test_noise_is_that_of_seed_name_and_time_in_whatever_order_actors_come():
    names = [f'car_{i}' for i in range(40)]
    expected = Sensor(seed=1, **NOISE).by_name(scene(PLACES, names=names))
    order = np.random.default_rng(1).permutation(40)
    assert Sensor(seed=1, **NOISE).by_name(scene(
        [PLACES[i] for i in order], names=[names[i] for i in order])) == expected
    # A sensor that has seen other frames before, and fewer actors.
    sensor = Sensor(seed=1, **NOISE)
    sensor.by_name(scene(PLACES[:3], game_time=0.5))
    few = sensor.by_name(scene(PLACES[:7], names=names[:7]))
    assert few == {name: expected[name] for name in few}
    assert len(few) == 7
    # Another seed, another time, another name: other noise.
    assert not set(Sensor(seed=2, **NOISE).by_name(scene(PLACES)).values()) & {*expected.values()}
    later = sensor.by_name(scene(PLACES, game_time=1.000000001))
    assert not set(later.values()) & {*expected.values()}


def errors(n_frames=60, **perception):
    """Return the objects of many frames, perceived and true."""
    sensor = Sensor(seed=9, **perception)
    pairs = [sensor.perceived(scene(PLACES, game_time=0.05 * i)) for i in range(n_frames)]
    return pairs, [(found.objects, found.truth) for found in pairs]


def test_noise_has_the_standard_deviations():
    _, pairs = errors(**NOISE)
    n = 60 * 40

    def check(found, std):
        assert found.mean() == pytest.approx(0.0, abs=4 * std * found.size ** -0.5)
        assert found.std() == pytest.approx(std, rel=4 * (2 * found.size) ** -0.5)

    for axis in range(2):
        check(np.concatenate([one.poses[:, axis] - true.poses[:, axis] for one, true in pairs]),
              0.3)
        check(np.concatenate([one.twists[:, axis] - true.twists[:, axis] for one, true in pairs]),
              0.5)
    sizes = np.concatenate([one.sizes - true.sizes for one, true in pairs])
    assert sizes.shape == (n, 3)
    for axis in range(3):
        check(sizes[:, axis], 0.2)
    turns = np.concatenate([2.0 * (
        np.arctan2(one.poses[:, 5], one.poses[:, 6]) - np.arctan2(true.poses[:, 5],
                                                                  true.poses[:, 6]))
        for one, true in pairs])
    check((turns + math.pi) % (2.0 * math.pi) - math.pi, 0.1)


def test_range_counts_from_the_origin_of_the_ego_to_the_center():
    # The center is 0.75 m above the origin.
    frame = scene([(30.0, 40.0, 0.0), (-49.0, 0.0, 0.0)])
    assert Sensor(range=50.0).names(frame) == {'car_1'}
    assert Sensor(range=math.hypot(50.0, 0.75) + 1e-9).names(frame) == {'car_0', 'car_1'}


@pytest.mark.parametrize(('angle', 'names'), [
    (60.0, {'car_0'}), (89.0, {'car_0'}), (91.0, {'car_0', 'car_1'}),
    (179.0, {'car_0', 'car_1'}), (181.0, {'car_0', 'car_1', 'car_2'}),
    (359.0, {'car_0', 'car_1', 'car_2'}), (360.0, {'car_0', 'car_1', 'car_2', 'car_3'})])
def test_field_of_view_is_about_the_x_axis_of_the_ego(angle, names):
    # Ahead, ahead to the left, to the left, behind: of an ego that looks along -y.
    ego = (5.0, 6.0, -math.pi / 2.0)
    places = [(5.0, -20.0, 0.0), (25.0, -14.0, 1.0), (40.0, 6.0, 0.0), (5.0, 60.0, 0.0)]
    assert Sensor(field_of_view=angle).names(scene(places, ego=ego)) == names


def test_occlusion_hides_by_boxes_of_all_objects():
    frame = scene([(10.0, 0.0, 0.0), (20.0, 0.0, 0.0), (20.0, 1.5, 0.0)])
    assert Sensor(occlusion=0.01).names(frame) == {'car_0', 'car_2'}
    assert Sensor(occlusion=1.0).names(frame) == {'car_0'}
    # Also by those that are not selected.
    near = Sensor(occlusion=0.5, settings={'object_classes': ('person',)}.items())
    person = scene([(10.0, 0.0, 0.0), (20.0, 0.0, 0.0)])
    object.__setattr__(person, 'tags', (*person.tags[:2], ('pedestrian',)))
    assert near.names(person) == set()
    assert Sensor(settings={'object_classes': ('person',)}.items()).names(person) == {'car_1'}


@pytest.mark.parametrize('missing', [0.0, 0.1, 0.5, 1.0])
def test_missing_is_a_probability_of_each_object_and_frame(missing):
    found, _ = errors(missing=missing)
    n = 60 * 40
    share = 1.0 - sum(len(each.seen_objects().rows) for each in found) / n
    assert share == pytest.approx(missing, abs=4 * (missing * (1.0 - missing) / n) ** 0.5)


def test_without_an_ego_range_view_and_occlusion_do_nothing_and_say_so_once():
    sensor = Sensor(range=1.0, field_of_view=10.0, occlusion=1.0)
    for i in range(3):
        assert len(sensor.names(scene(PLACES, has_ego=False, game_time=i))) == 41
    [(kind, text)] = sensor.reports
    assert kind == 'perception'
    assert text.startswith('perception: found no ego')
    assert not Sensor(missing=0.1).reports


def false_positives(n_frames=400, places=(), ego=(0.0, 0.0, 0.0), **perception):
    """Return the false positives of many frames, and how many there are in each."""
    sensor = Sensor(seed=2, ghosts=3.0, **perception)
    found = [sensor.perceived(scene(places, ego=ego, game_time=0.1 * i)) for i in range(n_frames)]
    objects = [each.false_objects() for each in found if each.false_positives]
    assert all((each.rows == -1).all() for each in objects)
    return (np.concatenate([np.zeros((0, 7)), *[each.poses for each in objects]]),
            np.array([len(each.false_positives) for each in found]), found)


def test_false_positives_are_uniform_in_the_field_of_view():
    poses, _, _ = false_positives(field_of_view=90.0, range=40.0,
                                  ego=(100.0, -50.0, math.pi / 2.0))
    ways = poses[:, :2] - (100.0, -50.0)
    distances = np.hypot(*ways.T)
    angles = np.arctan2(-ways[:, 0], ways[:, 1])
    n = len(poses)
    assert distances.max() <= 40.0
    assert np.abs(angles).max() <= math.pi / 4.0
    # Of a uniform density, the squared distance and the angle are uniform.
    for share in ((distances / 40.0) ** 2, angles / (math.pi / 2.0) + 0.5):
        assert share.mean() == pytest.approx(0.5, abs=4 * (1 / 12 / n) ** 0.5)
    assert (poses[:, 2] == SIZE[2] / 2.0).all()


@pytest.mark.filterwarnings('error')
def test_positions_without_sense_are_no_crash():
    frame = scene([(10.0, 0.0, 0.0), (math.nan, 0.0, 0.0), (1e300, 5.0, 0.0), (3.0, 3.0, 0.0),
                   (20.0, 0.0, 0.0)])
    everything = {'range': 100.0, 'field_of_view': 300.0, 'occlusion': 0.1, 'missing': 0.1,
                  'ghosts': 2.0, **NOISE}
    for perception in (everything, *({name: value} for name, value in everything.items())):
        assert 'car_1' not in Sensor(**perception).names(frame)
    # car_0 hides car_4; what has no place or is beyond all sense hides nothing.
    assert Sensor(occlusion=0.1).names(frame) == {'car_0', 'car_2', 'car_3'}
    assert Sensor(range=100.0).names(frame) == {'car_0', 'car_3', 'car_4'}
    assert Sensor(**everything).names(frame.select([])) == set()
