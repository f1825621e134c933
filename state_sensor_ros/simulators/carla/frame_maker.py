# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Make a frame with CARLA's data of the extracted numbers of a measurement.

Units: doc/protocol/carla.md#measurements; axes: doc/protocol/carla.md#rotators.
"""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators import Boxes, Fault, Frame, Needs
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CarlaData,
    CLASS_PLAYER,
    GENERATION,
    NO_LIGHT,
    PLAYER_NAME,
    PLAYER_TAGS,
    PlayerStatus,
    SensorData,
    starts_with_player,
)
from state_sensor_ros.simulators.carla.number_extraction import ActorNumbers, Agents, collect, Tree
from state_sensor_ros.simulators.frame_arrays import (
    Appearance,
    Floats,
    global_from_unit,
    KIND_OBJECT,
    KIND_VEHICLE,
    mirrored_vectors,
    NO_LANES,
    NO_WHEELS,
    quaternion_product,
    to_rep103_rotator,
)
from state_sensor_ros.simulators.json_values import as_rows

_TAGS: Final = (PLAYER_TAGS, *((name,) for name in AGENT_CLASSES[1:]))
_KINDS: Final = np.array((KIND_VEHICLE, KIND_VEHICLE, KIND_OBJECT, KIND_OBJECT, KIND_OBJECT),
                         np.uint8)


@dataclass(frozen=True, slots=True)
class FrameCounters:
    """``frame_number`` uint64; ``game_timestamp`` and ``platform_timestamp`` uint32, ms."""

    frame_number: int
    game_timestamp: int
    platform_timestamp: int


class FrameMaker:
    """Make the frames of one stream; an unchanged list of actors keeps its name objects."""

    def __init__(self) -> None:
        self._key = (b'', b'')
        self._names: tuple[str, ...] = ()
        self._tags: tuple[tuple[str, ...], ...] = ()

    def frame(self, counters: FrameCounters, agents: Agents, player: Tree | None, needs: Needs, *,
              game_time: float, status: PlayerStatus | None, inputs: Floats | None,
              sensor_data: SensorData) -> tuple[Frame, list[Fault]]:
        """
        Make the frame of one measurement.

        :param counters: counters of the measurement.
        :param agents: its agents, from :func:`agents_of_message` or :func:`agents_of_file`.
        :param player: its playerMeasurements, ``None`` if it has none.
        :param needs: parts of the frame that are read afterwards.
        :param game_time: s since the episode began, not wrapped.
        :param status: status of the player, REP-103 axes.
        :param inputs: (4,) inputs of the player as in :class:`Frame`, ``None`` if unknown.
        :param sensor_data: data of the sensors in the frame.
        :returns: the frame, and the faults of the actors that were left out of it.
        """
        numbers = collect(player, agents, with_boxes=needs.boxes)
        n_actors = len(numbers.ids)
        ids, classes = np.array(numbers.ids, np.uint32), np.array(numbers.classes, np.uint8)
        self._name(ids, classes)
        n_boxes = len(numbers.owners)
        # One array: the poses of actors and boxes are checked together (Frame.bodies).
        bodies = np.full((n_actors + n_boxes, 13), np.nan)
        kinematics, box_rows = bodies[:n_actors], bodies[n_actors:]
        # Results that cannot be computed are NaN, unknown, without a warning.
        with np.errstate(all='ignore'):
            poses = _finite(as_rows(numbers.poses, 7))
            kinematics[:, 0:3] = mirrored_vectors(poses[:, 0:3])
            kinematics[:, 3:7] = to_rep103_rotator(poses[:, 3:6])
            owners = np.array(numbers.owners, np.int64)
            if n_boxes:
                _place_boxes(box_rows, numbers, kinematics[owners, :7])
        blank = ('',) * n_actors
        data = _carla_data(numbers, counters, ids, classes, status, sensor_data)
        frame = Frame(
            GENERATION, game_time, 0, data.frame_number % 2 ** 32, self._names,
            _KINDS[classes], self._tags, kinematics, NO_LANES,
            boxes=Boxes(owners, tuple(numbers.box_names), box_rows) if needs.boxes else None,
            wheels=NO_WHEELS if needs.wheels else None,
            inputs=_inputs(classes, inputs) if needs.inputs else None,
            appearance=Appearance(blank, blank) if needs.appearance else None,
            forward_speed=poses[:, 6].copy(), extension=data,
            # CARLA counts whole milliseconds.
            has_exact_time=True, identity=data.identity)
        return frame, numbers.faults

    def _name(self, ids: npt.NDArray[np.uint32], classes: npt.NDArray[np.uint8]) -> None:
        """Set names and tags if the actors differ from those of the previous frame."""
        key = (ids.tobytes(), classes.tobytes())
        if key != self._key:
            self._key = key
            self._names = tuple(
                PLAYER_NAME if class_ == CLASS_PLAYER else f'{AGENT_CLASSES[class_]}_{id_}'
                for id_, class_ in zip(ids.tolist(), classes.tolist(), strict=True))
            self._tags = tuple(_TAGS[class_] for class_ in classes.tolist())


def _inputs(classes: npt.NDArray[np.uint8], of_player: Floats | None) -> Floats:
    inputs = np.full((len(classes), 4), np.nan)
    if of_player is not None and starts_with_player(classes):
        inputs[0] = of_player
    return inputs


def _carla_data(numbers: ActorNumbers, counters: FrameCounters, ids: npt.NDArray[np.uint32],
                classes: npt.NDArray[np.uint8], status: PlayerStatus | None,
                sensor_data: SensorData) -> CarlaData:
    return CarlaData(
        counters.frame_number, counters.game_timestamp, counters.platform_timestamp, ids, classes,
        _scattered(numbers.lights, len(ids), np.uint8, NO_LIGHT),
        _scattered(numbers.limits, len(ids), np.float64, math.nan),
        status if starts_with_player(classes) else None, sensor_data)


def _finite(rows: Floats) -> Floats:
    """Replace infinity, which is not a valid position or speed, by NaN."""
    # Fast path: a finite sum proves that all are finite. An overflow only takes the slow path.
    return rows if math.isfinite(rows.sum()) else np.where(np.isfinite(rows), rows, np.nan)


def _place_boxes(box_rows: Floats, numbers: ActorNumbers, owners: Floats) -> None:
    """
    Place the boxes, which are relative to their owners, in the global frame.

    :param box_rows: (M, 13) float64, output, the rows of :class:`Boxes`.
    :param owners: (M, 7) float64, position and orientation of the owner of each box.
    """
    boxes = _finite(as_rows(numbers.boxes, 9))
    position, orientation = owners[:, :3], owners[:, 3:]
    centre = global_from_unit(orientation) @ mirrored_vectors(boxes[:, 0:3])[:, :, None]
    turned = boxes[:, 3:6]
    # Boxes have the orientation of their owners, except those of custom vehicles.
    if turned.any():
        orientation = quaternion_product(orientation, to_rep103_rotator(turned))
    box_rows[:, 0:3] = position + centre[:, :, 0]
    box_rows[:, 3:7] = orientation
    box_rows[:, 7:10] = 2.0 * boxes[:, 6:9]
    box_rows[:, 10:13] = 1.0


def _scattered(entries: list[tuple[int, Any]], n_actors: int, dtype: npt.DTypeLike,
               fill: float) -> npt.NDArray[Any]:
    """Return an array with the values of ``entries`` in their rows and ``fill`` elsewhere."""
    column = np.full(n_actors, fill, dtype)
    if entries:
        column[[row for row, _ in entries]] = [value for _, value in entries]
    return column
