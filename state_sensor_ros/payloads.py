# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The adapter of decoders of payloads, until the last of them gives frames itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame
from state_sensor_ros.source import Fault, Faults, LOST, MEMBER


@dataclass(frozen=True, slots=True)
class Decoded:
    """A frame, and a fault for each actor that was dropped from it or has another id."""

    frame: Frame
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """The optional parts of a frame that are used; decoding the others is skipped."""

    boxes: bool = True
    wheels: bool = True
    inputs: bool = True
    appearance: bool = True  # includes the names of boxes
    lanes: bool = True


EVERYTHING, NO_DETAILS = Needs(), Needs(boxes=False, wheels=False, inputs=False)


@dataclass(frozen=True, slots=True)
class Packet:
    """One payload and the times in its header."""

    payload: bytes | bytearray
    game_time: float  # s
    time: int  # s since the Unix epoch
    sample_count: int  # 0 if the header has none


class SingleFrameDecoder:
    """Base of decoders that decode payloads of one frame each."""

    details = True
    unknown_members: frozenset[str] = frozenset()

    def split(self, payload: bytes | bytearray) -> Sequence[bytes | bytearray]:
        """Return ``payload`` as the only one: it is one frame."""
        return (payload,)


def frames_of(items: Iterable[Frame | Decoded | DecodeError], faults: Faults) -> Iterator[Frame]:
    """Yield the frames, and add the faults to those of a reader."""
    for item in items:
        if isinstance(item, DecodeError):
            faults.add(LOST, item)
            continue
        for fault in item.faults if isinstance(item, Decoded) else ():
            faults.add(fault.kind, fault.error, fault.n)
        yield item.frame if isinstance(item, Decoded) else item


class Members:
    """Names each unknown member once."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()

    def name(self, unknown: frozenset[str], faults: Faults) -> None:
        """Add a fault for each new one."""
        for member in sorted(unknown - self._known):
            faults.add(MEMBER, DecodeError(member, 'an unknown member, which is ignored', 'none'))
        self._known |= unknown
