# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What is on a picture: positions, names, legends, titles; and the texts about what is outside."""

from dataclasses import replace
from functools import cache
import io
from itertools import combinations, product
import warnings

from budgets import first_of, one_of
from drawn_scenes import Agent, box, frame, invalid_scenes, ride, scene_of, scene_of_file
from matplotlib.colors import to_rgb
import numpy as np
from paths import CARLA, SAMPLE
from PIL import Image
import pytest
from real_recordings import FILES, path_of

from state_sensor_ros.drawing.map import (
    free_lane_changes,
    LANE_CHANGE_PT,
    LEADER_GID,
    Map,
    NAME_GID,
    settings_of,
)
from state_sensor_ros.drawing.marks import fills_of
from state_sensor_ros.drawing.picture import draw_page, write_picture
from state_sensor_ros.drawing.scene import Area, speed_band
from state_sensor_ros.drawing.style import BY_ACTOR, BY_SPEED, EGO, PageSize, PictureStyle
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import KIND_OBJECT


def drawn(scene, **options):
    """Return the picture: (height, width, 3) 0..255."""
    file = io.BytesIO()
    at_s = options.pop('at_s', None)
    write_picture(scene, file, PictureStyle('test', **options), at_s=at_s)
    return np.asarray(Image.open(file).convert('RGB')).astype(int)


def spots(picture, color):
    """Return the pixels of a color: (n, 2), from the left and from the top."""
    target = np.round(255 * np.array(to_rgb(color)))
    rows, columns = np.nonzero((np.abs(picture - target) <= 2).all(axis=2))
    return np.stack([columns, rows], axis=-1)


def page_of(scene, coloring=BY_SPEED, at_s=None, title='test', **options):
    """Return the page as a drawn figure of matplotlib."""
    style = PictureStyle(title, coloring, **options)
    with settings_of(style.size):
        figure = draw_page(scene, style, scene.instant_at(at_s)).figure
        figure.draw_without_rendering()
    return figure


def extents(axes, gid):
    """Return the places of the texts and patches that have a mark, pixels, by text."""
    artists = [artist for artist in (*axes.texts, *axes.patches) if artist.get_gid() == gid]
    return [(getattr(artist, 'get_text', str)(), artist.get_window_extent())
            for artist in artists]


def legend_texts(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def page_texts(figure):
    return '\n'.join([*(text.get_text() for text in figure.texts), *(
        title for axes in figure.axes if (title := axes.get_title('left')))])


def maps_of(figure):
    maps = [axes for axes in figure.axes if axes.get_xlabel() == 'x (m)']
    assert maps
    return maps


def names_on(axes):
    return {text for text, _ in extents(axes, NAME_GID)}


def standing(x, y, yaw=0.0):
    """Return a scene of an ego with a box of 8 x 4 m at x, y within a square of cars."""
    half = yaw / 2
    where = box(0, (x, y, 1.0), (0, 0, np.sin(half), np.cos(half)), (8.0, 4.0, 2.0))
    corners = [Agent(f'{i}', *at) for i, at in enumerate(
        [(-20, -20), (20, -20), (-20, 20), (20, 20)])]
    return scene_of(frame(0.0, Agent('', x, y, yaw, tags=('ego',)), *corners, boxes=where))


def ego_box(scene, at_s=None):
    """Return the extents of the box of the ego on the map, pixels from the left and the top."""
    figure = page_of(scene, at_s=at_s, names=False)
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)
    at, view = spots(picture, EGO), figure.axes[0].get_window_extent()
    at = at[(at[:, 1] > len(picture) - view.y1) & (at[:, 1] < len(picture) - view.y0)]
    return at.min(axis=0), at.max(axis=0)


def test_picture_shows_the_box_where_it_is_in_meters():
    low, high = ego_box(standing(0.0, 0.0))
    moved_low, moved_high = ego_box(standing(10.0, 6.0))
    # x to the right, y up, both at the same scale.
    pixels_per_m = (moved_low + moved_high - low - high) / 2 / (10.0, -6.0)
    assert pixels_per_m[0] == pytest.approx(pixels_per_m[1], rel=0.02)
    # The dark edges take a few pixels of the box.
    assert high - low + 4 == pytest.approx(pixels_per_m * (8.0, 4.0), rel=0.05)


@pytest.mark.thorough
def test_picture_marks_lane_changes_beside_the_track():
    def recording(lane):
        return scene_of(*(frame(float(i), Agent(
            'hero', 10.0 * i, speed=10.0, tags=('ego',), lane=(1, 0, lane if i >= 2 else -2)))
            for i in range(5)))
    plain, left, right = (drawn(recording(lane)) for lane in (-2, -1, -3))
    assert left.shape == plain.shape
    map_rows = slice(170, 500)
    for marked in (left, right):
        assert (marked[map_rows] != plain[map_rows]).any(axis=2).sum() > 60
    assert (left[map_rows] != right[map_rows]).any()


SCENES = {'sample': lambda: scene_of_file(SAMPLE), 'carla': lambda: scene_of_file(CARLA),
          'crowd': lambda: crowd(), 'ride': lambda: scene_of(*ride()),
          **{name: lambda name=name: scene_of_file(path_of(name)) for name in FILES}}


def crowd(n=60):
    """Return cars in four lanes, bumper to bumper."""
    return scene_of(*(frame(float(i), *(
        Agent(f'vehicle_with_a_name_{k}', 6.0 * (k // 4) + 2.0 * i, 3.5 * (k % 4), speed=2.0,
              tags=('ego',) if k == 8 else ()) for k in range(n))) for i in range(3)))


@cache
def named_page(name, coloring):
    """Return a scene of SCENES and its page, which are made once."""
    scene = SCENES[name]()
    return scene, page_of(scene, coloring)


# The pages that `make test` draws are those of the next tests.
@pytest.mark.parametrize(('name', 'coloring'), first_of(n_always=2, cases=[
    ('sample', BY_SPEED), ('crowd', BY_ACTOR),
    *((name, BY_SPEED) for name in SCENES if name != 'sample')]))
def test_picture_names_cover_nothing(name, coloring):
    scene, figure = named_page(name, coloring)
    samples = scene.samples_at(scene.instant_at(None))
    outlines = scene.outlines(samples)
    names = [box for axes in figure.axes for _, box in extents(axes, NAME_GID)]
    assert not any(a.overlaps(b) for a, b in combinations(names, 2))
    for axes in maps_of(figure):
        names = [box for _, box in extents(axes, NAME_GID)]
        view = axes.get_window_extent()
        corners = axes.transData.transform(outlines.reshape(-1, 2)).reshape(-1, 4, 2)
        centers = corners.mean(axis=1)
        for box_ in names:
            assert view.x0 <= box_.x0 <= box_.x1 <= view.x1
            assert view.y0 <= box_.y0 <= box_.y1 <= view.y1
            for points in (centers, *corners.transpose(1, 0, 2)):
                assert not any(box_.contains(*point) for point in points)


@pytest.mark.parametrize('name', one_of(['carla', 'ride', 'left_turn_cross_walk.v0.json']))
def test_picture_of_few_actors_has_all_names(name):
    scene, figure = named_page(name, BY_SPEED)
    assert names_on(figure.axes[0]) == set(scene.names)


def check_fits(figure):
    """Check that axes, legends and texts are on the page, up to a pixel."""
    width, height = figure.get_size_inches() * figure.dpi
    for box_ in [*(axes.get_tightbbox() for axes in figure.axes), *(
            each.get_window_extent() for each in (*figure.legends, *figure.texts))]:
        assert -1 <= box_.x0 <= box_.x1 <= width + 1
        assert -1 <= box_.y0 <= box_.y1 <= height + 1


@pytest.mark.parametrize(('name', 'coloring'), first_of(n_always=3, cases=[
    ('sample', BY_SPEED), ('crowd', BY_ACTOR), ('carla', BY_SPEED), ('sample', BY_ACTOR),
    ('crowd', BY_SPEED), ('carla', BY_ACTOR),
    *product([name for name in SCENES if name not in ('sample', 'carla', 'crowd')],
             [BY_SPEED, BY_ACTOR])]))
def test_picture_fits_its_page_and_has_titles_on_all_axes(name, coloring):
    _, figure = named_page(name, coloring)
    check_fits(figure)
    titles = [(axes.get_xlabel(), axes.get_ylabel()) for axes in figure.axes]
    assert titles.count(('x (m)', 'y (m)')) == len(maps_of(figure))
    assert ('time since the first frame (s)', 'speed (m/s)') in titles
    assert all(any(title) for title in titles)
    heads = [text.get_window_extent() for text in figure.texts]
    heads += [legend.get_window_extent() for legend in figure.legends]
    heads += [axes.get_window_extent() for axes in figure.axes[:2]]
    assert not any(a.overlaps(b) for a, b in combinations(heads, 2))


def test_picture_says_how_many_actors_are_on_the_map():
    signs = [Agent(f'sign{i}', 5000.0, float(i), kind=KIND_OBJECT) for i in range(35)]
    scene = scene_of(*(frame(float(i), Agent('hero', 10.0 * i, speed=10.0, tags=('ego',)), *signs)
                       for i in range(20)))
    texts = page_texts(page_of(scene))
    assert '1 vehicle  ·  35 objects  ·  boxes at 19 s  ·  1 of 36 actors on the map' in texts
    assert 'on the map' not in page_texts(named_page('ride', BY_SPEED)[1])


def test_picture_has_a_legend_of_what_is_drawn():
    assert legend_texts(named_page('ride', BY_SPEED)[1]) == [
        'ego hero', 'vehicle', 'object', 'size assumed', 'track', 'time of the boxes']
    # One instant has no speeds over time.
    assert legend_texts(page_of(scene_of(frame(0.0, Agent('a', speed=np.nan))))) == [
        'vehicle', 'speed unknown', 'size assumed']
    assert legend_texts(page_of(scene_of())) == []


def test_picture_by_actor_has_a_key_of_the_colors():
    texts = legend_texts(page_of(crowd(30), BY_ACTOR))
    assert 'vehicle' not in texts
    assert 'class car (29)' in texts
    assert [text for text in texts if 'vehicle_with' in text] == ['ego vehicle_with_a_name_8']
    assert 'other' in legend_texts(page_of(scene_of(*ride()), BY_ACTOR))
    # With more vehicles than colors, each class has one.
    mixed = scene_of(frame(0.0, Agent('EGO', tags=('ego',)), *(Agent(
        f'{i}', 9.0 * i, tags=('vehicle', ('bus', 'truck', 'car')[i % 3])) for i in range(10))))
    assert legend_texts(page_of(mixed, BY_ACTOR)) == [
        'ego', 'size assumed', 'class bus (4)', 'class truck (3)', 'class car (3)']
    fills = fills_of(mixed, np.arange(1, 11), BY_ACTOR)
    assert len(np.unique(fills, axis=0)) == 3
    assert (fills[:3] == fills[3:6]).all()


@pytest.mark.parametrize(('speeds', 'lowest'), first_of(n_always=2, cases=[
    ((5.0, 10.0), 4.5), ((0.0, 0.0), -0.25), ((10.0, 10.0), 9.5), ((0.0, 10.0), -0.3)]))
def test_picture_has_no_line_of_the_strip_on_its_frame(speeds, lowest):
    scene = scene_of(*(frame(float(i), *(
        Agent(f'{k}', speed * i, 5.0 * k, speed=speed) for k, speed in enumerate(speeds)))
        for i in range(3)))
    *_, strip, _ = page_of(scene).axes
    low, high = strip.get_ylim()
    assert low == pytest.approx(lowest)
    # The curves fill the strip, also if the color scale goes beyond them.
    assert speeds[1] + 0.5 <= high < speeds[1] + 1.0


def test_picture_of_a_paper_leads_from_each_moved_name_to_its_actor():
    cars = [Agent(f'a_long_name_{i}', 20.0 + 6.0 * i, 0.3 * i, speed=5.0 + i) for i in range(9)]
    figure = page_of(scene_of(frame(0.0, *cars)), size=PageSize(3.5, is_paper=True))
    axes, scale = figure.axes[0], figure.dpi / 72.0
    leaders = np.array([line.get_xydata() for line in axes.lines
                        if line.get_gid() == LEADER_GID])
    ends = axes.transData.transform(leaders.reshape(-1, 2)).reshape(-1, 2, 2)
    n_moved = 0
    for text, box_ in extents(axes, NAME_GID):
        [car] = [car for car in cars if car.name == text]
        at = axes.transData.transform((car.x, car.y))
        is_straight = box_.x0 <= at[0] <= box_.x1 or box_.y0 <= at[1] <= box_.y1
        apart = np.maximum(np.maximum(box_.min - at, at - box_.max), 0.0)
        if not is_straight or max(apart) > 9.0 * scale:
            n_moved += 1
            assert np.hypot(*(ends[:, 0] - at).T).min() < 2.0 * scale, text
    assert n_moved > 2


@pytest.mark.thorough
def test_picture_of_many_actors_has_the_lines_of_the_ego_and_its_nearest():
    def drive(n_cars):
        """Return an ego at 20 m/s, and cars on lanes farther and farther away, faster by 1 m/s."""
        return scene_of(*(frame(float(i), Agent('hero', 20.0 * i, speed=20.0, tags=('ego',)), *(
            Agent(f'car{k}', (10.0 + k) * i, 5.0 * k + 5.0, speed=10.0 + k)
            # The fastest one leaves.
            for k in range(n_cars if i < 3 else n_cars - 1))) for i in range(5)))

    assert not any('others' in text for text in legend_texts(page_of(drive(11))))
    scene = drive(13)
    figure, lines = page_of(scene), {'hero', *(f'car{k}' for k in range(5))}
    assert '8 others: slowest, median, fastest' in legend_texts(figure)
    assert names_on(figure.axes[1]) == lines - {'hero'}
    band = speed_band(scene)
    without_ego = replace(band, has_line=np.zeros_like(band.has_line))
    assert without_ego.text == '8 actors: slowest, median, fastest'
    assert {scene.names[i] for i in np.flatnonzero(band.has_line)} == lines
    for edge, speeds in zip(band.edges, ([15.0] * 5, [18.5] * 3 + [18.0] * 2,
                                         [22.0] * 3 + [21.0] * 2), strict=True):
        assert edge.tolist() == speeds
    assert speed_band(scene_of()).n_others == 0


@pytest.mark.parametrize('width', one_of([3.5, 7.16]))
def test_picture_for_a_paper_has_no_header_and_titles_of_all_axes(width):
    size = PageSize(width, is_paper=True)
    scene = scene_of(*ride())
    assert page_texts(page_of(scene, size=size)) == 'test'
    without_title = page_of(scene, size=size, has_legend=False, title='')
    assert page_texts(without_title) == ''
    assert legend_texts(without_title) == []
    titles = {(axes.get_xlabel(), axes.get_ylabel()) for axes in without_title.axes}
    assert titles == {('x (m)', 'y (m)'), ('time since the first frame (s)', 'speed (m/s)'),
                      ('', 'speed (m/s)')}
    # Tight: the drawing fills the page, and all of it is on the page.
    drawn = without_title.get_tightbbox()
    page = without_title.get_size_inches()
    assert -0.01 <= drawn.x0 < 0.25
    assert -0.01 <= drawn.y0 < 0.15
    assert page[0] - 0.25 < drawn.x1 <= page[0] + 0.01
    assert page[1] - 0.15 < drawn.y1 <= page[1] + 0.01


def test_picture_marks_of_lane_changes_cover_no_vehicle():
    random = np.random.default_rng(1)
    scene = scene_of(*(frame(float(i), *(Agent(
        f'{k}', 9.0 * k + i, 4.0 * (k % 3), lane=(1, 0, int(random.choice((-2, -1, -1, -1)))))
        for k in range(100))) for i in range(9)))
    assert len(scene.lane_changes) > 100
    rows = scene.samples_at(8)
    for view in (Map(scene.area(), 0.01), Map(Area(400.0, 0.0, 80.0, 60.0), 0.1)):
        marks = free_lane_changes(scene, rows, view)
        assert len(marks) < len(scene.lane_changes) / 2
        reach = LANE_CHANGE_PT / 72 / view.inches_per_m
        for mark in marks:
            distance = np.abs(scene.position_xy[rows] - mark.position_xy).max(axis=1)
            assert distance.min() > reach


@pytest.mark.parametrize(('name', 'coloring', 'size'), first_of([
    ('crowd', BY_ACTOR, (2.8, 4.0)), ('sample', BY_SPEED, (16.0, 9.0)),
    ('ride', BY_SPEED, (2.8, None)), ('sample', BY_SPEED, (3.5, 3.0)),
    ('sample', BY_ACTOR, (6.0, 8.0)), ('crowd', BY_SPEED, (11.0, 6.0)),
    ('sample', BY_ACTOR, (2.8, None))]))
def test_picture_of_any_size_fits_and_is_mostly_map(name, coloring, size):
    scene = SCENES[name]()
    figure = page_of(scene, coloring, size=PageSize(*size))
    width, height = figure.get_size_inches()
    assert width == size[0]
    assert size[1] in (None, height)
    check_fits(figure)
    maps = [axes.get_window_extent() for axes in maps_of(figure)]
    assert max(box.x1 for box in maps) - min(box.x0 for box in maps) >= 2 / 3 * width * figure.dpi


@pytest.mark.parametrize(('size', 'least'), [
    (PageSize(4.0, 1.0), 1.7), (PageSize(3.0, 1.0, is_paper=True), 1.7)])
def test_picture_that_is_too_low_is_refused_with_the_least_height(size, least):
    with pytest.raises(ConfigError, match=f'size: found {size.width:g}x1; expected a taller page: '
                       f'at least {least:g} inches'):
        page_of(scene_of(*ride()), size=size)
    page_of(scene_of(*ride()), size=replace(size, height=least))


@pytest.mark.parametrize(('format_', 'coloring'), first_of([
    ('svg', BY_SPEED), ('pdf', BY_ACTOR)], n_always=0))
def test_picture_as_vectors_has_no_image(format_, coloring):
    written = []
    for _ in range(2):
        file = io.BytesIO()
        write_picture(scene_of(*ride()), file, PictureStyle('test', coloring), format_=format_)
        written.append(file.getvalue())
    assert written[0] == written[1]
    if format_ == 'svg':
        assert b'<svg' in written[0]
        assert b'<image' not in written[0]
    else:
        assert written[0].startswith(b'%PDF')
        assert b'/Subtype /Image' not in written[0]
        assert b'/Subtype /Type3' not in written[0]


@pytest.mark.parametrize('is_paper', [False, True])
def test_picture_without_a_speed_has_neither_a_scale_nor_a_panel_of_speeds(is_paper):
    scene = scene_of(*(frame(float(i), Agent('cone', kind=KIND_OBJECT)) for i in range(3)))
    figure = page_of(scene, size=PageSize(8.0, is_paper=is_paper))
    assert [axes.get_xlabel() for axes in figure.axes] == ['x (m)']


def test_picture_shows_lights_in_their_color_and_signs_with_their_number():
    scene = scene_of_file(CARLA)
    texts = legend_texts(page_of(scene, at_s=0.0))
    states = {display for display in scene.displays if not display.isdigit()} - {''}
    assert states <= {'red', 'yellow', 'green'}
    shown = {scene.displays[i] for i in scene.display[scene.samples_at(0)]}
    assert [text for text in texts if 'light' in text] == [
        f'{state} light' for state in ('red', 'yellow', 'green') if state in shown]
    assert {'pedestrian', 'speed limit (km/h)'} < set(texts)
    assert 'object' not in texts
    assert {'30', '60'} <= {text.get_text() for text in page_of(scene).axes[0].texts}


NAMES = ['车辆一号', 'سيارة', 'Автомобиль', '🚗', 'รถ', 'a\n\x1b[31mb', '$x^{', '\ue000']


@pytest.mark.parametrize('coloring', one_of([BY_SPEED, BY_ACTOR]))
def test_picture_takes_names_in_any_script_without_a_warning(coloring):
    scene = scene_of(frame(0.0, *(Agent(name, 30.0 * i, 0.0) for i, name in enumerate(NAMES))),
                     frame(1.0, *(Agent(name, 30.0 * i, 9.0) for i, name in enumerate(NAMES))))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        page_of(scene, coloring, title=' '.join(NAMES))


@pytest.mark.parametrize('scene', one_of([
    scene_of(frame(1.0, Agent('a', x=np.nan))), scene_of(), scene_of(frame(1.0)),
    scene_of(frame(1.0, Agent('cone', kind=KIND_OBJECT))),
    scene_of(frame(1.0, Agent('a', speed=np.nan)), frame(2.0, Agent('a', speed=np.nan))),
    scene_of(frame(1.0, Agent('<$x^', tags=('ego',))), frame(2.0, Agent('$\\bad{'))),
    *invalid_scenes()]))
@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize('coloring', one_of([BY_SPEED, BY_ACTOR]))
def test_picture_of_invalid_scenes_is_drawn(scene, coloring):
    assert drawn(scene, coloring=coloring).shape[1] == 1650
