# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A run of pytest counts the tests of each folder, and fails where one that can run has none."""

import re
import subprocess
import sys

from budgets import AWAIT_S, one_of
from paths import ROOT
import pytest

CONFTEST = """
from pathlib import Path

from folder_counts import absent_imports, absent_modules, FolderCounts

ABSENT = absent_modules({'needy': ('no_such_module',)})
ABSENT |= absent_imports(Path(__file__).parent, ABSENT)
collect_ignore = list(ABSENT)


def pytest_configure(config):
    config.pluginmanager.register(FolderCounts(config, Path(__file__).parent, ABSENT))
"""
# What the plugin of launch_testing does: it imports each module before pytest does.
EARLY_IMPORT = """
from importlib import import_module
import sys


def pytest_pycollect_makemodule(module_path, parent):
    sys.path.insert(0, str(module_path.parent))
    import_module(module_path.stem)
"""
FILES = {
    'conftest.py': CONFTEST,
    'early_import.py': EARLY_IMPORT,
    'test_top.py': 'def test_top(): pass',
    'one/test_one.py': 'def test_one(): pass\ndef test_two(): pass',
    'needy/test_needy.py': 'import no_such_module\ndef test_needy(): pass',
}
SKIPPED = 'import pytest\n@pytest.mark.skip\ndef test_skipped(): pass'
SKIPPED_MODULE = 'import pytest\npytest.importorskip("no_such_module")'


@pytest.fixture
def run(tmp_path):
    """Return a function that runs tests in a folder; it returns exit code and output."""
    def run_(*words, **files):
        more = {name.replace('__', '/') + '.py': text for name, text in files.items()}
        for name, text in {**FILES, **more}.items():
            path = tmp_path / 'all' / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / 'pytest.ini').write_text('[pytest]\npythonpath = all\n')
        done = subprocess.run(
            [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', *words], cwd=tmp_path,
            env={'PYTHONPATH': str(ROOT / 'test'), 'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1'},
            capture_output=True, text=True, timeout=AWAIT_S)
        return done.returncode, done.stdout

    return run_


def test_folders_are_counted_and_what_cannot_run_is_named(run):
    code, output = run('all')
    assert 'tests that ran: all 1, one 2\n' in output
    assert 'not collected: needy, without no_such_module (test functions: 1)\n' in output
    assert (code, 'error: ' in output) == (0, False)


def test_file_with_an_import_that_is_not_installed_is_named(run):
    helper = '"""A helper.\n\nimport of_a_docstring\n"""\nimport {}\ndef test_a(): pass'
    code, output = run('all', helper=helper.format('no_such_library.part as part'),
                       one__test_well=helper.format('json'),
                       two__test_helped='from helper import part\ndef test_helped(): pass')
    assert 'tests that ran: all 1, one 3\n' in output
    assert 'two/test_helped.py, without no_such_library (test functions: 1)\n' in output
    assert output.count('not collected: ') == 2
    assert (code, 'error: ' in output) == (0, False)


@pytest.mark.parametrize('text', one_of([SKIPPED, SKIPPED_MODULE]), ids=['tests', 'module'])
def test_folder_without_a_test_that_ran_is_a_failure(run, text):
    code, output = run('all', two__test_skipped=text)
    assert 'error: two: found no test that ran; expected one or more\n' in output
    assert code == 1


def test_folder_that_a_plugin_skips_as_a_whole_is_a_failure(run):
    files = {'one__test_skipped': SKIPPED_MODULE}
    code, output = run('all/one', '-p', 'early_import', **files)
    assert 'error: one: found no test that ran; expected one or more\n' in output
    assert code == 1


WAYS_TO_NEED = """
import pytest
@pytest.mark.skipif(True, reason='lib is not installed')
def test_one(): pass
@pytest.mark.skipif(True, reason='needs lib: a full ROS 2')
def test_two(): pass
def test_three(): pytest.importorskip('lib.part')
@pytest.mark.skipif(True, reason='no luck')
def test_four(): pass
def test_five(): pass
"""


def test_skipped_tests_are_counted_by_the_library_that_they_need(run):
    code, output = run('all', two__test_skipped=WAYS_TO_NEED)
    assert code == 0
    assert re.findall('tests skipped: .*', output) == [
        'tests skipped: 1, no luck', 'tests skipped: 3, without lib']


@pytest.mark.parametrize('words', one_of([
    ('all', '-k', 'one'), ('all/one',), ('all/one/test_one.py',), ('all', '--ignore', 'all/two'),
]), ids=' '.join)
def test_folders_that_are_not_selected_need_no_test(run, words):
    code, output = run(*words, two__test_skipped=SKIPPED)
    assert (code, 'error: ' in output) == (0, False)
    assert 'one 2' in output


def test_no_module_of_tests_is_skipped_while_it_is_imported():
    files = list((ROOT / 'test').rglob('*.py'))
    assert len(files) > 100
    for path in files:
        assert not re.search(r'^(?:\w[\w, ]* = )?pytest\.(?:importorskip|skip)\(',
                             path.read_text('utf-8'), re.MULTILINE), path
