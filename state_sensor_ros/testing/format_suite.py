# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What is written in a format is read back: one table of frames for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from state_sensor_ros.commands.bag_output import BagOutput
from state_sensor_ros.files.formats import WriteOptions
from state_sensor_ros.files.frame_builder import ActorLane, FrameBuilder
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.frame_recording import open_recording
from state_sensor_ros.payloads import FrameDecoder, packet_of
from state_sensor_ros.simulators.output_names import output_format

# Columns of frames, and the words by which formats name them as lost.
_COLUMNS = {'ids': ('ids',), 'accelerations': ('accelerations',), 'inputs': ('pedals', 'throttle')}
_N_FRAMES, _PERIOD_S = 3, 0.05
_SIZE_XYZ = (4.6, 1.8, 1.5)


def _drive(add: Mapping[str, Mapping[str, object]], *, has_ego: bool = True) -> list[Frame]:
    """Return frames of a car that moves with 10 m/s, and of others."""
    frames = []
    for i in range(_N_FRAMES):
        time_s = i * _PERIOD_S
        builder = FrameBuilder('suite', time_s, road_names={7: 'main'})
        builder.add('ego car', (10.0 * time_s, 2.0, 0.0), yaw=0.1,
                    velocity_xyz=(10.0, 0.0, 0.0), angular_velocity_xyz=(0.0, 0.0, 0.0),
                    tags=('vehicle', 'car', *(('ego',) if has_ego else ())), size_xyz=_SIZE_XYZ)
        for row, (name, values) in enumerate(add.items()):
            place = {'position_xyz': (1.0, -3.0 - 5.0 * row, 0.0), **values}
            builder.add(name, **place)  # type: ignore[arg-type]
        frames.append(builder.frame())
    return frames


_KNOWN: Mapping[str, object] = {
    'velocity_xyz': (1.0, 2.0, 0.0), 'angular_velocity_xyz': (0.0, 0.0, 0.5),
    'tags': ('vehicle', 'truck'), 'size_xyz': (9.5, 2.5, 3.4)}
FRAMES: Mapping[str, Sequence[Frame]] = {
    'plain': _drive({'truck': _KNOWN}),
    'without an ego': _drive({'truck': _KNOWN}, has_ego=False),
    'one actor': _drive({}),
    'unknown velocity': _drive({'truck': {**_KNOWN, 'velocity_xyz': (math.nan,) * 3,
                                          'angular_velocity_xyz': (math.nan,) * 3}}),
    'without a box': _drive({'pole': {**_KNOWN, 'size_xyz': (math.nan,) * 3,
                                      'is_vehicle': False, 'tags': ('prop',)}}),
    'lanes': _drive({'truck': {**_KNOWN, 'lane': ActorLane(
        road_id=7, section_id=1, lane_id=-2, s=12.5, is_changing_left=True)}}),
    'names': _drive({'Ä b/c "d"\\': _KNOWN, '0': _KNOWN, 'truck.1': _KNOWN}),
    'far': _drive({'truck': {**_KNOWN, 'position_xyz': (690_000.125, 5_335_000.25, 512.5)}}),
    'turned': _drive({'truck': {**_KNOWN, 'yaw': math.pi, 'pitch': 0.3, 'roll': -0.2,
                                'angular_velocity_xyz': (0.0, 0.0, 0.0)}}),
    'comes and goes': [frame.select([0]) if i == 1 else frame
                       for i, frame in enumerate(_drive({'truck': _KNOWN}))],
    'ids': [replace(frame, ids=np.array([7, 4_000_000_000]))
            for frame in _drive({'truck': _KNOWN})],
    'accelerations': [replace(frame, accelerations=np.array([[1.0, -2.0, 0.0], [0.0, 0.5, 0.0]]))
                      for frame in _drive({'truck': _KNOWN})],
    'inputs': [replace(frame, inputs=np.array([[0.5, 0.25, -0.5, math.nan]] * 2))
               for frame in _drive({'truck': _KNOWN})]}


def write_read(frames: Sequence[Frame], path: Path) -> tuple[list[Frame], str]:
    """
    Write frames and read them back.

    :param frames: SI, REP-103 axes.
    :param path: output, whose suffix selects the format; without one, the folder of a bag.
    :returns: the frames that were read; a line that names what the format does not carry, or ''.
    :raises StateSensorError: if they cannot be written or read.
    """
    row, options = output_format(str(path)), WriteOptions(source='suite')
    if row.storage:
        bag = BagOutput(str(path), row.storage, '', options)
        with bag:
            bag.begin(FrameDecoder())
            for i, frame in enumerate(frames):
                bag.write(packet_of(frame), f'frame {i}')
            bag.complete()
        lines = bag.warnings.losses.lines
    else:
        with row.create(str(path), options) as writer:
            for frame in frames:
                writer.losses.add(frame)
                writer.write(frame)
            writer.complete()
        lines = [*writer.losses.lines, *writer.notes]
    with open_recording(path) as recording:
        return list(recording), '; '.join(lines)


def equal_parts(written: Frame, read: Frame, lost: str = '',
                without: frozenset[str] = frozenset()) -> None:
    """
    Assert that a frame has come back.

    :param written: as it was written.
    :param read: as it was read; numbers may have been rounded to float32.
    :param lost: text that names the parts that are not compared.
    :param without: names of what is not compared either, such as ``names``.
    """
    # Such as an object that a format cannot hold.
    written = written.select([row for row, name in enumerate(written.names)
                              if f'dropped: {name}' not in lost])
    assert len(read) == len(written)
    if 'names' not in without:
        assert sorted(read.names) == sorted(written.names)
        read = read.select([read.row(name) for name in written.names])
    else:
        distances = written.position_xyz[:, None] - read.position_xyz[None]
        read = read.select(np.linalg.norm(distances, axis=2).argmin(axis=1).tolist())
    if 'tags' not in without:
        assert read.tags == written.tags
        assert read.kinds.tolist() == written.kinds.tolist()
    assert abs(read.game_time - written.game_time) < 1e-6 * max(1.0, written.game_time)
    _same('poses', np.where(written.kinematics[:, 6:7] < 0, -1, 1) * written.kinematics[:, :7],
          np.where(read.kinematics[:, 6:7] < 0, -1, 1) * read.kinematics[:, :7])
    _same('velocities', written.kinematics[:, 7:], read.kinematics[:, 7:])
    if 'boxes' not in lost and written.boxes:
        assert read.boxes
        before, after = (np.argsort(frame.boxes.actor, kind='stable')  # type: ignore[union-attr]
                         for frame in (written, read))
        assert read.boxes.actor[after].tolist() == written.boxes.actor[before].tolist()
        _same('boxes', written.boxes.size_xyz[before], read.boxes.size_xyz[after])
    if 'lane states' not in lost:
        before, after = (np.argsort(frame.lanes.actor) for frame in (written, read))
        assert read.lanes.actor[after].tolist() == written.lanes.actor[before].tolist()
        _same('lanes', written.lanes.s[before], read.lanes.s[after])
        assert read.lanes.ids[after].tolist() == written.lanes.ids[before].tolist()
        if 'names of roads' not in lost and len(written.lanes.actor):
            assert dict(read.lanes.road_names) == dict(written.lanes.road_names)
    for name, parts in _COLUMNS.items():
        expected, found = getattr(written, name), getattr(read, name)
        is_lost = name in without or any(part in lost for part in parts)
        if not is_lost and expected is not None and np.isfinite(expected).any():
            assert found is not None, f'{name} are lost, and no warning says so'
            _same(name, expected, found)


def _same(what: str, written: npt.NDArray[np.generic], read: npt.NDArray[np.generic]) -> None:
    np.testing.assert_allclose(np.asarray(read, float), np.asarray(written, float), rtol=1e-6,
                               atol=1e-6, err_msg=what)


class FormatSuite:
    """
    Tests of formats that are written and read: inherit in a class ``Test…``.

    :cvar suffixes: of the formats, ``''`` for the folder of a bag.
    :cvar without: by suffix, what :func:`equal_parts` does not compare.
    """

    suffixes: ClassVar[Sequence[str]] = ()
    without: ClassVar[Mapping[str, frozenset[str]]] = {}

    @pytest.mark.parametrize('case', FRAMES)
    def test_frames_come_back(self, case: str, tmp_path: Path) -> None:
        """All that no warning names as lost is equal."""
        frames = FRAMES[case]
        for i, suffix in enumerate(self.suffixes):
            read, lost = write_read(frames, tmp_path / f'out{i}{suffix}')
            assert len(read) == len(frames), suffix
            for before, after in zip(frames, read, strict=True):
                equal_parts(before, after, lost, self.without.get(suffix, frozenset()))
