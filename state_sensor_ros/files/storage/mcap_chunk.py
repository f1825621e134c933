# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages of one chunk of an MCAP file in memory, in the order of their log times."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator

from state_sensor_ros.files.storage.mcap_records import (
    ChunkHead,
    HEAD,
    LEAST_MESSAGE_BYTES,
    MESSAGE_HEAD,
    Opcode,
)
from state_sensor_ros.files.storage.storage_file import StoredMessage


class LoadedChunk:
    """
    A chunk in memory.

    :param records: decompressed records of the chunk.
    :ivar n_bytes: size of the records, bytes.
    """

    def __init__(self, records: memoryview) -> None:
        self._records = records
        self.n_bytes = len(records)
        # Log times, ns, and offsets of the selected messages.
        self._times, self._places = array('Q'), array('Q')

    def scan(self, chunk: ChunkHead, selected: Collection[int], counts: Counter[int],
             ) -> Iterator[tuple[int, memoryview]]:
        """
        Check all records and note the selected messages.

        :param chunk: its head, between whose first and last time all log times must be.
        :param selected: numbers of channels.
        :param counts: number of messages by channel, incremented for each message.
        :returns: opcode and content of each schema and channel.
        :raises ValueError: if a record is damaged; struct.error likewise.
        """
        records, unpack, message = self._records, MESSAGE_HEAD.unpack_from, Opcode.MESSAGE
        first_ns, last_ns = chunk.first_ns, chunk.last_ns
        at, end = 0, len(records)
        while at < end:
            if records[at] == message:
                _, length, number, _, log_ns, _ = unpack(records, at)
                if length < LEAST_MESSAGE_BYTES:
                    raise ValueError('a message that is cut')
                if not first_ns <= log_ns <= last_ns:
                    raise ValueError(f'a log time of {log_ns} ns, which its head excludes')
                counts[number] += 1
                if number in selected:
                    self._times.append(log_ns)
                    self._places.append(at)
            else:
                opcode, length = HEAD.unpack_from(records, at)
                if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                    yield opcode, records[at + HEAD.size:at + HEAD.size + length]
                elif not opcode:
                    raise ValueError('no record in it')
            at += HEAD.size + length
        if at != end:
            raise ValueError('a record that is longer than the chunk')

    def in_order(self) -> Iterator[StoredMessage]:
        """Yield the selected messages in the order of their log times."""
        times, records = self._times, self._records
        order: Collection[int] = range(len(times))
        if any(map(int.__gt__, times, times[1:])):
            order = sorted(order, key=times.__getitem__)
        for i in order:
            at = self._places[i]
            _, length, number, *_ = MESSAGE_HEAD.unpack_from(records, at)
            data = records[at + MESSAGE_HEAD.size:at + HEAD.size + length]
            yield number, times[i], bytes(data)
