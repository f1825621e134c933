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
FILES = sorted(LAUNCH.glob('*.py'))


def declared(path):
    """Return the keywords of each DeclareLaunchArgument by the argument's name."""
    return {node.args[0].value: {keyword.arg: keyword.value for keyword in node.keywords}
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and getattr(node.func, 'id', '')
            == 'DeclareLaunchArgument'}


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_arguments_are_declared_with_a_description(path):
    compile(path.read_text(), path.name, 'exec')
    found = declared(path)
    assert 'rviz' in found
    assert all({'default_value', 'description'} <= keywords.keys() for keywords in found.values())


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


def kinds(processes):
    return [getattr(process, 'node_package', 'command') for process in processes]


def test_launch_starts_the_driver_alone_by_default(started):
    processes, _ = started()
    assert kinds(processes) == ['state_sensor_ros']


def test_launch_starts_what_is_chosen_before_the_driver(started):
    processes, _ = started(rviz='true', record='bag')
    assert kinds(processes) == ['rviz2', 'command', 'state_sensor_ros']


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
    first, second = parameters_of(*started(params_file=str(file), port='8701', host='10.0.0.2',
                                           use_sim_time='true', rviz='true'))
    assert first == file
    assert second == {'port': 8701, 'host': '10.0.0.2', 'use_sim_time': True,
                      'debug_drawing': True, 'ego_frame': 'base_link'}


def test_launch_for_autoware_sets_what_it_reads(started, tmp_path):
    expected = {'outputs': ['autoware'], 'ego_frame': 'base_link', 'tf': 'ego',
                'publish_clock': True}

    def found(**given):
        [*_, last] = parameters_of(*started(autoware='true', **given))
        return {name: list(value) if name == 'outputs' else value for name, value in last.items()}
    assert found() == expected
    assert found(rviz='true') == {**expected, 'debug_drawing': True}
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
    assert parameters == {'debug_drawing': True, 'publish_clock': True, **overridden}


@pytest.mark.parametrize(('given', 'in_file', 'is_simulated', 'publishes'), [
    ({}, {}, True, True), ({'use_sim_time': 'true'}, {}, True, None),
    ({'use_sim_time': 'false'}, {}, False, None), ({}, {'publish_clock': False}, False, False),
    ({'autoware': 'true'}, {}, True, True)])
def test_launch_rviz_has_a_clock_that_jumps_back(started, tmp_path, given, in_file, is_simulated,
                                                 publishes):
    """Only that resets tf2 when the simulator begins again."""
    file = tmp_path / 'params.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': in_file}}))
    processes, context = started(rviz='true', params_file=str(file), **given)
    [rviz] = parameters_of(processes[:1], context)
    assert rviz == {'use_sim_time': is_simulated}
    assert parameters_of(processes, context)[-1].get('publish_clock') is publishes


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
    ('params_file', '/nowhere.yaml', 'params_file: there is no file /nowhere.yaml'),
    ('record', 'old', 'record: found old, which exists; expected a new folder')])
def test_launch_names_a_wrong_argument(started, name, value, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path('old').mkdir()
    from state_sensor_ros.errors import ConfigError
    with pytest.raises(ConfigError, match=re.escape(words)):
        started(**{name: value})


def test_launch_demo_leaves_the_host_and_the_parameters_to_its_arguments(started):
    from launch.actions import IncludeLaunchDescription
    description = module_of('demo').generate_launch_description()
    [included] = [each for each in description.entities
                  if isinstance(each, IncludeLaunchDescription)]
    given = dict(included.launch_arguments)
    assert 'host' not in given
    assert given['params_file'].variable_name[0].text == 'params_file'
