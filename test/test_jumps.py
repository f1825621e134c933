# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Impossible motions: named, left out of what is derived from them, and never changed."""

from dataclasses import replace

from budgets import tries
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from state_sensor_ros.evaluation.truth import FrameGroundTruth
from state_sensor_ros.files.actor_rows import FLOAT_NAMES, RowMaker
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.jumps import Jumps, MAX_ACCELERATION, POSITION, SPEED
from state_sensor_ros.library.notebook import scene_of
from state_sensor_ros.library.safety import SafetyCollector
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
    kinematics, boxes = frame.kinematics.copy(), frame.boxes.rows.copy()
    kinematics[row, {POSITION: 1, SPEED: 7}[kind]] += value
    boxes[row, 1] += value * (kind == POSITION)
    return replace(frame, kinematics=kinematics, boxes=replace(frame.boxes, rows=boxes))


def safety_of(frames):
    collector = SafetyCollector('ego')
    for frame in frames:
        collector.add(frame)
    return collector.safety()


def events_of(safety):
    return [(event.kind, event.actor, pytest.approx(event.value, rel=0.02))
            for event in safety.events()]


ORDINARY = safety_of(FRAMES)
BRAKES = [('hard_braking', '', BRAKING)]


@settings(max_examples=tries(10))
@given(st.integers(1, N_FRAMES - 2), st.integers(0, 2), st.sampled_from((POSITION, SPEED)),
       st.floats(200.0, 1e9) | st.floats(-1e9, -200.0))
def test_wild_value_is_kept_and_named_and_causes_no_event(i, row, kind, value):
    wild = changed(FRAMES[i], row, kind, value)
    safety = safety_of([*FRAMES[:i], wild, *FRAMES[i + 1:]])
    assert events_of(safety) == events_of(ORDINARY) == BRAKES
    is_same = np.isclose(safety.acceleration, ORDINARY.acceleration, rtol=0.02)
    is_wild = kind == SPEED and row == 0
    assert is_same[[k for k in range(1, N_FRAMES - 1) if abs(k - i) > 1 or not is_wild]].all()
    assert np.isnan(safety.acceleration[[i - 1, i, i + 1]]).all() or not is_wild
    [line] = [line for line in safety.assumptions if 'jumps' in line]
    assert line.startswith(f'2 jumps of the {kind}, the greatest ')
    assert f'({NAMES[row]}, ' in line
    for of_centers in (False, True):
        maker = RowMaker(of_centers=of_centers)
        rows = [made for frame in (*FRAMES[:i], wild, *FRAMES[i + 1:])
                for made in maker.add(frame)]
        found = np.array([made.floats[row, FLOAT_NAMES.index('ax')]
                          for made in rows + maker.flush(is_end=True)])
        assert maker.n_impossible == 2
        assert np.nanmax(np.abs(found)) < 2 * abs(BRAKING)
        assert np.flatnonzero(np.isnan(found)).tolist() == (
            [] if of_centers else sorted({0, i - 1, i, i + 1, N_FRAMES - 1}))
    # The measures of that frame are those of what it says.
    if row == 2 and kind == POSITION:
        assert safety.closest_distance[i] >= ORDINARY.closest_distance[i]


def test_possible_motions_are_not_named():
    for frames in (FRAMES, FRAMES[:1], FRAMES[::20], [*FRAMES, *FRAMES]):
        jumps = Jumps()
        for frame in frames:
            jumps.add(frame)
        assert jumps.lines == []


def test_crash_is_no_braking():
    crashed = safety_of(FRAMES[:30] + [changed(frame, 0, SPEED, -20.0) for frame in FRAMES[30:]])
    assert np.nanmin(crashed.acceleration) > -MAX_ACCELERATION
    assert '1 jump of the speed, the greatest 406 m/s2 (ego, 1.5 s)' in crashed.assumptions


@pytest.mark.parametrize(('kind', 'value'), [(POSITION, 1e5), (SPEED, 1e7)])
def test_limits_of_a_picture_leave_a_jump_out_and_truth_keeps_it(kind, value):
    frames = [*FRAMES[:20], changed(FRAMES[20], 1, kind, value), *FRAMES[21:]]
    scene = scene_of(frames)
    area = scene.area()
    assert (area.width, area.height) == pytest.approx(
        (scene_of(FRAMES).area().width, scene_of(FRAMES).area().height), rel=0.05)
    if kind == POSITION:
        assert scene.position_xy.max() > 0.9 * value
    truth = FrameGroundTruth('it', DEFAULTS, lambda *_: True, lambda *_: None)
    for frame in frames:
        truth.add(frame)
    objects, _ = truth.finish().at(round(20 * STEP_S * 1e9))
    assert np.nanmax(np.abs(objects.states)) == pytest.approx(value, rel=0.01)
    [line] = truth.jumps.lines
    assert line.startswith(f'2 jumps of the {kind}')
