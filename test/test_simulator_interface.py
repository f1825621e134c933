# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Simulators use the public modules, their own folder and that of their stand-in."""

import ast
from importlib import import_module
import re

from paths import ROOT
import pytest
from test_additions import ROLLED_FORMAT, SPEED_TOPIC, TOY

from state_sensor_ros.settings import SIMULATORS

PACKAGE = ROOT / 'state_sensor_ros'
PUBLIC_FOLDER = PACKAGE / 'simulators'
EXTENDING = (ROOT / 'doc' / 'design' / 'extending.md').read_text(encoding='utf-8')
MAIN = 'state_sensor_ros.simulators'
# Generated messages.
MESSAGES = 'state_sensor_ros.msg'
# What else a module imports or names, and why.
EXCEPTIONS = {
    'simulators/osi/objects.py': (
        {'state_sensor_ros.files.osi.osi_types'}, set(),
        'the numbers of types in a standard, which the writer of its format has as well'),
    'simulators/osi/simulator.py': (
        set(), {'state_sensor_ros.files.osi.osi_output:new_trace'},
        'the writer of the format, which is a standard')}


def exported(text):
    """Return the names in ``__all__`` of a module, None if it has none."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == '__all__':
            return ast.literal_eval(node.value)
    return None


def imports(text):
    """Yield module and name of each import of this package, those inside functions included."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, '') for alias in node.names
                        if alias.name.startswith('state_sensor_ros'))
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, 'a relative import'
            yield from ((node.module, alias.name) for alias in node.names
                        if node.module.startswith('state_sensor_ros'))


def words(text):
    """Return the texts that name a module of this package, as the reader of a format is named."""
    return {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)
            and isinstance(node.value, str) and re.match(r'state_sensor_ros(\.\w+)+', node.value)}


PUBLIC = {MAIN if path.stem == '__init__' else f'{MAIN}.{path.stem}': names
          for path in sorted(PUBLIC_FOLDER.glob('*.py'))
          if (names := exported(path.read_text(encoding='utf-8'))) is not None}
FOLDERS = sorted(path.parent for path in PUBLIC_FOLDER.glob('*/*simulator.py'))
MODULES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding='utf-8')
           for folder in FOLDERS for path in sorted(folder.rglob('*.py'))}
# The example of authors, and what tests add to it.
EXAMPLES = {'toy_simulator.py': TOY, 'toy_speed.py': SPEED_TOPIC,
            'toy_rolled.py': ROLLED_FORMAT,
            'extending.md': '\n'.join(re.findall(r'^```python\n(.*?)^```$', EXTENDING,
                                                 re.DOTALL | re.MULTILINE))}


def foreign(text, *own):
    """Return the modules that are imported and are neither public nor ``own`` folders."""
    return {module for module, name in imports(text)
            if not (module in PUBLIC and name in PUBLIC[module])
            and not any(f'{module}.'.startswith(f'{folder}.') for folder in (*own, MESSAGES))}


def test_simulator_interface_is_derived_from_the_folders():
    assert {folder.name for folder in FOLDERS} == set(SIMULATORS)
    assert len(MODULES) > 50
    assert {MAIN, f'{MAIN}.own_topics'} <= set(PUBLIC)


@pytest.mark.parametrize('place', MODULES)
def test_simulator_uses_the_public_interface_alone(place):
    name = place.split('/')[1]
    stand_in = [f'state_sensor_ros.emulator.{path.name}'
                for path in (PACKAGE / 'emulator').glob(f'{name}_*') if path.is_dir()]
    more, more_named, _ = EXCEPTIONS.get(place, (set(), set(), ''))
    assert foreign(MODULES[place], f'{MAIN}.{name}', *stand_in) == more
    named = {text for text in words(MODULES[place]) if not text.startswith(f'{MAIN}.{name}.')
             and text.partition(':')[2] not in PUBLIC.get(text.partition(':')[0], ())}
    assert named == more_named


@pytest.mark.parametrize('place', EXAMPLES)
def test_simulator_of_another_package_uses_the_public_interface_alone(place):
    assert foreign(EXAMPLES[place]) == set()


@pytest.mark.parametrize('text', [
    'import state_sensor_ros.errors', 'def f():\n    from state_sensor_ros.errors import counted',
    'if TYPE_CHECKING:\n    from state_sensor_ros.files.bags.bag_reader import Bag',
    'from state_sensor_ros.simulators import simulator_list',
    'from state_sensor_ros.simulators.opening import open_any',
    'from state_sensor_ros import simulators', 'from state_sensor_ros.simulators import *',
    'from state_sensor_ros.simulators.carla_next import x'])
def test_simulator_interface_finds_other_imports(text):
    assert foreign(text, f'{MAIN}.carla')


@pytest.mark.parametrize('module', PUBLIC)
def test_public_module_has_the_names_that_it_exports(module):
    names = PUBLIC[module]
    assert len(set(names)) == len(names)
    assert all(hasattr(import_module(module), name) for name in names)


@pytest.mark.parametrize('module', PUBLIC)
def test_public_module_exports_all_that_it_imports_or_defines(module):
    path = PACKAGE / f'{module.removeprefix("state_sensor_ros.").replace(".", "/")}.py'
    body = ast.parse((path if path.is_file() else path.with_suffix('') / '__init__.py').read_text(
        encoding='utf-8')).body
    defined = [node for node in body
               if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if not defined:
        assert {alias.name for node in body if isinstance(node, ast.ImportFrom)
                for alias in node.names} == set(PUBLIC[module])
    else:
        assert {node.name for node in defined if not node.name.startswith('_')} <= set(
            PUBLIC[module])


@pytest.mark.parametrize('module', PUBLIC)
def test_public_names_are_used_or_explained(module):
    table = EXTENDING.partition('### Public modules')[2].partition('\n#')[0]
    rest = EXTENDING.replace(table, '')
    used = {name for text in (*MODULES.values(), *EXAMPLES.values())
            for where, name in imports(text) if where == module}
    assert [name for name in PUBLIC[module]
            if name not in used and not re.search(rf'\b{name}\b', rest)] == []


def test_extending_lists_the_public_modules_and_their_names():
    table = EXTENDING.partition('### Public modules')[2].partition('\n#')[0]
    rows = [[cell.strip() for cell in line.split('|')[1:-1]]
            for line in table.splitlines() if line.startswith(('| `', '| |'))]
    listed, module = {}, ''
    for name, _, names in rows:
        module = name.strip('`') or module
        listed.setdefault(module, []).extend(re.findall(r'`(\w+)`', names))
    assert {name: sorted(names) for name, names in listed.items()} == {
        module.removeprefix(f'{MAIN}.') if module != MAIN else 'simulators': sorted(names)
        for module, names in PUBLIC.items()}
