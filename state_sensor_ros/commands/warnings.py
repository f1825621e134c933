# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What went wrong with single frames of a recording, and the frames for which nothing did.

May know: decoders, standard error. Must not know: what is done with the frames.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
import math
import sys

from state_sensor_ros.errors import DecodeError, one_line
from state_sensor_ros.frame import Frame
from state_sensor_ros.recordings.recording import RecordedFrame, Recording


def say(text: str) -> None:
    """Tell something that is no result, in one line."""
    sys.stderr.write(f'{one_line(text)}\n')


class Warnings:
    """
    The first warning of each kind, and how many there were.

    :param name: of the recording.
    :ivar place: of the frame that is looked at.
    """

    def __init__(self, name: str) -> None:
        self.place = ''
        self._name = name
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, kind: str, text: str) -> None:
        """Count something about the frame at :attr:`place`."""
        self._counts[kind] += 1
        self._first.setdefault(kind, f'{self.place}: {text}')

    def show(self) -> None:
        """Say one line about each kind."""
        for kind, count in self._counts.items():
            more = f' (and {count - 1} more of this kind)' if count > 1 else ''
            say(f'warning: {self._name}: {kind.replace("_", " ")}: {self._first[kind]}{more}')

    def frames_of(self, recording: Recording, entry: RecordedFrame,
                  game_time: float = math.nan) -> Iterator[Frame]:
        """
        Decode an entry; what is wrong with it is one warning of many, as in the node.

        :param game_time: s, for a frame that has none.
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
