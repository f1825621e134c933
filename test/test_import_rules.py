# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The arrows of the architecture: which module may import what."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / 'state_sensor_ros'
MODULES = sorted(PACKAGE.rglob('*.py'))
# The edge: only these know a ROS graph.
ROS_EDGE = {'node.py', 'parameters.py', 'playback.py', 'program.py', 'simulation_services.py',
            'sinks/topics.py', 'sinks/static_tf.py'}
ROS_PACKAGES = {'rclpy', 'rcl_interfaces', 'diagnostic_msgs', 'geometry_msgs', 'tf2_msgs',
                'tf2_ros', 'nav_msgs', 'std_msgs', 'sensor_msgs', 'visualization_msgs'}
# The numbers: no sockets, no files, no ROS, no command line.
PURE = {'frame.py', 'rep103.py', 'naming.py', 'framing.py', 'decode.py', 'stamps.py', 'truth.py',
        'common_ends.py', 'control.py', 'errors.py', 'settings.py', 'tag_rule.py',
        'entity_filter.py'}
EFFECTS = {'socket', 'subprocess', 'argparse', 'threading'}


def imported(path):
    """Return the modules that ``path`` imports, with those inside functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
            names.update(f'{node.module}.{alias.name}' for alias in node.names)
    return names


def roots(path):
    return {name.split('.')[0] for name in imported(path)}


def place(path):
    return path.relative_to(PACKAGE).as_posix()


@pytest.mark.parametrize('path', MODULES, ids=place)
def test_imports_follow_the_arrows(path):
    where = place(path)
    if where not in ROS_EDGE:
        assert not roots(path) & ROS_PACKAGES
    if where in PURE or where.startswith(('cdr/', 'generations/', 'encode/')):
        assert not roots(path) & EFFECTS
    if 'socket' in roots(path):
        assert where.startswith(('sources/', 'emulator/'))
    if where.startswith('emulator/'):
        # Two readings of the protocol that agree are worth more than one.
        own = {name for name in imported(path) if name.startswith('state_sensor_ros')}
        assert all(name.startswith(('state_sensor_ros.emulator', 'state_sensor_ros.errors',
                                    'state_sensor_ros.share', 'state_sensor_ros.carla.schema'))
                   for name in own), own
    if not where.startswith(('commands/', 'cli.py')):
        assert not any(name.startswith('state_sensor_ros.commands') for name in imported(path))


def test_imports_errors_knows_nobody():
    assert imported(PACKAGE / 'errors.py') == set()
