# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
How many files an addition touches: those of today, and examples that are added from outside.

A topic is a module and a line in a list, a format a row and a module, a simulator a module and an
entry point, a parameter a declaration.
"""

import ast
import difflib
import json
import os
import re
import subprocess

from budgets import AWAIT_S
from paths import ROOT, SAMPLE
from programs import ENVIRONMENT, run_python, STATE_SENSOR
import pytest
from rosbags.rosbag2 import Reader
from rosbags.typesys import get_typestore, Stores
from test_toy_simulator import HERE, installed_toy, state_sensor

from state_sensor_ros.settings import SIMULATORS
from state_sensor_ros.simulators.opening import formats
from state_sensor_ros.topics import topic_list

PACKAGE = ROOT / 'state_sensor_ros'
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding='utf-8')
           for path in PACKAGE.rglob('*.py')}
EXTENDING = (ROOT / 'doc' / 'design' / 'extending.md').read_text(encoding='utf-8')
TOY = (HERE / 'toy_simulator.py').read_text(encoding='utf-8')
WORDS = {place: set(re.findall(r'\w+', text)) for place, text in SOURCES.items()}
LINES = [*topic_list._TOPICS, *(line for lines in topic_list._OUTPUTS.values() for line in lines)]
# What else names a topic: the lines of a map file are its data; a table has not what it has.
FURTHER = {'MapEncoder': {'simulators/opening.py'},
           'AutowareEgoEncoder': {'files/tables/table_recording.py'},
           # For simulators that add markers.
           'MarkerEncoder': {'simulators/own_topics.py'}}
SPEED_TOPIC = (HERE / 'toy_topics.py').read_text(encoding='utf-8')
POINTS_FORMAT = (ROOT / 'test' / 'files' / 'points_format.py').read_text(encoding='utf-8')
ROLLED_FORMAT = """
from pathlib import Path

from toy_simulator import ToyParameters, ToyRecording


def open_rolled(path, options):
    return ToyRecording(Path(path), options.settings.of(ToyParameters))
"""


CONVERSIONS = """
import sys
from state_sensor_ros.commands.command_line import main

codes = []
for paths in zip(sys.argv[1::2], sys.argv[2::2]):
    codes.append(main(['convert', *paths]))
    print('---', file=sys.stderr)
print(codes)
"""
# What a person sees of a parameter, printed as JSON.
SEEN = """
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
import io, json, runpy, sys
from unittest.mock import MagicMock

root, sample, folder = sys.argv[1:]
from state_sensor_ros.commands.command_line import main

def command(*words):
    both = io.StringIO()
    with redirect_stdout(both), redirect_stderr(both):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
    return code, ' '.join(both.getvalue().split())

seen = {'help': command('convert', '--help-all'),
        'bag': command('convert', sample, folder + '/bag', '--grip', '0.5'),
        'wrong': command('convert', sample, folder + '/wrong', '-p', 'grip:=3.0'),
        'inspect': command('inspect', sample, '--grip', '0.5'),
        'table': command('convert', sample, folder + '/ego.csv', '--grip', '0.5'),
        'near': command('convert', sample, folder + '/near', '-p', 'gripp:=0.5'),
        'yaml': (0, runpy.run_path(root + '/scripts/parameter_file.py')['text']())}
for name in ('docutils', 'docutils.nodes', 'sphinx', 'sphinx.application', 'sphinx.ext',
             'sphinx.ext.autodoc', 'sphinx.ext.autodoc.mock', 'sphinx.util'):
    sys.modules[name] = MagicMock()
sys.modules['sphinx.util.docutils'] = MagicMock(SphinxDirective=object)
seen['document'] = (0, runpy.run_path(root + '/doc/generated.py')['parameters']())
if find_spec('rclpy'):
    import rclpy
    from rclpy.node import Node
    from rclpy.parameter import Parameter
    from state_sensor_ros.ros.node_parameters import NodeParameters
    rclpy.init()
    node = Node('parameters')
    changes = []
    own = NodeParameters(node, lambda settings: changes.append(settings.grip))
    own.freeze()
    for value in (0.5, 3.0):
        [result] = node.set_parameters([Parameter('grip', value=value)])
        seen[f'node {value}'] = (int(result.successful), result.reason)
    seen['changes'] = (0, str(changes))
    rclpy.shutdown()
print(json.dumps(seen))
"""


def with_path(folder):
    """Return an environment in which modules are found in a folder first."""
    return {**ENVIRONMENT,
            'PYTHONPATH': f'{folder}{os.pathsep}{os.environ.get("PYTHONPATH", "")}'}


def naming(word):
    """Return the modules in which a word occurs."""
    return {place for place, words in WORDS.items() if word in words}


def added(folder, more, *changes):
    """Install a toy with modules and replaced texts; return the numbers of files and lines."""
    text = TOY
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    site = installed_toy(folder, content=text)
    for name, content in more.items():
        (site / name).write_text(content)
    new = [line for line in difflib.ndiff(TOY.splitlines(), text.splitlines())
           if line.startswith('+ ')]
    return site, len(more) + (text != TOY), len(new)


def test_topics_are_a_module_and_a_line():
    wrong = []
    for line in LINES:
        module, name = line.split(':')
        [own] = {place for place in SOURCES if place.endswith(f'/{module}.py')
                 and place.startswith('topics/') and f'class {name}(' in SOURCES[place]}
        # A topic of a simulator may take its place, a stack may have a variant of it.
        heirs = {place for place in naming(name) if re.search(
            rf'^class .*\b{name}\b', SOURCES[place], re.MULTILINE)}
        wrong += [f'{name}: {place}' for place in naming(name) - heirs - FURTHER.get(name, set())
                  - {own, 'topics/topic_list.py'}]
    assert not wrong, '\n'.join(wrong)


@pytest.mark.parametrize('row', formats(), ids=lambda row: row.name)
def test_format_is_a_row_and_its_modules(row):
    named = {getattr(row, member) for member in (
        'reader', 'writer', 'recognized_by', 'payloads', 'repair')} - {''}
    for text in named:
        module, _, name = text.partition(':')
        place = f'{module.removeprefix("state_sensor_ros.").replace(".", "/")}.py'
        assert any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
                   for node in ast.parse(SOURCES[place]).body)
    assert len({text.partition(':')[0] for text in named}) <= 5


@pytest.mark.parametrize('name', SIMULATORS)
def test_simulator_is_a_folder_and_a_value(name):
    assert SOURCES.keys() & {f'simulators/{name}/{name}_simulator.py',
                             f'simulators/{name}/simulator.py'}
    importing = {place for place, text in SOURCES.items()
                 if re.search(rf'simulators\.{name}\b', text)
                 and not place.startswith(f'simulators/{name}/')}
    assert {place for place in importing if not place.startswith('emulator/')} == set()


def test_simulator_is_added_by_a_module_and_an_entry_point(tmp_path):
    site, n_files, n_lines = added(tmp_path / 'site', {})
    assert (n_files, n_lines) == (0, 0)
    found = {path.relative_to(site).name for path in site.rglob('*') if path.is_file()}
    assert found == {'toy_simulator.py', 'entry_points.txt', 'METADATA'}
    assert '  --toy.tag TAG ' in state_sensor(site, 'record', '--help', 'toy').stdout


def test_parameter_of_the_driver_is_added_by_a_declaration(tmp_path):
    copy = tmp_path / 'copy'
    (copy / 'state_sensor_ros').mkdir(parents=True)
    for entry in (*ROOT.iterdir(), *PACKAGE.iterdir()):
        if entry.name not in (PACKAGE.name, 'settings.py'):
            (copy / entry.relative_to(ROOT)).symlink_to(entry)
    before = '    queue_size: int = parameter('
    assert SOURCES['settings.py'].count(before) == 1
    (copy / 'state_sensor_ros' / 'settings.py').write_text(SOURCES['settings.py'].replace(
        before, "    grip: float = _outgoing(1.0, 'Grip of the road.', low=0.0, high=2.0, "
        f"dynamic=True, runs=_EVERYWHERE)\n{before}"))
    ended = run_python('-c', SEEN, copy, SAMPLE, tmp_path, cwd=tmp_path, env=with_path(copy))
    assert ended.returncode == 0, ended.stderr
    seen = json.loads(ended.stdout)
    assert '--grip GRIP Grip of the road. (default: 1.0)' in seen['help'][1]
    assert (seen['bag'][0], seen['wrong'], seen['table'][0], seen['near'][0]) == (
        0, [1, 'error: grip: found 3.0; expected 0 to 2: Grip of the road.'], 2, 1)
    assert seen['inspect'][0] == 0
    assert '--grip is for writing a bag' in seen['table'][1]
    assert 'did you mean grip' in seen['near'][1]
    assert '\n    # Grip of the road. (D)\n    grip: 1.0\n' in seen['yaml'][1]
    assert '| `grip` **D** | `1.0` | float 0 … 2 | Grip of the road. |' in seen['document'][1]
    if 'changes' in seen:
        assert (seen['node 0.5'], seen['node 3.0'][0], seen['changes'][1]) == ([1, ''], 0, '[0.5]')
        assert 'grip' in seen['node 3.0'][1]


def test_parameter_is_added_by_a_declaration(tmp_path):
    declaration = "    mass: float = parameter(1.0, 'Mass of the ball, kg.', low=0.0)\n"
    tag = "    tag: str = parameter('ball', 'Tag of the ball.')\n"
    site, n_files, n_lines = added(tmp_path / 'site', {}, (tag, tag + declaration))
    assert (n_files, n_lines) == (1, 1)
    (tmp_path / 'drive.ball').write_text('0.0 1 2\n')
    for value, code in (('2.0', 0), ('-1.0', 1)):
        ended = state_sensor(site, 'convert', tmp_path / 'drive.ball', tmp_path / f'{value}.mcap',
                             '-p', f'toy.mass:={value}')
        assert ended.returncode == code
    assert 'toy.mass: found -1.0; expected at least 0: Mass of the ball, kg.' in ended.stderr


def test_format_is_added_by_a_row_and_a_module(tmp_path):
    end = "                      reader='toy_simulator:open_lines'),)\n"
    row = ("               Format(name='rolled', noun='a rolled ball', suffixes=('.rolled',),\n"
           "                      reader='toy_rolled:open_rolled'))\n")
    site, n_files, n_lines = added(
        tmp_path / 'site', {'toy_rolled.py': ROLLED_FORMAT},
        (end, f'{end.removesuffix(")" + chr(10))}\n{row}'))
    assert (n_files, n_lines) == (2, 3)
    days = tmp_path / 'days'
    days.mkdir()
    (days / 'drive.rolled').write_text('0.0 1 2\n')
    assert '(.rolled)' in ' '.join(state_sensor(site, 'convert', '--help-all').stdout.split())
    # Workers of a batch search for simulators in their own paths.
    ended = subprocess.run(
        [*STATE_SENSOR, 'convert', '--to', 'mcap', days, tmp_path / 'bags'], check=False,
        capture_output=True, text=True, timeout=AWAIT_S, env={
            **ENVIRONMENT, 'PYTHONPATH': f'{ROOT}{os.pathsep}{site}'})
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / 'bags' / 'drive').is_dir()


def test_topic_is_added_by_a_module_and_its_list(tmp_path):
    method = '    def open_commands(self, settings, source, report):\n'
    topics = ('    def topics(self, settings, *, recording):\n'
              '        import toy_topics\n'
              '        return SimulatorTopics((toy_topics.SpeedEncoder,))\n\n')
    site, n_files, n_lines = added(
        tmp_path / 'site', {'toy_topics.py': SPEED_TOPIC}, (method, topics + method),
        ('    Simulator,\n', '    Simulator,\n    SimulatorTopics,\n'))
    assert (n_files, n_lines) == (2, 5)
    (tmp_path / 'drive.ball').write_text('0.0 1 2\n0.1 2 2\n')
    ended = state_sensor(site, 'convert', tmp_path / 'drive.ball', tmp_path / 'bag')
    assert (ended.returncode, ended.stderr) == (0, '')
    store = get_typestore(Stores.ROS2_JAZZY)
    with Reader(tmp_path / 'bag') as reader:
        found = [store.deserialize_cdr(data, connection.msgtype).markers
                 for connection, _, data in reader.messages()
                 if connection.topic == '/state_sensor/toy_speeds']
    # The ball rolls at 1 m/s, half of the fastest.
    assert [(marker.pose.position.x, marker.pose.position.y, marker.color.r, marker.color.g,
             marker.color.b, marker.color.a) for [marker] in found] == [
        (1.0, 2.0, 0.5, 0.5, 0.0, 1.0), (2.0, 2.0, 0.5, 0.5, 0.0, 1.0)]


def test_format_of_the_core_is_added_by_a_row_and_a_module(tmp_path):
    files = tmp_path / 'copy' / 'state_sensor_ros' / 'files'
    files.mkdir(parents=True)
    for entry in (*PACKAGE.iterdir(), *(PACKAGE / 'files').iterdir()):
        if entry.name not in ('files', 'formats.py'):
            (tmp_path / 'copy' / entry.relative_to(ROOT)).symlink_to(entry)
    table = 'FORMATS = (BAG, '
    assert SOURCES['files/formats.py'].count(table) == 1
    [row] = re.findall(r'^```python\n(POINTS = .*?)^```$', EXTENDING, re.DOTALL | re.MULTILINE)
    (files / 'formats.py').write_text(
        SOURCES['files/formats.py'].replace(table, f'{row}\n{table}POINTS, '))
    (files / 'points.py').write_text(POINTS_FORMAT)

    (tmp_path / 'wrong.points').write_text('0 0 one 0 car\n')
    ended = run_python(
        '-c', CONVERSIONS, SAMPLE, 'drive.points', 'drive.points', 'again.points', 'wrong.points',
        'x.mcap', cwd=tmp_path, env=with_path(tmp_path / 'copy'))
    first, again, wrong = ended.stderr.split('---\n')[:-1]
    assert (ended.returncode, ended.stdout.split('\n')[-2]) == (0, '[0, 0, 1]'), ended.stderr
    assert 'points does not carry: ' in first
    assert again == ''
    text = (tmp_path / 'drive.points').read_text()
    assert text
    assert (tmp_path / 'again.points').read_text() == text
    assert 'lines of a time, three numbers, a name' in wrong
