# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The launch files: their arguments; what they start, where `launch` is installed."""

import ast
import importlib.util
from pathlib import Path
import re

from paths import ROOT
import pytest
import yaml

LAUNCH = ROOT / 'launch'
# Those of the interface.
ARGUMENTS = {
    'source', 'host', 'port', 'control_port', 'config_file', 'trajectory_file', 'desired_tags',
    'undesired_tags', 'include_obb', 'debug_drawing', 'global_frame', 'frame_prefix', 'ego_frame',
    'publish_clock', 'outputs', 'use_sim_time', 'params_file', 'namespace', 'name', 'rviz',
    'autoware', 'record', 'log_level'}


def test_launch_arguments_are_those_of_the_interface():
    """Without launch, which PyPI does not have."""
    texts = {node.value for node in ast.walk(ast.parse((LAUNCH / 'state_sensor.launch.py')
             .read_text())) if isinstance(node, ast.Constant)}
    assert ARGUMENTS - texts == set()
    compile((LAUNCH / 'demo.launch.py').read_text(), 'demo.launch.py', 'exec')


# --- with ROS's own `launch` -------------------------------------------------------------------


def module_of(name):
    spec = importlib.util.spec_from_file_location(name, LAUNCH / f'{name}.launch.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def started():
    """Return a function that returns the command line of each process."""
    # Our own folder `launch` would pass for the package of that name.
    pytest.importorskip('launch_ros', reason='needs launch_ros: a full ROS 2')
    from launch import LaunchContext

    def words(**given):
        module, context = module_of('state_sensor'), LaunchContext()
        for argument in module.ARGUMENTS:
            default = ''.join(part.text for part in argument.default_value)
            context.launch_configurations[argument.name] = given.get(argument.name, default)
        return module._processes(context), context

    return words


@pytest.mark.parametrize('name', ['state_sensor', 'demo'])
def test_launch_shows_each_argument_with_a_sentence(started, name):
    found = module_of(name).generate_launch_description().get_launch_arguments()
    assert {each.name for each in found} == ARGUMENTS | (
        {'simulator', 'drive'} if name == 'demo' else set())
    assert len(found) == len({each.name for each in found})
    for each in found:
        assert re.match(r'[A-Z].*[.\]]$', each.description), each.name
        assert each.default_value is not None


@pytest.mark.parametrize('namespace', ['', '/', 'sim1', '/sim1', '/a/b'])
def test_launch_records_the_topics_of_this_driver(started, namespace):
    processes, context = started(record='true', namespace=namespace, name='truth')
    words = [''.join(part.perform(context) for part in word) for word in processes[0].cmd]
    pattern = words[words.index('--regex') + 1]
    node = f'/{namespace.strip("/")}/truth'.replace('//', '/')
    for topic in (f'{node}/frame', f'{node}/actors/a_1/odometry', '/tf', '/diagnostics'):
        assert re.search(pattern, topic), topic
    for topic in ('/other/frame', f'{node}', '/tf2', '/x/tf', f'{node}2/frame'):
        assert not re.search(pattern, topic), topic
    assert '--output' not in words


def parameters_of(processes, context):
    from launch_ros.utilities import evaluate_parameters
    return list(evaluate_parameters(context, processes[-1]._Node__parameters))


def test_launch_gives_the_file_first_and_single_values_after_it(started, tmp_path):
    file = tmp_path / 'params.yaml'
    file.write_text('/**: {ros__parameters: {port: 1}}')
    first, second = parameters_of(*started(
        params_file=str(file), port='8701', host='10.0.0.2', use_sim_time='true', rviz='true',
        debug_drawing='false', frame_prefix='a/', desired_tags='car, truck', outputs='[vision]'))
    assert first == file
    assert second == {
        'port': 8701, 'host': '10.0.0.2', 'use_sim_time': True, 'debug_drawing': False,
        'ego_frame': 'a/base_link', 'frame_prefix': 'a/', 'desired_tags': ('car', 'truck'),
        'outputs': ('vision',)}


def test_launch_for_autoware_sets_what_it_reads(started, tmp_path):
    expected = {'outputs': ['autoware'], 'ego_frame': 'base_link', 'tf': 'ego'}

    def found(**given):
        [*_, last] = parameters_of(*started(autoware='true', **given))
        return {name: list(value) if name == 'outputs' else value for name, value in last.items()}
    assert found() == expected
    assert found(rviz='true', ego_frame='car', outputs='vision') == {
        **expected, 'debug_drawing': True, 'ego_frame': 'car', 'outputs': ['autoware', 'vision']}
    file = tmp_path / 'params.yaml'
    file.write_text('/**: {ros__parameters: {outputs: [vision], tf: none, ego_frame: car}}')
    assert found(params_file=str(file)) == {**expected, 'outputs': ['autoware', 'vision']}
    file.write_text('/**: {ros__parameters: {outputs: }}')
    assert found(params_file=str(file)) == expected


def rviz_arguments(started, **given):
    """Return the configuration and the fixed frame that RViz is started with."""
    processes, context = started(rviz='true', **given)
    words = [''.join(part.perform(context) for part in word) if isinstance(word, list) else word
             for word in processes[0]._Node__arguments]
    tree = yaml.safe_load(Path(words[words.index('-d') + 1]).read_text())['Visualization Manager']
    frames = {tree['Views']['Current']['Target Frame'],
              *(view['Target Frame'] for view in tree['Views']['Saved'])}
    return frames, words[words.index('-f') + 1], parameters_of(processes, context)[-1]


@pytest.mark.parametrize(('name', 'content', 'followed', 'fixed', 'overridden'), [
    ('/**', {}, 'base_link', 'map', {'ego_frame': 'base_link'}),
    ('/**', {'ego_frame': 'car', 'global_frame': 'odom'}, 'car', 'odom', {}),
    ('/sim1/*', {'frame_prefix': 'one/'}, 'one/base_link', 'map', {'ego_frame': 'one/base_link'}),
    ('sim1/truth', {'tf': 'none'}, 'base_link', 'map', {'tf': 'ego', 'ego_frame': 'base_link'}),
    ('/sim2/**', {'ego_frame': 'car'}, 'base_link', 'map', {'ego_frame': 'base_link'}),
], ids=str)
def test_launch_rviz_follows_a_frame_of_the_driver(started, tmp_path, name, content, followed,
                                                   fixed, overridden):
    file = tmp_path / 'params.yaml'
    file.write_text(yaml.safe_dump({name: {'ros__parameters': content}}))
    frames, fixed_frame, parameters = rviz_arguments(
        started, namespace='sim1', name='truth', params_file=str(file))
    assert (frames, fixed_frame) == ({followed}, fixed)
    assert parameters == {'debug_drawing': True, **overridden}


@pytest.mark.parametrize(('given', 'in_file', 'is_simulated'), [
    ({}, {}, True), ({'use_sim_time': 'true'}, {'publish_clock': False}, True),
    ({'use_sim_time': 'false'}, {}, False), ({'publish_clock': 'false'}, {}, False),
    ({'publish_clock': 'true'}, {'publish_clock': False}, True),
    ({}, {'stamp_source': 'ros'}, False)])
def test_launch_rviz_has_a_clock_that_jumps_back(started, tmp_path, given, in_file, is_simulated):
    """Only that resets tf2 when the simulator begins again."""
    file = tmp_path / 'params.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': in_file}}))
    processes, context = started(rviz='true', params_file=str(file), **given)
    assert parameters_of(processes[:1], context) == [{'use_sim_time': is_simulated}]


@pytest.mark.parametrize(('namespace', 'name'), [('', 'state_sensor'), ('/a/b', 'truth')])
def test_launch_rviz_shows_the_topics_of_the_driver(started, namespace, name):
    (rviz, *_), _ = started(rviz='true', namespace=namespace, name=name)

    def text_of(parts):
        return ''.join(getattr(part, 'text', part) for part in parts)
    found = {text_of(old): text_of(new) for old, new in rviz._Node__remappings}
    config = yaml.safe_load((LAUNCH.parent / 'config' / 'state_sensor.rviz').read_text())
    shown = {display['Topic']['Value'] for display in config['Visualization Manager']['Displays']
             if 'Topic' in display}
    # A relative name is resolved in the namespace of RViz, which is that of the driver.
    assert text_of(rviz._Node__node_namespace) == namespace
    assert found == {topic: topic[1:].replace('state_sensor', name) for topic in shown}


def test_launch_log_level_is_of_the_driver_alone(started):
    processes, _ = started(namespace='/a/b', name='truth', log_level='debug')
    assert processes[-1]._Node__ros_arguments == ['--log-level', 'a.b.truth:=debug']


@pytest.mark.parametrize(('name', 'value', 'words'), [
    ('port', 'abc', "port: found 'abc'; expected a whole number"),
    ('port', '70000', 'port: found 70000; expected 1 to 65535'),
    ('outputs', 'a,vision', "outputs: found 'a'; expected one of autoware, derived_objects"),
    ('params_file', '/nowhere.yaml', 'params_file: there is no file /nowhere.yaml'),
    ('record', 'old', 'record: found old, which exists; expected a new folder')])
def test_launch_names_a_wrong_argument(started, name, value, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path('old').mkdir()
    from state_sensor_ros.errors import ConfigError
    with pytest.raises(ConfigError, match=re.escape(words)):
        started(**{name: value})


@pytest.mark.parametrize(('name', 'value', 'packages'), [
    ('rviz', 'true', 'rviz2'), ('record', 'bag', 'ros2bag rosbag2-storage-mcap')])
def test_launch_names_a_missing_package(started, monkeypatch, name, value, packages):
    _, context = started(**{name: value})
    module = module_of('state_sensor')
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    monkeypatch.setattr(module, 'get_packages_with_prefixes', dict)
    words = ' '.join(f'ros-jazzy-{package}' for package in packages.split())
    from state_sensor_ros.errors import ConfigError
    with pytest.raises(ConfigError, match=f'{name}: found {value} without the package .*; '
                                          f'expected apt install {words}, or {name}:=false'):
        module._check_packages(context)
