# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
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
    + [f'state_sensor_ros.files.{folder}' for folder in SHARED],
    package_dir={f'state_sensor_ros.files.{folder}': folder for folder in SHARED},
    package_data={'state_sensor_ros': ['py.typed']}
    | {f'state_sensor_ros.files.{folder}': ['*', '**/*'] for folder in SHARED},
)
