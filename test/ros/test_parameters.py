# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Parameters of the running node: described, refused with reasons, changed between two frames."""

from array import array
import re
import shutil

from budgets import AWAIT_S, first_of
from paths import SAMPLE
from programs import PIPES, start_node
import pytest
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue, SetParametersResult
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import get_parameter_value, Parameter, parameter_value_to_python
from rig import framed, NodeProcess, Remote, state
from wrong_values import other_value, SCHEMA, WRONG
import yaml

from state_sensor_ros.ros.parameters import NodeParameters
from state_sensor_ros.settings import CORE, NAMES

START_S, PERIOD_S = 1.0, 0.05


@pytest.fixture
def remote(domain, listener, simulator):
    with NodeProcess(domain, port=simulator.port) as node:
        found = Remote(listener)
        found.node = node
        yield found


def test_parameters_are_described(remote):
    described = remote.call(DescribeParameters, names=list(NAMES)).descriptors
    assert [each.name for each in described] == list(NAMES)
    for each in described:
        assert each.description.startswith(CORE.find(each.name).rule.help)
        assert each.type != ParameterType.PARAMETER_NOT_SET
        rule = CORE.find(each.name).rule
        if rule.choices:
            assert all(choice in each.additional_constraints for choice in rule.choices)
        if rule.low is not None and rule.high is not None:
            ranges = list(each.integer_range) + list(each.floating_point_range)
            assert [(r.from_value, r.to_value) for r in ranges] == [(rule.low, rule.high)]


def test_parameters_wrong_values_are_refused_while_running(remote):
    for (name, value), result in zip(WRONG, remote.set_each(WRONG), strict=True):
        assert not result.successful, (name, value)
        assert result.reason, (name, value)
    assert remote.node.is_alive


def test_parameters_change_while_running_if_they_are_dynamic(remote):
    all_declared = [SCHEMA.find(name) for name in SCHEMA.names]
    results = remote.set_each([(each.name, other_value(each)) for each in all_declared])
    for declared, result in zip(all_declared, results, strict=True):
        # Other reasons come first where parameters depend on each other.
        assert result.successful is declared.rule.dynamic, (declared.name, result.reason)
        assert result.successful or re.search('restart|; expected', result.reason)
    assert 'restart' in remote.set('port', 9999).reason


def test_parameters_are_read_back_from_their_dump(domain, listener):
    """As `ros2 param load` does: each value of the file is a text that is read as YAML again."""
    with NodeProcess(domain, autostart=False, **{'perception.position_std': 1e-09}) as node:
        remote = Remote(listener)
        names = list(SCHEMA.names)
        values = remote.call(GetParameters, names=names).values
        plain = [parameter_value_to_python(value) for value in values]
        assert 1e-09 in plain
        loaded = [get_parameter_value(str(value)) for value in yaml.safe_load(yaml.dump(
            [list(value) if isinstance(value, array) else value for value in plain]))]
        results = remote.call(SetParameters, parameters=[
            ParameterMessage(name=name, value=value)
            for name, value in zip(names, loaded, strict=True)]).results
        assert [(name, result.reason) for name, result in zip(names, results, strict=True)
                if not result.successful] == []
        assert repr(remote.call(GetParameters, names=names).values) == repr(values)
        assert node.is_alive


def test_parameters_of_the_source_change_with_it(listener):
    node = Node('parameters', context=listener.node.context)
    own = NodeParameters(node, lambda settings: None)

    def change(**values):
        assert node.set_parameters_atomically(
            [Parameter(name.replace('__', '.'), value=value) for name, value in values.items()]
        ).successful
        return [node.get_parameter(name).value for name in ('port', 'osi.port')]

    # The port is that of the source.
    assert change(source='osi') == [48198] * 2
    assert change(port=5000) == [5000] * 2
    # A default gives way to the other name of the same parameter.
    assert change(port=6000, osi__port=48198) == [6000] * 2
    assert change(source='monodrive', port=7000) == [7000, 6000]
    assert own.settings.port == 7000
    # The usual port of another source comes with it.
    assert change(source='carla', port=8700) == [8700, 6000]
    assert change(source='monodrive') == [8700, 6000]
    assert change(source='carla')[0] == 2001
    node.destroy_node()


@pytest.mark.parametrize(('parameters', 'words'), first_of(n_always=6, cases=[
    ({'port': 0}, 'port: found 0; expected 1 to 65535'),
    (['-p', 'port'], 'port'), (['-r', '__node:=bad-name'], '__node:=bad-name'),
    (['--params-file', '/nowhere.yaml'], '--params-file /nowhere.yaml'),
    ({'source': 'osi', 'port': 7000, 'osi.port': 8000}, 'expected one value: .*osi.port'),
    ({'source': 'file', 'trajectory_file': '/nowhere/drive.json'}, '/nowhere/drive.json'),
    ({'osi.ego': 0, 'source': 'osi'}, '''found 0; expected text; quote it: -p "osi.ego:='0'"'''),
    ({'tf': 'sometimes'}, 'tf: found .sometimes.; expected one of all, ego, none'),
    ({'rate': 'fast'}, 'rate: found .fast.; expected a number'),
    ({'control_port': 8999}, 'desired_tags: found an empty list'),
    ({'config_file': '/nowhere/sensors.json'}, '/nowhere/sensors.json'),
    (['--params-file', str(SAMPLE)], str(SAMPLE))]), ids=str)
def test_parameters_wrong_at_start_end_the_node(domain, parameters, words):
    own = {'arguments': parameters} if isinstance(parameters, list) else parameters
    with NodeProcess(domain, **own) as node:
        assert node.process.wait(AWAIT_S) == 1
        errors = [line for line in node.log.splitlines() if line.startswith('error: ')]
        assert len(errors) == 1, node.log
        assert re.search(words, errors[0])
        assert own is not parameters or node.log.count(errors[0].removeprefix('error: ')) == 1
        assert 'Traceback' not in node.log


def test_parameters_help_and_unknown_options():
    for option, code, words in (
            ('--help', 0, ['state_sensor parameters', 'sumo, osi']),
            ('--fast', 2, ['error: unknown argument --fast'])):
        process = start_node([shutil.which('state_sensor_node'), *option.split()], **PIPES)
        output, errors = process.communicate(timeout=AWAIT_S)
        assert process.returncode == code, option
        assert all(word in output + errors for word in words), option
        assert len(output.splitlines()) <= 45, option


def test_parameters_keep_their_types(remote):
    def types(*names):
        return [each.type for each in remote.call(GetParameters, names=names).values]

    # As `ros2 param set` sends them: integers, and an empty list of booleans.
    empty = ParameterValue(type=ParameterType.PARAMETER_BOOL_ARRAY)
    for name, value in (('object_range', 2), ('global_frame_pose', [0, 0, 1, 0, 0, 0])):
        result = remote.set(name, value)
        assert result.successful or 'restart' in result.reason, result.reason
    assert remote.set('object_range', 2).successful
    assert types('object_range', 'global_frame_pose') == [
        ParameterType.PARAMETER_DOUBLE, ParameterType.PARAMETER_DOUBLE_ARRAY]
    for values in (empty, ['car'], [], ['vehicle', 'ego']):
        value = values if values is empty else Parameter('', value=values).get_parameter_value()
        message = ParameterMessage(name='desired_tags', value=value)
        [result] = remote.call(SetParameters, parameters=[message]).results
        assert result.successful, result.reason
        assert types('desired_tags') == [ParameterType.PARAMETER_STRING_ARRAY]
    assert not remote.set('desired_tags', [1]).successful
    [value] = remote.call(GetParameters, names=['desired_tags']).values
    assert list(value.string_array_value) == ['vehicle', 'ego']


class Drive:
    """Send frames of two actors and receive their topics."""

    def __init__(self, listener, simulator):
        self.listener, self.simulator, self.number = listener, simulator, 0
        self.received = {
            'tf': listener.subscribe('/tf', 'tf2_msgs/TFMessage'),
            'frame': listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame'),
            'markers': listener.subscribe('/state_sensor/markers',
                                          'visualization_msgs/MarkerArray'),
            'odometry': listener.subscribe('/state_sensor/actors/ego_car/odometry',
                                           'nav_msgs/Odometry')}
        simulator.accept()

    def send(self):
        states = (state('ego_car', tags=('vehicle', 'ego')), state('other', tags=('vehicle',)))
        self.simulator.send(framed(self.number, *states, period=PERIOD_S, start=START_S))
        self.number += 1
        self.listener.spin(0.05)

    def until(self, condition, what):
        def sent_and_true():
            self.send()
            return condition()
        self.listener.until(sent_and_true, what=what)

    def children(self):
        return [each.child_frame_id for each in self.received['tf'][-1].transforms]

    def drawn(self):
        return sorted((each.ns, each.action) for each in self.received['markers'][-1].markers)


def test_parameters_dynamic_ones_take_effect_while_streaming(remote, listener, simulator):
    drive = Drive(listener, simulator)
    drive.until(lambda: drive.received['tf'] and drive.received['odometry'], 'the stream')
    assert drive.children() == ['ego_car', 'other']

    assert remote.set('tf', 'ego').successful
    drive.until(lambda: drive.children() == ['ego_car'], 'TF of the ego alone')
    assert remote.set('tf', 'all').successful
    assert remote.set('undesired_tags', ['EGO']).successful
    drive.until(lambda: drive.children() == ['other'], 'TF without the ego')
    assert remote.set('undesired_tags', []).successful
    drive.until(lambda: drive.children() == ['ego_car', 'other'], 'TF of all')

    assert remote.set('debug_drawing', True).successful
    drive.until(lambda: drive.received['markers'], 'markers')
    drive.until(lambda: drive.drawn() == [('ego', 0), ('labels', 0), ('labels', 0),
                                          ('vehicles', 0)], 'boxes and labels')
    assert remote.set('labels', False).successful
    drive.until(lambda: drive.drawn() == [('ego', 0), ('vehicles', 0)], 'boxes alone')
    assert remote.set('include_obb', False).successful
    drive.until(lambda: [action for _, action in drive.drawn()] == [3], 'empty displays')
    drive.until(lambda: not drive.received['frame'][-1].actors[0].oriented_bounding_boxes,
                '~/frame without boxes')

    assert remote.set('odometry', False).successful
    listener.until(lambda: not listener.node.count_publishers(
        '/state_sensor/actors/ego_car/odometry') or drive.send(), what='topics that go')
    n_odometry = len(drive.received['odometry'])
    assert remote.set('odometry', True).successful
    drive.until(lambda: len(drive.received['odometry']) > n_odometry, 'odometry once more')
    # No frame was torn: each transform message has one stamp, and stamps increase.
    stamps = []
    for message in drive.received['tf']:
        own = {(each.header.stamp.sec, each.header.stamp.nanosec) for each in message.transforms}
        assert len(own) == 1
        stamps += own
    assert stamps == sorted(set(stamps))


def test_parameters_take_effect_only_where_every_callback_accepts_them(listener):
    node, refused, applied = listener.node, set(), []
    # rclpy calls the callback that was added last first: this one refuses after the node's own.
    node.add_on_set_parameters_callback(lambda parameters: SetParametersResult(
        successful=not refused & {each.name for each in parameters}, reason='refused'))
    own = NodeParameters(node, applied.append)
    refused.add('debug_drawing')
    both = [Parameter('tf', value='ego'), Parameter('debug_drawing', value=True)]
    assert not node.set_parameters_atomically(both).successful
    assert (own.settings.tf, own.settings.debug_drawing, applied) == ('all', False, [])
    refused.clear()
    assert node.set_parameters_atomically(both).successful
    assert (own.settings.tf, own.settings.debug_drawing, applied) == ('ego', True, [own.settings])
    assert node.set_parameters_atomically(both).successful
    assert len(applied) == 1


@pytest.mark.parametrize(('given', 'lines'), [
    ({'debug_drawing': True, 'include_obb': False}, [
        'debug_drawing has no effect: include_obb is false']),
    ({'wheel_tf': True, 'tf': 'none'}, ['wheel_tf has no effect: tf is none']),
    ({'trajectory_file': 'a.json'}, ['trajectory_file has no effect: source is monodrive']),
    ({'outputs': ['vision'], 'perception.velocity_std': 0.5}, [
        'no output uses the parameters perception.velocity_std']),
    ({'outputs': ['vision'], 'perception.ghosts': 0.5, 'control.kp': 2.0}, [])])
def test_parameters_that_another_one_switches_off_are_named(listener, given, lines):
    node = Node('parameters', context=listener.node.context, parameter_overrides=[
        Parameter(name, value=value) for name, value in given.items()])
    assert NodeParameters(node, lambda settings: None).warnings == lines
    node.destroy_node()
