# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A test that fails for lack of an optional library is skipped, as is a file that cannot be imported.

One rule: the report of the failure says that a library is missing, as Python or an error of the
package says it, the library is optional, and it is not installed indeed.
"""

from importlib.util import find_spec
import re

import pytest

# Top-level modules of libraries that tests can do without: package.xml does not name them, or the
# message package is not in each ROS.
OPTIONAL = frozenset((
    'PIL', 'argcomplete', 'av', 'carla', 'catkin_pkg', 'dask', 'distributed', 'evo', 'google',
    'launch_ros', 'libsumo', 'matplotlib', 'mcap', 'mcap_ros2', 'motmetrics',
    'mypy', 'omega_prime', 'osi3', 'pandas', 'plotly', 'pyarrow', 'pyquaternion',
    'pyxodr_omega_prime', 'rclpy', 'rerun', 'rerun_cli', 'rosbags', 'ruamel', 'scipy', 'shapely',
    'simulation_interfaces', 'sumolib', 'tqdm', 'trackeval', 'traci', 'yaml'))
_OF_MESSAGES = ('_msgs', '_interfaces')
_MISSING = re.compile(r"(?:No module named '|no module |could not import ')([\w.]+)")
_OWN_MESSAGES = 'state_sensor_ros.msg'


class MissingLibraries:
    """Plugin of pytest, for all processes: the rule."""

    def __init__(self):
        # By the error of a fixture, which each of its tests reports, only the first one with what
        # was printed.
        self._absent = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(self, module_path, parent):
        """Import modules when they are collected: launch_testing does it with their folder."""
        return pytest.Module.from_parent(parent, path=module_path)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_make_collect_report(self):
        report = (yield).get_result()
        self._skip(report, None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, call):
        report = (yield).get_result()
        self._skip(report, call.excinfo and call.excinfo.value)

    def _skip(self, report, error):
        if not report.failed:
            return
        texts = [report.longreprtext, *(text for _, text in report.sections)]
        library = self._absent.get(error) or next(
            (name for name in _MISSING.findall('\n'.join(texts))
             if _is_optional(name) and not _is_installed(name)), '')
        if library:
            if error is not None:
                self._absent[error] = library
            report.outcome = 'skipped'
            report.longrepr = (report.nodeid, 0, f'Skipped: needs {library.partition(".")[0]}')


def _is_optional(module):
    library = module.partition('.')[0]
    return library in OPTIONAL or library.endswith(_OF_MESSAGES) or module == _OWN_MESSAGES


def _is_installed(module):
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False
