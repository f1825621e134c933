# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The beginning of a trace in an MCAP file, by ASAM's trace file format."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import BinaryIO, TYPE_CHECKING

from state_sensor_ros.errors import importing

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor
    from mcap.writer import Writer
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_version_pb2 import InterfaceVersion

_TOPIC = 'ground_truth'
_TRACE = 'net.asam.osi.trace'


def begin_trace(handle: BinaryIO, message: type[GroundTruth],
                version: InterfaceVersion) -> tuple[Writer, int]:
    """
    Begin an indexed file in chunks, with the metadata of a trace.

    :param handle: file, open for writing.
    :param message: type of the messages.
    :param version: version of OSI.
    :returns: the writer, and the number of the channel.
    :raises MissingLibraryError: if mcap is not installed.
    """
    with importing(_TRACE):
        import google.protobuf
        from mcap.writer import Writer
    osi = f'{version.version_major}.{version.version_minor}.{version.version_patch}'
    protobuf = google.protobuf.__version__
    writer = Writer(handle)
    writer.start(library='state_sensor_ros')
    writer.add_metadata(_TRACE, {
        'version': osi, 'min_osi_version': osi, 'max_osi_version': osi,
        'min_protobuf_version': protobuf, 'max_protobuf_version': protobuf,
        'creation_time': f'{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}'})
    schema = writer.register_schema(
        message.DESCRIPTOR.full_name, 'protobuf', _definition(message))
    channel = writer.register_channel(_TOPIC, 'protobuf', schema, {
        f'{_TRACE}.channel.osi_version': osi,
        f'{_TRACE}.channel.protobuf_version': protobuf})
    return writer, channel


def _definition(message: type[GroundTruth]) -> bytes:
    """Return the serialised definitions of a type and of the types that it uses."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    definitions = FileDescriptorSet()
    seen: set[str] = set()

    def add(file: FileDescriptor) -> None:
        if file.name not in seen:
            seen.add(file.name)
            for other in file.dependencies:
                add(other)
            file.CopyToProto(definitions.file.add())

    add(message.DESCRIPTOR.file)
    return definitions.SerializeToString()
