# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The files that describe the package agree with each other."""

import configparser
import os
import re
from xml.etree import ElementTree

from paths import ROOT
from programs import run_python
import pytest

import state_sensor_ros
from state_sensor_ros.small_files import share_file

MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
MESSAGES = sorted((ROOT / 'msg').glob('*.msg'))
CONTRACT_MESSAGES = {
    'Actor', 'ActorArray', 'ActorState', 'ControlState', 'ControlStateArray',
    'ControlStateStamped', 'OrientedBoundingBox', 'StateFrame', 'VehicleInputs', 'WheelState'}
ALWAYS_SENT = ('game_time',)


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    return parser


def text_of(element: str) -> str:
    found = MANIFEST.findtext(element)
    assert found is not None, f'package.xml has no {element}'
    return ' '.join(found.split())


def test_one_version_everywhere():
    version = text_of('version')
    assert re.fullmatch(r'\d+\.\d+\.\d+', version)
    assert state_sensor_ros.__version__ == version
    assert setup_cfg()['metadata']['version'] == 'attr: state_sensor_ros.__version__'
    headings = re.findall(r'^(\d+\.\d+\.\d+|Forthcoming)\b.*\n-+$',
                          (ROOT / 'CHANGELOG.rst').read_text(encoding='utf-8'), re.MULTILINE)
    assert next(heading for heading in headings if heading != 'Forthcoming') == version
    assert 'Forthcoming' not in headings[1:]
    assert f'\nversion: {version}\n' in (ROOT / 'CITATION.cff').read_text(encoding='utf-8')


def test_old_python_is_refused_with_one_line():
    program = ('import sys\nsys.version_info = (3, 9, 2)\n'
               'try:\n    import state_sensor_ros\nexcept ImportError as error:\n    print(error)')
    found = run_python('-S', '-c', program, cwd=ROOT, env=None)
    assert found.stdout == 'state_sensor_ros: found Python 3.9; expected 3.10 or newer\n'


@pytest.mark.parametrize('program', [
    ['-m', 'state_sensor_ros'], [str(ROOT / 'scripts' / 'state_sensor')],
    [str(ROOT / 'scripts' / 'state_sensor_node')]], ids=['module', 'state_sensor', 'node'])
def test_programs_print_the_version(program):
    if 'state_sensor_node' in program[0]:
        pytest.importorskip('rclpy')
    found = run_python(
        *program, '--version', cwd=ROOT,
        env=os.environ | {'PYTHONPATH': f'{ROOT}:{os.environ.get("PYTHONPATH", "")}'})
    name = 'state_sensor_node' if 'node' in program[0] else 'state_sensor'
    assert (found.returncode, found.stderr, found.stdout) == (
        0, '', f'{name} {text_of("version")}\n')


def test_dependencies_are_what_the_node_and_the_launch_files_import():
    """All keys were found in the rosdep files of rosdistro for Jazzy and Kilted in 11/2026."""
    keys = {each.text for each in MANIFEST if each.tag in ('depend', 'exec_depend')}
    libraries = {'python3-numpy': 'numpy', 'python3-yaml': 'yaml', 'tf2_ros_py': 'tf2_ros'}
    programs = {'ros2launch', 'rosidl_default_runtime', 'rosgraph_msgs', 'sensor_msgs'}
    texts = [path.read_text() for folder in ('launch', 'state_sensor_ros')
             for path in (ROOT / folder).rglob('*.py')]
    for key in keys - programs:
        name = libraries.get(key, key)
        assert any(re.search(rf"\b(from|import) {name}\b|'{name}/msg/", text)
                   for text in texts), key
    of_ros = {name for text in texts for name in re.findall(
        r'^ *(?:from|import) (rclpy|tf2_ros|launch\w*|ament\w+|\w+_msgs)\b', text, re.MULTILINE)}
    assert of_ros <= keys - {'tf2_ros_py'} | {'tf2_ros'}


def test_no_address_is_that_of_somebody():
    """Until the project has addresses of its own."""
    for name in ('package.xml', 'setup.cfg', 'CITATION.cff', 'SECURITY.md'):
        found = re.findall(r'(?:https?://|[\w.]+@)([\w.]+)', (ROOT / name).read_text())
        assert set(found) <= {
            'example.invalid', 'download.ros.org', 'www.w3.org'}, name


def fields_of(path):
    lines = path.read_text(encoding='utf-8').splitlines()
    return [line for line in lines if line.strip() and not line.startswith('#')]


def test_every_message_field_is_documented():
    wrong = [f'{path.name}: no summary' for path in MESSAGES
             if not path.read_text(encoding='utf-8').startswith('# ')]
    for path, line in [(each, line) for each in MESSAGES for line in fields_of(each)]:
        declaration, _, comment = line.partition('#')
        is_float = re.match(r'float\d+\b|geometry_msgs/(Pose|Twist|Vector3)\b', declaration)
        # What the source may leave out or send as null is documented with the value for it.
        always_sent = declaration.split()[1] in ALWAYS_SENT or path.stem not in CONTRACT_MESSAGES
        if len(comment.split()) < 3 or (is_float and not always_sent and not re.search(
                'NaN|identity|if the source has none', comment)):
            wrong.append(f'{path.name}: {line}')
    assert not wrong, '\n'.join(wrong)


def test_shared_files_are_found_and_missing_ones_are_reported():
    assert share_file('msg', 'ControlState.msg').is_file()
    assert share_file('resource').is_dir()
    with pytest.raises(FileNotFoundError, match=r'found no msg/None\.msg in .*; expected'):
        share_file('msg', 'None.msg')
