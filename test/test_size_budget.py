# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The size of each folder stays within size_budget.toml."""

from collections import Counter
import re

from paths import ROOT

# Of a module, or indented below a line that ends with a colon; parsers take ten times as long.
DOCSTRING = re.compile(r'(\A(?:#.*\n|\s)*|:(?: *#.*)?\n\s* {4})r?"""(?s:.*?)"""')


def code_lines(path):
    """Return how many lines are neither blank nor a comment nor in a docstring."""
    text = DOCSTRING.sub(r'\1', path.read_text(encoding='utf-8'))
    return len(re.findall(r'^[ \t]*[^#\s]', text, re.MULTILINE))


def row_of(path, rows):
    """Return the row that counts a file: the deepest folder with one."""
    place = path.relative_to(ROOT).parent
    while place.as_posix() not in rows and place != place.parent:
        place = place.parent
    return place.as_posix()


def sizes(rows):
    """Return the lines of code by row, and the number of modules of the package."""
    found, n_modules = Counter(), 0
    for top in ('state_sensor_ros', 'test', 'bench', 'scripts'):
        for path in sorted((ROOT / top).rglob('*.py')):
            found[row_of(path, rows)] += code_lines(path)
            n_modules += top == 'state_sensor_ros'
    return found, n_modules


def budget():
    """Return the rows of size_budget.toml: tomllib is not in Python 3.10."""
    text = (ROOT / 'size_budget.toml').read_text(encoding='utf-8')
    return {key: int(number) for key, number in
            re.findall(r'^"?([a-z0-9_/]+)"? = (\d+)$', text, re.MULTILINE)}


def test_each_folder_is_within_its_budget():
    rows = budget()
    found, n_modules = sizes(rows)
    over = {row: f'{found[row]} lines; expected at most {rows.get(row, 0)}'
            for row in found if found[row] > rows.get(row, 0)}
    assert not over
    assert n_modules <= rows['modules']


def test_rows_are_folders_of_the_repository():
    rows = budget()
    assert [row for row in rows if row not in ('modules', 'reserve')
            and not (ROOT / row).is_dir()] == []
