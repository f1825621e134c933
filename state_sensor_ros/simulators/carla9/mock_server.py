# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mock server of CARLA 0.9 with synthetic traffic or a recording, in the axes of CARLA."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np

from state_sensor_ros.emulator.carla9_server.road_map import NO_ROADS
from state_sensor_ros.emulator.carla9_server.scenes import PERIOD_S, RecordedScene, TrafficScene
from state_sensor_ros.emulator.carla9_server.world_bodies import (
    axes_of_rotation,
    Body,
    body_of,
    Box,
    GREEN,
    MovingScene,
    N_NUMBERS,
    NO_BOX,
    RED,
    rotations_of_axes,
    SceneFrame,
    Triple,
    YELLOW,
)
from state_sensor_ros.emulator.carla9_server.world_server import WorldOptions, WorldServer
from state_sensor_ros.simulators import (
    ConfigError,
    decode_packet,
    Frame,
    has_ego_tag,
    LIGHT_GREEN,
    LIGHT_RED,
    LIGHT_YELLOW,
    ReadOptions,
    reason_of,
)
from state_sensor_ros.simulators.frame_arrays import (
    Floats,
    from_rep103_kinematics,
    from_rep103_rotator,
    KIND_VEHICLE,
    mirrored_vectors,
)
from state_sensor_ros.simulators.recordings import open_any, STANDARD_INPUT

_CM = 100.0
# Cosine of an angle between axes that counts as none.
_ALONG = 1.0 - 1e-6
_STATES = {LIGHT_GREEN: GREEN, LIGHT_YELLOW: YELLOW, LIGHT_RED: RED}
_LIGHT_TAGS = ('traffic_light',)


def open_mock(options: argparse.Namespace, default_port: int) -> WorldServer:
    period_s = PERIOD_S if isinstance(options.rate, str) else 1.0 / options.rate
    if options.port == 65535:
        raise ConfigError('--port', '65535', '0 to 65534: the streams have the port after it')
    scene: MovingScene
    if options.file is None:
        scene = TrafficScene(options.vehicles, options.objects, options.seed, period_s)
    else:
        scene = _recorded(options.file, options.read_options, options.xodr)
    return WorldServer(scene, WorldOptions(
        port=default_port if options.port is None else options.port, bind=options.bind,
        rate=options.rate, period_s=period_s, n_frames=options.frames,
        version=options.server_version))


def _recorded(path: str, read_options: ReadOptions, xodr: str) -> RecordedScene:
    if path == STANDARD_INPUT:
        raise ConfigError('FILE', path, 'a file: each episode reads it from its beginning')
    try:
        text = Path(xodr).read_text(encoding='utf-8') if xodr else NO_ROADS
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError('--xodr', f'{xodr}: {reason_of(error)}'
                          if isinstance(error, OSError) else xodr, 'a map of OpenDRIVE') from error
    # Opened once now, so that one that cannot be read is an error before the ports are open.
    open_any(path, read_options).close()
    return RecordedScene(lambda: scene_frames(path, read_options), text)


def scene_frames(path: str, read_options: ReadOptions) -> Iterator[SceneFrame]:
    """Yield the frames of a recording in the axes of CARLA."""
    recording = open_any(path, read_options)
    bodies = KnownBodies()
    try:
        for recorded in recording.frames():
            for decoded in decode_packet(recording.decoder, recorded.packet, is_timed=False):
                yield bodies.scene_frame(decoded.frame)
    finally:
        recording.close()


class KnownBodies:
    """The bodies of a recording; an actor keeps the box with which it first appeared."""

    def __init__(self) -> None:
        self._bodies: dict[tuple[object, ...], Body] = {}
        self._key: object = None
        self._row: tuple[Body, ...] = ()

    def scene_frame(self, frame: Frame) -> SceneFrame:
        """Convert a frame."""
        # frame: SI, REP-103 axes.
        # Returns CARLA's units and axes; what is unknown is 0.
        lights = frame.traffic_lights
        light_names = () if lights is None else lights.names
        # Lights of CARLA 0.9 are actors, too.
        row_of = {name: row for row, (name, tags) in enumerate(zip(
            frame.names, frame.tags, strict=True)) if _LIGHT_TAGS[0] in tags}
        others = tuple(name for name in light_names if name not in row_of)
        row_of.update(zip(others, count(len(frame.names)), strict=False))
        numbers: Floats = np.zeros((len(frame.names) + len(others), N_NUMBERS))
        _put_numbers(numbers[:len(frame.names)], frame)
        states = np.full(len(numbers), 255, np.uint8)
        if lights is not None:
            rows = [row_of[name] for name in light_names]
            numbers[rows, 0:3] = mirrored_vectors(lights.poses[:, :3])
            numbers[rows, 3:6] = from_rep103_rotator(lights.poses[:, 3:])[:, (1, 2, 0)]
            states[rows] = [_STATES[int(state)] for state in lights.states]
        np.nan_to_num(numbers, copy=False)
        key = frame.names, frame.tags, others
        if key != self._key:
            boxes = _boxes(frame, numbers)
            self._row = tuple(self._body(name, tags, bool(kind == KIND_VEHICLE), box)
                              for name, tags, kind, box in zip(
                                  frame.names, frame.tags, frame.kinds, boxes, strict=True)
                              ) + tuple(self._body(f'light {name}', _LIGHT_TAGS, False, NO_BOX)
                                        for name in others)
            self._key = key
        controls: Floats = np.zeros((len(numbers), 3))
        if frame.inputs is not None:
            # Throttle, brake, steer: + = left there.
            controls[:len(frame.names)] = np.nan_to_num(frame.inputs[:, :3]) * (1.0, 1.0, -1.0)
        return SceneFrame(frame.game_time, self._row, numbers, controls,
                          None if lights is None else states)

    def _body(self, name: str, tags: tuple[str, ...], is_vehicle: bool, box: Box) -> Body:
        key = name, tags, is_vehicle
        if key not in self._bodies:
            self._bodies[key] = body_of(name, tags, box, is_vehicle=is_vehicle,
                                        is_ego=has_ego_tag(tags))
        return self._bodies[key]


def _put_numbers(rows: Floats, frame: Frame) -> None:
    source = from_rep103_kinematics(frame.kinematics)
    rows[:, 0:3] = source[:, 0:3] / _CM
    rows[:, 3:6] = from_rep103_rotator(frame.kinematics[:, 3:7])[:, (1, 2, 0)]
    rows[:, 6:9] = source[:, 7:10] / _CM
    rows[:, 9:12] = np.degrees(source[:, 10:13])
    if frame.accelerations is not None:
        rows[:, 12:15] = mirrored_vectors(frame.accelerations)


def _boxes(frame: Frame, numbers: Floats) -> list[Box]:
    """Return the box of each actor on the actor, the first one of several."""
    boxes: list[Box] = [NO_BOX] * len(frame.names)
    if frame.boxes is None:
        return boxes
    rows = frame.boxes.rows
    centers, extents = mirrored_vectors(rows[:, :3]), rows[:, 7:10] / 2.0
    rotations = from_rep103_rotator(rows[:, 3:7])[:, (1, 2, 0)]
    for at, row in reversed(list(enumerate(frame.boxes.actor.tolist()))):
        axes = axes_of_rotation(numbers[row, 3:6])
        turn, extent = axes_of_rotation(rotations[at]) @ axes.T, extents[at]
        tilt = rotations_of_axes(turn[None])[0]
        # A box along the axes of the actor in another order is one along these axes.
        if np.abs(turn).max(axis=0).min() > _ALONG:
            tilt, extent = np.zeros(3), np.rint(np.abs(turn)).T @ extent
        center = axes @ (centers[at] - numbers[row, 0:3])
        boxes[row] = _triple(center), _triple(extent), _triple(tilt)
    return boxes


def _triple(numbers: Floats) -> Triple:
    x, y, z = np.nan_to_num(numbers).tolist()
    return x, y, z
