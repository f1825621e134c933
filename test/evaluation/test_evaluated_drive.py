# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""`state_sensor evaluate` of a drive of 8 s: its page, and what needs many frames."""

from itertools import pairwise
import re

import numpy as np
import pytest
from stack_bags import changed, N_CARS

from state_sensor_ros.commands.cli import main

N_FRAMES = 80


def test_definition_of_nuscenes(tmp_path, evaluate, stack):
    """Errors as means over recall, which ours are not, AMOTA and AMOTP."""
    count = iter(range(10 ** 6))

    def off(message, log_ns):
        for each in message.objects:
            number = next(count)
            each.existence_probability = np.float32(1.0 - 1e-5 * number)
            each.kinematics.pose_with_covariance.pose.position.x += 1e-4 * number
    bag = changed(stack, tmp_path / 'bag', off)
    plain, nuscenes = evaluate(bag), evaluate(bag, '--definition', 'nuscenes')
    cars = [result['detection']['classes']['car'] for result in (plain, nuscenes)]
    n_cars = N_CARS * N_FRAMES
    assert cars[0]['ate'] == pytest.approx(1e-4 * (n_cars - 1) / 2)
    # The mean over recalls of 11 % to 100 % of the mean up to there.
    assert cars[1]['ate'] == pytest.approx(1e-4 * n_cars / 2 * 0.555, rel=0.02)
    assert cars[0]['nuscenes'] == cars[1]['nuscenes']
    assert cars[1]['nuscenes']['ate'] == cars[1]['ate']
    assert plain['detection']['nds'] == nuscenes['detection']['nds'] == pytest.approx(
        (9.0 + 1.0 - cars[1]['ate']) / 10.0)
    assert nuscenes['tracking'].keys() - plain['tracking'].keys() == {
        'amota', 'amotp', 'classes', 'nuscenes'}
    assert nuscenes['tracking']['amota'] == pytest.approx(1.0)
    assert nuscenes['tracking']['classes']['car']['amotp'] == nuscenes['tracking']['amotp'] > 0.01


@pytest.mark.thorough
def test_page_has_curves_and_ten_moments(tmp_path, drive, stack):
    count = iter(range(N_FRAMES))

    def worse(message, log_ns):
        if next(count) % 7 == 0:
            message.objects = message.objects[5:]
        message.objects[0].kinematics.pose_with_covariance.pose.position.x += 9.0
    bag = changed(stack, tmp_path / 'bag <&>', worse)
    page = tmp_path / 'page.html'
    assert main(['evaluate', str(drive), str(bag), '-q', '--html', str(page)]) == 0
    text = page.read_text()
    assert 'bag &lt;&amp;&gt;' in text
    assert '<script' not in text
    for word in ('Ground truth', 'objects in a frame over time', 'precision over recall'):
        assert word in text
    assert not re.search(r'\b(ghosts?|judged?|verdict|stand-in|inks?)\b', text)
    assert not re.search(r'(src|href)="(?!data:)', text)
    moments = re.findall(r'<section><h3>\d+\. ([\d.]+) s after the first frame \(stamp [\d.]+ s\)'
                         r'</h3><p>(\d+) missed, (\d+) false positives?, ', text)
    assert len(moments) == 10
    assert {(missed, false) for _, missed, false in moments} == {('6', '1')}
    assert '6 missed, 1 false positive, ' in text
    assert text.count('<img src="data:image/png;base64,') == 2 + 10
    times = sorted(float(time_s) for time_s, *_ in moments)
    assert min(after - before for before, after in pairwise(times)) >= 0.5
