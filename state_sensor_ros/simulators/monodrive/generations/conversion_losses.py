# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Parts of a frame that are lost when it is written as another generation."""

from __future__ import annotations

import numpy as np

from state_sensor_ros.simulators import Frame, Wheels
from state_sensor_ros.simulators.frame_arrays import KIND_OBJECT, NO_SOURCE_ID
from state_sensor_ros.simulators.monodrive.generations.assemble import kind_of
from state_sensor_ros.simulators.monodrive.generations.formatting import (
    checked_generation,
    FLAT,
    RESERVED_NAMES,
)
from state_sensor_ros.simulators.monodrive.generations.wheels import entry_ids, wheel_entries
from state_sensor_ros.simulators.monodrive.generations.wire import V0, V1, V1T, V2
from state_sensor_ros.simulators.recordings import LANES, parts_of


def conversion_losses(frame: Frame, generation: str) -> list[str]:
    """
    Return the parts of a frame that its payload of another generation would lack.

    :param generation: v0, v1, v1t or v2.
    :returns: names of the parts; none for the generation of a decoded frame.
    :raises ConfigError: if there is no such generation.
    """
    checked_generation(generation)
    wheels, inputs = frame.wheels, frame.inputs
    flat = generation in FLAT
    n_inputs_lost = {V2: 4, V0: 3}.get(generation, 0)
    by_tags = [kind_of(tags) for tags in frame.tags]
    found = {
        LANES: flat and len(frame.lanes.actor) > 0,
        'colours and replay classes': flat and frame.appearance is not None and any(
            frame.appearance.colors + frame.appearance.replay_classes),
        'objects tagged as vehicles or vehicles not tagged so':
            flat and by_tags != frame.kinds.tolist(),
        'throttle, brake and steering': inputs is not None and bool(
            np.isfinite(inputs[:, :n_inputs_lost]).any()),
        'oriented bounding boxes':
            generation == V0 and frame.boxes is not None and len(frame.boxes.actor) > 0,
        'wheels': generation == V0 and wheels is not None and len(wheels.actor) > 0,
        'wheel positions': generation in (V1, V1T) and wheels is not None and bool(
            wheels.position_known.any()),
        'orientations of rear wheels':
            generation in (V1, V1T) and wheels is not None and _lose_orientations(frame, wheels),
        'wheels and lane states of objects': generation == V2 and _objects_have_parts(frame),
        'the order of objects and vehicles':
            generation == V2 and bool((np.diff(frame.kinds.astype(np.int8)) < 0).any()),
        f'actors named {", ".join(sorted(RESERVED_NAMES))}':
            generation == V0 and not RESERVED_NAMES.isdisjoint(frame.names),
        'the time of a frame without actors': generation == V1T and not frame.names,
        'frames without actors': generation == V0 and not frame.names,
        'ids of actors': frame.ids is not None and frame.generation not in (V0, V1, V1T, V2),
        **dict.fromkeys((part for part in parts_of(frame) if part != LANES), True)}
    return [what for what, is_lost in found.items() if is_lost]


def _objects_have_parts(frame: Frame) -> bool:
    parts = [frame.lanes.actor] + ([] if frame.wheels is None else [frame.wheels.actor])
    return any(bool((frame.kinds[actor] == KIND_OBJECT).any()) for actor in parts)


def _lose_orientations(frame: Frame, wheels: Wheels) -> bool:
    """Return whether a wheel has an orientation but no entry in v1."""
    ids, _ = wheel_entries(wheels, entry_ids(
        wheels, from_flat=frame.generation in FLAT, to_flat=True))
    return bool((wheels.orientation_known & (ids == NO_SOURCE_ID)).any())
