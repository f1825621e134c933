# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Writer of the folder of a dataset: its files are those of the data collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
import json
from pathlib import Path
import re
import struct
from typing import Any, Final
import zlib

from google.protobuf import json_format
import numpy as np

from state_sensor_ros.simulators import (
    Boxes,
    DecodeError,
    Frame,
    FrameWriter,
    StateError,
    WriteOptions,
)
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CarlaData,
    CLASS_PEDESTRIAN,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    CLASS_VEHICLE,
    Command,
    DataFormat,
    DatasetCommands,
    EncodedImage,
    EncodedPoints,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.carla_schema import fill_transform, Measurements
from state_sensor_ros.simulators.carla.dataset import (
    format_metadata,
    is_of_recorder,
    METADATA,
    sensor_file_name,
)
from state_sensor_ros.simulators.carla.frame_payload import server_points
from state_sensor_ros.simulators.carla.images import color_bytes, PNG_SIGNATURE
from state_sensor_ros.simulators.carla.measurement import OLD_BOX_NAME
from state_sensor_ros.simulators.carla.recording import CarlaBagRecording
from state_sensor_ros.simulators.carla.sensors import (
    DEPTH,
    POINTS,
    read_sensors,
    Sensor,
    with_parameters,
)
from state_sensor_ros.simulators.frame_arrays import (
    body_from_global,
    CONJUGATE_XYZW,
    Floats,
    from_rep103_rotator,
    mirrored_vectors,
    quaternion_product,
)
from state_sensor_ros.simulators.recordings import Own, sink_error, WholeFolder

# m and degrees: bounds the rounding error of a zero converted to the global frame and back.
_ZERO: Final = 1e-9
_MOVERS: Final = (CLASS_PLAYER, CLASS_VEHICLE, CLASS_PEDESTRIAN)


def format_measurement_file(frame: Frame) -> bytes:
    """
    Return a frame as a file of the dataset.

    As float32, every number equals that of the source file. Exceptions: offsets of a box below
    1e-9 m and angles below 1e-9 degrees are 0; angles differ by whole turns; the sign of a box's
    180 degrees, and the roll at a pitch of 90 degrees, are not recovered.

    :returns: JSON, sorted, indented by 4.
    """
    data = frame.extension
    if not isinstance(data, CarlaData) or frame.forward_speed is None:
        raise StateError('generation', frame.generation, 'a frame of CARLA')
    message = Measurements(
        frame_number=data.frame_number, game_timestamp=data.game_timestamp,
        platform_timestamp=data.platform_timestamp)
    # Results that cannot be computed are NaN, unknown, without a warning.
    with np.errstate(all='ignore'):
        places = mirrored_vectors(frame.position_xyz)
        rotators = _cleaned(from_rep103_rotator(frame.orientation_xyzw))
        boxes = _boxes_of(frame, frame.boxes)
    for i, class_ in enumerate(data.classes.tolist()):
        if class_ == CLASS_PLAYER:
            body = message.player_measurements
            _fill_player(body, data.player)
        else:
            agent = message.non_player_agents.add(id=int(data.ids[i]))
            body = getattr(agent, AGENT_CLASSES[class_])
        fill_transform(body.transform, places[i].tolist(), rotators[i].tolist())
        if class_ in _MOVERS:
            body.forward_speed = float(frame.forward_speed[i])
        elif class_ == CLASS_TRAFFIC_LIGHT:
            body.state = int(data.lights[i])
        elif class_ == CLASS_SPEED_LIMIT_SIGN:
            body.speed_limit = float(data.speed_limits[i])
        if i in boxes:
            _fill_box(body, *boxes[i])
    members = json_format.MessageToDict(message)
    if data.player is not None and data.player.dataset is not None:
        members.update(_command_members(data.player.dataset))
    return json.dumps(members, sort_keys=True, indent=4).encode()


def _cleaned(numbers: Floats) -> Floats:
    # Adding zero turns -0.0 into 0.0.
    cleaned: Floats = np.where(np.abs(numbers) < _ZERO, 0.0, numbers) + 0.0
    return cleaned


# Protobuf makes message classes at run time: they have no static type.
def _fill_player(body: Any, player: PlayerStatus | None) -> None:  # noqa: ANN401
    if player is None:
        return
    acceleration = mirrored_vectors(player.acceleration_xyz).tolist()
    body.acceleration.x, body.acceleration.y, body.acceleration.z = acceleration
    body.collision_vehicles = player.collision_vehicles
    body.collision_pedestrians = player.collision_pedestrians
    body.collision_other = player.collision_other
    body.intersection_otherlane = player.intersection_otherlane
    body.intersection_offroad = player.intersection_offroad
    control, autopilot = body.autopilot_control, player.autopilot
    control.SetInParent()
    control.steer, control.throttle, control.brake = (
        autopilot.steer, autopilot.throttle, autopilot.brake)
    control.hand_brake, control.reverse = autopilot.hand_brake, autopilot.reverse


_BoxNumbers = tuple[str, Floats, Floats, Floats]


def _boxes_of(frame: Frame, boxes: Boxes | None) -> dict[int, _BoxNumbers]:
    """Return name, center, rotator and half sizes of the box of each row that has one."""
    if boxes is None:
        return {}
    own = frame.orientation_xyzw[boxes.actor]
    offset = boxes.position_xyz - frame.position_xyz[boxes.actor]
    centers = _cleaned(mirrored_vectors(body_from_global(own, offset[:, None, :])[:, 0]))
    rotators = _cleaned(from_rep103_rotator(
        quaternion_product(own * CONJUGATE_XYZW, boxes.orientation_xyzw)))
    return {row: (boxes.names[i], centers[i], rotators[i], boxes.size_xyz[i] / 2.0)
            for i, row in enumerate(boxes.actor.tolist())}


def _fill_box(body: Any, name: str, center: Floats, rotator: Floats,  # noqa: ANN401
              half_sizes: Floats) -> None:
    if name == OLD_BOX_NAME:
        extent = body.box_extent
    else:
        extent = body.bounding_box.extent
        fill_transform(body.bounding_box.transform, center.tolist(), rotator.tolist())
    extent.x, extent.y, extent.z = half_sizes.tolist()


def _command_members(dataset: DatasetCommands) -> dict[str, object]:
    members: dict[str, object] = {
        **_controls(dataset.expert, ''), **_controls(dataset.applied, '_noise'),
        'directions': dataset.directions, 'stop_pedestrian': dataset.stop_pedestrian,
        'stop_vehicle': dataset.stop_vehicle, 'stop_traffic_lights': dataset.stop_traffic_lights}
    # NaN marks a member that is not in the file.
    members = {name: value for name, value in members.items() if value == value}
    if dataset.has_switches:
        members.update(hand_brake=dataset.expert.hand_brake, reverse=dataset.expert.reverse)
    return {**members, **{name: json.loads(text) for name, text in dataset.other_members}}


def _controls(command: Command, suffix: str) -> dict[str, float]:
    return {f'steer{suffix}': command.steer, f'throttle{suffix}': command.throttle,
            f'brake{suffix}': command.brake}


# A recorder has to keep up with the stream. Pillow tries five filters for each row, which takes
# three to five times as long as one filter; level 6 of zlib makes files a tenth smaller.
_LEVEL: Final = 1
_WINDOW_BITS, _MEMORY_LEVEL = 15, 9
# The difference to the pixel on the left.
_FILTER: Final = 1
# Width, height, bits per color, red green blue, and the only methods.
_HEADER: Final = struct.Struct('>IIBBBBB')
_BITS, _RGB = 8, 2
_WORD: Final = struct.Struct('>I')
_PLY_HEAD: Final = """\
ply
format ascii 1.0
element vertex {}
property float32 x
property float32 y
property float32 z
end_header
"""
# Nine digits give the same float32 again; the shortest such text takes five times as long.
_PLY_LINE: Final = '%.9g %.9g %.9g\n'


def format_image(image: EncodedImage) -> bytes:
    """Return an image as a PNG file: red, green, blue as sent, also of depth and segmentation."""
    pixels = color_bytes(image)
    height, width, n_colors = pixels.shape
    rows = np.empty((height, 1 + n_colors * width), np.uint8)
    rows[:, 0] = _FILTER
    values, differences = pixels.reshape(height, -1), rows[:, 1:]
    differences[:, :n_colors] = values[:, :n_colors]
    np.subtract(values[:, n_colors:], values[:, :-n_colors], out=differences[:, n_colors:])
    # Differences of camera images repeat rarely, those of depths often.
    strategy = zlib.Z_DEFAULT_STRATEGY if image.kind == DEPTH else zlib.Z_RLE
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, strategy)
    packed = packer.compress(rows.data) + packer.flush()
    head = _HEADER.pack(width, height, _BITS, _RGB, 0, 0, 0)
    return b''.join((PNG_SIGNATURE, *_chunk(b'IHDR', head), *_chunk(b'IDAT', packed),
                     *_chunk(b'IEND', b'')))


def _chunk(name: bytes, data: bytes) -> tuple[bytes, ...]:
    return (_WORD.pack(len(data)), name, data,
            _WORD.pack(zlib.crc32(data, zlib.crc32(name))))


def format_points(points: EncodedPoints) -> bytes:
    """Return points as a PLY file, in the axes of the server."""
    rows = server_points(points)
    lines = _PLY_LINE * len(rows) % tuple(rows.ravel().tolist())
    return (_PLY_HEAD.format(len(rows)) + lines).encode()


# Files written here. A folder with any other file is not replaced.
_OWN = re.compile(r'episode_\d{5,}/|(episode_\d{5,}/)?measurements_\d{5,}\.json')
# Those beside a metadata.json that is written here: the images of the collector are not replaced.
_OWN_OF_SENSORS = re.compile(r'(?P<folder>episode_\d{5,}/)?(metadata\.json'
                             r'|[^/]+(RGB|Depth|SemanticSeg)_\d{5,}\.png|[^/]+_\d{5,}\.ply)')
# A metadata.json of a thousand sensors is smaller.
_MAX_METADATA_BYTES = 2 ** 20


class DatasetWriter(WholeFolder, FrameWriter):
    """
    Write frames; :meth:`commit`, :meth:`abort` or the end of a ``with`` block finishes.

    A frame that begins another run of the simulator begins an episode. The files of a single
    episode are in the folder itself, those of several in one sub-folder each.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False,
                 sensors: Iterable[Sensor] = ()) -> None:
        super().__init__(path, noun='dataset', own=_own_files, force=overwrite)
        self.n_frames = 0
        self._described = {(sensor.name, sensor.kind): sensor for sensor in sensors}
        self._dataset = self.inside / 'dataset'
        self._episodes: list[Path] = []
        self._sensor_files: SensorFileWriter | None = None
        self._pool = ThreadPoolExecutor(thread_name_prefix='images')
        self._n_in_episode = 0
        self._last: tuple[float, int | None] = (0.0, None)  # game_time and identity

    def write(self, frame: Frame) -> None:
        """Add a frame; ``frame``: with boxes and a CarlaData, in SI units and REP-103 axes."""
        text, data = format_measurement_file(frame), frame.extension
        try:
            if not self._episodes or frame.begins_run(*self._last):
                self._episodes.append(self._dataset / f'episode_{len(self._episodes):05d}')
                self._episodes[-1].mkdir(parents=True)
                self._sensor_files = SensorFileWriter(self._episodes[-1], self._pool,
                                                      self._described, _episode_members(data),
                                                      self._leave_out)
                self._n_in_episode = 0
            name = f'measurements_{self._n_in_episode:05d}.json'
            (self._episodes[-1] / name).write_bytes(text)
            if self._sensor_files is not None and isinstance(data, CarlaData):
                self._sensor_files.write(self._n_in_episode, data)
        except OSError as error:
            raise sink_error(self.name, error) from error
        self._last = frame.game_time, frame.identity
        self._n_in_episode += 1
        self.n_frames += 1

    def _leave_out(self, text: str) -> None:
        self.n_dropped += 1
        self.last_dropped = text

    def complete(self) -> None:
        """Wait until the files have reached the disk."""
        self._pool.shutdown()
        self.whole = self._episodes[0] if len(self._episodes) == 1 else self._dataset
        super().complete()

    def discard(self) -> str:
        """Remove the written files; return a description of files that are left."""
        self._pool.shutdown()
        return super().discard()


def _episode_members(data: object) -> tuple[tuple[str, str], ...]:
    player = data.player if isinstance(data, CarlaData) else None
    return () if player is None or player.dataset is None else player.dataset.episode_members


def _own_files(folder: Path) -> Own:
    """Return whether an entry of ``folder`` is a file of a dataset written here."""
    own_folders: dict[str, bool] = {}

    def is_own(entry: str) -> bool:
        if _OWN.fullmatch(entry):
            return True
        match = _OWN_OF_SENSORS.fullmatch(entry)
        if match is None:
            return False
        place = match['folder'] or ''
        if place not in own_folders:
            own_folders[place] = _is_recorded(folder / place / METADATA)
        return own_folders[place]
    return is_own


def _is_recorded(metadata: Path) -> bool:
    try:
        with metadata.open('rb') as file:
            return is_of_recorder(file.read(_MAX_METADATA_BYTES))
    except (OSError, DecodeError):
        return False


def new_dataset(path: str, options: WriteOptions) -> DatasetWriter:
    """Begin a dataset; sensors are described by ``config_file``, else by the recording."""
    sensors: Iterable[Sensor] = ()
    if options.settings.config_file:
        sensors = read_sensors(options.settings.config_file)
    elif isinstance(options.recording, CarlaBagRecording):
        sensors = options.recording.placed_sensors()
    return DatasetWriter(path, overwrite=options.force,
                         sensors=with_parameters(sensors, options.settings))


# Frames after which an image can still be written beside the measurement of its own frame.
_MAX_NUMBERS: Final = 64


class SensorFileWriter:
    """Write what the sensors of a server sent beside the measurements of an episode."""

    # pool: threads that compress; zlib and numpy release the lock of the interpreter.

    def __init__(self, folder: Path, pool: Executor, sensors: Mapping[tuple[str, str], Sensor],
                 members: Sequence[tuple[str, str]], leave_out: Callable[[str], None]) -> None:
        self._folder, self._pool, self._members = folder, pool, members
        self._sensors, self._leave_out = sensors, leave_out
        self._declared: dict[tuple[str, str], tuple[Sensor, tuple[int, int] | None]] = {}
        self._numbers: dict[int, int] = {}
        if members:
            self._write_metadata()

    def write(self, number: int, data: CarlaData) -> None:
        self._numbers[data.frame_number] = number
        if len(self._numbers) > _MAX_NUMBERS:
            del self._numbers[next(iter(self._numbers))]
        for error in data.sensor_data.errors:
            self._leave_out(str(error))
        files: dict[str, Callable[[], bytes]] = {}
        for image in data.sensor_data.images:
            if image.data_format is not DataFormat.FILE:
                self._declare(Sensor(image.camera, image.kind, image.fov_deg), image.size)
                name = sensor_file_name(image.camera, image.kind, self._number(image, number))
                self._add(name, partial(format_image, image), files)
        for points in data.sensor_data.points:
            if points.data_format is not DataFormat.FILE:
                self._declare(Sensor(points.lidar, POINTS), None)
                name = sensor_file_name(points.lidar, POINTS, number)
                self._add(name, partial(format_points, points), files)
        for refusal in self._pool.map(self._write, files.items()):
            if refusal is not None:
                self._leave_out(str(refusal))

    def _number(self, image: EncodedImage, number: int) -> int:
        return number if image.frame_number is None else \
            self._numbers.get(image.frame_number, number)

    def _add(self, name: str, format_: Callable[[], bytes],
             files: dict[str, Callable[[], bytes]]) -> None:
        if files.setdefault(name, format_) is not format_:
            self._leave_out(f'sensor {name.rpartition("_")[0]}: found two sensors with this name '
                            'in the dataset; expected one')

    def _write(self, file: tuple[str, Callable[[], bytes]]) -> DecodeError | None:
        """Write a file; return the reason if its data cannot be encoded."""
        name, format_ = file
        try:
            data = format_()
        except DecodeError as error:
            return error
        (self._folder / name).write_bytes(data)
        return None

    def _declare(self, sensor: Sensor, size: tuple[int, int] | None) -> None:
        """Write the metadata.json again if a sensor is new."""
        key = sensor.name, sensor.kind
        if key not in self._declared:
            known = self._sensors.get(key, sensor)
            self._declared[key] = replace(known, fov_deg=sensor.fov_deg), size
            self._write_metadata()

    def _write_metadata(self) -> None:
        (self._folder / METADATA).write_bytes(
            format_metadata(self._declared.values(), self._members))
