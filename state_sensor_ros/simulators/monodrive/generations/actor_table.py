# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Names, tags, box sizes and lanes of the actors of a stream; only what changed is decoded.

All but lanes are compared as JSON text with those of the previous frame. Between a common prefix
and a common suffix lie the actors that changed; with ``b`` removed and ``d`` added::

    old texts   a  b  c        head 1, tail 1
    new texts   a  d  c
    decoded     A  D  C        A and C are the objects of the previous frame
"""

from __future__ import annotations

from collections.abc import Sequence
import struct
from typing import TypeVar

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder
import numpy as np

from state_sensor_ros.simulators import DecodeError
from state_sensor_ros.simulators.frame_arrays import (
    are_lengths,
    Bools,
    common_ends,
    Floats,
    Ints,
    NO_LANES,
    spliced,
)
from state_sensor_ros.simulators.json_values import as_rows, Tags
from state_sensor_ros.simulators.monodrive.generations.wire import ControlState, Vector

_TAGS = JsonDecoder(Tags)
_VECTOR = JsonDecoder(Vector)
_LANE, _LANE_ROW = struct.Struct('=2?3i'), np.dtype([('is_changing', '?', 2), ('ids', '=i4', 3)])


class ActorTable:
    """
    The actors of the last frame of a stream: names, tags, sizes of boxes, and lanes.

    An unchanged result is the same object as before, so that later comparisons take no time. One
    new actor among a thousand costs the decoding of one. Methods accept texts or decoded values.

    :ivar has_lengths: :func:`are_lengths` of the last sizes.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._tag_texts: list[Raw | Tags] = []
        self._tags: tuple[Tags, ...] = ()
        self._extents: list[Raw | Vector] = []
        self._scales: list[Raw | Vector] = []
        self._sizes: Floats = np.zeros((0, 6))
        self.has_lengths = True
        self._packed_lanes = b''
        self._lane_columns: tuple[Bools, Ints] = NO_LANES.is_changing, NO_LANES.ids

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return ``names``, of all actors, as the objects of the previous frame if they are equal.

        :raises DecodeError: when two actors have the same name.
        """
        old = self._names
        if names != old:
            head, tail = common_ends(old, names)
            # Old strings carry their hash already, which the set below uses.
            names = spliced(old, head, names[head:len(names) - tail], tail)
            if len(set(names)) < len(names):
                raise DecodeError('names', 'one twice', 'each once in a frame')
            self._names = names
        return self._names

    def tags(self, texts: list[Raw | Tags]) -> tuple[Tags, ...]:
        """
        Return the tags of all actors.

        :param texts: one for each actor.
        :raises msgspec.DecodeError: when one is not a list of strings.
        """
        old = self._tag_texts
        if texts != old:
            head, tail = common_ends(old, texts)
            new, end = texts[head:len(texts) - tail], len(old) - tail
            self._tags = spliced(self._tags, head, tuple(_decoded(new, _TAGS)), tail)
            old[head:end] = _kept(new)
        return self._tags

    def sizes(self, extents: list[Raw | Vector], scales: list[Raw | Vector]) -> Floats:
        """
        Return the extents and scales of all boxes.

        :param extents: M, one for each box.
        :param scales: M, likewise.
        :returns: (M, 6) float64, extents and scale xyz as sent; must not be written to.
        :raises msgspec.DecodeError: when one is not a vector.
        """
        if extents != self._extents or scales != self._scales:
            head, tail = map(min, zip(common_ends(self._extents, extents),
                                      common_ends(self._scales, scales), strict=True))
            end, new_end = len(self._extents) - tail, len(extents) - tail
            extents, scales = extents[head:new_end], scales[head:new_end]
            both = zip(_decoded(extents, _VECTOR), _decoded(scales, _VECTOR), strict=True)
            rows = as_rows([number for e, k in both
                            for number in (e.x, e.y, e.z, k.x, k.y, k.z)], 6)
            self._sizes = np.concatenate((self._sizes[:head], rows, self._sizes[end:]))
            self._extents[head:end], self._scales[head:end] = _kept(extents), _kept(scales)
            self.has_lengths = are_lengths(self._sizes)
        return self._sizes

    def lane_columns(self, lanes: Sequence[ControlState]) -> tuple[Bools, Ints]:
        """
        Return the columns of L lane states that seldom change.

        :param lanes: lanes of the frame, in the order of its vehicles.
        :returns: (L, 2) bool, whether changes to the left and right are under way; (L, 3) int32,
            road, section and lane.
        """
        # Bytes, as objects of one frame that stay in memory would keep that around them.
        packed = b''.join([_LANE.pack(
            lane.lane_change_left, lane.lane_change_right, lane.road_id, lane.section_id,
            lane.lane_id) for lane in lanes])
        if packed != self._packed_lanes:
            rows = np.frombuffer(packed, _LANE_ROW)
            self._packed_lanes = packed
            self._lane_columns = rows['is_changing'].copy(), rows['ids'].copy()
        return self._lane_columns


Item = TypeVar('Item')


def _decoded(texts: list[Raw | Item], decoder: JsonDecoder[Item]) -> list[Item]:
    return [decoder.decode(text) if isinstance(text, Raw) else text for text in texts]


def _kept(texts: list[Raw | Item]) -> list[Raw | Item]:
    # Copies: a Raw of the decoder keeps the whole payload in memory.
    return [text.copy() if isinstance(text, Raw) else text for text in texts]
