# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The frames of a recording, and one warning for each kind of fault in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
import math

from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame
from state_sensor_ros.recordings.recording import RecordedFrame, Recording


class Warnings:
    """
    The first warning of each kind, and the number of them.

    :param name: of the recording.
    :ivar place: of the frame that is being processed.
    """

    def __init__(self, name: str) -> None:
        self.place = ''
        self._name = name
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, kind: str, text: str) -> None:
        """
        Count a warning about the frame at :attr:`place`; keep the first text of each kind.

        :param kind: of the fault, with ``_`` for spaces.
        :param text: one line, without the place.
        """
        self._counts[kind] += 1
        self._first.setdefault(kind, f'{self.place}: {text}')

    def show(self) -> None:
        """Print one line for each kind."""
        for kind, count in self._counts.items():
            more = f' (and {count - 1} more of this kind)' if count > 1 else ''
            print_line(f'warning: {self._name}: {kind.replace("_", " ")}: '
                       f'{self._first[kind]}{more}')

    def frames_of(self, recording: Recording, entry: RecordedFrame,
                  game_time: float = math.nan) -> Iterator[Frame]:
        """
        Decode an entry; its faults become warnings, as in the node.

        :param recording: with the decoder of the entry.
        :param entry: of ``recording``.
        :param game_time: s, for a frame without one.
        :returns: the frames of the entry, none where it cannot be decoded.
        """
        self.place = entry.place
        try:
            decoded = recording.decoder.decode(entry.packet.payload, game_time=game_time)
        except DecodeError as error:
            self.add('payload', str(error))
            return
        for one in decoded:
            for fault in one.faults:
                self.add(fault.kind, str(fault.error))
            yield one.frame
