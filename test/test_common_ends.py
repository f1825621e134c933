# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Common prefix and suffix of two sequences, and their splice."""

from __future__ import annotations

import random

import pytest

from state_sensor_ros.common_ends import common_ends, spliced


@pytest.mark.parametrize(('old', 'new', 'ends'), [
    ('', '', (0, 0)), ('', 'a', (0, 0)), ('abc', 'abc', (3, 0)), ('abc', 'abxc', (2, 1)),
    ('abc', 'ac', (1, 1)), ('aaa', 'aa', (2, 0)), ('abc', 'xyz', (0, 0)), ('abc', 'xbc', (0, 2)),
    ('abcdef', 'abXef', (2, 2)), ('ab', 'ba', (0, 0)), ('abcd', 'axycd', (1, 2))])
def test_common_ends(old, new, ends):
    assert common_ends(list(old), list(new)) == ends


@pytest.mark.parametrize('seed', range(20))
def test_spliced_ends_are_the_new_sequence(seed):
    rng = random.Random(seed)
    old, new = (tuple(rng.choices('ab', k=rng.randrange(8))) for _ in range(2))
    head, tail = common_ends(old, new)
    assert spliced(old, head, new[head:len(new) - tail], tail) == new
