# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Outliers: a wild value of one actor in one frame changes no other number."""

from dataclasses import replace
import json
import math
import struct

import carla9_logs
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.evaluation.ground_truth import FrameGroundTruth
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.library.notebook import scene_of
from state_sensor_ros.library.safety import SafetyCollector
from state_sensor_ros.library.safety_texts import MEASURES
from state_sensor_ros.pipeline.outliers import MAX_ACCELERATION, Outliers
from state_sensor_ros.rotations import quaternion_from_rpy
from state_sensor_ros.settings import DEFAULTS

N_FRAMES, STEP_S = 44, 0.05
NAMES = ('ego', 'lead', 'parked')
BRAKING = -6.0


def drive():
    """Return frames: the ego brakes behind a car, beside a parked one."""
    frames = []
    for i in range(N_FRAMES):
        t = i * STEP_S
        braked = max(t - 1.0, 0.0)
        speeds = [15.0 + BRAKING * braked, 8.0, 0.0]
        xs = [15.0 * t + 0.5 * BRAKING * braked ** 2, 40.0 + 8.0 * t, 30.0]
        velocities = np.zeros((3, 3))
        velocities[:, 0] = speeds
        frames.append(build_frame(
            'v2', t, NAMES, np.column_stack((xs, (0.0, 0.3, 6.0), np.zeros(3))),
            velocity_xyz=velocities, angular_velocity_xyz=np.zeros((3, 3)),
            size_xyz=[(4.5, 1.8, 1.5)] * 3, tags=(('car', 'ego'), ('car',), ('car',))))
    return frames


FRAMES = drive()


def changed(frame, row, kind, value):
    kinematics = frame.kinematics.copy()
    if kind == 'clock':
        return replace(frame, game_time=frame.game_time + value)
    if kind == 'box':
        rows = frame.boxes.rows.copy()
        rows[row, 7] += abs(value)
        return replace(frame, boxes=replace(frame.boxes, rows=rows))
    if kind == 'heading':
        kinematics[row, 3:7] = quaternion_from_rpy(np.array([[0.0, 0.0, value]]))[0]
    else:
        kinematics[row, {'position': 1, 'speed': 7, 'yaw rate': 12}[kind]] += value
    return replace(frame, kinematics=kinematics)


def safety_of(frames):
    collector = SafetyCollector('ego', 5.0)
    for frame in frames:
        collector.add(frame)
    return collector.safety()


def events_of(safety):
    return [(event.kind, event.actor, pytest.approx(event.value, rel=0.02))
            for event in safety.events()]


ORDINARY = safety_of(FRAMES)


@settings(max_examples=25)
@given(st.integers(1, N_FRAMES - 2), st.integers(0, 2), st.one_of(
    st.tuples(st.sampled_from(('position', 'speed', 'yaw rate', 'box', 'clock')),
              st.floats(20.0, 1e9) | st.floats(-1e9, -20.0)),
    st.tuples(st.just('heading'), st.floats(0.3, 6.0)),
    st.tuples(st.sampled_from(('position', 'speed', 'heading')), st.just(math.nan))))
def test_wild_value_in_one_frame_is_unknown_there_and_changes_nothing_else(i, row, wild):
    safety = safety_of([*FRAMES[:i], changed(FRAMES[i], row, *wild), *FRAMES[i + 1:]])
    for name in (*MEASURES, 'acceleration'):
        found, expected = getattr(safety, name), getattr(ORDINARY, name)
        is_same = np.isclose(found, expected, rtol=0.02) | np.isnan(found)
        # Without that actor, the nearest one is another.
        is_same[i] |= name in MEASURES and (found[i] > expected[i]) == MEASURES[name][2]
        assert is_same.all(), name
        # A difference of velocities is unknown in the frames beside it, too.
        assert not (np.isnan(found) & ~np.isnan(expected))[[
            k for k in range(N_FRAMES) if abs(k - i) > 1]].any()
    assert events_of(safety) == events_of(ORDINARY) == [('hard_braking', '', BRAKING)]
    kind, value = wild
    if not math.isnan(value):
        [line] = [line for line in safety.assumptions if 'jump' in line]
        assert line.startswith(f'1 jump of the {kind}, ')
        assert line.endswith(f'({NAMES[row] + ", " if kind != "clock" else ""}frame {i})')


def test_changes_that_stay_and_noise_are_no_outliers():
    crash = [changed(frame, 0, 'speed', -20.0) for frame in FRAMES[30:]]
    teleport = [changed(frame, 1, 'position', 500.0) for frame in FRAMES[30:]]
    turned = [changed(frame, 2, 'heading', 2.0) for frame in FRAMES[30:]]
    wrong_unit = [replace(frame, kinematics=frame.kinematics * np.where(
        np.arange(13) // 3 == 2, 100.0, 1.0)) for frame in FRAMES]
    for frames in (FRAMES, FRAMES[:30] + crash, FRAMES[:30] + teleport, FRAMES[:30] + turned,
                   wrong_unit, FRAMES[:1], FRAMES[:2], [*FRAMES, *FRAMES]):
        outliers = Outliers()
        found = [item for i, frame in enumerate(frames) for item in outliers.add(frame, i)]
        assert [(id(frame), i) for frame, i in (*found, *outliers.finish())] == [
            (id(frame), i) for i, frame in enumerate(frames)]
        assert outliers.lines == []
    # Steps of a second, in the last of which a car takes a corner.
    coarse = [build_frame('v2', float(i), ('car',), [(5.0 * i, 0.0, 0.0)],
                          roll_pitch_yaw=[(0.0, 0.0, math.radians(74.0) if i == 8 else 0.0)])
              for i in range(9)]
    outliers = Outliers()
    for i, frame in enumerate(coarse):
        outliers.add(frame, i)
    outliers.finish()
    assert outliers.lines == []
    # A crash is no braking: no car decelerates like that.
    crashed = safety_of(FRAMES[:30] + crash)
    assert np.nanmin(crashed.acceleration) > -MAX_ACCELERATION
    assert '2 accelerations beyond 60 m/s2 dropped, the first -206 m/s2 at 1.45 s' \
        in crashed.assumptions


@pytest.mark.parametrize('kind', ['position', 'speed', 'heading'])
def test_repeated_frame_with_a_wild_value(kind):
    frames = [*FRAMES[:20], *[changed(FRAMES[20], 0, kind, 2.9 if kind == 'heading' else 1e6)] * 2,
              *FRAMES[21:]]
    safety = safety_of(frames)
    assert events_of(safety) == events_of(ORDINARY)
    [line] = [line for line in safety.assumptions if 'jump' in line]
    assert line.startswith(f'1 jump of the {kind}')
    assert np.nanmax(np.abs(safety.acceleration)) < 10.0


@pytest.mark.parametrize(('i', 'kind', 'value'), [
    (0, 'position', 1e5), (N_FRAMES - 1, 'speed', 1e7), (0, 'box', 40.0), (N_FRAMES - 1, 'clock',
                                                                           1e6)])
def test_wild_value_in_the_first_or_last_frame(i, kind, value):
    frames = list(FRAMES)
    frames[i] = changed(frames[i], 1, kind, value)
    safety = safety_of(frames)
    assert any(line.startswith(f'1 jump of the {kind}') for line in safety.assumptions)
    assert events_of(safety) == events_of(ORDINARY)


@pytest.mark.parametrize(('kind', 'value'), [('position', 1e5), ('clock', 1e6), ('speed', 1e7)])
def test_picture_and_ground_truth_have_no_outlier(kind, value):
    frames = [*FRAMES[:20], changed(FRAMES[20], 1, kind, value), *FRAMES[21:]]
    scene = scene_of(frames)
    assert np.abs(scene.position_xy).max() < 100.0
    assert scene.duration_s == pytest.approx((N_FRAMES - 1) * STEP_S)
    assert np.nanmax(scene.speed) < 20.0
    truth = FrameGroundTruth('it', DEFAULTS, lambda *_: True, lambda *_: None)
    for frame in frames:
        truth.add(frame)
    found = truth.finish()
    [line] = truth.outliers.lines
    assert line.startswith(f'1 jump of the {kind}')
    objects, _ = found.at(round(1.0 * 1e9))
    assert np.nanmax(np.abs(objects.states)) < 100.0
    assert found.ego.stamps_ns.max() < 1e10


def test_recorder_log_with_one_wild_velocity(tmp_path, capsys):
    def log(wild):
        for i in range(40):
            t = i * STEP_S
            speed = 1e7 if wild and i == 21 else 10.0
            added = carla9_logs.counted(2, [carla9_logs.added(
                1, 'vehicle.tesla.model3', role_name='hero')]) if not i else b''
            yield carla9_logs.frame(
                i + 1, t, added, carla9_logs.counted(6, [
                    carla9_logs.vectors(1, 1000.0 * t, 0.0, 0.0, 0.0, 0.0, 0.0)]),
                carla9_logs.counted(12, [carla9_logs.vectors(1, speed, 0.0, 0.0, 0.0, 0.0, 0.0)]),
                carla9_logs.counted(13, [struct.pack('<I6f', 1, 0, 0, 75, 240, 100, 75)]))

    path = tmp_path / 'drive.log'
    path.write_bytes(carla9_logs.header() + b''.join(log(wild=True)))
    assert main(['inspect', '--safety', '--json', str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['safety']['events'] == []
    assert '1 jump of the speed, 10000000 m/s (hero, frame 21)' in found['safety']['assumptions']
    [anomaly] = found['anomalies']
    assert anomaly == {'kind': 'jumps of the speed', 'count': 1, 'place': anomaly['place'],
                       'text': 'hero: 10000000 m/s'}
    assert anomaly['place'].endswith('frame 21')
