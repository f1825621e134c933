# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
From places on the road to poses, velocities, steering angles and wheel speeds.

May know: SI, left-handed world axes (x forward, y right, z up). Must not: JSON, tags.
Source of truth: a rear axle that does not slip; PROTOCOL 5.a to 5.f for the meaning of signs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.drivers import Drivers
from state_sensor_ros.emulator.fleet import Fleet
from state_sensor_ros.emulator.road import Road

FloatArray = npt.NDArray[np.float64]

# Step of the central differences by s, metres: truncation and rounding both below 1e-8.
EPSILON_M = 1e-3


@dataclass(frozen=True, slots=True)
class Motion:
    """
    What moves, as numbers; arrays have N rows, left-handed world axes, SI.

    :param position: (N, 3) actor origin, m.
    :param velocity: (N, 3) its derivative, m/s.
    :param axes: (N, 3, 3) body axes as rows x, y, z.
    :param angular_velocity: (N, 3) rad/s, world axes.
    :param steering: (N, 2) front left and right, rad, positive to the right.
    :param bicycle_steering: (N,) of a single wheel in the middle, rad.
    :param wheel_speed: (N, 4) rad/s, order FL FR RL RR.
    :param s: (N,) of the origin along the loop, m.
    """

    position: FloatArray
    velocity: FloatArray
    axes: FloatArray
    angular_velocity: FloatArray
    steering: FloatArray
    bicycle_steering: FloatArray
    wheel_speed: FloatArray
    s: FloatArray


class Kinematics:
    """
    The motion of a fleet on a road.

    :param road: where.
    :param fleet: who, for wheelbases and wheels.
    """

    def __init__(self, road: Road, fleet: Fleet) -> None:
        self._road = road
        self._rear_m = fleet.column('rear_x')
        self._wheelbase_m = fleet.column('front_x') + self._rear_m
        self._track_m = fleet.column('track')
        self._radius_m = fleet.column('radius')

    def _path(self, drivers: Drivers, s: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return lateral offset (m) and its derivative by s; both smooth during a change."""
        old = self._road.lane_offset(drivers.old_lane)
        width = self._road.lane_offset(drivers.lane) - old
        u = np.clip((s - drivers.change_s) / drivers.change_m, 0.0, 1.0)
        # Fifth-order step: offset, slope and curvature begin and end at zero.
        rise = u**3 * (10 - 15 * u + 6 * u**2)
        slope = 30 * u**2 * (1 - u) ** 2 / drivers.change_m
        return old + width * rise, width * slope

    def observe(self, drivers: Drivers) -> Motion:
        """
        Evaluate the motion at this instant.

        :param drivers: places, speeds and lane changes.
        :returns: the motion; velocities are derivatives of poses, not differences of steps.
        """
        s = drivers.s + np.array([[-EPSILON_M], [0.0], [EPSILON_M]])
        offset, drift = self._path(drivers, s)
        surface = self._road.surface(s, offset)
        along = surface.along + drift[..., None] * surface.right
        stretch = np.linalg.norm(along, axis=-1)
        forward = along / stretch[..., None]
        up = np.cross(surface.along, surface.right)
        up /= np.linalg.norm(up, axis=-1)[..., None]
        axes = np.stack([forward, np.cross(up, forward), up], axis=-2)
        origin = surface.point + self._rear_m[:, None] * forward
        by_s = 0.5 / EPSILON_M
        turn = 0.5 * np.cross(axes[1], (axes[2] - axes[0]) * by_s).sum(axis=-2)
        rate = drivers.speed[:, None]
        # Curvature of the rear axle's path in the plane of the road, positive to the right.
        bend = np.einsum('ij,ij->i', turn, up[1]) / stretch[1]
        return Motion(
            position=origin[1],
            velocity=(origin[2] - origin[0]) * by_s * rate,
            axes=axes[1],
            angular_velocity=turn * rate,
            steering=self._steer(bend),
            bicycle_steering=np.arctan(self._wheelbase_m * bend),
            wheel_speed=self._wheel_speed(bend, stretch[1] * drivers.speed),
            s=drivers.s + self._rear_m / stretch[1],
        )

    def _steer(self, bend: FloatArray) -> FloatArray:
        """Return (N, 2) Ackermann angles: both wheels point around the same centre."""
        lateral = 0.5 * self._track_m[:, None] * np.array([-1.0, 1.0])
        angles: FloatArray = np.arctan2(self._wheelbase_m[:, None] * bend[:, None],
                                        1 - bend[:, None] * lateral)
        return angles

    def _wheel_speed(self, bend: FloatArray, rear_speed: FloatArray) -> FloatArray:
        """Return (N, 4) rolling speeds without slip; the outer wheels are the faster ones."""
        lateral = 0.5 * self._track_m[:, None] * np.array([-1.0, 1.0, -1.0, 1.0])
        ahead = self._wheelbase_m[:, None] * np.array([1.0, 1.0, 0.0, 0.0])
        per_metre = np.hypot(1 - bend[:, None] * lateral, bend[:, None] * ahead)
        speeds: FloatArray = (rear_speed / self._radius_m)[:, None] * per_metre
        return speeds


def quaternion_xyzw(axes: FloatArray) -> FloatArray:
    """
    Turn body axes into quaternions.

    :param axes: (N, 3, 3) unit axes as rows; z must not point down.
    :returns: (N, 4) float64, x y z w, with w >= 0.
    """
    (m00, m10, m20), (m01, m11, m21), (m02, m12, m22) = np.moveaxis(axes, 0, -1)
    # With z up, w and z are never small both: start from the larger of the two.
    w_first = np.stack([m21 - m12, m02 - m20, m10 - m01, 1 + m00 + m11 + m22], axis=-1)
    z_first = np.stack([m02 + m20, m12 + m21, 1 - m00 - m11 + m22, m10 - m01], axis=-1)
    quaternion = np.where((m00 + m11 > 0)[:, None], w_first, z_first)
    quaternion *= np.where(quaternion[:, 3] < 0, -1.0, 1.0)[:, None]
    normalised: FloatArray = quaternion / np.linalg.norm(quaternion, axis=-1)[:, None]
    return normalised


def multiply_xyzw(left: FloatArray, right: FloatArray) -> FloatArray:
    """
    Multiply quaternions, Hamilton convention.

    :param left: (..., 4) x y z w.
    :param right: the same, applied first.
    :returns: (..., 4) float64.
    """
    x1, y1, z1, w1 = np.moveaxis(left, -1, 0)
    x2, y2, z2, w2 = np.moveaxis(right, -1, 0)
    return np.stack([w1 * x2 + x1 * w2 + y1 * z2 - z1 * y2,
                     w1 * y2 - x1 * z2 + y1 * w2 + z1 * x2,
                     w1 * z2 + x1 * y2 - y1 * x2 + z1 * w2,
                     w1 * w2 - x1 * x2 - y1 * y2 - z1 * z2], axis=-1)
