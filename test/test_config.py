# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The files of config/ agree with the code."""

import json
import runpy

from message_store import typestore
from paths import ROOT
import pytest
import yaml

from state_sensor_ros.settings import DEFAULTS, OUTPUTS, parse_settings
from state_sensor_ros.simulators import checked_settings, schema_of
from state_sensor_ros.topics.encoder import output_encoders, TOPICS

CONFIG = ROOT / 'config'
PARAMETERS = CONFIG / 'state_sensor.yaml'
NODE = '/state_sensor'
SCHEMA = schema_of()


def parameters_of(path):
    tree = yaml.safe_load(path.read_text())
    assert list(tree) == ['/**']
    assert list(tree['/**']) == ['ros__parameters']
    return tree['/**']['ros__parameters']


def test_config_lists_every_parameter_with_its_default():
    written = runpy.run_path(str(ROOT / 'scripts' / 'parameter_file.py'))
    assert written['OUT'] == PARAMETERS
    assert PARAMETERS.read_text() == written['text'](), 'run scripts/parameter_file.py'
    values = parameters_of(PARAMETERS)
    assert list(values) == list(SCHEMA.names)
    for name in SCHEMA.names:
        value, default = values[name], SCHEMA.find(name).default
        if isinstance(default, tuple):
            # An empty list of YAML has no type of items; '' matches no tag.
            assert isinstance(value, list)
            value = tuple(item for item in value if item != '')
        # NaN differs from itself.
        assert repr(value) == repr(default)


def test_config_is_accepted_as_it_stands():
    values = parameters_of(PARAMETERS)
    assert checked_settings(values) == DEFAULTS


@pytest.mark.parametrize(('name', 'source'), [
    ('demo', 'monodrive'), ('demo_sumo', 'sumo')])
def test_config_of_each_demo_is_accepted(name, source):
    settings = checked_settings(parameters_of(CONFIG / f'{name}.yaml'))
    assert (settings.source, settings.ego_frame) == (source, 'base_link')


def topics():
    return {topic.name.replace('~', NODE) for each in TOPICS for topic in each.topics}


def displays():
    tree = yaml.safe_load((CONFIG / 'state_sensor.rviz').read_text())['Visualization Manager']
    return tree, {display['Class'].rpartition('/')[2]: display for display in tree['Displays']}


def test_rviz_shows_what_the_driver_publishes():
    tree, shown = displays()
    assert tree['Global Options']['Fixed Frame'] == DEFAULTS.global_frame
    assert {'TF', 'MarkerArray', 'Odometry'} <= shown.keys()
    assert all(display['Enabled'] for display in shown.values())
    for kind in ('MarkerArray', 'Odometry'):
        topic = shown[kind]['Topic']
        assert topic['Value'] in topics()
        # The quality of service of the driver: a display that requests more receives no message.
        assert (topic['Reliability Policy'], topic['Durability Policy']) == (
            'Reliable', 'Volatile')
    assert {'ego', 'vehicles', 'objects', 'labels'} <= shown['MarkerArray']['Namespaces'].keys()
    assert all(shown['MarkerArray']['Namespaces'].values())


OUTPUT_TOPICS = [
    topic for output in OUTPUTS for encoder in output_encoders(output)
    for topic in encoder.topics_of(parse_settings({'outputs': list(OUTPUTS)}))]
STACK = {topic.name.replace('~', NODE) for topic in OUTPUT_TOPICS}


def test_rviz_of_stacks_shows_their_topics():
    tree = yaml.safe_load((CONFIG / 'stacks.rviz').read_text())['Visualization Manager']
    shown = {display['Topic']['Value'] for display in tree['Displays'] if 'Topic' in display}
    assert {'/state_sensor/markers', '/state_sensor/detections',
            '/localization/kinematic_state'} <= shown <= topics() | STACK


TYPES = {topic.name.replace('~', NODE): topic.type_name for topic in (
    *(topic for each in TOPICS for topic in each.topics), *OUTPUT_TOPICS)}


def type_at(path):
    """Return the type of what a message path of Foxglove selects."""
    topic, *members = path.split('.')
    type_name = TYPES[topic]
    for member in members:
        name, slice_, _ = member.partition('[')
        kind, of = dict(typestore().get_msgdef(type_name).fields)[name]
        assert (kind.name in ('ARRAY', 'SEQUENCE')) is bool(slice_), path
        type_name = of[0][1] if slice_ else of
    return type_name


@pytest.fixture(params=['foxglove_layout.json', 'foxglove_autoware_layout.json'])
def layout(request):
    return json.loads((CONFIG / request.param).read_text())


def test_foxglove_layout_plots_numbers(layout):
    paths = [path['value'] for panel in layout['configById'].values()
             for path in panel.get('paths', ())]
    assert len(paths) > 3
    for path in paths:
        # The name of a number's type, and the length of a string: none.
        assert type_at(path)[0] in ('float32', 'float64', 'int32'), path
