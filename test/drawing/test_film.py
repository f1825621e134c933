# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Films: what their pictures show, when, and that players read them."""

import io

from budgets import one_of
from drawn_scenes import Agent, frame, ride, scene_of, SMALL
from matplotlib.colors import to_rgb
import numpy as np
from PIL import Image
import pytest

from state_sensor_ros.drawing.film import film, write_gif, write_mp4
from state_sensor_ros.drawing.style import EGO, OBJECT, PageSize, PictureStyle

STYLE = PictureStyle('test', names=False, size=SMALL)


def ego_pixels(picture, tolerance=4):
    """Return the middle of the ego on the map: column and row."""
    target = np.round(255 * np.array(to_rgb(EGO)))
    rows, columns = np.nonzero((np.abs(picture.astype(int) - target) <= tolerance).all(axis=2))
    on_map = (rows > 40) & (rows < 160)
    return columns[on_map].mean(), rows[on_map].mean()


def test_film_shows_each_instant_where_the_ego_is():
    scene = scene_of(*ride(16))
    pictures = list(film(scene, STYLE, 10))
    assert len(pictures) == 16
    assert {picture.shape for picture in pictures} == {(300, 400, 3)}
    columns = np.array([ego_pixels(picture)[0] for picture in pictures[::5]])
    # 10 m/s along x: the same way in each half of a second.
    steps = np.diff(columns)
    assert steps[0] > 10
    np.testing.assert_allclose(steps, steps[0], atol=1.5)


def test_film_follows_the_ego_in_a_large_scene():
    scene = scene_of(*(frame(float(i), Agent('hero', 100.0 * i, speed=100.0, tags=('ego',)),
                             Agent('other', 100.0 * i + 10.0, 4.0, speed=100.0))
                       for i in range(6)))
    places = [ego_pixels(picture) for picture in film(scene, STYLE, 1)]
    assert len(places) == 6
    np.testing.assert_allclose(places, [places[0]] * 6, atol=1.0)


@pytest.mark.thorough
def test_film_of_a_long_recording_is_faster():
    scene = scene_of(*(frame(10.0 * i, Agent('a', x=0.1 * i)) for i in range(61)))
    style = PictureStyle('test', names=False, size=PageSize(2.8, 2.8, 50.0))
    assert len(list(film(scene, style, 1))) == 61


@pytest.mark.parametrize('scene', [
    scene_of(), scene_of(frame(1.0)), scene_of(frame(1.0, Agent('a', x=np.nan)))])
@pytest.mark.filterwarnings('error::RuntimeWarning')
def test_film_of_an_empty_scene_has_one_picture(scene):
    assert len(list(film(scene, STYLE, 10))) == 1


def test_gif_plays_in_a_loop_at_its_rate():
    file = io.BytesIO()
    write_gif(scene_of(*ride(6)), file, STYLE)
    with Image.open(file) as image:
        assert image.size == (400, 300)
        assert image.info['loop'] == 0
        shown = []
        for i in range(image.n_frames):
            image.seek(i)
            shown.append((image.info['duration'], np.asarray(image.convert('RGB'))))
    assert sum(duration for duration, _ in shown) == 600
    assert ego_pixels(shown[-1][1], 40)[0] > ego_pixels(shown[0][1], 40)[0] + 10


@pytest.mark.parametrize('can_seek', one_of([False, True], n_always=0))
def test_mp4_is_read_by_another_library(can_seek, tmp_path):
    av = pytest.importorskip('av')

    class Pipe(io.BytesIO):
        def seekable(self):
            return can_seek

    file = Pipe()
    # An odd number of pixels.
    write_mp4(scene_of(*ride(6)), file, PictureStyle(
        'test', names=False, size=PageSize(4.01, 3.01, 100.0)))
    (tmp_path / 'film.mp4').write_bytes(file.getvalue())
    with av.open(str(tmp_path / 'film.mp4')) as container:
        [stream] = container.streams
        assert (stream.codec.name, stream.pix_fmt) == ('h264', 'yuv420p')
        pictures = [picture.to_ndarray(format='rgb24') for picture in container.decode(stream)]
    assert len(pictures) == 11
    assert pictures[0].shape == (300, 400, 3)
    assert ego_pixels(pictures[-1], 40)[0] > ego_pixels(pictures[0], 40)[0] + 10


def test_film_as_gif_keeps_the_colors_of_small_marks():
    out = io.BytesIO()
    write_gif(scene_of(*ride(4)), out, PictureStyle('test', names=False))
    with Image.open(out) as read:
        read.seek(3)
        pixels = np.asarray(read.convert('RGB'))
    for color in (EGO, OBJECT):
        target = np.round(255 * np.array(to_rgb(color)))
        assert (pixels == target).all(axis=2).sum() > 10, color
