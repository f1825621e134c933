# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A trace of ASAM OSI that is being written from frames: a GroundTruth for each.

Reference point of an object is the centre of its box. A trace has strictly increasing times, a
host in each message, and no object that is absent between two of its frames: repeated frames are
left out, the times of a new run of the simulator follow those of the last one, and an object that
returns has a new id.
"""

from __future__ import annotations

from collections.abc import Iterator
import struct
from typing import Any

from state_sensor_ros.bodies import Floats
from state_sensor_ros.exports.osi_objects import objects_of, OsiFrame, Resampler
from state_sensor_ros.exports.table_rows import RowMaker
from state_sensor_ros.frame import Frame
from state_sensor_ros.outputs.object_classes import CLASSES
from state_sensor_ros.recordings.files.whole_file import WholeFile

MCAP, PLAIN = '.osi.mcap', '.osi'
OSI_SUFFIXES = (MCAP, PLAIN)
_TOPIC = 'ground_truth'
_NS_PER_S = 1_000_000_000
_TYPE_OTHER, _TYPE_VEHICLE, _TYPE_PEDESTRIAN = 1, 2, 3
_ROLE_CIVIL = 2
# MovingObject.VehicleClassification.Type of the classes that are vehicles.
_VEHICLE_TYPES = {'cyclist': 11, 'motorcycle': 10, 'bus': 12, 'truck': 7, 'trailer': 9, 'car': 4}
# Between the last frame of a run of the simulator and the first one of the next.
_RUN_GAP_NS = 50_000_000


class OsiOutput(WholeFile):
    """
    A trace in a file.

    :param path: NAME.osi.mcap, or NAME.osi for length-delimited messages.
    :param force: whether a file of that name may be replaced.
    :param rate_hz: of interpolated frames; None for the frames as they are.
    :ivar notes: what differs from the recording, in words, with the number of each.
    :raises SinkError: where the file cannot be written.
    """

    def __init__(self, path: str, *, force: bool, rate_hz: float | None = None) -> None:
        import betterosi
        self._osi = betterosi
        self._classes = [self._classification(each.name) for each in CLASSES]
        self.n_frames = self.n_messages = 0
        self.notes: dict[str, int] = {}
        self._maker = RowMaker()
        self._resampler = Resampler(rate_hz)
        self._shift_ns = self._last_ns = -1
        self._host: int | None = None
        # Id of each actor in the trace, and the last message that has it.
        self._ids: dict[int, tuple[int, int]] = {}
        self._next_id = 1
        self._mcap: Any = None
        super().__init__(path, force=force)

    def _classification(self, name: str) -> dict[str, Any]:
        """Return the members of a MovingObject that hold its class."""
        osi = self._osi
        if name == 'person':
            return {'type': osi.MovingObjectType(_TYPE_PEDESTRIAN)}
        if name not in _VEHICLE_TYPES:
            return {'type': osi.MovingObjectType(_TYPE_OTHER)}
        return {'type': osi.MovingObjectType(_TYPE_VEHICLE),
                'vehicle_classification': osi.MovingObjectVehicleClassification(
                    type=osi.MovingObjectVehicleClassificationType(_VEHICLE_TYPES[name]),
                    role=osi.MovingObjectVehicleClassificationRole(_ROLE_CIVIL))}

    def write(self, frame: Frame) -> None:
        """
        Append a frame.

        :param frame: SI, REP-103 axes.
        """
        self.n_frames += 1
        for rows in self._maker.add(frame):
            self._add(objects_of(rows, self._note))

    def complete(self) -> None:
        """Write the last frames and the end, and wait until everything has reached the disk."""
        if self._handle is not None and not self._handle.closed:
            for rows in self._maker.finish():
                self._add(objects_of(rows, self._note))
            for each in self._resampler.finish():
                self._write_message(each)
            if self._mcap is not None:
                self._mcap.finish()
        super().complete()

    def _note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1

    def _add(self, objects: OsiFrame | None) -> None:
        if objects is None:
            return
        for each in self._resampler.add(objects):
            self._write_message(each)

    def _write_message(self, objects: OsiFrame) -> None:
        stamp_ns = objects.stamp_ns + max(self._shift_ns, 0)
        if stamp_ns <= self._last_ns:
            self._note('restarts of the simulator, after which the time goes on')
            self._shift_ns = self._last_ns + _RUN_GAP_NS - objects.stamp_ns
            stamp_ns = self._last_ns + _RUN_GAP_NS
        self._last_ns = stamp_ns
        ids = [self._id_of(int(actor)) for actor in objects.ids]
        if objects.host is not None:
            self._host = ids[objects.host]
        elif self._host is None:
            if not ids:
                self._note('frames without an object before the first one, left out')
                return
            self._host = ids[0]
            self._note('traces without an ego, whose host is the first object')
        osi = self._osi
        seconds, nanos = divmod(stamp_ns, _NS_PER_S)
        major, minor, patch = map(int, osi.DEFAULT_VERSION.split('.'))
        message = osi.GroundTruth(
            version=osi.InterfaceVersion(version_major=major, version_minor=minor,
                                         version_patch=patch),
            timestamp=osi.Timestamp(seconds=seconds, nanos=nanos),
            host_vehicle_id=osi.Identifier(value=self._host),
            moving_object=list(self._moving_objects(objects, ids)))
        self._write_bytes(message.to_binary(), stamp_ns)
        self.n_messages += 1

    def _id_of(self, actor: int) -> int:
        """Return the id of an actor in this message; a new one where it was absent before."""
        known = self._ids.get(actor)
        if known is None or known[1] < self.n_messages - 1:
            if known is not None:
                self._note('objects that return after a gap, with a new id')
            known = self._next_id, 0
            self._next_id += 1
        self._ids[actor] = known[0], self.n_messages
        return known[0]

    def _moving_objects(self, objects: OsiFrame, ids: list[int]) -> Iterator[Any]:
        osi = self._osi

        def vector(values: Floats) -> Any:  # noqa: ANN401
            x, y, z = values.tolist()
            return osi.Vector3d(x=x, y=y, z=z)

        for i, id_ in enumerate(ids):
            row = objects.values[i]
            length, width, height = row[0:3].tolist()
            roll, pitch, yaw = row[6:9].tolist()
            yield osi.MovingObject(
                id=osi.Identifier(value=id_), base=osi.BaseMoving(
                    dimension=osi.Dimension3d(length=length, width=width, height=height),
                    position=vector(row[3:6]), velocity=vector(row[9:12]),
                    acceleration=vector(row[12:15]), orientation_rate=osi.Orientation3d(
                        roll=row[15].item(), pitch=row[16].item(), yaw=row[17].item()),
                    orientation=osi.Orientation3d(roll=roll, pitch=pitch, yaw=yaw)),
                **self._classes[int(objects.classes[i])])

    def _write_bytes(self, data: bytes, stamp_ns: int) -> None:
        if self.name.endswith(PLAIN):
            self.handle.write(struct.pack('<I', len(data)) + data)
            return
        if self._mcap is None:
            self._begin_mcap()
        self._mcap.add_message(self._channel, log_time=stamp_ns, publish_time=stamp_ns, data=data)

    def _begin_mcap(self) -> None:
        """Write the beginning of an indexed file in chunks, with the metadata of a trace."""
        from mcap.writer import Writer
        osi = self._osi
        self._mcap = Writer(self.handle)
        self._mcap.start(library='state_sensor_ros')
        self._mcap.add_metadata('net.asam.osi.trace', osi.prepare_required_file_metadata(
            version=osi.DEFAULT_VERSION))
        schema = self._mcap.register_schema(
            'osi3.GroundTruth', 'protobuf', osi.load_descriptor_set(osi.DEFAULT_VERSION))
        self._channel = self._mcap.register_channel(
            _TOPIC, 'protobuf', schema, osi.prepare_channel_metadata())
