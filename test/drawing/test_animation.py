# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The page of an animation and, with Node.js, its player."""

from html.parser import HTMLParser
import io
import itertools
import json
import re
import shutil
import subprocess

from budgets import AWAIT_S, one_of
from drawn_scenes import Agent, box, frame, invalid_scenes, ride, scene_of, scene_of_file
import numpy as np
from paths import CARLA, DATA
import pytest

from state_sensor_ros.drawing.animation import class_colors, write_animation
from state_sensor_ros.drawing.style import BY_ACTOR, BY_SPEED, EGO, OBJECT, UNKNOWN
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.frame import KIND_OBJECT
from state_sensor_ros.simulators.monodrive.frames import Decoder

STUB = DATA / 'animation_stub.js'
needs_node = pytest.mark.skipif(shutil.which('node') is None, reason='Node.js is not installed')


class Page(HTMLParser):
    """The scripts of a page by id, its title, the files that it loads, if it has curves."""

    def __init__(self, text):
        super().__init__()
        self.scripts, self.loads, self.title = [], [], ''
        self.key = text[text.index('<ul>'):text.index('</ul>')]
        self._inside = []
        self.feed(text)
        self.data = json.loads(next(body for attrs, body in self.scripts if attrs.get('id')))
        self.player = self.scripts[-1][1]

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.loads += [attrs[key] for key in ('src', 'href') if key in attrs]
        if tag == 'script':
            self.scripts.append((attrs, ''))
        if tag == 'section':
            self.has_curves = 'hidden' not in attrs
        self._inside.append(tag)

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        inside = self._inside[-1] if self._inside else ''
        if inside == 'script':
            attrs, body = self.scripts[-1]
            self.scripts[-1] = attrs, body + data
        elif inside == 'title':
            self.title += data


@pytest.fixture(autouse=True)
def _small_library(request, monkeypatch):
    """Have pages of 5 MB less: most of the time of a page is that of plotly.js."""
    if 'loads_no_other' not in request.node.name:
        monkeypatch.setattr('state_sensor_ros.drawing.animation.get_plotlyjs', lambda: '')


def page_of(scene, **options):
    file = io.BytesIO()
    write_animation(scene, file, title=options.pop('title', 'test'), **options)
    return Page(file.getvalue().decode())


def test_animation_loads_no_other_file():
    page = page_of(scene_of(*ride()))
    assert not page.loads
    assert len(page.scripts) == 3
    assert 'plotly.js v' in page.scripts[0][1][:200]
    assert not re.search(r'https?://', page.player)


def test_animation_offers_nothing_that_sends_selects_or_edits():
    config = page_of(scene_of(*ride())).data['config']
    assert [name for group in config['modeBarButtons'] for name in group] == [
        'zoomIn2d', 'zoomOut2d', 'resetScale2d', 'toImage']
    assert config['scrollZoom']
    assert not config['plotlyServerURL']
    assert not any(config[name] for name in (
        'displaylogo', 'showSendToCloud', 'showEditInChartStudio', 'showLink', 'editable'))


@pytest.mark.parametrize('coloring', [BY_SPEED, BY_ACTOR])
def test_animation_has_a_key_of_what_is_shown(coloring):
    key = page_of(scene_of(*ride()), coloring=coloring).key
    labels = re.findall(r'</i>([^<]+)</li>', key)
    assert labels[:1] == ['ego hero']
    assert labels[-2:] == (['track', '10 m/s'] if coloring == BY_SPEED else ['track', 'other'])
    assert ('vehicle' in labels) == (coloring == BY_SPEED)
    assert 'lane change' not in key
    assert page_of(scene_of()).key.count('<li>') == 0


@pytest.mark.parametrize('has_speeds', [False, True])
def test_animation_without_speeds_has_neither_their_scale_nor_their_curves(has_speeds):
    cones = [frame(float(i), Agent('cone', kind=KIND_OBJECT)) for i in range(3)]
    page = page_of(scene_of(*(ride() if has_speeds else cones)))
    assert ('m/s' in page.key) == has_speeds
    assert page.has_curves == has_speeds


def test_animation_escapes_names():
    evil = '</script><script>alert(1)</script><img src=x>'
    page = page_of(scene_of(frame(0.0, Agent(evil))), title=evil)
    assert page.title == evil
    assert len(page.scripts) == 3
    assert not page.loads
    assert '<' not in page.data['scene']['names'][0]


@pytest.mark.parametrize('scene', [
    scene_of(), scene_of(frame(0.0)), scene_of(frame(0.0, Agent('a', speed=np.nan))),
    *invalid_scenes()])
@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize('coloring', one_of([BY_SPEED, BY_ACTOR]))
def test_animation_of_invalid_scenes_is_valid(scene, coloring):
    page = page_of(scene, coloring=coloring)
    n_parts = len(page.data['parts']['classes'])
    assert n_parts == len(page.data['colors']) == len(class_colors(coloring))
    assert page.data['start_s'] == 0.0


@needs_node
@pytest.mark.parametrize(('side', 'yaw', 'end', 'angle'), [
    ('left', 0.0, (20.0, 3.5), 0.0), ('right', 0.0, (20.0, -3.5), 180.0),
    ('right', 90.0, (23.5, 0.0), 90.0)])
def test_animation_points_to_the_new_lane(side, yaw, end, angle):
    _, [state] = played(scene_of(*(frame(float(i), Agent(
        'a', 10.0 * i, 0.0, np.deg2rad(yaw),
        lane=(1, 0, {'left': -1, 'right': -3}[side] if i > 1 else -2))) for i in range(4))), [0.0])
    arrows = state['changes']
    assert (arrows['x'][0], arrows['y'][0]) == (20.0, 0.0)
    assert (arrows['x'][1], arrows['y'][1]) == pytest.approx(end, abs=1e-6)
    # Clockwise from straight up.
    assert arrows['marker']['angle'][1] % 360.0 == pytest.approx(angle)
    assert arrows['text'][:2] == [f'2 s: changes to the {side}'] * 2


def played(scene, actions, **options):
    """Run the player without a browser; return the state of the map after each action."""
    page = page_of(scene, **options)
    result = subprocess.run(
        ['node', str(STUB)], input=json.dumps({
            'player': page.player, 'data': page.data, 'actions': actions}),
        capture_output=True, text=True, check=True, timeout=AWAIT_S)
    return page, json.loads(result.stdout)


def outline(page, state, color):
    """Return the corners of the first outline of a color: (4, 2)."""
    place = page.data['colors'].index(color)
    return np.array([state['x'][place][:4], state['y'][place][:4]]).T


@needs_node
def test_animation_interpolates_between_instants():
    straight = box(0, (1.0, 0.0, 0.5), (0, 0, 0, 1), (4.0, 2.0, 1.0))
    scene = scene_of(
        frame(0.0, Agent('hero', 0.0, 0.0, 0.0, 10.0, ('ego',)), boxes=straight),
        frame(1.0, Agent('hero', 10.0, 2.0, np.deg2rad(90), 20.0, ('ego',))))
    page, states = played(scene, [0.0, 0.5, 1.0])
    local = np.array([(3, 1), (3, -1), (-1, -1), (-1, 1)])
    for state, x, y, yaw in zip(states, (0, 5, 10), (0, 1, 2), np.deg2rad([0, 45, 90]),
                                strict=True):
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        np.testing.assert_allclose(outline(page, state, EGO), local @ turn.T + (x, y), atol=1e-5)
    assert '15.0 m/s, 54.0 km/h' in states[1]['text'][0]
    assert [state['clock'] for state in states] == [
        '0.00 / 1 s', '0.50 / 1 s', '1.00 / 1 s']


@needs_node
def test_animation_neither_interpolates_a_jump_nor_keeps_an_actor_that_left():
    scene = scene_of(frame(0.0, Agent('a', speed=1.0), Agent('b', x=50.0)),
                     frame(1.0, Agent('a', x=500.0, speed=1.0)))
    _, states = played(scene, [0.9, 1.0])
    assert [len(state['text']) for state in states] == [2, 1]
    assert states[0]['points'][0] == pytest.approx([0.0, 0.0])
    assert states[1]['points'][0] == pytest.approx([500.0, 0.0])


@needs_node
def test_animation_colors_by_speed_and_by_kind():
    scene = scene_of(frame(0.0, Agent('slow', speed=10.1), Agent('fast', speed=19.9),
                           Agent('?', speed=np.nan), Agent('hero', tags=('ego',), speed=12.0),
                           Agent('cone', kind=0)))
    page, [state] = played(scene, [0.0])
    filled = [color for color, xs in zip(page.data['colors'], state['x'], strict=False) if xs]
    scale = page.data['colors'][:-3]
    assert filled == [scale[0], scale[-1], UNKNOWN, OBJECT, EGO]
    # The text has a lane only for actors with one, and escapes names.
    assert state['text'][0] == '<b>slow</b><br>10.1 m/s, 36.4 km/h<br>size assumed'
    assert state['text'][2] == '<b>?</b><br>speed unknown<br>size assumed'


def far_drive():
    """Return the scene of an ego at 100 m/s for 10 s."""
    return scene_of(*(frame(float(i), Agent('hero', 100.0 * i, speed=100.0, tags=('ego',)))
                      for i in range(11)))


@needs_node
def test_animation_follows_the_ego_in_a_large_scene_until_switched_off():
    _, [followed, free] = played(far_drive(), [5.0, 'unfollow'])
    assert sum(followed['xRange']) / 2 == pytest.approx(500.0)
    assert followed['xRange'][1] - followed['xRange'][0] == pytest.approx(120.0)
    assert free['xRange'][0] < 0.0 < 1000.0 < free['xRange'][1]


@needs_node
def test_animation_keeps_the_zoom_while_it_follows_the_ego():
    _, [first, zoomed, later, whole] = played(
        far_drive(), [5.0, 'zoom 490 510 -5 5', 7.0, 'zoom home'])
    assert first['xRange'] == pytest.approx([440.0, 560.0])
    assert zoomed['xRange'] == pytest.approx([490.0, 510.0])
    assert later['xRange'] == pytest.approx([690.0, 710.0])
    assert sum(later['yRange']) / 2 == pytest.approx(0.0)
    assert whole['xRange'] == pytest.approx([640.0, 760.0])


@needs_node
def test_animation_does_not_move_the_map_while_it_is_dragged():
    _, states = played(far_drive(), [5.0, 'press', 6.0, 'release', 'wait 1000'])
    assert [sum(state['xRange']) / 2 for state in states] == pytest.approx(
        [500.0, 500.0, 500.0, 500.0, 600.0])
    assert states[2]['clock'] == '6.00 / 10 s'


@needs_node
def test_animation_shows_names_unless_told():
    scene = scene_of(frame(0.0, Agent('a'), Agent('<b>', 50.0), Agent('cone', 90.0, kind=0)))
    _, [with_names, without] = played(scene, [0.0, 'nameless'])
    assert with_names['labels'] == ['a', '&lt;b&gt;', 'cone']
    assert without['labels'] == []
    _, [without, with_names] = played(scene, [0.0, 'names'], names=False)
    assert (without['labels'], len(with_names['labels'])) == ([], 3)


def label_boxes(state, letter_px=6.0):
    """Return the boxes of the names on the map, and the middles of the actors: pixels."""
    pixel = (state['xRange'][1] - state['xRange'][0]) / 918.0
    boxes = []
    for text, (x, y), position in zip(state['labels'], state['places'], state['positions'],
                                      strict=True):
        vertical, horizontal = position.split()
        width = letter_px * len(text)
        left = x / pixel - {'center': width / 2, 'right': 0, 'left': width}[horizontal]
        bottom = y / pixel - {'middle': 5, 'top': 0, 'bottom': 10}[vertical]
        boxes.append((left, bottom, left + width, bottom + 10))
    return boxes, [(x / pixel, y / pixel) for x, y in state['points']]


@needs_node
@pytest.mark.parametrize('n_vehicles', one_of([20, 12, 500]))
def test_animation_names_cover_neither_each_other_nor_actors(n_vehicles):
    frames = [next(Decoder().frames(json.dumps(each).encode())) for each in itertools.islice(
        TrafficFrames(n_vehicles, 8, 2.0, 7, 'v2'), 12)]
    _, states = played(scene_of(*frames), [0.0, 1.3, 2.6, 'unfollow', 4.0])
    for state in states:
        boxes, actors = label_boxes(state)
        assert boxes
        for i, one in enumerate(boxes):
            assert not any(one[0] < other[2] and other[0] < one[2] and one[1] < other[3]
                           and other[1] < one[3] for other in boxes[:i])
            assert not any(one[0] < x < one[2] and one[1] < y < one[3] for x, y in actors)


@needs_node
def test_animation_names_stay_where_they_are():
    """Two rows of six vehicles, so close that names above all of them would overlap."""
    names = [f'vehicle_{i:02}' for i in range(12)]
    corners = Agent('low', -100.0, -100.0), Agent('high', 200.0, 130.0)
    scene = scene_of(*(frame(float(i), *corners, *(
        Agent(name, 8.0 * (k // 2), 30.0 * (k % 2) + i) for k, name in enumerate(names)))
        for i in range(2)))
    _, states = played(scene, [0.0, 1.0])
    assert {'low', 'high'} < set(states[0]['labels'])
    assert len(states[0]['labels']) > 8
    assert sorted(zip(states[0]['labels'], states[0]['positions'], strict=True)) == sorted(
        zip(states[1]['labels'], states[1]['positions'], strict=True))


@needs_node
def test_animation_leaves_out_marks_of_lane_changes_that_would_cover_actors():
    """Two cars change lanes, and one stands where the first of them begins to."""
    scene = scene_of(*(frame(float(i), Agent('blocker', 11.0), *(
        Agent(name, 10.0 * i, y, lane=(1, 0, -1 if i else -2))
        for name, y in (('a', 0.0), ('b', 60.0)))) for i in range(4)))
    _, [first, last] = played(scene, [0.0, 3.0])
    assert first['changes']['y'][0] == last['changes']['y'][0] == 60.0
    assert len(first['changes']['x']) == 3


@needs_node
def test_animation_fills_its_page_and_names_the_lines_of_speed_beside_the_ego():
    _, [state] = played(scene_of(*ride(11)), [0.0])
    assert state['sizes'] == [[1000, 500]] * 2
    assert state['lines']['text'] == ['other']
    # Above or below its line at 2 m/s.
    assert state['lines']['y'] == pytest.approx([2.0], abs=0.5)


@needs_node
def test_animation_shows_lights_and_signs():
    scene = scene_of_file(CARLA)
    page, [state] = played(scene, [0.0], names=False)
    samples = scene.samples_at(0)
    shown = [scene.displays[i] for i in scene.display[samples] if i]
    lights = [display for display in shown if not display.isdigit()]
    fills = page.data['symbols']['traffic light']['fills']
    assert {fills[light] for light in lights} < set(state['marker']['color'])
    assert state['labels'] == [display for display in shown if display.isdigit()]
    assert any(text.endswith('<br>30 km/h') for text in state['text'])
    assert 'light' in page.key
    assert 'object' not in page.key


@needs_node
def test_animation_plays_in_wall_time_and_stops_at_the_end():
    _, states = played(scene_of(*ride(31)), ['play', 'tick 1000', 'tick 500', 'pace 2',
                                             'tick 500', 'pause', 'tick 1000', 'play',
                                             'tick 9000', 'play', 'tick 0'])
    assert [state['clock'].split()[0] for state in states] == [
        '0.00', '1.00', '1.50', '1.50', '2.50', '2.50', '2.50', '2.50', '3.00', '3.00',
        '0.00']
    assert [state['button'] for state in states] == [
        'Pause', 'Pause', 'Pause', 'Pause', 'Pause', 'Play', 'Play', 'Pause', 'Play', 'Pause',
        'Pause']


@needs_node
def test_animation_steps_with_the_arrow_keys():
    _, states = played(scene_of(*ride(5)), ['key ArrowRight', 'key ArrowRight', 'key ArrowLeft',
                                            'key ArrowLeft', 'key ArrowLeft'])
    assert [state['clock'].split()[0] for state in states] == ['0.10', '0.20', '0.10', '0.00',
                                                               '0.00']
