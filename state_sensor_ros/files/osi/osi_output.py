# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A trace of ASAM OSI that is being written from frames: a GroundTruth for each.

The reference point of an object is the center of its box. A trace has strictly increasing times, a
host in each message, and no object with a gap: repeated frames are dropped, the times of a new
run of the simulator follow those of the last one, and an object that returns gets a new id. Other
objects have the ids of their actors.
"""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import count
import math
import struct
from typing import Any, BinaryIO, TYPE_CHECKING

from state_sensor_ros.classes import DEFAULT_CLASSES
from state_sensor_ros.errors import importing, TrajectoryFormatError
from state_sensor_ros.files import WriteOptions
from state_sensor_ros.files.osi.osi_objects import (
    NAME_REFERENCE,
    objects_of,
    OSI_TYPES,
    OsiFrame,
    OsiNotes,
)
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.files.recording import FrameWriter
from state_sensor_ros.files.tables.table_rows import FrameRows, RowMaker
from state_sensor_ros.frame import Frame, NS_PER_S

if TYPE_CHECKING:
    from google.protobuf.descriptor import FileDescriptor
    from mcap.writer import Writer
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_object_pb2 import MovingObject, StationaryObject
    from osi3.osi_version_pb2 import InterfaceVersion

_TOPIC = 'ground_truth'
_TRACE = 'net.asam.osi.trace'
# Suffix of length-delimited messages; all others mean MCAP.
PLAIN = '.osi'
_ROLE_CIVIL = 2
# First id of objects that return: those of actors are seldom as great.
_FIRST_NEW_ID = 3 * 2**30
# Time between the last frame of a run of the simulator and the first one of the next.
_RUN_GAP_NS = 50_000_000
# A killed program loses the chunk that it collects.
_CHUNK_BYTES = 128 * 1024
# omega-prime recommends 10 Hz; this adds a tolerance for the rounding of times.
_SLOW_NS = 101_000_000


class OsiOutput(WholeFile, FrameWriter):
    """A trace in a file."""

    # options: options of the recording; ``default_class`` class of actors without a class tag,
    # ``''`` for ``car`` of vehicles and ``other`` of objects.

    def __init__(self, path: str, options: WriteOptions) -> None:
        from osi3 import osi_groundtruth_pb2, osi_version_pb2
        self._new_message = osi_groundtruth_pb2.GroundTruth
        self._version = osi_version_pb2.DESCRIPTOR.GetOptions().Extensions[
            osi_version_pb2.current_interface_version]
        default_class = options.values.get('default_class')
        self.n_frames = self.n_messages = 0
        self._source = options.source or path
        self._notes = OsiNotes(has_default_class=bool(default_class))
        self._maker = RowMaker(
            options.settings,
            default_class=DEFAULT_CLASSES.index(default_class) if default_class else None)
        self._shift_ns = self._last_ns = -1
        self._host: int | None = None
        # For each actor: its id in the trace, the number of its last message, and its time, ns.
        self._ids: dict[int, tuple[int, int, int]] = {}
        self._new_ids = count(_FIRST_NEW_ID)
        self._used_ids: set[int] = set()
        self._mcap: Any = None
        super().__init__(path, force=options.force)

    @property
    def notes(self) -> list[str]:
        """Return a line for each kind of difference from the recording."""
        return list(self._notes.lines())

    def write(self, frame: Frame) -> None:
        """Append a frame; ``frame``: frame; SI, REP-103 axes."""
        self.n_frames += 1
        for rows in self._maker.add(frame):
            self._add(rows)

    def flush(self) -> None:
        """Write the messages that are known."""
        for rows in self._maker.flush():
            self._add(rows)
        # Before mcap 1.6 chunks end only by their sizes.
        if self._mcap is not None and hasattr(self._mcap, 'flush'):
            self._mcap.flush()
        super().flush()

    def complete(self) -> None:
        """Write the last frames and the end, and sync the file."""
        if self.is_open:
            for rows in [*self._maker.flush(), *self._maker.rest()]:
                self._add(rows)
            if self.n_frames and not self.n_messages:
                raise TrajectoryFormatError(self._source, 'no objects', 'at least one')
            if self._mcap is not None:
                self._mcap.finish()
        super().complete()

    def salvage(self) -> str:
        """Keep the messages: readers of both formats read up to the cut."""
        return self.kept()

    def _add(self, rows: FrameRows) -> None:
        objects = objects_of(rows, self._notes)
        if objects is not None:
            self._write_message(objects)

    def _write_message(self, objects: OsiFrame) -> None:
        stamp_ns = objects.stamp_ns + max(self._shift_ns, 0)
        if stamp_ns <= self._last_ns:
            self._notes.add('restarts', f'at {stamp_ns / NS_PER_S:.6g} s')
            self._shift_ns = self._last_ns + _RUN_GAP_NS - objects.stamp_ns
            stamp_ns = self._last_ns + _RUN_GAP_NS
        elif self._last_ns >= 0 and stamp_ns - self._last_ns > _SLOW_NS:
            self._notes.add('slow', f'{(stamp_ns - self._last_ns) / NS_PER_S:.3g} s before '
                                    f'{stamp_ns / NS_PER_S:.6g} s')
        self._last_ns = stamp_ns
        ids = [self._id_of(int(actor), stamp_ns) for actor in objects.ids]
        if objects.host is not None:
            self._host = ids[objects.host]
        elif self._host is None:
            if not ids:
                self._notes.add('empty', f'at {stamp_ns / NS_PER_S:.6g} s')
                return
            self._host = ids[0]
            self._notes.add('hosts', self._notes.name_of(int(objects.ids[0])))
        message = self._new_message()
        message.version.CopyFrom(self._version)
        message.timestamp.seconds, message.timestamp.nanos = divmod(stamp_ns, NS_PER_S)
        message.host_vehicle_id.value = self._host
        _add_objects(message, objects, ids, [
            self._notes.name_of(actor) for actor in objects.ids.tolist()])
        self._write_bytes(message.SerializeToString(deterministic=True), stamp_ns)
        self.n_messages += 1

    def _id_of(self, actor: int, stamp_ns: int) -> int:
        """Return the id of an actor in this message, a new one if it was absent for a while."""
        known = self._ids.get(actor)
        if known is None or known[1] < self.n_messages - 1:
            id_ = actor
            if known is not None:
                gap_s, begin_s = (stamp_ns - known[2]) / NS_PER_S, known[2] / NS_PER_S
                self._notes.add(
                    'returned',
                    f'{self._notes.name_of(actor)} ({gap_s:.3g} s after {begin_s:.6g} s)')
            elif id_ in self._used_ids:
                self._notes.add('renumbered', self._notes.name_of(actor))
            if id_ in self._used_ids:
                id_ = next(new for new in self._new_ids if new not in self._used_ids)
            self._used_ids.add(id_)
            known = id_, 0, 0
        self._ids[actor] = known[0], self.n_messages, stamp_ns
        return known[0]

    def _write_bytes(self, data: bytes, stamp_ns: int) -> None:
        if self.name.endswith(PLAIN):
            self.handle.write(struct.pack('<I', len(data)) + data)
            return
        if self._mcap is None:
            self._mcap, self._channel = begin_trace(self.handle, self._new_message, self._version)
        self._mcap.add_message(self._channel, log_time=stamp_ns, publish_time=stamp_ns, data=data)


def _add_objects(message: GroundTruth, objects: OsiFrame, ids: list[int],
                 names: list[str]) -> None:
    for id_, name, type_, row in zip(ids, names, objects.types.tolist(), objects.values.tolist(),
                                     strict=True):
        osi_type = OSI_TYPES[type_]
        if osi_type.is_stationary:
            still = message.stationary_object.add()
            still.classification.type = osi_type.number
            _set_pose(still, id_, name, row)
            continue
        moving = message.moving_object.add()
        moving.type = osi_type.number
        _set_pose(moving, id_, name, row)
        base = moving.base
        # What is unknown has no member.
        for vector, begin in ((base.velocity, 9), (base.acceleration, 12)):
            if all(map(math.isfinite, row[begin:begin + 3])):
                vector.x, vector.y, vector.z = row[begin:begin + 3]
        if all(map(math.isfinite, row[15:18])):
            rate = base.orientation_rate
            rate.roll, rate.pitch, rate.yaw = row[15:18]
        if osi_type.vehicle:
            moving.vehicle_classification.type = osi_type.vehicle
            moving.vehicle_classification.role = _ROLE_CIVIL


def _set_pose(osi_object: MovingObject | StationaryObject, id_: int, name: str,
              row: list[float]) -> None:
    osi_object.id.value = id_
    reference = osi_object.source_reference.add()
    # A string of protobuf is UTF-8.
    reference.type = NAME_REFERENCE
    reference.identifier.append(name.encode(errors='replace').decode())
    base = osi_object.base
    size, place, angles = base.dimension, base.position, base.orientation
    size.length, size.width, size.height = row[0:3]
    place.x, place.y, place.z = row[3:6]
    angles.roll, angles.pitch, angles.yaw = row[6:9]


def begin_trace(handle: BinaryIO, message: type[GroundTruth],
                version: InterfaceVersion) -> tuple[Writer, int]:
    """Begin an indexed file in chunks, with the metadata of a trace."""
    with importing(_TRACE):
        import google.protobuf
        from mcap.writer import Writer
    osi = f'{version.version_major}.{version.version_minor}.{version.version_patch}'
    protobuf = google.protobuf.__version__
    writer = Writer(handle, chunk_size=_CHUNK_BYTES)
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
