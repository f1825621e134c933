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
from pathlib import Path

from setuptools import find_packages, setup

SHARED = [folder for folder in ('msg', 'resource', 'config') if Path(folder).is_dir()]

setup(
    packages=find_packages(include=['state_sensor_ros', 'state_sensor_ros.*'])
    + [f'state_sensor_ros.data.{folder}' for folder in SHARED],
    package_dir={f'state_sensor_ros.data.{folder}': folder for folder in SHARED},
    package_data={'state_sensor_ros': ['py.typed']}
    | {f'state_sensor_ros.data.{folder}': ['*', '**/*'] for folder in SHARED},
)
