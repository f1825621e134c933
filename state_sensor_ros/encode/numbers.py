# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
From the arrays of a frame to the tables that messages are patched from.

May know: what Odometry, TF, markers and ~/frame mean by their numbers (INTERFACE 3.3). Must not
know: where a number lies in a message, which actors are published.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr import Table
from state_sensor_ros.encode.markers import LABEL_HEIGHT
from state_sensor_ros.encode.tables import (
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
from state_sensor_ros.frame import (
    Boxes,
    Floats,
    Frame,
    Lanes,
    Rows,
    Wheels,
)
from state_sensor_ros.rep103 import global_from_unit, normalised
from state_sensor_ros.settings import Settings

# The numbers of some tables, (rows, table.width) each.
Numbers = dict[Table, npt.NDArray[Any]]

_IDENTITY_XYZW = (0.0, 0.0, 0.0, 1.0)


def stamp_numbers(stamp_ns: int) -> npt.NDArray[np.int32]:
    """Return (1, 2) int32, seconds and nanoseconds."""
    return np.array((divmod(stamp_ns, NS_PER_S),), np.int32)


def motion_numbers(frame: Frame, settings: Settings, tables: frozenset[Table]) -> Numbers:
    """Return poses and twists of actors; what is unknown counts as no motion (INTERFACE 3.3)."""
    if POSE not in tables:
        return {}
    poses = frame.kinematics[:, :POSE.width].copy()
    poses[:, 3:] = normalised(poses[:, 3:])
    numbers: Numbers = {POSE: poses}
    if TWIST not in tables:
        return numbers
    in_body = settings.twist_frame == 'child'
    if frame.forward_speed is not None:
        return numbers | _forward_numbers(frame.forward_speed, poses[:, 3:], settings, in_body)
    known = frame.kinematics[:, 7:]
    if not math.isfinite(known.sum()):
        # Only NaN differs from itself.
        known = np.where(known == known, known, 0.0)
    if in_body:
        # A row vector times the matrix is the column vector times its inverse.
        known = (known.reshape(-1, 2, 3) @ global_from_unit(poses[:, 3:])).reshape(-1, 6)
    numbers[TWIST] = known
    return numbers


def _forward_numbers(forward_speed: Floats, orientation_xyzw: Floats, settings: Settings,
                     in_body: bool) -> Numbers:
    """Return twists of which only the speed along the actor's own x axis is known."""
    forward = np.where(np.isnan(forward_speed), 0.0, forward_speed)
    twists = np.zeros((len(forward), TWIST.width))
    if in_body:
        twists[:, 0] = forward
    else:
        twists[:, :3] = forward[:, None] * global_from_unit(orientation_xyzw)[:, :, 0]
    # In global axes the unknown is mixed into every component.
    variances = np.where(np.isnan(forward_speed) | (not in_body), UNKNOWN_VARIANCE,
                         settings.twist_covariance_diagonal[0])
    return {TWIST: twists, FORWARD_VARIANCE: variances[:, None]}


def lane_numbers(lanes: Lanes) -> Numbers:
    """Return the lane states of vehicles."""
    n_lanes = len(lanes.actor)
    changes, ids = np.empty((n_lanes, 2), np.uint8), np.empty((n_lanes, 3), np.int32)
    changes[:, 0], changes[:, 1] = lanes.lane_change_left, lanes.lane_change_right
    ids[:, 0], ids[:, 1], ids[:, 2] = lanes.road_id, lanes.section_id, lanes.lane_id
    return {LANE_CHANGE: changes, LANE_ID: ids, LANE_S: lanes.s[:, None]}


def first_boxes(boxes: Boxes) -> Rows:
    """Return (K,) int64, the first box of each actor that has any."""
    return np.flatnonzero(np.diff(boxes.actor, prepend=-1))


def marker_numbers(frame: Frame, boxes: Boxes, first: Rows,
                   tables: frozenset[Table]) -> Numbers:
    """
    Return the cubes of boxes, and where labels are: above the highest box of their actor.

    :param first: of :func:`first_boxes`, which hold as long as the layout does.
    """
    cubes = np.empty((len(boxes.actor), CUBE.width))
    cubes[:, :3] = boxes.position_xyz
    cubes[:, 3:7] = normalised(boxes.orientation_xyzw)
    cubes[:, 7:] = edges = boxes.size_xyz * boxes.scale_xyz
    if LABEL not in tables:
        return {CUBE: cubes}
    labels = frame.position_xyz.copy()
    if len(first):
        up = np.abs(global_from_unit(cubes[:, 3:7])[:, 2])
        tops = cubes[:, 2] + 0.5 * np.einsum('ij,ij->i', up, edges)
        owners = boxes.actor[first]
        # A box that is not usable has no top: fmax passes NaN over.
        labels[owners, 2] = np.fmax(np.fmax.reduceat(tops, first), labels[owners, 2])
    labels[:, 2] += LABEL_HEIGHT
    return {CUBE: cubes, LABEL: labels}


def known_orientations(wheels: Wheels) -> Floats:
    """Return (W, 4) float64 xyzw, the identity for wheels whose orientation is not known."""
    return np.where(wheels.orientation_known[:, None], wheels.orientation_xyzw, _IDENTITY_XYZW)


def wheel_numbers(wheels: Wheels) -> Numbers:
    """Return wheel frames; spin angles (rad, -pi..pi, NaN unknown) and speeds of joints."""
    orientation_xyzw = known_orientations(wheels)
    poses, joints = np.empty((len(wheels.actor), 7)), np.empty((len(wheels.actor), 2))
    poses[:, :3] = wheels.position_xyz
    poses[:, 3:] = normalised(orientation_xyzw)
    # Steering about z, then spinning about y (PROTOCOL 5.f); q and -q are the same wheel.
    w = orientation_xyzw[:, 3]
    spin = 2.0 * np.arctan2(orientation_xyzw[:, 1] * np.copysign(1.0, w), np.abs(w))
    joints[:, 0] = np.where(wheels.orientation_known, spin, np.nan)
    joints[:, 1] = wheels.speed
    return {WHEEL_POSE: poses, JOINT: joints}


def raw_numbers(frame: Frame, boxes: Boxes, wheels: Wheels) -> Numbers:
    """Return all numbers of ~/frame but lane states, as they came."""
    time = np.array(((frame.game_time, 0.0),))
    time.view(np.int64)[0, 1] = frame.time
    actors = frame.kinematics
    if frame.forward_speed is not None:
        actors = actors.copy()
        actors[:, 7] = frame.forward_speed
    raw_boxes = np.empty((len(boxes.actor), RAW_BOX.width))
    raw_boxes[:, :3], raw_boxes[:, 3:7] = boxes.position_xyz, boxes.orientation_xyzw
    raw_boxes[:, 7:10], raw_boxes[:, 10:] = boxes.size_xyz, boxes.scale_xyz
    raw_wheels = np.empty((len(wheels.actor), RAW_WHEEL.width))
    raw_wheels[:, :3], raw_wheels[:, 3:7] = wheels.position_xyz, wheels.orientation_xyzw
    raw_wheels[:, 7] = wheels.speed
    assert frame.inputs is not None
    return {RAW_TIME: time, RAW_COUNT: np.array(((frame.sample_count,),), np.uint32),
            RAW_ACTOR: actors, RAW_INPUTS: frame.inputs, RAW_BOX: raw_boxes,
            RAW_WHEEL: raw_wheels}
