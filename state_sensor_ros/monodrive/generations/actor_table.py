# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What frames of a run have in common, looked into only where it changed: names, tags, sizes.

May know: that it is text in a payload, which can be compared. Must not know: units, what moves.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder
import numpy as np

from state_sensor_ros.common_ends import common_ends as same_ends
from state_sensor_ros.common_ends import spliced
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.json_values import as_rows, Tags
from state_sensor_ros.monodrive.generations.wire import Vector

_TAGS = JsonDecoder(Tags)
_VECTOR = JsonDecoder(Vector)


class Roster:
    """
    Who was in the last frame of a stream, and how large their boxes were.

    What is still the same is returned as the same object, so that whoever compares it later is
    done at once, too; one who comes among a thousand costs no more than one. Methods take texts
    or what was decoded of them.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._tag_texts: list[Raw | Tags] = []
        self._tags: tuple[Tags, ...] = ()
        self._extents: list[Raw | Vector] = []
        self._scales: list[Raw | Vector] = []
        self._sizes: Floats = np.zeros((0, 6))

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return ``names``, which are those of all actors.

        :raises DecodeError: where two actors have one name.
        """
        old = self._names
        if names != old:
            head, tail = same_ends(old, names)
            # The old objects, as their hashes are known.
            names = spliced(old, head, names[head:len(names) - tail], tail)
            if len(set(names)) < len(names):
                raise DecodeError('names', 'one twice', 'each once in a frame')
            self._names = names
        return self._names

    def tags(self, texts: list[Raw | Tags]) -> tuple[Tags, ...]:
        """
        Return the tags of all actors.

        :raises msgspec.DecodeError: where one is no list of strings.
        """
        old = self._tag_texts
        if texts != old:
            head, tail = same_ends(old, texts)
            new, end = texts[head:len(texts) - tail], len(old) - tail
            self._tags = spliced(self._tags, head, tuple(_decoded(new, _TAGS)), tail)
            old[head:end] = _kept(new)
        return self._tags

    def sizes(self, extents: list[Raw | Vector], scales: list[Raw | Vector]) -> Floats:
        """
        Return the extents and scales of all boxes.

        :returns: (M, 6) float64, source, as sent; not to be written to.
        :raises msgspec.DecodeError: where one is no vector.
        """
        if extents != self._extents or scales != self._scales:
            head, tail = map(min, zip(same_ends(self._extents, extents),
                                      same_ends(self._scales, scales), strict=True))
            end, new_end = len(self._extents) - tail, len(extents) - tail
            extents, scales = extents[head:new_end], scales[head:new_end]
            both = zip(_decoded(extents, _VECTOR), _decoded(scales, _VECTOR), strict=True)
            rows = as_rows([number for e, k in both
                            for number in (e.x, e.y, e.z, k.x, k.y, k.z)], 6)
            self._sizes = np.concatenate((self._sizes[:head], rows, self._sizes[end:]))
            self._extents[head:end], self._scales[head:end] = _kept(extents), _kept(scales)
        return self._sizes


Item = TypeVar('Item')


def _decoded(texts: list[Raw | Item], decoder: JsonDecoder[Item]) -> list[Item]:
    return [decoder.decode(text) if isinstance(text, Raw) else text for text in texts]


def _kept(texts: list[Raw | Item]) -> list[Raw | Item]:
    # Copies, as a text that was decoded holds on to the whole payload.
    return [text.copy() if isinstance(text, Raw) else text for text in texts]
