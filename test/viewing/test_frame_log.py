# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames as a scene of the viewer, read back from its file."""

from dataclasses import replace

from drawn_scenes import Agent, box, frame, invalid_scenes, ride
import numpy as np
from paths import CARLA, SAMPLE
import pytest
from rrd_scene import array_of, read_layout, read_scene

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.frame import DERIVED_SIZE, KIND_OBJECT, MapLine
from state_sensor_ros.rotations import global_from_body, quaternion_product
from state_sensor_ros.simulators import SensorImage

BOXES = ('/world/vehicles', '/world/objects', '/world/pedestrians', '/world/traffic_signs',
         '/world/assumed_boxes')
CENTERS, HALVES, TURNS, LABELS = (f'Boxes3D:{name}' for name in (
    'centers', 'half_sizes', 'quaternions', 'labels'))


@pytest.fixture
def shown(tmp_path):
    """Return a function that shows frames and returns the entities."""
    import rerun as rr

    from state_sensor_ros.viewing.scene import FrameLog

    def show(frames, data=lambda frame: (), **options):
        rr.set_strict_mode(True)
        stream = rr.RecordingStream('test')
        path = tmp_path / 'scene.rrd'
        stream.save(path)
        log = FrameLog(stream, ego_tag='ego', names=False, is_live=False, **options)
        for each in frames:
            log.add(each, data(each))
        stream.disconnect()
        return read_scene(path)

    return show


def boxes_of(scene, number):
    """Return center, half size and orientation of the boxes of a frame by label, in the map."""
    found = {}
    for entity in BOXES:
        row = scene[entity].rows.get(number) if entity in scene else None
        if row is not None:
            parts = (array_of(row, CENTERS), array_of(row, HALVES), array_of(row, TURNS, 4))
            found |= dict(zip(row[LABELS], zip(*parts, strict=True), strict=True))
    row = scene['/world/ego'].rows.get(number, {}) if '/world/ego' in scene else {}
    if row.get(LABELS):
        place, turn = (array_of(row, f'Transform3D:{name}', width) for name, width in (
            ('translation', 3), ('quaternion', 4)))
        center = place + (global_from_body(turn) @ array_of(row, CENTERS)[0])
        found[row[LABELS][0]] = (center[0], array_of(row, HALVES)[0],
                                 quaternion_product(turn, array_of(row, TURNS, 4))[0])
    return found


def test_view_has_the_boxes_poses_and_times_of_the_recording(shown):
    with sensor.open_recording(SAMPLE) as recording:
        frames = [recording[i] for i in range(0, len(recording), 4)]
    scene = shown(frames)
    for number, each in enumerate(frames):
        found = boxes_of(scene, number)
        assert sorted(found) == sorted(each.names)
        rows = each.largest_boxes()
        for row, owner in zip(rows, each.boxes.actor[rows], strict=True):
            center, half, turn = found[each.names[owner]]
            np.testing.assert_allclose(center, each.boxes.position_xyz[row], atol=1e-3)
            np.testing.assert_allclose(half, each.boxes.size_xyz[row] / 2.0, rtol=1e-5)
            assert abs(turn @ each.boxes.orientation_xyzw[row]) == pytest.approx(1.0, abs=1e-5)
    ego = scene['/world/ego']
    assert [ego.times[i] for i in sorted(ego.times)] == pytest.approx(
        [each.game_time for each in frames], abs=1e-9)


def test_view_plots_what_the_track_of_the_ego_has(shown):
    with sensor.open_recording(SAMPLE) as recording:
        track, frames = recording.ego_track(), list(recording)
    scene = shown(frames)

    def plotted(name):
        rows = scene[f'/plots/{name}'].rows
        return {number: row['Scalars:scalars'][0] for number, row in rows.items()}

    speed = plotted('speed')
    np.testing.assert_allclose([speed[i] for i in range(len(frames))], track.speed, rtol=1e-12)
    expected = np.diff(track.speed) / np.diff(track.game_time)
    acceleration = plotted('acceleration')
    np.testing.assert_allclose([acceleration[i + 1] for i in range(len(expected))], expected)
    lanes = plotted('lane')
    assert [lanes[i] for i in range(len(frames))] == track.lane_id.tolist()


def test_view_draws_trails_from_frame_to_frame(shown):
    frames = ride(5)
    scene = shown(frames)
    rows = scene['/world/ego_trail'].rows
    assert 0 not in rows
    for i in range(1, 5):
        [strip] = rows[i]['LineStrips3D:strips']
        np.testing.assert_allclose(strip, [each.position_xyz[0] for each in frames[i - 1:i + 1]])
    # The cone stands still.
    assert len(scene['/world/trails'].rows[4]['LineStrips3D:strips']) == 1


def test_view_of_actors_that_come_and_go(shown):
    a, b = (Agent(name, x=1.0) for name in 'ab')
    scene = shown([frame(0.0, a), frame(1.0), frame(2.0, b, a)])
    assert [sorted(boxes_of(scene, i)) for i in range(3)] == [['a'], [], ['a', 'b']]
    assert [len(scene['/world/trails'].rows.get(i, {}).get('LineStrips3D:strips') or ())
            for i in range(3)] == [0, 0, 0] if '/world/trails' in scene else True


def test_view_of_an_actor_without_a_box_has_the_usual_size_on_the_ground(shown):
    scene = shown([frame(0.0, Agent('a', 3.0, 4.0, yaw=1.0))])
    row = scene['/world/assumed_boxes'].rows[0]
    np.testing.assert_allclose(array_of(row, HALVES), [[2.3, 0.925, 0.75]])
    np.testing.assert_allclose(array_of(row, CENTERS), [[3.0, 4.0, 0.75]])


def test_view_of_a_box_of_an_assumed_size_is_a_wireframe(shown):
    boxed = box(0, (3.0, 4.0, 0.5), (0.0, 0.0, 0.0, 1.0), (6.0, 2.0, 1.0))
    scene = shown([replace(frame(0.0, Agent('a', 3.0, 4.0), boxes=boxed),
                           derived=np.array([DERIVED_SIZE], np.uint8))])
    np.testing.assert_allclose(array_of(scene['/world/assumed_boxes'].rows[0], HALVES),
                               [[3.0, 1.0, 0.5]])
    assert not scene['/world/vehicles'].rows.get(0, {}).get(HALVES)


def test_view_goes_on_after_a_restart_of_the_clock(shown):
    first, second = ride(3), ride(3)
    scene = shown([*first, *second])
    times = scene['/world/ego'].times
    assert [times[i] for i in range(6)] == pytest.approx([5.0, 5.1, 5.2, 6.2, 6.3, 6.4])
    assert scene['/world/ego_trail'].rows[3]['LineStrips3D:strips'] == []
    [text] = scene['/notes'].rows[3]['TextLog:text']
    assert text == 'the clock went back to 5 s: another run of the simulator, shown from 6.2 s on'


def test_view_of_times_that_no_stamp_has(shown):
    frames = [frame(time_s, Agent('a')) for time_s in (1.0, 1e300, 1e11, -1e300, np.inf, 1.5)]
    times = shown(frames)['/world/assumed_boxes'].times
    assert [times[i] for i in range(6)] == [1.0] * 5 + [1.5]


def test_view_leaves_out_invalid_numbers(shown):
    far = box(0, (0.0,) * 3, (0.0, 0.0, 0.0, 1.0), (1e300,) * 3)
    frames = [frame(0.0, Agent('a', x=np.nan), Agent('b', x=1e300), Agent('c')),
              frame(0.1, Agent('c', yaw=np.nan)), frame(np.nan, Agent('c')),
              frame(0.3, Agent('c'), boxes=far)]
    scene = shown(frames)
    assert [sorted(boxes_of(scene, i)) for i in range(4)] == [['c'], [], ['c'], ['c']]
    assert invalid_scenes()


def test_view_draws_a_map_once(shown):
    lines = (MapLine('driving', np.array([[0.0, 0.0, 1.0], [10.0, 0.0, 1.0]]), 3.0),
             MapLine('stop line', np.array([[5.0, 0.0, 0.0], [5.0, 2.0, 0.0]])))
    other = (MapLine('driving', np.zeros((2, 3)), 1.0),)
    of_frames = [replace(each, map_lines=lines) for each in ride(2)]
    for scene in (shown(of_frames), shown([replace(each, map_lines=other) for each in ride(2)],
                                          map_lines=lines)):
        mesh = scene['/world/map/driving'].static
        corners = np.array(mesh['Mesh3D:vertex_positions'])
        np.testing.assert_allclose(corners, [[0, 1.5, 0.97], [0, -1.5, 0.97], [10, 1.5, 0.97],
                                             [10, -1.5, 0.97]])
        assert mesh['Mesh3D:triangle_indices'] == [[0, 1, 2], [1, 3, 2]]
        assert scene['/world/map/stop_line'].static['LineStrips3D:strips'] == [
            [[5, 0, 0], [5, 2, 0]]]


def test_view_shows_signs_without_boxes_as_points(shown):
    signs = [Agent('limit', kind=KIND_OBJECT, tags=('speed_limit_sign',)),
             Agent('stop', kind=KIND_OBJECT, tags=('traffic_sign',)),
             Agent('cone', kind=KIND_OBJECT)]
    scene = shown([frame(0.0, *signs)])
    assert scene['/world/points'].rows[0]['Points3D:labels'] == ['limit', 'stop']
    assert scene['/world/assumed_boxes'].rows[0][LABELS] == ['cone']


def test_view_shows_images(shown):
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    depth = np.linspace(0, 9, 8, dtype=np.float32).reshape(2, 4)
    items = SensorImage('front/rgb', pixels), SensorImage('front/depth', depth)
    scene = shown(ride(2), data=lambda frame: items)
    assert bytes(scene['/camera/front/rgb'].rows[1]['Image:buffer'][0]) == pixels.tobytes()
    assert bytes(scene['/camera/front/depth'].rows[0]['DepthImage:buffer'][0]) == depth.tobytes()


def test_view_of_a_dataset_has_its_images(tmp_path):
    out = tmp_path / 'town.rrd'
    assert main(['view', str(CARLA), '--save', str(out), '--quiet']) == 0
    scene = read_scene(out)
    images = {path for path in scene if path.startswith('/camera/')}
    assert images == {*(f'/camera/central/{kind}' for kind in ('rgb', 'depth', 'segmentation')),
                      '/camera/left/rgb', '/camera/right/rgb'}
    png = bytes(scene['/camera/central/rgb'].rows[0]['EncodedImage:blob'][0])
    assert png in {path.read_bytes() for path in CARLA.rglob('*.png')}


def test_view_opens_with_a_layout(tmp_path):
    out = tmp_path / 'drive.rrd'
    assert main(['view', str(SAMPLE), '--end', '1', '--save', str(out), '--quiet']) == 0
    layout = read_layout(out)
    views = [entity.static for path, entity in layout.items()
             if 'ViewBlueprint:class_identifier' in entity.static]
    names = {view['ViewBlueprint:display_name'][0]: view['ViewBlueprint:class_identifier'][0]
             for view in views}
    assert names['Scene'] == '3D'
    assert names['Speed (m/s)'] == names['Lane'] == 'TimeSeries'
    [eye] = [entity.static for path, entity in layout.items() if path.endswith('EyeControls3D')]
    assert eye['EyeControls3D:tracking_entity'] == ['world/ego']
