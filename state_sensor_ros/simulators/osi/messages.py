# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Serialized messages of OSI as ground truth: which of the two kinds they are, and their time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
import math
import re
from typing import TYPE_CHECKING

from state_sensor_ros.errors import DecodeError

if TYPE_CHECKING:
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_sensordata_pb2 import SensorData
    from osi3.osi_sensorview_pb2 import SensorView

NS_PER_S = 1_000_000_000


class MessageKind(str, Enum):
    """A type of messages with ground truth; the values are the names of MCAP's schemas."""

    GROUND_TRUTH = 'osi3.GroundTruth'
    SENSOR_VIEW = 'osi3.SensorView'


KINDS = ' or '.join(kind.value for kind in MessageKind)
# As ASAM names its traces: DATE_TYPE_OSI_PROTOBUF_FRAMES.osi.
_KINDS_OF_NAMES: Mapping[str, MessageKind] = {
    'gt': MessageKind.GROUND_TRUTH, 'sv': MessageKind.SENSOR_VIEW}
_KIND_IN_NAME = re.compile(r'_(gt|sv)_')
# Types without ground truth.
_OTHER_KINDS: Mapping[str, str] = {
    'sd': 'SensorData', 'svc': 'SensorViewConfiguration', 'hvd': 'HostVehicleData',
    'tc': 'TrafficCommand', 'tcu': 'TrafficCommandUpdate', 'tu': 'TrafficUpdate',
    'mr': 'MotionRequest', 'su': 'StreamingUpdate'}
# Before OSI 3.5 without a date.
_OTHER_IN_NAME = re.compile(r'^(?:\d{8}T\d+Z?_)?([a-z]+)_\d[\d.]{2,}_')


@dataclass(frozen=True, slots=True)
class TimedGroundTruth:
    truth: GroundTruth
    game_time: float  # s, NaN without a timestamp
    host: int | None  # id of the host vehicle, None without one


def text_of(value: str | bytes) -> str:
    """
    Return a text of a message.

    :param value: text, or bytes if it is not UTF-8.
    """
    return value.decode(errors='replace') if isinstance(value, bytes) else value


def kind_of_name(name: str) -> MessageKind | None:
    """Return the kind of the messages of a trace, None if its name does not say it."""
    match = _OTHER_IN_NAME.match(name)
    if match is not None and match[1] in _OTHER_KINDS:
        raise DecodeError('name', f'a trace of osi3.{_OTHER_KINDS[match[1]]} (_{match[1]}_)',
                          f'one of {KINDS} (_gt_, _sv_)')
    match = _KIND_IN_NAME.search(name)
    return None if match is None else _KINDS_OF_NAMES[match[1]]


def kind_of_messages(messages: Iterable[bytes]) -> tuple[MessageKind | None, bool]:
    """
    Return the kind of messages, None for neither, and whether it is certain.

    Messages of Protobuf do not name their type, and parsing skips members that a type does not
    have: the first message that has objects with positions as one of the kinds decides.
    """
    guess = None
    for data in messages:
        scores = {kind: _score(data, kind) for kind in MessageKind}
        best = max(scores, key=scores.__getitem__)
        if _sensed(data) > max(scores[best], 1):
            raise DecodeError('message', 'osi3.SensorData, objects as sensors report them',
                              f'an {KINDS}')
        if scores[best] > 1:
            return best, True
        if scores[best] >= 0 and guess is None:
            guess = best
    return guess, False


def _score(data: bytes, kind: MessageKind) -> int:
    """Return -1 if the data cannot be parsed, more than 1 if the message has objects."""
    try:
        truth = parse_truth(data, kind).truth
    except DecodeError:
        return -1
    return 2 * n_placed(truth) + bool(truth.HasField('timestamp'))


def n_placed(truth: GroundTruth | SensorData) -> int:
    return sum(thing.base.HasField('position')
               for objects in (truth.moving_object, truth.stationary_object) for thing in objects)


def _sensed(data: bytes) -> int:
    """Return the score of a message as SensorData."""
    from osi3.osi_sensordata_pb2 import SensorData
    try:
        sensed = SensorData.FromString(data)
    except _protobuf_error():
        return -1
    views = [view.global_ground_truth for view in sensed.sensor_view]
    return 2 * (n_placed(sensed) + sum(map(n_placed, views))) + bool(sensed.HasField('timestamp'))


def parse_truth(data: bytes, kind: MessageKind) -> TimedGroundTruth:
    # Imported here: other recordings need no library of OSI.
    from osi3.osi_groundtruth_pb2 import GroundTruth
    from osi3.osi_sensorview_pb2 import SensorView
    try:
        if kind is MessageKind.GROUND_TRUTH:
            truth = GroundTruth.FromString(data)
            return TimedGroundTruth(truth, _time_of(truth), _host_of(truth))
        view = SensorView.FromString(data)
    except _protobuf_error() as error:
        raise DecodeError('message', f'{len(data)} bytes that cannot be parsed',
                          f'an {kind.value}') from error
    truth = view.global_ground_truth
    time_s, host = _time_of(truth), _host_of(truth)
    return TimedGroundTruth(truth, _time_of(view) if math.isnan(time_s) else time_s,
                            _host_of(view) if host is None else host)


def _protobuf_error() -> type[Exception]:
    # Imported when it is raised: who lacks OSI's messages reads their name, not that of protobuf.
    from google.protobuf.message import DecodeError
    return DecodeError


def _time_of(message: GroundTruth | SensorView) -> float:
    if not message.HasField('timestamp'):
        return math.nan
    stamp = message.timestamp
    # One division: the float that is nearest to the nanoseconds.
    return float((stamp.seconds * NS_PER_S + stamp.nanos) / NS_PER_S)


def _host_of(message: GroundTruth | SensorView) -> int | None:
    return message.host_vehicle_id.value if message.HasField('host_vehicle_id') else None
