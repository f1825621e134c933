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
import re
import runpy
import struct

from message_store import typestore
from paths import ROOT
import pytest
import yaml

from state_sensor_ros.drawing.marks import EXAMPLE
from state_sensor_ros.drawing.style import EGO, OBJECT
from state_sensor_ros.settings import DEFAULTS, OUTPUTS, parse_settings
from state_sensor_ros.simulators.simulator_list import checked_settings, schema_of
from state_sensor_ros.topics.markers import COLORS, LABEL_HEIGHT
from state_sensor_ros.topics.topic_list import output_topics, TOPICS
from state_sensor_ros.topics.traffic_lights import LIGHTS_NS

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
    assert list(values) == [*SCHEMA.names, 'actor_qos']
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
    assert values.pop('actor_qos') == {'reliability': 'reliable', 'depth': 10}
    assert checked_settings(values) == DEFAULTS


@pytest.mark.parametrize(('name', 'source'), [
    ('demo', 'monodrive'), ('demo_carla', 'carla'), ('demo_carla9', 'carla9'),
    ('demo_sumo', 'sumo')])
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


def test_rviz_shows_the_map_to_late_displays_and_the_lights():
    tree, shown = displays()
    [lanes] = [display for display in tree['Displays'] if display['Name'] == 'Map']
    assert lanes['Enabled']
    assert lanes['Topic']['Value'] == f'{NODE}/map'
    assert (lanes['Topic']['Reliability Policy'], lanes['Topic']['Durability Policy']) == (
        'Reliable', 'Transient Local')
    assert LIGHTS_NS in shown['MarkerArray']['Namespaces']


def test_rviz_stays_legible_with_many_actors():
    _, shown = displays()
    assert shown['Odometry']['Keep'] == 1
    assert shown['Odometry']['Covariance']['Value'] is False
    assert shown['TF']['Show Names'] is False


def test_rviz_has_the_colours_of_pictures():
    _, shown = displays()
    channels = [int(each) for each in shown['Odometry']['Shape']['Color'].split(';')]
    assert bytes(channels).hex() == EGO.removeprefix('#')
    assert (COLORS['ego'][0], COLORS['objects'][0]) == (EGO, OBJECT)
    assert COLORS['vehicles'][0] == EXAMPLE


def docks_of(state):
    """
    Return the panels in the state of a window that Qt has saved.

    :returns: for each area of docks its width and height in pixels, and the panels with whether
        they are shown; then the size of the center.
    """
    def take(layout):
        nonlocal i
        values = struct.unpack_from(layout, state, i)
        i += struct.calcsize(layout)
        return values

    i = 0
    # Markers and layout of QMainWindow::saveState() and of the tree of docks in it.
    assert take('>iiB')[0::2] == (0xff, 0xfd)
    areas = {}
    for _ in range(*take('>i')):
        area, width, height, _, _, n_items = take('>iiiBBi')
        panels_ = {}
        for _ in range(n_items):
            marker, n_bytes = take('>Bi')
            assert marker == 0xfb
            name = state[i:i + n_bytes].decode('utf-16-be')
            i += n_bytes
            flags, *_ = take('>B4i')
            panels_[name] = bool(flags & 1)
        areas[area] = (width, height), panels_
    return areas, take('>ii')


def test_rviz_opens_a_window_that_is_mostly_the_scene():
    tree = yaml.safe_load((CONFIG / 'state_sensor.rviz').read_text())
    window = tree['Window Geometry']
    areas, (width, height) = docks_of(bytes.fromhex(window['QMainWindow State']))
    left, right, bottom = 0, 1, 3
    assert areas[left][1] == {'Displays': True, 'Selection': False}
    assert (areas[right][1], areas[bottom][1]) == ({'Views': False}, {'Time': False})
    assert areas[left][0][0] <= 300
    assert areas[left][0][0] + width <= window['Width']
    assert width * height > 0.7 * window['Width'] * window['Height']
    assert [name for _, shown in areas.values() for name in shown] == [
        'Displays', 'Selection', 'Views', 'Time']
    assert {panel['Name'] for panel in tree['Panels']} <= {
        name for _, shown in areas.values() for name in shown}
    # A closed panel is not one that RViz hides together with its area, and opens with it.
    assert (window['Hide Left Dock'], window['Selection']['collapsed']) == (False, False)


def test_rviz_shows_60_m_around_the_ego_with_legible_labels():
    tree = yaml.safe_load((CONFIG / 'state_sensor.rviz').read_text())
    view = tree['Visualization Manager']['Views']['Current']
    assert view['Class'] == 'rviz_default_plugins/TopDownOrtho'
    _, (width, height) = docks_of(bytes.fromhex(tree['Window Geometry']['QMainWindow State']))
    assert min(width, height) / view['Scale'] >= 2 * 60.0
    # Pixels; and m, so that names in lanes side by side do not touch.
    assert LABEL_HEIGHT * view['Scale'] >= 9.0
    assert LABEL_HEIGHT <= 1.5


def test_rviz_draws_axes_and_the_arrow_of_the_ego_in_sight():
    tree, shown = displays()
    scale = tree['Views']['Current']['Scale']
    # Pixels. RViz draws axes of 0.2 m, and takes the radii of an arrow as diameters.
    assert 0.2 * shown['TF']['Marker Scale'] * scale >= 10.0
    # m: out of the box of a car, whose frame may be in its middle.
    assert 0.2 * shown['TF']['Marker Scale'] >= 2.5
    arrow = shown['Odometry']['Shape']
    assert arrow['Shaft Radius'] * scale >= 4.0
    assert arrow['Head Radius'] * scale >= 10.0
    # m: ahead of a lorry, too.
    assert arrow['Shaft Length'] + arrow['Head Length'] >= 8.0


@pytest.mark.parametrize('name', ['state_sensor', 'stacks'])
def test_rviz_draws_the_last_message_however_slow_it_is(name):
    tree = yaml.safe_load((CONFIG / f'{name}.rviz').read_text())['Visualization Manager']
    depths = {display['Name']: display['Topic']['Depth'] for display in tree['Displays']
              if display['Class'].endswith(('/Odometry', '/MarkerArray'))}
    assert {'Boxes', 'Ego'} <= depths.keys()
    assert set(depths.values()) == {1}


def test_rviz_follows_the_frame_of_the_demo():
    tree, _ = displays()
    assert tree['Views']['Current']['Target Frame'] \
        == parameters_of(CONFIG / 'demo.yaml')['ego_frame']


def panels(node):
    return [node] if isinstance(node, str) else panels(node['first']) + panels(node['second'])


def test_config_names_are_those_of_the_launch_file():
    text = (CONFIG.parent / 'launch' / 'state_sensor.launch.py').read_text()
    for path in re.findall(r"'config', '([\w.]+)'", text):
        assert (CONFIG / path).is_file()


STACK = {topic.name.replace('~', NODE)
         for topic in output_topics(parse_settings({'outputs': list(OUTPUTS)}))}


def test_rviz_of_stacks_shows_their_topics():
    tree = yaml.safe_load((CONFIG / 'stacks.rviz').read_text())['Visualization Manager']
    shown = {display['Topic']['Value'] for display in tree['Displays'] if 'Topic' in display}
    assert {'/state_sensor/markers', '/state_sensor/detections',
            '/localization/kinematic_state'} <= shown <= topics() | STACK


def test_rviz_of_stacks_is_the_other_one_with_more_displays():
    plain, stacks = (yaml.safe_load((CONFIG / f'{name}.rviz').read_text())
                     for name in ('state_sensor', 'stacks'))
    added = [display for display in stacks['Visualization Manager']['Displays']
             if display.get('Topic', {}).get('Value') in STACK]
    assert [display['Class'].rpartition('/')[2] for display in added] == [
        'Odometry', 'Detection3DArray']
    assert all(display['Enabled'] for display in added)
    # As the driver offers them.
    assert {(each['Topic']['Reliability Policy'], each['Topic']['Durability Policy'])
            for each in added} == {('Reliable', 'Volatile')}
    stacks['Visualization Manager']['Displays'] = [
        display for display in stacks['Visualization Manager']['Displays']
        if display not in added]
    assert stacks == plain


TYPES = {topic.name.replace('~', NODE): topic.type_name for topic in (
    *(topic for each in TOPICS for topic in each.topics),
    *output_topics(parse_settings({'outputs': list(OUTPUTS)})))}


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


def test_foxglove_layout_is_whole(layout):
    assert sorted(panels(layout['layout'])) == sorted(layout['configById'])


def test_foxglove_layout_follows_the_ego_over_the_map(layout):
    scene = layout['configById']['3D!traffic']
    assert scene['followTf'] == parameters_of(CONFIG / 'demo.yaml')['ego_frame']
    # A grid without a frame moves with the view.
    assert scene['layers']['grid']['frameId'] == DEFAULTS.global_frame


def test_foxglove_layout_draws_topics_that_the_panel_can_draw(layout):
    drawn = layout['configById']['3D!traffic']['topics']
    # Besides transforms; it draws neither odometry nor messages of stacks.
    assert {TYPES[name] for name in drawn} == {'visualization_msgs/msg/MarkerArray'}


def test_foxglove_layout_plots_numbers(layout):
    paths = [path['value'] for panel in layout['configById'].values()
             for path in panel.get('paths', ())]
    assert len(paths) > 3
    for path in paths:
        # The name of a number's type, and the length of a string: none.
        assert type_at(path)[0] in ('float32', 'float64', 'int32'), path


def test_foxglove_layout_names_its_plots_for_both_viewers(layout):
    for key, panel in layout['configById'].items():
        if key.startswith('Plot!'):
            assert panel['foxglovePanelTitle'] == panel['lichtblickPanelTitle'] != ''


def test_foxglove_layout_of_autoware_has_its_topics():
    text = (CONFIG / 'foxglove_autoware_layout.json').read_text()
    assert set(re.findall(r'"(/(?:perception|localization|vehicle)/[a-z_/]+)', text)) == {
        '/perception/object_recognition/ground_truth/objects', '/localization/acceleration',
        '/vehicle/status/velocity_status', '/vehicle/status/steering_status'}
