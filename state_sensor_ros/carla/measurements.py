# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The actors of one measurement to the common frame and CARLA's extension of it.

May know: CARLA's units and axes. Must not know: the form that they came in (rows.py), bytes,
sockets. Source: PROTOCOL 7.2, 7.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.carla.extension import (
    AGENT_CLASSES,
    CarlaExtension,
    CLASS_PLAYER,
    EncodedImage,
    GENERATION,
    NO_LIGHT,
    PLAYER_NAME,
    PLAYER_TAGS,
    PlayerStatus,
)
from state_sensor_ros.carla.rows import ActorRows, Agent, collect, Tree
from state_sensor_ros.frame import (
    Boxes,
    Floats,
    Frame,
    KIND_OBJECT,
    KIND_VEHICLE,
    Looks,
    Needs,
    NO_LANES,
    NO_WHEELS,
)
from state_sensor_ros.json_values import as_rows
from state_sensor_ros.payloads import Fault
from state_sensor_ros.rep103 import (
    global_from_unit,
    mirrored_vectors,
    quaternion_product,
    to_rep103_rotator,
)

_TAGS: Final = (PLAYER_TAGS, *((name,) for name in AGENT_CLASSES[1:]))
_KINDS: Final = np.array((KIND_VEHICLE, KIND_VEHICLE, KIND_OBJECT, KIND_OBJECT, KIND_OBJECT),
                         np.uint8)


@dataclass(frozen=True, slots=True)
class Counters:
    """``frame_number`` uint64; ``game_timestamp`` and ``platform_timestamp`` uint32, ms."""

    frame_number: int
    game_timestamp: int
    platform_timestamp: int


class FrameMaker:
    """
    Make frames of one stream; whoever stays gets the same name objects in every frame.

    :param needs: parts of the frame that somebody will read.
    """

    def __init__(self, needs: Needs) -> None:
        self.needs = needs
        self._key = (b'', b'')
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()

    def frame(self, counters: Counters, agents: Iterator[Agent | None], player: Tree | None, *,
              game_time: float, status: PlayerStatus | None, inputs: Floats | None,
              images: tuple[EncodedImage, ...]) -> tuple[Frame, list[Fault]]:
        """
        Make the frame of one measurement.

        :param counters: of the measurement.
        :param agents: of it, from :func:`agents_of_message` or :func:`agents_of_file`.
        :param player: what is measured of the player, ``None`` where that is not there.
        :param game_time: s, beyond the wrap of the source's counter.
        :param status: of the player, in REP-103.
        :param inputs: (4,) of the player as in :class:`Frame`, ``None``: not known.
        :returns: the frame, and the actors that were left out of it.
        """
        rows = collect(player, agents, with_boxes=self.needs.boxes)
        n_actors = len(rows.ids)
        ids, classes = np.array(rows.ids, np.uint32), np.array(rows.classes, np.uint8)
        self._name(ids, classes)
        n_boxes = len(rows.owners)
        # One block, as whoever looks at the poses looks at all of them.
        bodies = np.full((n_actors + n_boxes, 13), np.nan)
        kinematics, box_rows = bodies[:n_actors], bodies[n_actors:]
        # Whatever cannot be computed becomes NaN, which is what it is.
        with np.errstate(all='ignore'):
            poses = _finite(as_rows(rows.poses, 7))
            kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
            kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
            owners = np.array(rows.owners, np.int64)
            if n_boxes:
                _place_boxes(box_rows, rows, kinematics[owners, :7])
        extension = _extension(rows, counters, ids, classes, status, images)
        frame = Frame(
            GENERATION, game_time, 0, extension.frame_number % 2 ** 32, self._names,
            _KINDS[classes], self._tags, kinematics, NO_LANES,
            boxes=Boxes(owners, tuple(rows.box_names), box_rows) if self.needs.boxes else None,
            wheels=NO_WHEELS if self.needs.wheels else None,
            inputs=_inputs(classes, inputs) if self.needs.inputs else None,
            looks=Looks(('',) * n_actors, ('',) * n_actors) if self.needs.looks else None,
            forward_speed=poses[:, 6].copy(), extension=extension)
        return frame, rows.faults

    def _name(self, ids: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> None:
        """Set names and tags, where the actors are not those of the frame before."""
        key = (ids.tobytes(), classes.tobytes())
        if key != self._key:
            self._key = key
            self._names = tuple(
                PLAYER_NAME if class_ == CLASS_PLAYER else f'{AGENT_CLASSES[class_]}_{id_}'
                for id_, class_ in zip(ids.tolist(), classes.tolist(), strict=True))
            self._tags = tuple(_TAGS[class_] for class_ in classes.tolist())


def _is_first_the_player(classes: npt.NDArray[np.uint8]) -> bool:
    return len(classes) > 0 and bool(classes[0] == CLASS_PLAYER)


def _inputs(classes: npt.NDArray[np.uint8], of_player: Floats | None) -> Floats:
    inputs = np.full((len(classes), 4), np.nan)
    if of_player is not None and _is_first_the_player(classes):
        inputs[0] = of_player
    return inputs


def _extension(rows: ActorRows, counters: Counters, ids: npt.NDArray[np.uint32],
               classes: npt.NDArray[np.uint8], status: PlayerStatus | None,
               images: tuple[EncodedImage, ...]) -> CarlaExtension:
    return CarlaExtension(
        counters.frame_number, counters.game_timestamp, counters.platform_timestamp, ids, classes,
        _scattered(rows.lights, len(ids), np.uint8, NO_LIGHT),
        _scattered(rows.limits, len(ids), np.float64, math.nan),
        status if _is_first_the_player(classes) else None, images)


def _finite(rows: Floats) -> Floats:
    """Take infinity, which is no place and no speed, for unknown."""
    # One sum tells that all are finite, as nearly always; it may overflow, which costs a look.
    return rows if math.isfinite(rows.sum()) else np.where(np.isfinite(rows), rows, np.nan)


def _place_boxes(box_rows: Floats, rows: ActorRows, owners: Floats) -> None:
    """
    Place the boxes, which are relative to their owners, in the global frame.

    :param box_rows: (M, 13) float64, to be filled as :class:`Boxes` has them.
    :param owners: (M, 7) float64, position and orientation of the owner of each.
    """
    numbers = _finite(as_rows(rows.boxes, 9))
    position, orientation = owners[:, :3], owners[:, 3:]
    centre = global_from_unit(orientation) @ mirrored_vectors(numbers[:, 0:3])[:, :, None]
    turned = numbers[:, 3:6]
    # Boxes lie as their owners do, unless somebody has made a vehicle of his own.
    if turned.any():
        orientation = quaternion_product(orientation, to_rep103_rotator(turned))
    box_rows[:, 0:3] = position + centre[:, :, 0]
    box_rows[:, 3:7] = orientation
    box_rows[:, 7:10] = 2.0 * numbers[:, 6:9]
    box_rows[:, 10:13] = 1.0


def _scattered(entries: list[tuple[int, Any]], n_actors: int, dtype: npt.DTypeLike,
               fill: float) -> npt.NDArray[Any]:
    """Put values into their rows of an array that is ``fill`` elsewhere."""
    column = np.full(n_actors, fill, dtype)
    if entries:
        column[[row for row, _ in entries]] = [value for _, value in entries]
    return column
