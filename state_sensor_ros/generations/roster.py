# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Names and tags of a frame, looked into only where they differ from those of the frame before.

May know: that frames of a run mostly have the same actors. Must not know: anything else of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw
from msgspec.json import Decoder as JsonDecoder

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.generations.wire import Tags

_TAGS = JsonDecoder(Tags)


class Roster:
    """
    Who was in the last frame of a stream.

    What is still the same is returned as the same object, so that whoever compares it later is
    done at once, too.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()
        self._texts: list[Raw | Tags] = []
        self._tags: tuple[Tags, ...] = ()

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

        :param texts: of each, as JSON or decoded.
        :raises msgspec.DecodeError: where one is no list of strings.
        """
        if texts != self._texts:
            self._tags = tuple([_TAGS.decode(text) if isinstance(text, Raw) else text
                                for text in texts])
            # A copy, as what was decoded holds on to the whole payload.
            self._texts = [text.copy() if isinstance(text, Raw) else text for text in texts]
        return self._tags
