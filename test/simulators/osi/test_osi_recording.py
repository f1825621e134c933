# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Traces of OSI as recordings: what every part of the package makes of them."""

from __future__ import annotations

import math

import numpy as np
import osi_traces
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main


@pytest.fixture(params=osi_traces.WRITERS)
def trace(request, tmp_path):
    path = tmp_path / request.param
    osi_traces.WRITERS[request.param](path)
    return path


def test_osi_frames_are_those_of_the_messages(trace):
    with sensor.open_recording(trace) as recording:
        frames = list(recording)
        assert not recording.faults
        assert recording.simulator == 'osi'
        # In any order, with what only the first message has.
        again = recording[7]
    assert [frame.game_time for frame in frames] == [i / 20 for i in range(12)]
    for i, frame in enumerate(frames):
        assert frame.names == ('car_0', 'car_1', 'car_2', 'building_50')
        assert frame.kinds.tolist() == [1, 1, 1, 0]
        assert frame.tags == (('vehicle', 'car'), ('vehicle', 'car', 'ego'), ('vehicle', 'car'),
                              ('stationary', 'building'))
        assert frame.ego == 1
        t = i / 20
        assert frame.position_xyz.tolist() == [
            [20.0 * k + 10.0 * t + t ** 2 / 2, 3.5 * k, 0.0] for k in range(3)] + [
                [0.0, 30.0, 0.0]]
        assert frame.velocity_xyz[:, 0].tolist() == [10.0 + t] * 3 + [0.0]
        assert frame.acceleration_xyz[:, 0].tolist() == [1.0] * 3 + [0.0]
        assert frame.boxes.position_xyz[:, 2].tolist() == [0.75] * 3 + [3.0]
        assert frame.boxes.size_xyz.tolist() == [[4.5, 1.8, 1.5]] * 3 + [[10.0, 8.0, 6.0]]
        assert frame.lanes.ids.tolist() == [[7, 0, -1], [7, 0, -2], [7, 0, -3]]
        assert frame.lanes.s.tolist() == (frame.position_xyz[:3, 0] + 5.0).tolist()
    for name in ('position_xyz', 'velocity_xyz', 'acceleration_xyz'):
        assert getattr(again, name).tolist() == getattr(frames[7], name).tolist()
    assert again.names == frames[7].names
    assert again.tags == frames[7].tags
    assert again.lanes.ids.tolist() == frames[7].lanes.ids.tolist()


def test_osi_base_link_is_the_rear_axle(trace):
    from state_sensor_ros.settings import DEFAULTS
    from state_sensor_ros.topics.transforms import BaseLink
    with sensor.open_recording(trace) as recording:
        frame = recording[0]
    offset = BaseLink(DEFAULTS, lambda *_: pytest.fail('not found')).offset(frame, frame.ego_row)
    assert offset.tolist() == pytest.approx([-1.4, 0.0, 0.4])


def test_osi_accelerations_of_the_trace_are_those_of_tables(trace):
    table = sensor.read_table(trace).to_pydict()
    # Differences would have none in the first and in the last frame.
    assert table['ax'] == ([1.0] * 3 + [0.0]) * 12
    assert table['lane_id'] == [-1, -2, -3, None] * 12


@pytest.mark.parametrize('trace', ['drive_gt_.osi'], indirect=True)
@pytest.mark.parametrize('out', [
    'bag', 'o.json', 'o.parquet', 'o.osi.mcap', 'o.osi', 'o.osi.gz', 'o.osi.zst'])
def test_osi_trace_becomes_every_recording(trace, out, tmp_path):
    assert main(['convert', str(trace), str(tmp_path / out)]) == 0
    with sensor.open_recording(tmp_path / out) as recording:
        assert [len(frame) for frame in recording] == [4] * 12


def test_osi_ego_of_a_trace_without_a_host(tmp_path):
    path = osi_traces.write_plain(tmp_path / 'a.osi',
                                  [osi_traces.ground_truth(i / 20) for i in range(3)])
    for ego, row in (('', None), ('car_2', 2), ('0', 0)):
        with sensor.open_recording(path, parameters={'osi.ego': ego}) as recording:
            assert [frame.ego for frame in recording] == [row] * 3


def test_osi_names_of_scenarios_and_types(tmp_path):
    message = osi_traces.ground_truth(0.0, objects=5)
    names = (['Vehicle', 'Ego'], ['entity_id:0', 'entity_type:Vehicle', 'entity_name:Target'],
             ['Vehicle', 'Ego'])
    for each, identifiers in zip(message.moving_object, names, strict=False):
        osi_traces.name(each, *identifiers)
    message.moving_object[3].type = 3
    message.moving_object[4].vehicle_classification.type = 13
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', [message])
    with sensor.open_recording(path) as recording:
        [frame] = recording
    assert frame.names == ('Ego', 'Target', 'Ego_2', 'pedestrian_3', 'tram_4')
    assert frame.kinds.tolist() == [1, 1, 1, 0, 1]
    assert frame.tags[3:] == (('pedestrian',), ('vehicle', 'tram'))
    assert frame.wheels.actor.tolist() == [0, 0, 1, 1, 2, 2, 4, 4]


def test_osi_roads_without_numbers_have_names(tmp_path):
    first = osi_traces.ground_truth(0.0)
    osi_traces.add_lanes(first, road='A9')
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', [first])
    with sensor.open_recording(path) as recording:
        [frame] = recording
    [number] = set(frame.lanes.road_id.tolist())
    assert number > 0
    assert frame.lanes.road_names == {number: 'A9'}


def test_osi_physical_lanes_of_esmini(tmp_path):
    message = osi_traces.ground_truth(0.0, objects=1)
    message.moving_object[0].ClearField('moving_object_classification')
    message.moving_object[0].assigned_lane_id.add().value = 12
    for begin, section in ((0.0, 11), (40.5, 12)):
        lane = message.lane.add()
        lane.id.value = section
        osi_traces.name(lane, 'road_id:3', f'road_s:{begin}', 'lane_id:-2', kind=osi_traces.MAP)
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', [message])
    with sensor.open_recording(path) as recording:
        [frame] = recording
    assert frame.lanes.ids.tolist() == [[3, 1, -2]]
    assert np.isnan(frame.lanes.s).all()


def test_osi_tilted_boxes_stand_on_the_ground(tmp_path):
    message = osi_traces.ground_truth(0.0, objects=1)
    base = message.moving_object[0].base
    base.orientation.roll, base.orientation.pitch = 0.1, -0.2
    base.orientation.yaw = 2.5 * math.pi
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', [message])
    with sensor.open_recording(path) as recording:
        [frame] = recording
    # The middle of the footprint is half the height below the center along the box's own axis.
    x, y, z, w = frame.orientation_xyzw[0]
    up = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    assert frame.position_xyz[0] == pytest.approx(
        frame.boxes.position_xyz[0] - 0.75 * up, abs=1e-12)
    assert frame.boxes.position_xyz[0].tolist() == [base.position.x, base.position.y, 0.75]


@pytest.mark.parametrize('is_view', [False, True])
def test_osi_type_of_messages_by_the_first_with_objects(tmp_path, is_view):
    messages = [osi_traces.ground_truth(i / 20, objects=0 if i < 3 else 2) for i in range(6)]
    path = osi_traces.write_plain(
        tmp_path / 'a.osi', map(osi_traces.view_of, messages) if is_view else messages)
    with sensor.open_recording(path) as recording:
        assert [len(frame) for frame in recording] == [0, 0, 0, 2, 2, 2]


def test_osi_trace_without_any_position_is_an_error(tmp_path, capsys):
    messages = [osi_traces.ground_truth(0.1 * i) for i in range(3)]
    for each in [each for message in messages for each in message.moving_object]:
        each.base.ClearField('position')
    osi_traces.write_plain(tmp_path / 'a_gt_.osi', messages)
    assert main(['convert', str(tmp_path / 'a_gt_.osi'), str(tmp_path / 't.csv')]) == 1
    assert '3 objects without a position' in capsys.readouterr().err


def add_light(message, number, color, mode, icon=2, signal=''):
    light = message.traffic_light.add()
    light.id.value = number
    light.base.position.x, light.base.position.z = 10.0 * number, 5.0
    light.classification.color, light.classification.mode = color, mode
    light.classification.icon = icon
    if signal:
        osi_traces.name(light, signal, kind=osi_traces.MAP)


def test_osi_lights_and_turn_signals(tmp_path):
    """Bulbs that are lit, by the ids of their signals; other modes and colors are not green."""
    messages = [osi_traces.ground_truth(i / 20, host_vehicle_id=0) for i in range(3)]
    for message, state in zip(messages, (3, 4, 5), strict=True):
        light_state = message.moving_object[0].vehicle_classification.light_state
        light_state.indicator_state = state
        for number, (color, mode, icon) in enumerate((
                (4, 3, 2), (2, 2, 2), (4, 4, 2), (4, 0, 2), (5, 3, 2), (3, 5, 4), (2, 3, 15))):
            add_light(message, number, color, mode, icon, signal=f'signal_id:{number + 100}')
    path = osi_traces.write_plain(tmp_path / 'a_gt_.osi', messages)
    with sensor.open_recording(path) as recording:
        frames = list(recording)
    shown = frames[0].traffic_lights
    assert (shown.ids.tolist(), shown.open_drive_ids) == ([0, 5, 6], ('100', '105', '106'))
    assert (shown.states.tolist(), shown.shapes.tolist()) == ([0, 1, 2], [1, 2, 11])
    assert shown.poses[:, 0].tolist() == [0.0, 50.0, 60.0]
    assert [frame.indicators.tolist() for frame in frames] == [[1, -1, -1], [2, -1, -1],
                                                               [3, -1, -1]]
