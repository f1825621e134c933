# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The whole messages of a trace of ASAM OSI whose end is missing."""

from __future__ import annotations

import struct
from typing import BinaryIO

from state_sensor_ros.errors import importing, TrajectoryFormatError
from state_sensor_ros.files.bag_repair import McapSalvage
from state_sensor_ros.texts import counted

_LENGTH = struct.Struct('<I')
_MAGIC = b'\x89MCAP'


def copy_whole(cut: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """Copy the whole messages of a trace."""
    # Returns number of the messages; description of the loss, empty for none.
    is_mcap = cut.read(len(_MAGIC)) == _MAGIC
    cut.seek(0)
    n_messages, lost = (_copy_mcap if is_mcap else _copy_plain)(cut, target)
    if not n_messages:
        raise TrajectoryFormatError(name, 'no whole message', 'at least one whole message')
    return n_messages, lost


def _copy_plain(cut: BinaryIO, target: BinaryIO) -> tuple[int, str]:
    """Copy messages, each after its length."""
    n_messages = 0
    while head := cut.read(_LENGTH.size):
        n_bytes = _LENGTH.unpack(head)[0] if len(head) == _LENGTH.size else 0
        if not n_bytes:
            return n_messages, f'{counted(len(head + cut.read()), "byte")} that are not a message'
        message = cut.read(n_bytes)
        if len(message) < n_bytes:
            return n_messages, 'an incomplete message'
        target.write(head + message)
        n_messages += 1
    return n_messages, ''


def _copy_mcap(cut: BinaryIO, target: BinaryIO) -> tuple[int, str]:
    """Copy the readable records of an MCAP file, and write a new index."""
    with importing('a trace in MCAP'):
        from mcap.records import Channel, Message, Metadata, Schema
        from mcap.writer import Writer
    writer = Writer(target)
    writer.start('', 'state_sensor_ros')
    schemas, channels, salvage = {0: 0}, {}, McapSalvage(cut)
    for record in salvage.records():
        match record:
            case Schema():
                schemas[record.id] = writer.register_schema(
                    record.name, record.encoding, record.data)
            case Channel():
                channels[record.id] = writer.register_channel(
                    record.topic, record.message_encoding, schemas[record.schema_id],
                    record.metadata)
            case Metadata():
                writer.add_metadata(record.name, record.metadata)
            case Message():
                writer.add_message(channels[record.channel_id], record.log_time, record.data,
                                   record.publish_time, record.sequence)
    writer.finish()  # type: ignore[no-untyped-call]
    return salvage.n_found, '; '.join(salvage.losses)
