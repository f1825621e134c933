# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The moving objects of a frame as ASAM OSI has them, and frames interpolated between others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
import math

import numpy as np
import numpy.typing as npt

from state_sensor_ros.bodies import Floats
from state_sensor_ros.exports.table_columns import FLOAT_NAMES
from state_sensor_ros.exports.table_rows import FrameRows
from state_sensor_ros.frame import Kinds, Rows
from state_sensor_ros.pipeline.stamps import Step

# Across a longer time no frames are interpolated, ns.
_MAX_GAP_NS = 1_000_000_000
_ANGLES = slice(6, 9)


def _columns(*names: str) -> list[int]:
    return [FLOAT_NAMES.index(name) for name in names]


_ORIGIN, _CENTRE = _columns('x', 'y', 'z'), _columns('center_x', 'center_y', 'center_z')
_VELOCITY, _TURNING = _columns('vx', 'vy', 'vz'), _columns('wx', 'wy', 'wz')
_SPEED, _TILT = FLOAT_NAMES.index('speed'), _columns('pitch', 'yaw')
_VALUES = _columns('length', 'width', 'height', 'center_x', 'center_y', 'center_z', 'roll',
                   'pitch', 'yaw', 'vx', 'vy', 'vz', 'ax', 'ay', 'az', 'wx', 'wy', 'wz')


@dataclass(frozen=True, slots=True, eq=False)
class OsiFrame:
    """
    K objects at one time.

    ``ids`` (K,) of their actors; ``classes`` (K,) index in CLASSES; ``values`` (K, 18) dimension
    (m), centre (m), roll, pitch, yaw (rad), velocity (m/s), acceleration (m/s2), turning rate
    about the axes of the global frame (rad/s); ``host`` row of the ego, None without one.
    """

    stamp_ns: int
    ids: npt.NDArray[np.uint32]
    classes: Kinds
    values: Floats
    host: int | None
    is_restart: bool


def objects_of(rows: FrameRows, note: Callable[[str], None]) -> OsiFrame | None:
    """
    Return the objects of a frame, and the ego.

    :param rows: of the frame.
    :param note: called with what was left out or assumed, in words.
    :returns: None for a frame that has no time of its own.
    """
    if rows.step is Step.REPEATED or rows.stamp_ns is None:
        note('frames without a new time, left out')
        return None
    sizes = rows.floats[:, _VALUES[0:3]]
    with np.errstate(all='ignore'):
        chosen = np.flatnonzero((sizes > 0.0).all(axis=1)
                                & np.isfinite(rows.floats[:, _VALUES[0:9]]).all(axis=1))
        floats = rows.floats[chosen].copy()
        _set_velocities(floats)
    values = np.nan_to_num(floats[:, _VALUES])
    egos = np.flatnonzero(rows.actors.are_egos[chosen])
    return OsiFrame(rows.stamp_ns, rows.actors.ids[chosen], rows.actors.classes[chosen], values,
                    int(egos[0]) if len(egos) else None, rows.step is Step.RESTARTED)


def _set_velocities(floats: Floats) -> None:
    """Replace velocities of origins by those of centres; unknown ones by the speed, if known."""
    unknown = np.isnan(floats[:, _VELOCITY]).any(axis=1)
    pitch, yaw = floats[:, _TILT].T
    ahead = np.column_stack((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch),
                             -np.sin(pitch)))
    arms = floats[:, _CENTRE] - floats[:, _ORIGIN]
    moved = floats[:, _VELOCITY] + np.nan_to_num(np.cross(floats[:, _TURNING], arms))
    moved[unknown] = floats[unknown, _SPEED, None] * ahead[unknown]
    floats[:, _VELOCITY] = moved


class Resampler:
    """
    Interpolate frames at a constant rate; lines for vectors, the shorter way for angles.

    :param rate_hz: None for the frames as they are.
    """

    def __init__(self, rate_hz: float | None) -> None:
        self._period_ns = None if rate_hz is None else 1e9 / rate_hz
        self._last: OsiFrame | None = None
        self._begin_ns = self._n_made = 0

    def add(self, frame: OsiFrame) -> Iterator[OsiFrame]:
        """
        Add a frame.

        :param frame: SI, REP-103 axes; the next one in time.
        :returns: the frames from the last one up to before this one.
        """
        if self._period_ns is None:
            yield frame
            return
        last = self._last
        if last is None or frame.is_restart or frame.stamp_ns - last.stamp_ns > _MAX_GAP_NS:
            yield from self.finish()
            self._begin_ns, self._n_made = frame.stamp_ns, 0
        else:
            while (stamp_ns := self._next_ns()) < frame.stamp_ns:
                self._n_made += 1
                yield _between(last, frame, stamp_ns)
        self._last = frame

    def finish(self) -> Iterator[OsiFrame]:
        """Return the last frame, where it is at a time of the rate."""
        last, self._last = self._last, None
        if last is not None and self._period_ns is not None \
                and math.isclose(self._next_ns(), last.stamp_ns, abs_tol=1e3):
            yield last

    def _next_ns(self) -> int:
        assert self._period_ns is not None
        return self._begin_ns + round(self._n_made * self._period_ns)


def _between(before: OsiFrame, after: OsiFrame, stamp_ns: int) -> OsiFrame:
    """Return the objects that are in both frames, at a time between these."""
    _, rows, others = np.intersect1d(before.ids, after.ids, return_indices=True)
    order = np.argsort(rows)
    rows, others = rows[order], others[order]
    share = (stamp_ns - before.stamp_ns) / (after.stamp_ns - before.stamp_ns)
    change = after.values[others] - before.values[rows]
    # The shorter way round.
    change[:, _ANGLES] = (change[:, _ANGLES] + np.pi) % (2 * np.pi) - np.pi
    values = before.values[rows] + share * change
    values[:, _ANGLES] = (values[:, _ANGLES] + np.pi) % (2 * np.pi) - np.pi
    hosts: Rows = np.flatnonzero(rows == (-1 if before.host is None else before.host))
    return OsiFrame(stamp_ns, before.ids[rows], before.classes[rows], values,
                    int(hosts[0]) if len(hosts) else None, False)
