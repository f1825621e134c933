# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The check before a release names what is missing, and the version has one place."""

import shutil
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
import pytest

FILES = ('package.xml', 'CITATION.cff', 'CHANGELOG.rst', 'setup.cfg', 'scripts/release_check.py',
         'state_sensor_ros/__init__.py')
VERSION = '7.8.9'


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / 'state_sensor_ros' / '__init__.py').write_text(f"__version__ = '{VERSION}'\n")
    git(tmp_path, 'init')
    commit(tmp_path)
    return tmp_path


def git(tree, *words):
    subprocess.run(['git', '-c', 'user.name=test', '-c', 'user.email=test@localhost', *words],
                   cwd=tree, check=True, capture_output=True)


def commit(tree):
    git(tree, 'add', '--all')
    git(tree, 'commit', '--allow-empty', '--message', 'state')


def check(tree, *words):
    done = subprocess.run([sys.executable, 'scripts/release_check.py', *words], cwd=tree,
                          text=True, capture_output=True, timeout=AWAIT_S, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_all_that_is_missing_is_named(tree):
    (tree / 'new.txt').write_text('')
    code, lines, _ = check(tree)
    assert code == 1
    named = [line.split(': ')[1] for line in lines]
    assert named == ['package.xml', 'CITATION.cff', 'CHANGELOG.rst', 'CITATION.cff', 'package.xml',
                     'setup.cfg', 'git']


def test_the_version_is_written_from_its_one_place(tree):
    check(tree, '--write')
    assert f'<version>{VERSION}</version>' in (tree / 'package.xml').read_text()
    assert f'\nversion: {VERSION}\n' in (tree / 'CITATION.cff').read_text()


def test_nothing_is_missing(tree):
    check(tree, '--write')
    for path in (tree / 'setup.cfg', tree / 'package.xml', tree / 'CITATION.cff'):
        path.write_text(path.read_text().replace('example.invalid', 'example.org')
                        .replace('users.noreply.github.com', 'example.org'))
    (tree / 'CHANGELOG.rst').write_text(f'{VERSION} (2026-11-23)\n------------------\n')
    commit(tree)
    assert check(tree) == (0, [f'release-check: {VERSION} can be released'], '')


def test_an_unknown_option_is_refused(tree):
    assert check(tree, '--wrong')[0] == 2
