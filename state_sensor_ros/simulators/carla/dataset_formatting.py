# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Formats frames and data of sensors as files of the dataset: doc/protocol/carla.md#dataset."""

from __future__ import annotations

import json
import math
import struct
from typing import Any, Final
import zlib

from google.protobuf import json_format
import numpy as np

from state_sensor_ros.emulator.carla_server.carla_schema import Measurements
from state_sensor_ros.simulators import Boxes, Frame, StateError
from state_sensor_ros.simulators.carla.carla_data import (
    AGENT_CLASSES,
    CarlaData,
    CLASS_PEDESTRIAN,
    CLASS_PLAYER,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
    CLASS_VEHICLE,
    Command,
    DatasetCommands,
    EncodedImage,
    EncodedPoints,
    PlayerStatus,
)
from state_sensor_ros.simulators.carla.images import colour_bytes
from state_sensor_ros.simulators.carla.number_extraction import OLD_BOX_NAME
from state_sensor_ros.simulators.carla.sensor_payloads import server_points
from state_sensor_ros.simulators.carla.sensors import DEPTH
from state_sensor_ros.simulators.frame_arrays import (
    body_from_global,
    CONJUGATE_XYZW,
    Floats,
    from_rep103_rotator,
    mirrored_vectors,
    quaternion_product,
)

# m and degrees: bounds the rounding error of a zero converted to the global frame and back.
_ZERO: Final = 1e-9
_MOVERS: Final = (CLASS_PLAYER, CLASS_VEHICLE, CLASS_PEDESTRIAN)


def format_measurement_file(frame: Frame) -> bytes:
    """
    Return a frame as a file of the dataset.

    As float32, every number equals that of the source file. Exceptions: offsets of a box below
    1e-9 m and angles below 1e-9 degrees are 0; angles differ by whole turns; the sign of a box's
    180 degrees, and the roll at a pitch of 90 degrees, are not recovered.

    :param frame: with boxes and a CarlaData.
    :returns: JSON, sorted, indented by 4.
    :raises StateError: if the frame is of another simulator.
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
        _fill_transform(body.transform, places[i], rotators[i])
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
def _fill_transform(transform: Any, place: Floats, rotator: Floats) -> None:  # noqa: ANN401
    location, orientation, rotation = transform.location, transform.orientation, transform.rotation
    location.x, location.y, location.z = place.tolist()
    # The member is present even if all of it is zero, as in files of the simulator.
    rotation.SetInParent()
    rotation.roll, rotation.pitch, rotation.yaw = rotator.tolist()
    # The deprecated direction (doc/protocol/carla.md#rotators) of the written angles, float32.
    p, y = math.radians(rotation.pitch), math.radians(rotation.yaw)
    orientation.x, orientation.y, orientation.z = _cleaned(np.array(
        (math.cos(p) * math.cos(y), math.cos(p) * math.sin(y), math.sin(p)))).tolist()


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
    """Return name, centre, rotator and half sizes of the box of each row that has one."""
    if boxes is None:
        return {}
    own = frame.orientation_xyzw[boxes.actor]
    offset = boxes.position_xyz - frame.position_xyz[boxes.actor]
    centres = _cleaned(mirrored_vectors(body_from_global(own, offset[:, None, :])[:, 0]))
    rotators = _cleaned(from_rep103_rotator(
        quaternion_product(own * CONJUGATE_XYZW, boxes.orientation_xyzw)))
    return {row: (boxes.names[i], centres[i], rotators[i], boxes.size_xyz[i] / 2.0)
            for i, row in enumerate(boxes.actor.tolist())}


def _fill_box(body: Any, name: str, centre: Floats, rotator: Floats,  # noqa: ANN401
              half_sizes: Floats) -> None:
    if name == OLD_BOX_NAME:
        extent = body.box_extent
    else:
        extent = body.bounding_box.extent
        _fill_transform(body.bounding_box.transform, centre, rotator)
    extent.x, extent.y, extent.z = half_sizes.tolist()


def _command_members(dataset: DatasetCommands) -> dict[str, object]:
    """Return the members of the collector."""
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
_SIGNATURE: Final = b'\x89PNG\r\n\x1a\n'
# Width, height, bits per colour, red green blue, and the only methods.
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
    """
    Return an image as a PNG file: red, green and blue as sent, also of depth and segmentation.

    :param image: in the form WIRE or MESSAGE.
    :raises DecodeError: if a server cannot send a depth.
    """
    pixels = colour_bytes(image)
    height, width, n_colours = pixels.shape
    rows = np.empty((height, 1 + n_colours * width), np.uint8)
    rows[:, 0] = _FILTER
    values, differences = pixels.reshape(height, -1), rows[:, 1:]
    differences[:, :n_colours] = values[:, :n_colours]
    np.subtract(values[:, n_colours:], values[:, :-n_colours], out=differences[:, n_colours:])
    # Differences of camera images repeat rarely, those of depths often.
    strategy = zlib.Z_DEFAULT_STRATEGY if image.kind == DEPTH else zlib.Z_RLE
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY_LEVEL, strategy)
    packed = packer.compress(rows.data) + packer.flush()
    head = _HEADER.pack(width, height, _BITS, _RGB, 0, 0, 0)
    return b''.join((_SIGNATURE, *_chunk(b'IHDR', head), *_chunk(b'IDAT', packed),
                     *_chunk(b'IEND', b'')))


def _chunk(name: bytes, data: bytes) -> tuple[bytes, ...]:
    return (_WORD.pack(len(data)), name, data,
            _WORD.pack(zlib.crc32(data, zlib.crc32(name))))


def format_points(points: EncodedPoints) -> bytes:
    """
    Return points as a PLY file, in the axes of the server.

    :param points: in the form WIRE or MESSAGE.
    """
    rows = server_points(points)
    lines = _PLY_LINE * len(rows) % tuple(rows.ravel().tolist())
    return (_PLY_HEAD.format(len(rows)) + lines).encode()
