# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Random words: those of numpy's Philox, and the distributions made of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from state_sensor_ros.perception.perceiver import actor_words, chances_of, normal_deviates

N = 200_000


def words_of(names, rows, *, seed=3, number=7):
    return actor_words(seed, number, SimpleNamespace(names=names), np.array(rows, np.int64))


def test_words_depend_on_seed_frame_and_name():
    # Half of a surrogate pair may be in a name; numbers are below 2 ** 64.
    names = 'a', 'b', '\ud800', ''
    found = {tuple(words) for seed in (0, 1, 2 ** 64 - 1) for number in (0, 1, 2 ** 64 - 1)
             for words in words_of(names, range(4), seed=seed, number=number).T.tolist()}
    assert len(found) == 36


@pytest.fixture(scope='module')
def words():
    return words_of(tuple(map(str, range(N))), range(N))


def test_deviates_are_normal_and_independent(words):
    found = normal_deviates(words)
    assert found.shape == (8, N)
    error = 5 * N ** -0.5
    assert found.mean(axis=1) == pytest.approx(0.0, abs=error)
    assert np.cov(found) == pytest.approx(np.eye(8), abs=2 * error)
    # Also of neighbors: names that differ by one character.
    assert np.corrcoef(found[0, 1:], found[0, :-1])[0, 1] == pytest.approx(0.0, abs=error)
    for bound, share in ((1.0, 0.682689), (2.0, 0.954500), (3.0, 0.997300)):
        assert (np.abs(found) < bound).mean() == pytest.approx(share, abs=error)


def test_chances_are_uniform_and_independent_of_the_deviates(words):
    found = chances_of(words)
    assert 0.0 <= found.min() < 1e-4 < 1.0 - 1e-4 < found.max() < 1.0
    assert found.mean() == pytest.approx(0.5, abs=5 * (1 / 12 / N) ** 0.5)
    assert (found < 0.1).mean() == pytest.approx(0.1, abs=5 * (0.09 / N) ** 0.5)
    for deviates in normal_deviates(words):
        assert np.corrcoef(found, deviates)[0, 1] == pytest.approx(0.0, abs=5 * N ** -0.5)
        assert np.corrcoef(found, np.abs(deviates))[0, 1] == pytest.approx(
            0.0, abs=5 * N ** -0.5)
