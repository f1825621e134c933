# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Print how many modules of the package a command loads, and how deep its functions call each other.

    python3 bench/probe.py convert fcd.xml out.parquet --force
"""

import sys

PACKAGE = 'state_sensor_ros'


def probe(words):
    """Run a command; return the modules that it has loaded, and its deepest calls."""
    stack, deepest = [], []

    def note(frame, event, _):
        nonlocal deepest
        module = frame.f_globals.get('__name__', '')
        # Neither modules and expressions, nor what dataclasses write.
        if not module.startswith(PACKAGE) or '<' in (
                frame.f_code.co_name[0], frame.f_code.co_filename[0]):
            return
        if event == 'call':
            stack.append(f'{module}.{frame.f_code.co_name}')
            if len(stack) > len(deepest):
                deepest = [*stack]
        elif event == 'return' and stack:
            stack.pop()

    sys.setprofile(note)
    try:
        from state_sensor_ros.commands.cli import main
        main(words)
    finally:
        sys.setprofile(None)
    return sorted(name for name in sys.modules if name.startswith(PACKAGE)), deepest


if __name__ == '__main__':
    loaded, calls = probe(sys.argv[1:])
    print(*loaded, '', *calls, '', f'{len(loaded)} modules, {len(calls)} calls deep', sep='\n')
