# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Layout of an MCAP file, parsed independently of the package, and MCAP files of other writers.

The format is that of https://mcap.dev/spec.
"""

import struct

import pytest

CHUNK, FOOTER, DATA_END = 0x06, 0x02, 0x0F


def records(data):
    """Yield opcode, offset and length of content of each record."""
    at = 8
    while at < len(data) - 8:
        opcode, length = struct.unpack_from('<BQ', data, at)
        yield opcode, at, length
        at += 9 + length


def offsets(data, opcode):
    return [at for found, at, _ in records(data) if found == opcode]


def without_crcs(data):
    """Zero all CRCs, as other writers leave them."""
    data = bytearray(data)
    for opcode, at, _ in records(bytes(data)):
        if (offset := {CHUNK: 33, DATA_END: 9, FOOTER: 25}.get(opcode)) is not None:
            data[at + offset:at + offset + 4] = bytes(4)
    return bytes(data)


def mcap_writer():
    return pytest.importorskip('mcap.writer', reason='needs the package mcap')


def rewritten(source, path, **options):
    """Write the messages of an MCAP file again, by the mcap library."""
    writer_module = mcap_writer()
    reader_module = pytest.importorskip('mcap.reader')
    with source.open('rb') as file, path.open('wb') as out:
        writer = writer_module.Writer(out, **options)
        writer.start('ros2')
        channels = {}
        for schema, channel, message in reader_module.make_reader(file).iter_messages():
            if channel.id not in channels:
                number = writer.register_schema(schema.name, schema.encoding, schema.data)
                channels[channel.id] = writer.register_channel(
                    channel.topic, channel.message_encoding, number, channel.metadata)
            writer.add_message(channels[channel.id], message.log_time, message.data,
                               message.publish_time, message.sequence)
        writer.finish()
    return path
