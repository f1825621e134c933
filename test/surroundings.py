# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The environment of the programs under test: the same, whatever started the tests."""

# Of a terminal, of its user's preferences, and of the `make` that runs the tests on one: CMake
# colors its output where MAKE_TERMERR is set.
_OF_TERMINALS = (
    'COLUMNS', 'LINES', 'COLORTERM', 'FORCE_COLOR', 'CLICOLOR', 'CLICOLOR_FORCE', 'NO_COLOR',
    'PYTHON_COLORS', 'MAKE_TERMOUT', 'MAKE_TERMERR', 'MAKEFLAGS', 'MAKELEVEL', 'MFLAGS',
    'LC_ALL', 'LC_MESSAGES', 'LC_CTYPE', 'LC_NUMERIC', 'LANGUAGE')


def make_plain(environment):
    """
    Replace what depends on the terminal and the language of the user.

    :param environment: variables of the process, changed in place.
    """
    for name in _OF_TERMINALS:
        environment.pop(name, None)
    environment.update(TERM='dumb', LANG='C.UTF-8')
