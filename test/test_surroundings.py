# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tests do not depend on the terminal, the colors and the language of who runs them."""

from contextlib import suppress
import os
import pty
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
import pytest

# As in the shell of a user, and as `make` sets them on a terminal.
PREFERENCES = {'TERM': 'xterm-256color', 'COLUMNS': '40', 'FORCE_COLOR': '1', 'MAKE_TERMERR': '1',
               'MAKE_TERMOUT': '1', 'CLICOLOR_FORCE': '1', 'LC_ALL': 'C', 'LANG': 'de_DE.UTF-8'}
# Those that read what a program shows: help, errors, progress, output of CMake.
SENSITIVE = ('test/test_package_metadata.py', 'test/commands/test_messages.py',
             'test/commands/test_result_lines.py')


@pytest.mark.thorough
def test_suite_is_green_on_a_terminal():
    primary, secondary = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, '-m', 'pytest', '-q', '-x', '-p', 'no:cacheprovider', *SENSITIVE],
        cwd=ROOT, env={**os.environ, **PREFERENCES}, stdin=secondary, stdout=secondary,
        stderr=secondary)
    os.close(secondary)
    output = bytearray()
    # The end of a terminal is an error.
    with suppress(OSError):
        while part := os.read(primary, 65536):
            output += part
    os.close(primary)
    assert process.wait(AWAIT_S) == 0, output.decode(errors='replace')
    assert b'\x1b[' in output
