# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The workflow on GitHub runs what contributors run."""

import os
import re
import subprocess
import sys

from budgets import AWAIT_S, first_of
from paths import ROOT
import pytest

WORKFLOW = ROOT / '.github' / 'workflows' / 'ci.yml'


def test_workflow_runs_the_checks_of_contributors_on_every_distribution():
    yaml = pytest.importorskip('yaml')
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding='utf-8'))['jobs']
    assert {'run': '.ci/run'} in jobs['wheels']['steps']
    workspace = (ROOT / 'doc' / 'guide' / 'ros_workspace.md').read_text(encoding='utf-8')
    named = re.findall(r'Jazzy|Kilted|Lyrical|Rolling', workspace.splitlines()[2].split('.')[0])
    assert jobs['workspace']['strategy']['matrix']['distribution'] == [
        name.lower() for name in named]


def test_selected_tests_of_ci_are_there():
    [selected] = re.findall(r"TESTS='(test/[^']*)'", (ROOT / '.ci' / 'run').read_text('utf-8'))
    for path in selected.split():
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize(('words', 'n_passed'), first_of(n_always=2, cases=[
    (['.'], 1), (['test_a.py'], 2), (['test_a.py::test_long'], 1), (['.', '--budget', '8'], 2)]),
    ids=str)
def test_thorough_tests_run_if_their_file_is_named_or_with_everything(words, n_passed, tmp_path):
    conftest = (ROOT / 'test' / 'conftest.py').read_text(encoding='utf-8')
    # None of the folders that need a library is here.
    (tmp_path / 'conftest.py').write_text(conftest + '\nABSENT.clear()\n')
    (tmp_path / 'test_a.py').write_text('import pytest\ndef test_short(): pass\n'
                                        '@pytest.mark.thorough\ndef test_long(): pass\n')
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'no:cacheprovider', *words], cwd=tmp_path,
        env={**os.environ, 'PYTHONPATH': str(ROOT / 'test')}, capture_output=True, text=True,
        timeout=AWAIT_S, check=False)
    assert f'{n_passed} passed' in done.stdout


def test_no_test_runs_a_second_time():
    for path in (ROOT / '.ci' / 'run', ROOT / 'Makefile', WORKFLOW, ROOT / 'pyproject.toml',
                 ROOT / 'test' / 'conftest.py', ROOT / 'CMakeLists.txt'):
        text = path.read_text(encoding='utf-8').replace('no:rerunfailures', '')
        assert not re.search('last-failed|--lf|rerun(s|fail)|flaky|retest', text), path


def test_plugin_that_runs_tests_again_is_off(pytestconfig):
    # It comes with a ROS.
    assert not pytestconfig.pluginmanager.has_plugin('rerunfailures')
