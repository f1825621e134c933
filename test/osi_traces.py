# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages of ASAM OSI for tests, made with ASAM's own package."""

from contextlib import contextmanager
from functools import cache
import math
import socket
import struct
import threading

MAP = 'net.asam.opendrive'


def ground_truth(time_s, objects=3, **members):
    """Return a GroundTruth of vehicles that drive along x at 10 m/s and gain 1 m/s2."""
    from osi3.osi_groundtruth_pb2 import GroundTruth
    message = GroundTruth()
    message.timestamp.seconds, message.timestamp.nanos = divmod(round(time_s * 1e9), 10 ** 9)
    for i in range(objects):
        add_vehicle(message, i, time_s)
    for name, value in members.items():
        getattr(message, name).value = value
    return message


def add_vehicle(message, number, time_s=0.0):
    """Add a vehicle on the lane number 100 + its id."""
    each = message.moving_object.add()
    each.id.value = number
    each.type = each.TYPE_VEHICLE
    each.vehicle_classification.type = 4
    base = each.base
    base.dimension.length, base.dimension.width, base.dimension.height = 4.5, 1.8, 1.5
    base.position.x = 20.0 * number + 10.0 * time_s + time_s ** 2 / 2
    base.position.y, base.position.z = 3.5 * number, 0.75
    base.orientation.yaw = 0.0
    base.velocity.x = 10.0 + time_s
    base.acceleration.x = 1.0
    base.orientation_rate.yaw = 0.0
    each.vehicle_attributes.bbcenter_to_rear.x = -1.4
    each.vehicle_attributes.bbcenter_to_rear.z = -0.35
    lane = each.moving_object_classification.logical_lane_assignment.add()
    lane.assigned_lane_id.value = 100 + number
    lane.s_position = 5.0 + base.position.x
    return each


def add_lanes(message, n_lanes=3, road='7'):
    """Add logical lanes of one road of OpenDRIVE, from lane -1 outward."""
    for i in range(n_lanes):
        lane = message.logical_lane.add()
        lane.id.value = 100 + i
        name(lane, road, '0.0', str(-1 - i), kind=MAP)


def add_building(message, number=50):
    """Add a building."""
    each = message.stationary_object.add()
    each.id.value = number
    each.classification.type = each.classification.TYPE_BUILDING
    base = each.base
    base.dimension.length, base.dimension.width, base.dimension.height = 10.0, 8.0, 6.0
    base.position.x, base.position.y, base.position.z = 0.0, 30.0, 3.0
    base.orientation.yaw = math.pi / 2


def name(each, *identifiers, kind='net.asam.openscenario'):
    """Give an object the name of an entity of a scenario, or of a map."""
    reference = each.source_reference.add()
    reference.type = kind
    reference.identifier.extend(identifiers)


def drive(n_frames=12):
    """Return messages at 20 Hz; lanes, the building and the host are only in the first one."""
    messages = [ground_truth(i / 20) for i in range(n_frames)]
    add_lanes(messages[0])
    add_building(messages[0])
    messages[0].host_vehicle_id.value = 1
    return messages


def view_of(message):
    """Return a SensorView with this ground truth."""
    from osi3.osi_sensorview_pb2 import SensorView
    view = SensorView()
    view.timestamp.CopyFrom(message.timestamp)
    view.global_ground_truth.CopyFrom(message)
    view.sensor_id.value = 3
    return view


def write_plain(path, messages):
    """Write messages, or bytes in place of one, each after its length."""
    with path.open('wb') as file:
        for message in messages:
            data = message if isinstance(message, bytes) else message.SerializeToString()
            file.write(struct.pack('<I', len(data)) + data)
    return path


def write_mcap(path, messages, *, topics=('ground_truth',)):
    """Write messages without any metadata of a trace."""
    from mcap_protobuf.writer import Writer
    with path.open('wb') as file, Writer(file) as writer:
        for message in messages:
            stamp = message.timestamp
            for topic in topics:
                writer.write_message(topic, message, stamp.seconds * 10 ** 9 + stamp.nanos)
    return path


WRITERS = {
    'drive_gt_.osi': lambda path: write_plain(path, drive()),
    'plain.osi': lambda path: write_plain(path, drive()),
    'plain_view.osi': lambda path: write_plain(path, map(view_of, drive())),
    'drive_sv_.osi': lambda path: write_plain(path, map(view_of, drive())),
    'truth.osi.mcap': lambda path: write_mcap(path, drive()),
    'view.osi.mcap': lambda path: write_mcap(path, map(view_of, drive()), topics=('view',)),
    'foreign.mcap': lambda path: write_mcap(path, drive()),
}


def datagrams(data, part_bytes=8192):
    """Return the parts of a message as esmini sends them."""
    parts = [data[i:i + part_bytes] for i in range(0, len(data), part_bytes)]
    return [struct.pack('<iI', -i if i == len(parts) else i, len(part)) + part
            for i, part in enumerate(parts, 1)]


@cache
def large_drive(n_frames=60):
    """Messages of three parts each."""
    messages = [ground_truth(i / 20, objects=100) for i in range(n_frames)]
    add_lanes(messages[0])
    messages[0].host_vehicle_id.value = 1
    return [message.SerializeToString() for message in messages]


@contextmanager
def esmini(port, messages, *, loses=lambda i, part: False):
    """Send messages for ever, as esmini does, in a thread; parts that ``loses`` names are lost."""
    ended = threading.Event()

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while not ended.is_set():
                for i, message in enumerate(messages):
                    for part, datagram in enumerate(datagrams(message)):
                        if not loses(i, part):
                            try:
                                sender.sendto(datagram, ('127.0.0.1', port))
                            except ConnectionRefusedError:
                                continue
                    # Of a receiver that is slower, no buffer keeps all parts of a message.
                    if ended.wait(0.05):
                        return

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
