# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
Perception and evaluator check each other: each parameter moves the numbers that it should.

By as much as mathematics says, within four standard deviations; the others stay perfect.
"""

import math

from budgets import one_of
import pytest
from stack_bags import N_CARS, N_FRAMES
from test_perturbed_stack import others_are_perfect, PERFECT

from state_sensor_ros.commands.cli import main

N_TRUTHS = N_CARS * N_FRAMES
OUTPUTS = ('--outputs', 'autoware', '-p', 'autoware_objects:=[tracking]', '-p', 'frame:=false',
           '-p', 'odometry:=false', '-p', 'tf:=none', '-q')


@pytest.fixture
def bag(tmp_path, drive):
    """Return a function that converts the drive as a sensor would see it."""
    def converted(*options, **perception):
        # A seed without randomness is refused.
        seed = {} if perception.keys() <= {'range', 'field_of_view', 'occlusion', 'delay'} \
            else {'seed': 3}
        given = [word for name, value in {**seed, **perception}.items()
                 for word in ('-p', f'perception.{name}:={value}')]
        path = tmp_path / f'bag{len(list(tmp_path.iterdir()))}'
        assert main(['convert', str(drive), str(path), *(options or OUTPUTS), *given]) == 0
        return path
    return converted


@pytest.fixture
def numbers(evaluate, bag):
    """Return a function that evaluates the drive as perceived and returns its numbers in a row."""
    def evaluated(*options, **perception):
        result = evaluate(bag(**perception), *options)
        car = result['detection']['classes']['car']
        return {**{name: car[name] for name in PERFECT if name in car}, 'ap': car['ap']['2.0'],
                **result['tracking'], 'truths': car['truths'],
                'detections': car['detections'], 'result': result}
    return evaluated


@pytest.mark.parametrize('std', one_of([0.2, 0.05, 0.4]))
def test_position_std(numbers, std):
    """The distance of two normal errors is Rayleigh's: mean s sqrt(pi / 2)."""
    found = numbers(position_std=std)
    deviation = std * math.sqrt((2.0 - math.pi / 2.0) / N_TRUTHS)
    assert found['ate'] == pytest.approx(std * math.sqrt(math.pi / 2.0), abs=4.0 * deviation)
    others_are_perfect(found, 'ate', 'hota')


@pytest.mark.parametrize('share', one_of([0.1, 0.4]))
def test_missing(numbers, share):
    found = numbers(missing=share)
    deviation = math.sqrt(share * (1.0 - share) / N_TRUTHS)
    assert found['recall'] == pytest.approx(1.0 - share, abs=4.0 * deviation)
    # nuScenes counts precision above a recall of 0.1, at steps of 0.01.
    assert found['ap'] == pytest.approx((found['recall'] - 0.1) / 0.9, abs=0.012)
    assert found['mota'] == pytest.approx(found['recall'], abs=1e-9)
    assert found['idf1'] == pytest.approx(
        2.0 * found['recall'] / (1.0 + found['recall']), abs=1e-9)
    others_are_perfect(found, 'recall', 'ap', 'mota', 'idf1', 'hota')


def test_all_at_once(numbers):
    """Each number is that of its own cause."""
    found = numbers(position_std=0.2, yaw_std=0.1, velocity_std=0.5, missing=0.2)
    n = round(found['recall'] * N_TRUTHS)
    assert found['recall'] == pytest.approx(0.8, abs=4.0 * math.sqrt(0.16 / N_TRUTHS))
    for name, expected, spread in (
            ('ate', 0.2 * math.sqrt(math.pi / 2.0), 0.2 * math.sqrt(2.0 - math.pi / 2.0)),
            ('ave', 0.5 * math.sqrt(math.pi / 2.0), 0.5 * math.sqrt(2.0 - math.pi / 2.0)),
            ('aoe', 0.1 * math.sqrt(2.0 / math.pi), 0.1 * math.sqrt(1.0 - 2.0 / math.pi))):
        assert found[name] == pytest.approx(expected, abs=4.0 * spread / math.sqrt(n)), name
