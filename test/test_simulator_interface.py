# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Simulators use the public modules, their own folder and that of their mock server."""

import ast
from functools import cache
import re

from paths import ROOT
from test_additions import EXTENDING, SPEED_TOPIC, TOY

PACKAGE = ROOT / 'state_sensor_ros'
PUBLIC_FOLDER = PACKAGE / 'simulators'
MAIN = 'state_sensor_ros.simulators'
# Generated messages.
MESSAGES = 'state_sensor_ros.msg'
# What else a module imports or names, and why.
EXCEPTIONS = {
    'simulators/osi/objects.py': (
        {'state_sensor_ros.files.osi.osi_objects'}, set(),
        'the numbers of types in a standard, which the writer of its format has as well'),
    'simulators/osi/simulator.py': (
        set(), {'state_sensor_ros.files.osi.osi_output:OsiOutput',
                'state_sensor_ros.files.osi.osi_repair:copy_whole',
                'state_sensor_ros.topics.stacks.lanelet2:read_lanelets'},
        'writer and repair of the format, which is a standard; maps of no simulator')}


def exported(text):
    """Return the names in ``__all__`` of a module, None if it has none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == '__all__':
            return ast.literal_eval(node.value)
    return None


@cache
def nodes_of(text):
    return list(ast.walk(ast.parse(text)))


def imports(text):
    """Yield module and name of each import of this package, those inside functions included."""
    for node in nodes_of(text):
        if isinstance(node, ast.Import):
            yield from ((alias.name, '') for alias in node.names
                        if alias.name.startswith('state_sensor_ros'))
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, 'a relative import'
            yield from ((node.module, alias.name) for alias in node.names
                        if node.module.startswith('state_sensor_ros'))


def words(text):
    """Return the texts that name a module of this package, as the reader of a format is named."""
    return {node.value for node in nodes_of(text) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and re.match(r'state_sensor_ros(\.\w+)+', node.value)}


PUBLIC = {MAIN if path.stem == '__init__' else f'{MAIN}.{path.stem}': names
          for path in sorted(PUBLIC_FOLDER.glob('*.py'))
          if (names := exported(path.read_text(encoding='utf-8'))) is not None}
FOLDERS = sorted(path.parent for path in PUBLIC_FOLDER.glob('*/*simulator.py'))
MODULES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding='utf-8')
           for folder in FOLDERS for path in sorted(folder.rglob('*.py'))}
# The example of authors, and what tests add to it.
EXAMPLES = {'toy_simulator.py': TOY, 'toy_topics.py': SPEED_TOPIC,
            'extending.md': '\n'.join(re.findall(r'^```python\n(.*?)^```$', EXTENDING,
                                                 re.DOTALL | re.MULTILINE))}


def foreign(text, *own):
    """Return the modules that are imported and are neither public nor ``own`` folders."""
    return {module for module, name in imports(text)
            if not (module in PUBLIC and name in PUBLIC[module])
            and not any(f'{module}.'.startswith(f'{folder}.') for folder in (*own, MESSAGES))}


def test_simulators_use_the_public_interface_alone():
    found = {}
    for place, text in MODULES.items():
        name = place.split('/')[1]
        mocks = [f'state_sensor_ros.emulator.{path.name}'
                 for path in (PACKAGE / 'emulator').glob(f'{name}_*') if path.is_dir()]
        named = {word for word in words(text) if not word.startswith(f'{MAIN}.{name}.')
                 and word.partition(':')[2] not in PUBLIC.get(word.partition(':')[0], ())}
        found[place] = foreign(text, f'{MAIN}.{name}', *mocks), named
    found |= {place: (foreign(text, 'state_sensor_ros.testing'), set())
              for place, text in EXAMPLES.items()}
    expected = {place: each[:2] for place, each in EXCEPTIONS.items()}
    wrong = [f'{place}: found {each}' for place, each in found.items()
             if each != expected.get(place, (set(), set()))]
    assert not wrong, '\n'.join(wrong)
