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

Reference point of an object is the centre of its box. A trace has strictly increasing times, a
host in each message, and no object that is absent between two of its frames: repeated frames are
left out, the times of a new run of the simulator follow those of the last one, and an object that
returns has a new id, or is interpolated in its gap.
"""

from __future__ import annotations

from collections.abc import Iterator
import struct
from typing import Any

from state_sensor_ros.bodies import Floats
from state_sensor_ros.classes import CLASSES
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.formats import WriteOptions
from state_sensor_ros.files.frame_writer import FrameWriter
from state_sensor_ros.files.osi.osi_interpolation import GapFiller, Resampler
from state_sensor_ros.files.osi.osi_notes import DEFAULT_CLASSES, OsiNotes
from state_sensor_ros.files.osi.osi_objects import objects_of, OsiFrame
from state_sensor_ros.files.tables.table_rows import FrameRows, RowMaker
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import DEFAULTS, Settings
from state_sensor_ros.topics.tables import NS_PER_S

# Length-delimited messages; all else is MCAP.
PLAIN = '.osi'
_TOPIC = 'ground_truth'
_TYPE_OTHER, _TYPE_VEHICLE, _TYPE_PEDESTRIAN = 1, 2, 3
_ROLE_CIVIL = 2
# MovingObject.VehicleClassification.Type of the classes that are vehicles.
_VEHICLE_TYPES = {'cyclist': 11, 'motorcycle': 10, 'bus': 12, 'truck': 7, 'trailer': 9, 'car': 4}
# Between the last frame of a run of the simulator and the first one of the next.
_RUN_GAP_NS = 50_000_000
# omega-prime recommends 10 Hz; with a tolerance for the rounding of times.
_SLOW_NS = 101_000_000


class OsiOutput(WholeFile, FrameWriter):
    """
    A trace in a file.

    :param path: NAME.osi.mcap, or NAME.osi for length-delimited messages.
    :param force: whether a file of that name may be replaced.
    :param rate_hz: of interpolated frames; None for the frames as they are.
    :param fills_gaps: whether an object that is absent for up to 1 s is interpolated; otherwise it
        has a new id when it returns.
    :param default_class: of actors whose tags name none, one of DEFAULT_CLASSES; ``''`` for
        ``car`` of vehicles and ``other`` of objects.
    :param settings: of which default_sizes and ego_tag are used.
    :param source: name of the recording, for errors.
    :raises SinkError: where the file cannot be written.
    """

    def __init__(self, path: str, *, force: bool, rate_hz: float | None = None,
                 fills_gaps: bool = False, default_class: str = '',
                 settings: Settings = DEFAULTS, source: str = '') -> None:
        import betterosi
        self._osi = betterosi
        self._classes = [self._classification(each.name) for each in CLASSES]
        self.n_frames = self.n_messages = 0
        self._source = source or path
        self._notes = OsiNotes(has_default_class=bool(default_class))
        self._maker = RowMaker(settings, default_class=DEFAULT_CLASSES.index(default_class)
                               if default_class else None)
        self._filler = GapFiller(self._notes) if fills_gaps else None
        self._resampler = Resampler(rate_hz)
        self._shift_ns = self._last_ns = -1
        self._host: int | None = None
        # Id of each actor in the trace, the last message that has it, and its time, ns.
        self._ids: dict[int, tuple[int, int, int]] = {}
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
                'vehicle_classification': osi.MovingObject.VehicleClassification(
                    type=osi.MovingObject.VehicleClassification.Type(_VEHICLE_TYPES[name]),
                    role=osi.MovingObject.VehicleClassification.Role(_ROLE_CIVIL))}

    @property
    def notes(self) -> list[str]:
        """Return a line for each kind of difference from the recording."""
        return list(self._notes.lines())

    def write(self, frame: Frame) -> None:
        """
        Append a frame.

        :param frame: SI, REP-103 axes.
        """
        self.n_frames += 1
        for rows in self._maker.add(frame):
            self._add(rows)

    def complete(self) -> None:
        """Write the last frames and the end, and wait until everything has reached the disk."""
        if self._handle is not None and not self._handle.closed:
            for rows in self._maker.finish():
                self._add(rows)
            for each in () if self._filler is None else self._filler.finish():
                self._resample(each)
            for each in self._resampler.finish():
                self._write_message(each)
            if self.n_frames and not self.n_messages:
                raise TrajectoryFormatError(self._source, 'no objects', 'at least one')
            if self._mcap is not None:
                self._mcap.finish()
        super().complete()

    def _add(self, rows: FrameRows) -> None:
        objects = objects_of(rows, self._notes)
        if objects is None:
            return
        for each in (objects,) if self._filler is None else self._filler.add(objects):
            self._resample(each)

    def _resample(self, objects: OsiFrame) -> None:
        for each in self._resampler.add(objects):
            self._write_message(each)

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
        osi = self._osi
        seconds, nanos = divmod(stamp_ns, NS_PER_S)
        major, minor, patch = map(int, osi.DEFAULT_VERSION.split('.'))
        message = osi.GroundTruth(
            version=osi.InterfaceVersion(version_major=major, version_minor=minor,
                                         version_patch=patch),
            timestamp=osi.Timestamp(seconds=seconds, nanos=nanos),
            host_vehicle_id=osi.Identifier(value=self._host),
            moving_object=list(self._moving_objects(objects, ids)))
        self._write_bytes(message.to_binary(), stamp_ns)
        self.n_messages += 1

    def _id_of(self, actor: int, stamp_ns: int) -> int:
        """Return the id of an actor in this message; a new one where it was absent before."""
        known = self._ids.get(actor)
        if known is None or known[1] < self.n_messages - 1:
            if known is not None:
                gap_s, begin_s = (stamp_ns - known[2]) / NS_PER_S, known[2] / NS_PER_S
                self._notes.add(
                    'returned',
                    f'{self._notes.name_of(actor)} ({gap_s:.3g} s after {begin_s:.6g} s)')
            known = self._next_id, 0, 0
            self._next_id += 1
        self._ids[actor] = known[0], self.n_messages, stamp_ns
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


def new_trace(path: str, options: WriteOptions) -> OsiOutput:
    """
    Begin a trace; the options are ``resample``, ``gaps`` and ``default_class``.

    :raises SinkError: where the file cannot be written.
    """
    values = options.values
    return OsiOutput(
        path, force=options.force, rate_hz=values.get('resample'),
        fills_gaps=values.get('gaps') == 'fill', default_class=values.get('default_class') or '',
        settings=options.settings, source=options.source)
