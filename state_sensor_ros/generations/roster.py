# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What frames of a run have in common, looked into only where it changed: names, tags, sizes.

May know: that it is text in a payload, which can be compared. Must not know: units, what moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder
import numpy as np

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Floats
from state_sensor_ros.generations.wheels import as_rows
from state_sensor_ros.generations.wire import Tags, Vector

_TAGS = JsonDecoder(Tags)
_VECTOR = JsonDecoder(Vector)


class Roster:
    """
    Who was in the last frame of a stream, and how large their boxes were.

    What is still the same is returned as the same object, so that whoever compares it later is
    done at once, too. Methods take texts or what was decoded of them.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._tag_texts: Sequence[Raw | Tags] = ()
        self._tags: tuple[Tags, ...] = ()
        self._size_texts: tuple[Sequence[Raw | Vector], Sequence[Raw | Vector]] = (), ()
        self._sizes: Floats = np.zeros((0, 6))

    def names(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """
        Return ``names``, which are those of all actors.

        :raises DecodeError: where two actors have one name.
        """
        if names != self._names:
            if len(set(names)) < len(names):
                raise DecodeError('names', 'one twice', 'each once in a frame')
            self._names = names
        return self._names

    def tags(self, texts: Sequence[Raw | Tags]) -> tuple[Tags, ...]:
        """
        Return the tags of all actors.

        :raises msgspec.DecodeError: where one is no list of strings.
        """
        if texts != self._tag_texts:
            self._tags = tuple([_TAGS.decode(text) if isinstance(text, Raw) else text
                                for text in texts])
            self._tag_texts = _kept(texts)
        return self._tags

    def sizes(self, extents: Sequence[Raw | Vector], scales: Sequence[Raw | Vector]) -> Floats:
        """
        Return the extents and scales of all boxes.

        :returns: (M, 6) float64, source, as sent; not to be written to.
        :raises msgspec.DecodeError: where one is no vector.
        """
        if (extents, scales) != self._size_texts:
            vectors = [_VECTOR.decode(text) if isinstance(text, Raw) else text
                       for both in zip(extents, scales, strict=True) for text in both]
            self._sizes = as_rows([number for vector in vectors
                                   for number in (vector.x, vector.y, vector.z)], 6)
            self._size_texts = _kept(extents), _kept(scales)
        return self._sizes


Item = TypeVar('Item')


def _kept(texts: Sequence[Raw | Item]) -> list[Raw | Item]:
    # Copies, as a text that was decoded holds on to the whole payload.
    return [text.copy() if isinstance(text, Raw) else text for text in texts]
