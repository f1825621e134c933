# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Random words: those of numpy's Philox, and the distributions made of them."""

import numpy as np
import pytest

from state_sensor_ros.perception.random_numbers import (
    normal_deviates,
    philox,
    rest_uniforms,
    uniforms,
)

N = 200_000


@pytest.mark.parametrize('key', [(0, 0), (1, 2), (2 ** 64 - 1, 2 ** 63 + 5)])
def test_words_are_those_of_numpy(key):
    rng = np.random.default_rng(3)
    counters = rng.integers(0, 2 ** 64 - 1, (4, 50), np.uint64, endpoint=False)
    counters[:, :2] = (0,), (1,), (2 ** 64 - 2,), (7,)
    words = philox(key, counters + np.array([[1], [0], [0], [0]], np.uint64), 50)
    for counter, own in zip(counters.T, words.T, strict=True):
        expected = np.random.Philox(key=np.array(key, np.uint64), counter=counter).random_raw(4)
        assert own.tolist() == expected.tolist()


@pytest.mark.parametrize('n_counters', [0, 1, 15, 16, 17, 33])
def test_words_of_a_counter_depend_neither_on_the_others_nor_on_how_it_is_given(n_counters):
    names = np.random.default_rng(1).integers(0, 2 ** 64, (2, 40), np.uint64)
    [one] = philox((3, 4), (1, 2 ** 64 - 1, names[0, :1], names[1, :1]), 1).T.tolist()
    found = philox((3, 4), (np.ones(n_counters, np.uint64), 2 ** 64 - 1,
                            *names[:, :n_counters]), n_counters)
    assert found.shape == (4, n_counters)
    assert found.T.tolist()[:1] == [one][:n_counters]
    expected = np.random.Philox(key=np.array((3, 4), np.uint64), counter=np.array(
        (0, 2 ** 64 - 1, *names[:, 0]), np.uint64)).random_raw(4)
    assert one == expected.tolist()


@pytest.fixture(scope='module')
def words():
    counters = np.zeros((4, N), np.uint64)
    counters[2] = np.arange(N)
    return philox((5, 1), counters, N)


def test_uniforms_fill_the_interval(words):
    found = uniforms(words)
    assert 0.0 <= found.min() < 1e-4 < 1.0 - 1e-4 < found.max() < 1.0
    assert found.mean(axis=1) == pytest.approx(0.5, abs=5 * (1 / 12 / N) ** 0.5)
    assert uniforms(np.array([0, 2 ** 64 - 1], np.uint64)).tolist() == [0.0, 1.0 - 2.0 ** -53]


def test_deviates_are_normal_and_independent(words):
    found = normal_deviates(words)
    assert found.shape == (8, N)
    error = 5 * N ** -0.5
    assert found.mean(axis=1) == pytest.approx(0.0, abs=error)
    assert np.cov(found) == pytest.approx(np.eye(8), abs=2 * error)
    # Also of neighbors: counters that differ by one.
    assert np.corrcoef(found[0, 1:], found[0, :-1])[0, 1] == pytest.approx(0.0, abs=error)
    for bound, share in ((1.0, 0.682689), (2.0, 0.954500), (3.0, 0.997300)):
        assert (np.abs(found) < bound).mean() == pytest.approx(share, abs=error)


def test_deviates_of_the_least_and_the_greatest_word_are_finite():
    found = normal_deviates(np.array([[0, 2 ** 64 - 1, 2 ** 32 - 1]], np.uint64))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 6.4


def test_rest_is_uniform_and_independent_of_the_deviates(words):
    found = rest_uniforms(words)
    assert 0.0 <= found.min() < 1e-4 < 1.0 - 1e-4 < found.max() < 1.0
    assert found.mean() == pytest.approx(0.5, abs=5 * (1 / 12 / N) ** 0.5)
    assert (found < 0.1).mean() == pytest.approx(0.1, abs=5 * (0.09 / N) ** 0.5)
    for deviates in normal_deviates(words):
        assert np.corrcoef(found, deviates)[0, 1] == pytest.approx(0.0, abs=5 * N ** -0.5)
        assert np.corrcoef(found, np.abs(deviates))[0, 1] == pytest.approx(
            0.0, abs=5 * N ** -0.5)
