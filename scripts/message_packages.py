# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Write CMake projects of message packages of other projects from their field lists.

A project builds only what rclpy needs: C messages, the type support of Fast DDS for C,
introspection in C, of which Fast DDS makes the description of a type, and Python. In the syntax of
Python 3.6, as environment.py.
"""
from pathlib import Path
import re
import shutil

from environment import LEAN, ROOT

# Definitions of packages without wheels: what the node needs, and what only autonomy stacks need.
#: Folders of the packages that the node needs, and of those of autonomy stacks.
INTERFACES = (ROOT / 'scripts' / 'interfaces',)
STACKS = (ROOT / 'resource' / 'interfaces', ROOT / 'scripts' / 'stack_interfaces')
_GENERATORS = (
    'ament_cmake', 'rosidl_cmake', 'rosidl_generator_type_description',
    'rosidl_generator_c', 'rosidl_typesupport_introspection_c',
    'rosidl_typesupport_fastrtps_c', 'rosidl_typesupport_c', 'rosidl_generator_py')
_CMAKE = """cmake_minimum_required(VERSION 3.20)
project({name})
{found}
include({lean})
lean_generators()
rosidl_generate_interfaces({name} {files} DEPENDENCIES {dependencies})
lean_libraries({name})
ament_package()
"""
_MANIFEST = """<?xml version="1.0"?>
<package format="3">
  <name>{name}</name>
  <version>0.0.1</version>
  <description>Field lists of {name}: same type names and hashes as the real one.</description>
  <maintainer email="maintainers@example.invalid">The maintainers</maintainer>
  <license>Apache-2.0</license>{depends}
  <member_of_group>rosidl_interface_packages</member_of_group>
  <export><build_type>ament_cmake</build_type></export>
</package>
"""
_OF_SERVICES = ('service_msgs', 'builtin_interfaces')
_OF_KIND = {'msg': (), 'srv': _OF_SERVICES,
            'action': (*_OF_SERVICES, 'action_msgs', 'unique_identifier_msgs')}
# A field or constant whose type is of another package.
_FOREIGN = re.compile(r'^([a-z]\w*)/\w+', re.MULTILINE)


def definitions_in(folders: tuple) -> dict:
    """Return the definition files in folders, by package."""
    found = {}
    for folder in folders:
        for path in sorted(folder.glob('*/*.*')):
            found.setdefault(path.parent.name, []).append(path)
    return found


def write_project(name: str, definitions: list, folder: Path) -> None:
    """
    Write a CMake project for one package.

    :param name: of the package.
    :param definitions: its .msg, .srv and .action files.
    :param folder: of the project, replaced.
    """
    shutil.rmtree(str(folder), ignore_errors=True)
    files, dependencies = [], set()
    for path in definitions:
        kind = path.suffix[1:]
        (folder / kind).mkdir(parents=True, exist_ok=True)
        shutil.copy(str(path), str(folder / kind / path.name))
        files.append('{}/{}'.format(kind, path.name))
        dependencies.update(_FOREIGN.findall(path.read_text()), _OF_KIND[kind])
    dependencies.discard(name)
    names = sorted(dependencies)
    found = '\n'.join('find_package({} REQUIRED)'.format(each)
                      for each in _GENERATORS + tuple(names))
    (folder / 'CMakeLists.txt').write_text(_CMAKE.format(
        name=name, found=found, lean=LEAN, files=' '.join(files), dependencies=' '.join(names)))
    (folder / 'package.xml').write_text(_MANIFEST.format(
        name=name, depends=''.join('<depend>{}</depend>'.format(each) for each in names)))
