# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Regular expressions of clients: what they match, what is refused, and that none takes long."""

import random
import sys
import time

import pytest

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.ros.entity_filter import matching_rows, MAX_CHARACTERS, MAX_S

NAMES = ['ego_car', 'Car', 'car_2', 'a.b', 'Straße', '車', '', 'two\nlines', 'x' * 300]


def matched(expression, names=NAMES):
    return [names[row] for row in matching_rows(expression, names)]


@pytest.mark.parametrize(('expression', 'expected'), [
    ('', NAMES), ('.*', NAMES), ('car', []), ('ego_car', ['ego_car']), ('e.*r', ['ego_car']),
    ('.*car.*', ['ego_car', 'car_2']), ('[[:alpha:]]+_[0-9]', ['car_2']), (r'a\.b', ['a.b']),
    ('car_2|Car', ['Car', 'car_2']), ('^(Car|car)(_[0-9]+)?$', ['Car', 'car_2']), ('.', ['車']),
    ('Stra.e', ['Straße']), ('two.lines', ['two\nlines']), ('x{300}', ['x' * 300]), ('()', [''])])
def test_filter_matches_whole_names(expression, expected):
    assert matched(expression) == expected


@pytest.mark.parametrize(('expression', 'reason'), [
    ('(', r"found '\(' \(missing"), ('[a', 'missing'), ('a{1001}', 'repetition'),
    ('*', 'no argument'), (r'(a)\1', 'invalid escape'), ('(?=a)', 'no argument'),
    ('x' * (MAX_CHARACTERS + 1), 'found 201 characters; expected at most 200')])
def test_filter_refuses_what_is_no_expression(expression, reason, capfd):
    with pytest.raises(ConfigError, match=reason) as caught:
        matching_rows(expression, NAMES)
    assert str(caught.value).startswith('filter: found ')
    assert '\n' not in str(caught.value)
    assert capfd.readouterr() == ('', '')


@pytest.mark.parametrize('expression', ['(a+)+$', '(a|a)*$', '(a|aa)+$', '(.*a){20}', '(a*)*b'])
def test_filter_with_nested_repetitions_takes_no_exponential_time(expression):
    names = ['a' * 100_000 + '!', *['a' * 40 + '!'] * 10_000, 'aaaaaaaaaaaaaaaaaaaaaaaaab']
    began_s = time.process_time()
    rows = matching_rows(expression, names)
    assert time.process_time() - began_s < 2.0
    assert rows in ([], [10_001])


def test_filter_that_takes_long_is_refused():
    # As many states as there are combinations of a and b: too many for the engine's memory.
    chance = random.Random(1)
    names = [''.join(chance.choices('ab', k=10_000)) for _ in range(20)] * 500
    began_s = time.process_time()
    with pytest.raises(ConfigError, match=f'takes longer than {MAX_S:g} s; expected a simpler'):
        matching_rows('[ab]*a[ab]{900}', names)
    assert time.process_time() - began_s < 2.0


def test_filter_without_the_library_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, 're2', None)
    assert matching_rows('', NAMES) == list(range(len(NAMES)))
    with pytest.raises(ConfigError, match=r'filter: found no library .*; expected google-re2'):
        matching_rows('car', NAMES)


def test_filter_takes_names_that_are_no_unicode_text():
    assert matching_rows('.*', ['\ud800', 'a']) == [0, 1]
    assert matching_rows('\ud800', ['b']) == []
