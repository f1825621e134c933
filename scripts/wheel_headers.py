# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Name the header folders of this machine in the CMake files of installed wheels.

In the syntax of Python 3.6, as environment.py.
"""
import re
import sysconfig

from environment import Environment
from steps import run


def rewrite_header_paths(environment: Environment) -> None:
    """
    Replace header folders of other environments by those of this one.

    CMake refuses folders that do not exist. The wheels name those of the machine that built them.
    Each file is replaced, never written in place: uv links the files of an environment to its
    cache, of which all environments of the user are made. A cache that has been written to names
    the folders of another environment.

    :param environment: filled with wheels.
    """
    command = [environment.python, '-c', 'import numpy; print(numpy.get_include())']
    numpy_headers = run(environment, 'numpy', command).strip()
    python_headers = sysconfig.get_path('include')
    for path in (environment.venv / 'share').glob('*/cmake/*__rosidl_generator_pyExport.cmake'):
        found = path.read_text()
        text = re.sub('/[^;"]*/numpy/_?core/include', numpy_headers, found)
        text = re.sub('/[^;"]*/include/python[0-9.]+', python_headers, text)
        if text != found:
            replacement = path.with_name(path.name + '.new')
            replacement.write_text(text)
            replacement.replace(path)
