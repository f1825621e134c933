# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A005
"""
Compute the tables, whose numbers are patched into messages, from the arrays of a frame.

SI units and REP-103 axes in both; meaning of the numbers: doc/reference/topics.md#topics.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.templates import Table
from state_sensor_ros.frame import (
    Boxes,
    Floats,
    Frame,
    Lanes,
    Rows,
    Wheels,
)
from state_sensor_ros.rotations import body_from_unit, global_from_unit, normalised
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.base_link import move_to
from state_sensor_ros.topics.markers import LABEL_HEIGHT
from state_sensor_ros.topics.tables import (
    CUBE,
    FORWARD_VARIANCE,
    JOINT,
    LABEL,
    LANE_CHANGE,
    LANE_ID,
    LANE_S,
    NS_PER_S,
    POSE,
    RAW_ACTOR,
    RAW_BOX,
    RAW_COUNT,
    RAW_INPUTS,
    RAW_TIME,
    RAW_WHEEL,
    TWIST,
    UNKNOWN_VARIANCE,
    WHEEL_POSE,
)

# The numbers of some tables, (rows, table.width) each.
Numbers = dict[Table, npt.NDArray[Any]]

_STAMP = struct.Struct('2i')
_IDENTITY_XYZW = (0.0, 0.0, 0.0, 1.0)


def stamp_numbers(stamp_ns: int) -> npt.NDArray[np.int32]:
    """Return (2,) int32, seconds and nanoseconds of ``stamp_ns``, ns since the epoch."""
    return np.frombuffer(_STAMP.pack(*divmod(stamp_ns, NS_PER_S)), np.int32)


def body_numbers(frame: Frame, settings: Settings, tables: frozenset[Table],
                 moving: Rows | None, first: Rows,
                 base_link: tuple[int, Floats] | None = None) -> Numbers:
    """
    Return poses and twists of actors, their boxes and labels.

    :param tables: in use; others are left out.
    :param moving: (K,) int64, the actors whose twist is needed, None for all.
    :param first: of :func:`first_boxes`; like ``moving`` constant for a layout.
    :param base_link: row of the ego, and (3,) the point in its axes that its pose and twist are
        of; None for its origin.
    """
    if tables.isdisjoint((POSE, CUBE, LABEL)):
        return {}
    rows = frame.bodies().normalised()
    actors, boxes = rows[:frame.n_actors], rows[frame.n_actors:]
    if base_link is not None:
        move_to(actors[base_link[0]], base_link[1])
    numbers: Numbers = {POSE: actors[:, :POSE.width]}
    if CUBE in tables or LABEL in tables:
        size_xyz = boxes[:, 7:10]
        size_xyz *= boxes[:, 10:]
        numbers[CUBE] = boxes[:, :CUBE.width]
    if LABEL in tables and frame.boxes is not None:
        numbers[LABEL] = _label_numbers(frame, boxes, frame.boxes.actor[first], first)
    if TWIST not in tables:
        return numbers
    if moving is not None:
        actors = actors[moving]
    in_body = settings.twist_frame == 'child'
    if frame.forward_speed is not None:
        forward_speed = frame.forward_speed if moving is None else frame.forward_speed[moving]
        return numbers | _forward_numbers(forward_speed, actors[:, 3:7], settings, in_body)
    numbers[TWIST] = _twists(actors, frame.bodies().is_finite, in_body)
    return numbers


def _twists(actors: Floats, is_finite: bool, in_body: bool) -> Floats:
    """Return (K, 6) twists; 0 for unknown components (doc/interface.md#missing-numbers)."""
    if in_body and is_finite and len(actors) == 1:
        # The ego alone, as for displays: numpy's calls would take three times as long.
        numbers = actors[0].tolist()
        return np.array((body_from_unit(numbers[3:7], numbers[7:10])
                         + body_from_unit(numbers[3:7], numbers[10:]),))
    known = actors[:, 7:]
    if not is_finite:
        # Only NaN differs from itself.
        known = np.where(known == known, known, 0.0)
    if in_body:
        # A row vector times the matrix is the column vector times its inverse.
        known = (known.reshape(-1, 2, 3) @ global_from_unit(actors[:, 3:7])).reshape(-1, 6)
    return known


def _forward_numbers(forward_speed: Floats, orientation_xyzw: Floats, settings: Settings,
                     in_body: bool) -> Numbers:
    """Return twists of which only the speed along the actor's own x axis is known."""
    forward = np.where(np.isnan(forward_speed), 0.0, forward_speed)
    twists = np.zeros((len(forward), TWIST.width))
    if in_body:
        twists[:, 0] = forward
    else:
        twists[:, :3] = forward[:, None] * global_from_unit(orientation_xyzw)[:, :, 0]
    # In global axes the unknown lateral speed is a part of every component.
    variances = np.where(np.isnan(forward_speed) | (not in_body), UNKNOWN_VARIANCE,
                         settings.twist_covariance_diagonal[0])
    return {TWIST: twists, FORWARD_VARIANCE: variances[:, None]}


def lane_numbers(lanes: Lanes) -> Numbers:
    """
    Return the lane states of vehicles.

    :param lanes: of a frame: L lane states.
    :returns: L rows of LANE_CHANGE, LANE_ID and LANE_S.
    """
    return {LANE_CHANGE: lanes.is_changing.view(np.uint8), LANE_ID: lanes.ids,
            LANE_S: lanes.s[:, None]}


def first_boxes(boxes: Boxes) -> Rows:
    """
    Return the first box of each actor that has any.

    :param boxes: of a frame, in the order of the actors.
    :returns: (K,) int64, rows of ``boxes``.
    """
    return np.flatnonzero(np.diff(boxes.actor, prepend=-1))


def _label_numbers(frame: Frame, cubes: Floats, owners: Rows, first: Rows) -> Floats:
    """Return (N, 3) positions of labels: above the highest box of their actor."""
    labels = frame.position_xyz.copy()
    if len(first):
        up = np.abs(global_from_unit(cubes[:, 3:7])[:, 2])
        tops = cubes[:, 2] + 0.5 * np.einsum('ij,ij->i', up, cubes[:, 7:10])
        drawable = frame.bodies().drawable_boxes()
        if not drawable.all():
            # A box that is not drawn has no top: fmax ignores NaN.
            tops[~drawable] = np.nan
        labels[owners, 2] = np.fmax(np.fmax.reduceat(tops, first), labels[owners, 2])
    labels[:, 2] += LABEL_HEIGHT
    return labels


def known_orientations(wheels: Wheels) -> Floats:
    """
    Return orientations, the identity for those that are not known.

    :param wheels: of a frame: W wheels.
    :returns: (W, 4) float64 xyzw, actor's frame, not normalised.
    """
    return np.where(wheels.orientation_known[:, None], wheels.orientation_xyzw, _IDENTITY_XYZW)


def wheel_numbers(wheels: Wheels, base_link: tuple[int, Floats] | None = None) -> Numbers:
    """
    Return poses of wheel frames; spin angles (rad, -pi..pi, NaN unknown), speeds of joints.

    :param wheels: of a frame: W wheels.
    :param base_link: row of the ego, and (3,) where its frame is in its axes; None at its origin.
    :returns: W rows of WHEEL_POSE and JOINT.
    """
    orientation_xyzw = known_orientations(wheels)
    poses, joints = np.empty((len(wheels.actor), 7)), np.empty((len(wheels.actor), 2))
    poses[:, :3] = wheels.position_xyz
    if base_link is not None:
        poses[wheels.actor == base_link[0], :3] -= base_link[1]
    poses[:, 3:] = normalised(orientation_xyzw)
    # Steering about z, then spin about y (doc/protocol/units.md#wheel-rotation); q equals -q.
    w = orientation_xyzw[:, 3]
    spin = 2.0 * np.arctan2(orientation_xyzw[:, 1] * np.copysign(1.0, w), np.abs(w))
    joints[:, 0] = np.where(wheels.orientation_known, spin, np.nan)
    joints[:, 1] = wheels.speed
    return {WHEEL_POSE: poses, JOINT: joints}


def raw_numbers(frame: Frame, boxes: Boxes, wheels: Wheels) -> Numbers:
    """
    Return all numbers of ~/frame except lane states, without normalisation.

    :param frame: with inputs.
    :param boxes: of the frame.
    :param wheels: of the frame.
    :returns: the RAW tables; a known ``forward_speed`` replaces the velocity x in RAW_ACTOR.
    """
    time = np.array(((frame.game_time, 0.0),))
    time.view(np.int64)[0, 1] = frame.time
    actors = frame.kinematics
    if frame.forward_speed is not None:
        actors = actors.copy()
        actors[:, 7] = frame.forward_speed
    raw_wheels = np.empty((len(wheels.actor), RAW_WHEEL.width))
    raw_wheels[:, :3], raw_wheels[:, 3:7] = wheels.position_xyz, wheels.orientation_xyzw
    raw_wheels[:, 7] = wheels.speed
    assert frame.inputs is not None
    return {RAW_TIME: time, RAW_COUNT: np.array(((frame.sample_count,),), np.uint32),
            RAW_ACTOR: actors, RAW_INPUTS: frame.inputs, RAW_BOX: boxes.rows,
            RAW_WHEEL: raw_wheels}
