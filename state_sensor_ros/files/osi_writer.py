# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Frames as a trace of ASAM OSI: a GroundTruth for each; the types of objects in both directions.

The reference point of an object is the center of its box. A trace has strictly increasing times, a
host in each message, and no object with a gap: repeated frames are dropped, the times of a new
run of the simulator follow those of the last one, and an object that returns gets a new id. Other
objects have the ids of their actors. What the format requires and a frame lacks is noted.

The numbers of types are those of osi_object.proto, OSI 3.8. The tags of an actor name its type,
the most specific one last.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from functools import lru_cache
from itertools import count
import math
import struct
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np

from state_sensor_ros import classes, errors, jumps, naming
from state_sensor_ros.files import actor_rows, output, recording, WriteOptions
from state_sensor_ros.frame import Bools, Floats, Frame, KIND_VEHICLE, NS_PER_S
from state_sensor_ros.pipeline.stamps import Step
from state_sensor_ros.texts import counted, listed

if TYPE_CHECKING:
    from osi3.osi_groundtruth_pb2 import GroundTruth

_TRACE = 'net.asam.osi.trace'
_ROLE_CIVIL = 2
# First id of objects that return: those of actors are seldom as great.
_FIRST_NEW_ID = 3 * 2**30
# Time between the last frame of a run of the simulator and the first one of the next.
_RUN_GAP_NS = 50_000_000
# A killed program loses the chunk that it collects.
_CHUNK_BYTES = 128 * 1024
_MAX_NAMED = 3
_ASSUMED_SIZES = ('objects without a box, written with the usual size of a class; '
                  '-p default_sizes:=[…] gives others')
_XYZ, _ANGLE_NAMES = ('x', 'y', 'z'), ('roll', 'pitch', 'yaw')
# The parts of an object, those of a stationary one first, and the names of their numbers.
_PARTS = (('dimension', ('length', 'width', 'height')), ('position', _XYZ),
          ('orientation', _ANGLE_NAMES), ('velocity', _XYZ), ('acceleration', _XYZ),
          ('orientation_rate', _ANGLE_NAMES))
# Tag of all stationary objects of a trace.
STATIONARY = 'stationary'
# Type of the ExternalReference whose only identifier is the name of an actor.
NAME_REFERENCE = 'state_sensor_ros'
# MovingObject.Type; all that are not one of the others are vehicles.
_VEHICLE = 2
_OTHERS = {1: 'unknown', 3: 'pedestrian', 4: 'animal'}
# MovingObject.VehicleClassification.Type; of several with one tag, the first one is written.
_VEHICLES = {
    4: 'car', 2: 'car', 3: 'car', 5: 'car', 6: 'van', 7: 'truck', 16: 'truck', 9: 'trailer',
    8: 'trailer', 10: 'motorcycle', 11: 'bicycle', 12: 'bus', 13: 'tram', 14: 'train',
    15: 'wheelchair', 17: 'scooter', 18: 'micromobility', 19: 'work_machine', 20: 'watercraft',
    21: 'aircraft', 22: 'land_vehicle'}
# StationaryObject.Classification.Type.
_STATIONARY = dict(enumerate((
    'other_structure', 'bridge', 'building', 'pole', 'pylon', 'delineator', 'tree', 'barrier',
    'vegetation', 'curbstone', 'wall', 'vertical_structure', 'rectangular_structure',
    'overhead_structure', 'reflective_structure', 'construction_site_element', 'speed_bump',
    'emitting_structure'), 1))


class OsiType(NamedTuple):
    """The type of an object."""

    number: int  # of MovingObject.Type, or of StationaryObject.Classification.Type
    vehicle: int = 0  # of VehicleClassification.Type, 0 for no vehicle
    is_stationary: bool = False


_BY_TAG = {tag: OsiType(number) for number, tag in _OTHERS.items()} | {
    tag: OsiType(_VEHICLE, number) for number, tag in reversed(_VEHICLES.items())}
# Names of classes and tags that are called otherwise here.
_BY_TAG |= {name: _BY_TAG[tag] for name, tag in (
    ('person', 'pedestrian'), ('cyclist', 'bicycle'), ('rail', 'train'))}
_BY_STATIONARY_TAG = {tag: OsiType(number, 0, True) for number, tag in _STATIONARY.items()}
# Those that no class of objects has.
_SPECIAL_TAGS = _BY_TAG.keys() - {
    tag for known in classes.CLASSES for tag in (*known.tags, known.name)}


def is_vehicle(moving_type: int) -> bool:
    """Return whether a moving object is a vehicle; ``moving_type``: of MovingObject.Type."""
    return moving_type not in _OTHERS


def moving_tags(moving_type: int, vehicle_type: int) -> tuple[str, ...]:
    """Return the tags of a moving object."""
    if not is_vehicle(moving_type):
        return tuple(tag for tag in (_OTHERS[moving_type],) if tag != 'unknown')
    return ('vehicle', _VEHICLES[vehicle_type]) if vehicle_type in _VEHICLES else ('vehicle',)


def stationary_tags(stationary_type: int) -> tuple[str, ...]:
    """Return the tags of a stationary object."""
    return (STATIONARY, *filter(None, (_STATIONARY.get(stationary_type, ''),)))


@lru_cache(maxsize=1024)
def type_of(class_name: str, tags: Iterable[str]) -> OsiType:
    """Return the type of an actor of a class of :data:`CLASSES`."""
    lower = [tag.lower() for tag in tags]
    if STATIONARY in lower:
        return next((_BY_STATIONARY_TAG[tag] for tag in lower if tag in _BY_STATIONARY_TAG),
                    _BY_STATIONARY_TAG['other_structure'])
    if class_name in ('car', 'unknown'):
        class_name = next((tag for tag in lower if tag in _SPECIAL_TAGS), class_name)
    return _BY_TAG[class_name]


def angular_velocity_of(rates: Floats, angles: Floats) -> Floats:
    """
    Return angular velocities about the axes of the global frame.

    :param rates: (N, 3) float64, changes of roll, pitch and yaw, rad/s.
    :param angles: (N, 3) float64, roll, pitch and yaw, rad.
    """
    roll, pitch, yaw = rates.T
    ahead = roll * np.cos(angles[:, 1])
    cosine, sine = np.cos(angles[:, 2]), np.sin(angles[:, 2])
    return np.stack((ahead * cosine - pitch * sine, ahead * sine + pitch * cosine,
                     yaw - roll * np.sin(angles[:, 1])), axis=-1)


def rates_of(angular_velocity_xyz: Floats, angles: Floats) -> Floats:
    """Undo :func:`angular_velocity_of`; NaN or infinite for a vertical axis."""
    x, y, z = angular_velocity_xyz.T
    cosine, sine = np.cos(angles[:, 2]), np.sin(angles[:, 2])
    roll = (x * cosine + y * sine) / np.cos(angles[:, 1])
    return np.stack((roll, y * cosine - x * sine, z + roll * np.sin(angles[:, 1])), axis=-1)


class OsiWriter(output.WholeFile, recording.FrameWriter):
    """A trace in a file: MCAP, or length-delimited messages in ``.osi``, also compressed."""

    survives_cut = True

    def __init__(self, path: str, options: WriteOptions) -> None:
        from osi3 import osi_groundtruth_pb2, osi_version_pb2
        self._new_message = osi_groundtruth_pb2.GroundTruth
        self._version = osi_version_pb2.DESCRIPTOR.GetOptions().Extensions[
            osi_version_pb2.current_interface_version]
        self.n_frames = self._n_messages = 0
        self._source = options.source or path
        self._maker = actor_rows.RowMaker(options.settings, of_centers=True)
        self._notes: dict[str, dict[str, None]] = {}
        self._shift_ns, self._last_ns = 0, -1
        self._host: int | None = None
        # The last actors, their types, and which of these are assumed.
        self._actor_list: naming.ActorList | None = None
        self._types: list[OsiType] = []
        self._assumed: Bools = np.zeros(0, np.bool_)
        # For each actor: its id in the trace, and the number of its last message.
        self._ids: dict[int, tuple[int, int]] = {}
        self._new_ids, self._used_ids = count(_FIRST_NEW_ID), set[int]()
        self._mcap: Any = None
        super().__init__(path, force=options.force)

    @property
    def notes(self) -> list[str]:
        """Return a line for each kind of difference from the recording."""
        lines = self._maker.notes
        for text, places in self._notes.items():
            noun, _, rest = text.partition('s ')
            what, mark, advice = rest.partition('; ')
            lines.append(f'{counted(len(places), noun)} {what}: '
                         + listed([*places][:_MAX_NAMED], n_items=len(places)) + mark + advice)
        return lines

    def _note(self, text: str, places: Iterable[str]) -> None:
        """Add places to a note, whose text begins with what is counted."""
        if new := dict.fromkeys(places):
            self._notes.setdefault(text, {}).update(new)

    def write(self, frame: Frame) -> None:
        """Append a frame; ``frame``: SI, REP-103 axes."""
        self.n_frames += 1
        for rows in self._maker.add(jumps.with_velocities(frame)):
            self._add(rows)

    def flush(self) -> None:
        """Write the messages that are known."""
        for rows in self._maker.flush():
            self._add(rows)
        if self._mcap is not None:
            self._mcap.flush()
        super().flush()

    def complete(self) -> None:
        """Write the last frames and the end, and sync the file."""
        if self.is_open:
            for rows in self._maker.flush(is_end=True):
                self._add(rows)
            if self.n_frames and not self._n_messages:
                raise errors.TrajectoryFormatError(self._source, 'no objects', 'at least one')
            if self._mcap is not None:
                self._mcap.finish()
        super().complete()

    def _add(self, rows: actor_rows.FrameRows) -> None:
        if rows.step is Step.REPEATED or rows.stamp_ns is None:
            self._note('frames without a new time, dropped', (f'frame {rows.index}',))
            return
        chosen = self._chosen(rows)
        actors = [rows.actors.actor_list.actors[row] for row in chosen]
        stamp_ns = self._stamp_of(rows.stamp_ns)
        ids = [self._id_of(actor.id, actor.name) for actor in actors]
        egos = np.flatnonzero(rows.actors.are_egos[chosen])
        if len(egos):
            self._host = ids[egos[0]]
        elif self._host is None:
            if not ids:
                self._note('frames without an object before the first one, dropped',
                           (f'at {stamp_ns / NS_PER_S:.6g} s',))
                return
            self._host = ids[0]
            self._note('traces without an ego, with the first object as the host',
                       (actors[0].name,))
        message = self._new_message()
        message.version.CopyFrom(self._version)
        message.timestamp.seconds, message.timestamp.nanos = divmod(stamp_ns, NS_PER_S)
        message.host_vehicle_id.value = self._host
        floats = rows.floats[chosen]
        with np.errstate(all='ignore'):
            # The parts of _PARTS; the velocity is that of the center.
            angles = floats[:, actor_rows.ANGLES]
            values = np.hstack((
                floats[:, actor_rows.SIZE], floats[:, actor_rows.CENTER], angles,
                rows.velocities[chosen], floats[:, actor_rows.ACCELERATION],
                rates_of(floats[:, actor_rows.TURNING], angles)))
        for row, id_, actor, numbers in zip(chosen, ids, actors, values.tolist(), strict=True):
            _add_object(message, self._types[row], id_, actor.name, numbers)
        self._write_bytes(message.SerializeToString(deterministic=True), stamp_ns)
        self._n_messages += 1

    def _chosen(self, rows: actor_rows.FrameRows) -> list[int]:
        """Return the rows of the actors with a pose and a size; note what is assumed of them."""
        have_pose = np.isfinite(rows.floats[:, actor_rows.ANGLES]).all(axis=1)
        with np.errstate(all='ignore'):
            chosen = have_pose & np.isfinite(rows.floats[:, actor_rows.BOX]).all(axis=1) & (
                rows.floats[:, actor_rows.SIZE] > 0.0).all(axis=1)
        listing = rows.actors.actor_list
        if listing is not self._actor_list:
            self._actor_list = listing
            self._types = [type_of(classes.CLASSES[number].name, tags) for number, tags in zip(
                rows.actors.classes.tolist(), listing.tags, strict=True)]
            self._assumed = np.asarray([
                type_of(classes.CLASSES[classes.class_of(0, tags)].name, tags)
                == type_of('unknown', ()) for tags in listing.tags], np.bool_)
        are_vehicles = np.array([*listing.kinds]) == KIND_VEHICLE
        for text, are_noted in (
                ('objects without a usable pose, dropped from those frames', ~have_pose),
                ('objects without a box whose tags name no class, dropped', have_pose & ~chosen),
                ('vehicles whose tags name no class, written as cars',
                 chosen & self._assumed & are_vehicles),
                ('objects whose tags name no class, written as TYPE_OTHER',
                 chosen & self._assumed & ~are_vehicles),
                (_ASSUMED_SIZES, chosen & ~rows.has_box)):
            self._note(text, [listing.actors[i].name for i in np.flatnonzero(are_noted)])
        found: list[int] = np.flatnonzero(chosen).tolist()
        return found

    def _stamp_of(self, stamp_ns: int) -> int:
        """Return the time of a message, after that of the last one."""
        time_ns = stamp_ns + self._shift_ns
        if time_ns <= self._last_ns:
            self._note('restarts of the simulator, after which the time continues',
                       (f'at {time_ns / NS_PER_S:.6g} s',))
            time_ns = self._last_ns + _RUN_GAP_NS
            self._shift_ns = time_ns - stamp_ns
        self._last_ns = time_ns
        return time_ns

    def _id_of(self, actor: int, name: str) -> int:
        """Return the id of an actor in this message, a new one if it was absent for a while."""
        id_, n_last = self._ids.get(actor, (actor, -1))
        if actor not in self._ids or n_last < self._n_messages - 1:
            if actor in self._ids:
                self._note('objects back after a gap, given a new id', (name,))
            id_ = actor if actor not in self._used_ids else next(
                new for new in self._new_ids if new not in self._used_ids)
            self._used_ids.add(id_)
        self._ids[actor] = id_, self._n_messages
        return id_

    def _write_bytes(self, data: bytes, stamp_ns: int) -> None:
        if self.name.endswith(('.osi', '.osi.gz', '.osi.zst')):
            self.handle.write(struct.pack('<I', len(data)) + data)
            return
        if self._mcap is None:
            self._begin()
        self._mcap.add_message(self._channel, log_time=stamp_ns, publish_time=stamp_ns, data=data)

    def _begin(self) -> None:
        """Begin an indexed file in chunks, with the metadata of a trace."""
        with errors.importing(_TRACE):
            import google.protobuf
            from mcap.writer import Writer
            from mcap_protobuf.schema import register_schema
        osi = '.'.join(str(getattr(self._version, f'version_{part}'))
                       for part in ('major', 'minor', 'patch'))
        protobuf = google.protobuf.__version__
        self._mcap = Writer(self.handle, chunk_size=_CHUNK_BYTES)
        self._mcap.start(library='state_sensor_ros')
        self._mcap.add_metadata(_TRACE, {
            'version': osi, 'min_osi_version': osi, 'max_osi_version': osi,
            'min_protobuf_version': protobuf, 'max_protobuf_version': protobuf,
            'creation_time': f'{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}'})
        schema = register_schema(self._mcap, self._new_message)
        self._channel = self._mcap.register_channel('ground_truth', 'protobuf', schema, {
            f'{_TRACE}.channel.osi_version': osi, f'{_TRACE}.channel.protobuf_version': protobuf})


def _add_object(message: GroundTruth, osi_type: OsiType, id_: int, name: str,
                numbers: list[float]) -> None:
    added: Any
    if osi_type.is_stationary:
        added = message.stationary_object.add()
        added.classification.type = osi_type.number
    else:
        added = message.moving_object.add()
        added.type = osi_type.number
    base = added.base
    added.id.value = id_
    # A string of protobuf is UTF-8.
    added.source_reference.add(type=NAME_REFERENCE,
                               identifier=[name.encode(errors='replace').decode()])
    for i, (part, names) in enumerate(_PARTS[:3 if osi_type.is_stationary else None]):
        values = numbers[3 * i:3 * i + 3]
        # What is unknown has no member.
        if all(map(math.isfinite, values)):
            for axis, value in zip(names, values, strict=True):
                setattr(getattr(base, part), axis, value)
    if osi_type.vehicle:
        added.vehicle_classification.type = osi_type.vehicle
        added.vehicle_classification.role = _ROLE_CIVIL
