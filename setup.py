# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Package the part that needs no ROS, for `pip install .`; metadata is in setup.cfg.

ROS builds use CMakeLists.txt. The files that ament installs into its share folder are package
data here.
"""
import configparser
from pathlib import Path
import re
import sys

# Before pip looks for libraries, of which the last ones for an old Python fit nothing here.
if sys.version_info < (3, 10):  # noqa: UP036 (pip runs this before it checks the version)
    sys.exit('error: state_sensor_ros needs Python 3.10 or newer; this is {}.{} ({})'.format(
        *sys.version_info[:2], sys.executable))

from setuptools import find_packages, setup


def long_description() -> str:
    """Return the README with links that also work on PyPI, which has none of the other files."""
    metadata = configparser.ConfigParser()
    metadata.read('setup.cfg', encoding='utf-8')
    base = metadata['metadata']['url']

    def absolute(link: re.Match) -> str:
        kind = 'raw' if link[1].endswith(('.png', '.gif', '.svg', '.jpg')) else 'blob'
        return f']({base}/{kind}/main/{link[1]})'

    text = Path('README.md').read_text(encoding='utf-8')
    return re.sub(r'\]\((?!https?:|#)([^)\s]+)\)', absolute, text)


SHARED = [folder for folder in ('msg', 'resource', 'config') if Path(folder).is_dir()]

setup(
    long_description=long_description(),
    long_description_content_type='text/markdown',
    packages=find_packages(include=['state_sensor_ros', 'state_sensor_ros.*'])
    + [f'state_sensor_ros.data.{folder}' for folder in SHARED],
    package_dir={f'state_sensor_ros.data.{folder}': folder for folder in SHARED},
    package_data={'state_sensor_ros': ['py.typed']}
    | {f'state_sensor_ros.data.{folder}': ['*', '**/*'] for folder in SHARED},
)
