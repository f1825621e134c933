# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The faults of a recording or a stream: what was dropped from its frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame
from state_sensor_ros.payloads import decode_packet, Packet, PayloadDecoder

# A faulty recording may have one fault for each actor of each frame.
MAX_KEPT = 1000
# Kinds of faults, besides those of single actors.
PAYLOAD, CUT, CONNECTION = 'payload', 'cut', 'connection'


@dataclass(frozen=True, slots=True)
class FrameFault:
    """
    An actor, payload or part of a stream that was dropped, or changed.

    ``kind`` is ``dropped`` or ``duplicate`` for an actor that was dropped, ``other_id`` for one
    that does not have the id of the source, ``payload`` for a whole payload,
    ``cut`` for the missing end of a recording, ``connection`` for a lost connection; ``place`` in
    the recording or stream, in words; ``text`` what was found and what is expected; ``error`` the
    error with separate ``where``, ``found`` and ``expected``, None for ``cut`` and ``connection``;
    ``index`` of the payload in a recording, from 0, else None.
    """

    kind: str
    place: str
    text: str
    error: DecodeError | None = None
    index: int | None = None

    def __str__(self) -> str:
        return f'{self.place}: {self.kind.replace("_", " ")}: {self.text}'


class FaultList(list[FrameFault]):
    """
    The first thousand faults.

    :ivar counts: number of faults of each kind, including those not in the list.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def add(self, fault: FrameFault) -> None:
        """
        Append a fault, or only count it if the list is full.

        The first fault of a kind is always appended.

        :param fault: fault to add.
        """
        self.counts[fault.kind] += 1
        if len(self) < MAX_KEPT or self.counts[fault.kind] == 1:
            self.append(fault)

    def clear(self) -> None:
        """Remove all faults."""
        super().clear()
        self.counts.clear()

    def frames_of(self, decoder: PayloadDecoder, packet: Packet, place: str, *,
                  index: int | None = None, is_timed: bool = True) -> Iterator[Frame]:
        """
        Decode a payload, and add its faults.

        :param packet: packet with the payload, and the times for frames without their own.
        :param place: place of the payload, in words.
        :param index: index of the payload in a recording.
        :param is_timed: whether frames without a time get that of the packet.
        :returns: the frames of the payload, none if it cannot be decoded.
        """
        try:
            decoded = decode_packet(decoder, packet, is_timed=is_timed)
        except DecodeError as error:
            self.add(_fault_of(PAYLOAD, place, error, index))
            return
        for item in decoded:
            for fault in item.faults:
                self.add(_fault_of(fault.kind, place, fault.error, index))
            yield item.frame


def _fault_of(kind: str, place: str, error: DecodeError, index: int | None) -> FrameFault:
    # A new error: the traceback of a raised one keeps the payload in memory.
    return FrameFault(kind, place, str(error), DecodeError(
        error.where, error.found, error.expected), index)
