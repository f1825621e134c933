# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Messages of an autonomy stack: Autoware, derived_object_msgs, vision_msgs, odometry; their topics.

Fields, classes and axes of twists: doc/reference/outputs.md. Poses, twists and vectors are decoded
as arrays of numbers, in half the time: in CDR a pose has the bytes of an array of seven float64,
only the type that rosbags makes of the definition differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
import math
from sys import intern
from typing import Any, Final, NamedTuple

import numpy as np
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.store import Typestore

from state_sensor_ros.classes import CLASSES, UNKNOWN
from state_sensor_ros.errors import ConfigError, DecodeError, TrajectoryFormatError
from state_sensor_ros.evaluation import matching
from state_sensor_ros.files.bag import definition, NOT_SUCH
from state_sensor_ros.frame import Floats, NS_PER_S, usable_poses
from state_sensor_ros.parameters import did_you_mean
from state_sensor_ros.rotations import global_from_body, quaternion_product
from state_sensor_ros.texts import counted, listed
from state_sensor_ros.topics.tables import UNKNOWN_VARIANCE

# Number of float64 in a message; its only field is ``values``.
_FLAT: Final = {
    'geometry_msgs/msg/Pose': 7, 'geometry_msgs/msg/Transform': 7, 'geometry_msgs/msg/Twist': 6,
    'geometry_msgs/msg/Accel': 6, 'geometry_msgs/msg/Vector3': 3}
TRACKED: Final = 'autoware_perception_msgs/msg/TrackedObjects'
DETECTED: Final = 'autoware_perception_msgs/msg/DetectedObjects'
PREDICTED: Final = 'autoware_perception_msgs/msg/PredictedObjects'
DERIVED: Final = 'derived_object_msgs/msg/ObjectArray'
VISION: Final = 'vision_msgs/msg/Detection3DArray'
ODOMETRY: Final = 'nav_msgs/msg/Odometry'
_PERCEPTION = '/perception/object_recognition'
GROUND_TRUTH: Final = f'{_PERCEPTION}/ground_truth/objects'
EGO_TOPIC: Final = '/localization/kinematic_state'
# Usual name and type of topics, in the order in which one is chosen if none is named.
_USUAL = ((f'{_PERCEPTION}/tracking/objects', TRACKED),
          (f'{_PERCEPTION}/detection/objects', DETECTED),
          (f'{_PERCEPTION}/objects', PREDICTED), ('', DERIVED), ('', VISION),
          (GROUND_TRUTH, TRACKED))

_OF_AUTOWARE = {each.autoware: i for i, each in enumerate(CLASSES)}
_OF_DERIVED = {each.derived: i for i, each in enumerate(CLASSES)} | {9: matching.BUS_OR_TRAILER}
_OF_VISION = {name: i for i, each in enumerate(CLASSES) for name in (each.name, *each.tags)}
_CYLINDER, _POLYGON = 1, 2
# Period of the yaw without an orientation, and where front and back are not told apart.
_PERIODS: Final = {0: math.nan, 1: math.pi}
_SOLID_BOX, _SOLID_SPHERE, _SOLID_CYLINDER = 1, 2, 3
_DERIVED_TRACKED = 1
_UNKNOWN_XYZ = (math.nan, math.nan, math.nan)
_NO_CLASS = -1
# Name and type of a topic.
TopicKey = tuple[str, str]
# What is wrong with messages: what is counted, and what becomes of it.
FAULTS: Final = {
    'transform': ('message', ' dropped: no transform to the global frame'),
    'pose': ('pose', ' dropped: not finite or not a rotation'),
    'number': ('object', ' with a negative size, which is unknown, or a confidence that is none'),
    'class': ('object', ' without a class, evaluated as unknown'),
    'frame': ('message', ' without a frame, taken as in the global frame'),
    'confidence': ('object', ': all confidences are 0, so their order is that of the messages'),
    'order': ('stamp', ' out of order, sorted'),
    'repeated': ('message', ' with the time of another one, not evaluated')}


@lru_cache(maxsize=16)
def _types(type_name: str) -> Typestore:
    store = get_typestore(Stores.EMPTY)
    types = get_types_from_msg(definition(type_name), type_name)
    for name, n_values in _FLAT.items():
        if name in types:
            types |= get_types_from_msg(f'float64[{n_values}] values', name)
    store.register(types)
    return store


# rosbags generates message classes at run time; they have no static type.
def decode_flat(data: bytes, type_name: str) -> Any:  # noqa: ANN401
    """
    Decode a message.

    :param data: serialized message with its encapsulation.
    :param type_name: ``package/msg/Name``.
    :raises DecodeError: if it is not such a message.
    """
    try:
        return _types(type_name).deserialize_cdr(data, type_name)
    except NOT_SUCH as error:
        raise DecodeError(type_name, f'{counted(len(data), "byte")} that are not such a message '
                          f'({error})', 'a message of that definition') from error


def nanoseconds(time: Any) -> int:  # noqa: ANN401
    """Return a builtin_interfaces/Time or Duration, ns."""
    return int(time.sec) * NS_PER_S + int(time.nanosec)


def is_unknown(each: Any) -> bool:  # noqa: ANN401
    """Return whether the variance of x or y of a pose or twist says that it is unknown."""
    return bool(max(each.covariance[[0, 7]].tolist()) >= UNKNOWN_VARIANCE)


def motion_of(each: Any) -> Floats:  # noqa: ANN401
    """Return the numbers of a geometry_msgs/TwistWithCovariance, NaN if it is unknown."""
    values: Floats = each.twist.values
    return np.full_like(values, np.nan) if is_unknown(each) else values


def unit_pose(values: Floats) -> Floats | None:
    """
    Return a pose or a transform with a rotation of unit length.

    :param values: (7,) float64, position xyz and orientation xyzw.
    :returns: a copy; None if the position is not finite or the quaternion is not a rotation.
    """
    if not usable_poses(values[None, :3], values[None, 3:])[0]:
        return None
    pose = values.copy()
    pose[3:] /= np.linalg.norm(pose[3:])
    return pose


@dataclass(frozen=True, slots=True, eq=False)
class MessageObjects:
    """The K objects of a message with a usable pose, in the axes of its frame."""

    stamp_ns: int  # of the header, as frame_id
    frame_id: str
    objects: matching.ObjectSet  # whose velocities and yaws in_frame() sets
    orientations: Floats  # (K, 4) xyzw
    velocities: Floats  # (K, 3) m/s
    has_ids: bool  # whether the ids are those of tracks
    faults: Counter[str]  # by the keys of FAULTS

    def in_frame(self, turn: Floats, origin: Floats) -> matching.ObjectSet:
        """
        Return the objects in another frame.

        :param turn: (4,) float64, orientation xyzw of this frame in the other one.
        :param origin: (3,) float64, of this frame in the other one, m.
        """
        objects, axes = self.objects, global_from_body(turn[None])[0]
        states = objects.states.copy()
        states[:, matching.XYZ] = states[:, matching.XYZ] @ axes.T + origin
        forward = global_from_body(self.orientations)[:, :, 0] @ axes.T
        yaw = np.arctan2(forward[:, 1], forward[:, 0])
        # NaN marks an orientation that the stack does not send.
        states[:, matching.YAW] = np.where(np.isnan(states[:, matching.YAW]), np.nan, yaw)
        states[:, matching.VELOCITY] = (self.velocities @ axes.T)[:, :2]
        paths = tuple([tuple([matching.PathOfObject(path.step_ns, np.column_stack((
            path.poses[:, :3] @ axes.T + origin, quaternion_product(
                np.broadcast_to(turn, (len(path.poses), 4)), path.poses[:, 3:]))),
            path.confidence) for path in of_object]) for of_object in objects.paths])
        return matching.ObjectSet(objects.ids, objects.classes, states, objects.scores, paths)


class _Object(NamedTuple):
    """An object of a message; ``velocity`` in its own axes or in those of the message."""

    id_: str
    class_: int
    score: float
    pose: Sequence[float]
    size: Sequence[float]
    velocity: Sequence[float] | Floats
    period: float = 2.0 * math.pi  # of the yaw, NaN without one
    paths: tuple[matching.PathOfObject, ...] = ()


def _collected(header: Any, objects: Sequence[_Object], *, has_ids: bool,  # noqa: ANN401
               are_own_axes: bool = False, has_paths: bool = False,
               elements: Sequence[Any] = ()) -> MessageObjects:
    """Return the objects whose poses are usable; ``elements`` have headers, too."""
    columns: Any = zip(*objects, strict=True) if objects else ((),) * len(_Object._fields)
    ids, classes, scores, poses, sizes, velocities, periods, paths = columns
    poses = np.array(poses, np.float64).reshape(-1, 7)
    velocities = np.array(velocities, np.float64).reshape(-1, 3)
    classes, scores = np.array(classes, np.int64), np.array(scores, np.float64)
    usable = usable_poses(poses[:, :3], poses[:, 3:])
    states = np.full((len(objects), matching.N_COLUMNS), np.nan)
    states[:, matching.XYZ] = poses[:, :3]
    states[:, matching.SIZE] = np.array(sizes).reshape(-1, 3)
    states[:, matching.PERIOD], states[:, matching.YAW] = periods, 0.0 * np.array(periods)
    are_negative = states[:, matching.SIZE] < 0.0
    states[:, matching.SIZE][are_negative] = np.nan
    are_wrong = np.logical_or.reduce(are_negative, axis=1) | ~np.isfinite(scores)
    frame_id = next((str(each.frame_id) for each in (header, *(
        element.header for element in elements)) if each.frame_id), '')
    faults = Counter({'pose': int((~usable).sum()), 'number': int((are_wrong & usable).sum()),
                      'class': int((classes == _NO_CLASS).sum()), 'frame': int(not frame_id)})
    found = matching.ObjectSet(ids, np.where(classes == _NO_CLASS, UNKNOWN, classes), states,
                               np.nan_to_num(scores, posinf=0.0, neginf=0.0),
                               paths if has_paths else ()).select(usable)
    orientations, velocities = poses[usable, 3:], velocities[usable]
    velocities[~np.isfinite(velocities)] = np.nan
    if are_own_axes:
        velocities = (global_from_body(orientations) @ velocities[:, :, None])[:, :, 0]
    return MessageObjects(nanoseconds(header.stamp), frame_id, found, orientations, velocities,
                          has_ids, faults)


def _autoware(message: Any, *, is_predicted: bool = False,  # noqa: ANN401
              has_ids: bool = True) -> MessageObjects:
    initial = 'initial_' if is_predicted else ''
    objects = []
    for each in message.objects:
        kinematics, shape = each.kinematics, each.shape
        likely = max(each.classification, key=lambda label: label.probability, default=None)
        length, width, height = shape.dimensions.values.tolist()
        if shape.type == _CYLINDER:
            width = length
        elif shape.type == _POLYGON and shape.footprint.points:
            corners = np.array([(point.x, point.y) for point in shape.footprint.points])
            length, width = np.ptp(corners, axis=0).tolist()
        twist = getattr(kinematics, f'{initial}twist_with_covariance')
        objects.append(_Object(
            # One text for all messages: 80 bytes less for each object.
            intern(bytes(each.object_id.uuid).hex()) if has_ids else '',
            _NO_CLASS if likely is None else _OF_AUTOWARE.get(likely.label, UNKNOWN),
            each.existence_probability,
            getattr(kinematics, f'{initial}pose_with_covariance').pose.values,
            (length, width, height),
            motion_of(twist)[:3] if getattr(kinematics, 'has_twist', True) else _UNKNOWN_XYZ,
            _PERIODS.get(getattr(kinematics, 'orientation_availability', -1), 2.0 * math.pi),
            tuple(map(_path, kinematics.predicted_paths)) if is_predicted else ()))
    return _collected(message.header, objects, has_ids=has_ids, are_own_axes=True,
                      has_paths=is_predicted)


def _path(path: Any) -> matching.PathOfObject:  # noqa: ANN401
    poses = np.array([pose.values for pose in path.path], np.float64).reshape(-1, 7)
    return matching.PathOfObject(nanoseconds(path.time_step), poses,
                                 path.confidence if math.isfinite(path.confidence) else 0.0)


def _derived(message: Any) -> MessageObjects:  # noqa: ANN401
    return _collected(message.header, [_Object(
        str(each.id), _OF_DERIVED.get(each.classification, UNKNOWN),
        each.classification_certainty / 255.0, each.pose.values,
        _solid_size(each.shape.type, each.shape.dimensions.tolist()), each.twist.values[:3])
        for each in message.objects], elements=message.objects, has_ids=bool(
            message.objects) and all(each.detection_level == _DERIVED_TRACKED
                                     for each in message.objects))


def _solid_size(type_: int, edges: list[float]) -> Sequence[float]:
    if type_ == _SOLID_BOX and len(edges) >= 3:
        return edges[:3]
    if type_ == _SOLID_SPHERE and edges:
        return (2.0 * edges[0],) * 3
    if type_ == _SOLID_CYLINDER and len(edges) >= 2:
        return 2.0 * edges[1], 2.0 * edges[1], edges[0]
    return _UNKNOWN_XYZ


def _vision(message: Any) -> MessageObjects:  # noqa: ANN401
    objects = []
    for each in message.detections:
        likely = max((result.hypothesis for result in each.results),
                     key=lambda hypothesis: hypothesis.score, default=None)
        class_, score = (_NO_CLASS, 0.0) if likely is None else (
            _OF_VISION.get(likely.class_id.lower(), UNKNOWN), likely.score)
        objects.append(_Object(each.id, class_, score, each.bbox.center.values,
                               each.bbox.size.values, _UNKNOWN_XYZ))
    return _collected(message.header, objects, elements=message.detections, has_ids=bool(
        objects) and all(each.id_ for each in objects))


_DECODERS: dict[str, Callable[[Any], MessageObjects]] = {
    TRACKED: _autoware, DETECTED: partial(_autoware, has_ids=False),
    PREDICTED: partial(_autoware, is_predicted=True), DERIVED: _derived, VISION: _vision}
OBJECT_TYPES: Final = tuple(_DECODERS)


def objects_in(data: bytes, type_name: str) -> MessageObjects:
    """
    Return the objects of a message.

    :param data: serialized message with its encapsulation.
    :param type_name: one of OBJECT_TYPES.
    :raises DecodeError: if it is not such a message.
    """
    return _DECODERS[type_name](decode_flat(data, type_name))


def chosen_topics(name: str, topics: Collection[TopicKey],
                  named: Sequence[str]) -> list[TopicKey]:
    """
    Choose the topics to evaluate.

    :param name: name of the bag.
    :param topics: topics of the bag that have messages.
    :param named: names given by ``--topic``, in the order in which parts of the result are taken
        from them; empty for the first topic of objects and that of the ego.
    :raises ConfigError: if a named topic is missing or its type cannot be evaluated.
    :raises TrajectoryFormatError: if there is none, or several are equally likely.
    """
    by_name = {key[0]: key for key in sorted(topics) if key[1] in (*OBJECT_TYPES, ODOMETRY)}
    for topic in named:
        if topic not in by_name:
            names = listed(sorted(by_name, key=lambda each: 'odometry' in each), 10) or 'none'
            raise ConfigError('--topic', f'{topic} is not a topic of {name} that can be evaluated'
                              + (did_you_mean([topic], by_name) or f'; there are {names}'))
    keys = [by_name[topic] for topic in named] or _usual(name, [*by_name.values()])
    if not keys:
        raise TrajectoryFormatError(
            name, 'no topic to evaluate; make one with `convert --outputs autoware`')
    return keys


def _usual(name: str, keys: Sequence[TopicKey]) -> list[TopicKey]:
    """Return the first usual topic of objects, and the odometry of the ego."""
    chosen = []
    for topic, type_name in _USUAL:
        others = [key for key in keys if key[1] == type_name and (
            key[0] == topic if topic == GROUND_TRUTH else key[0] != GROUND_TRUTH)]
        if others:
            chosen.append(_one_of(name, others, topic, '--topic'))
            break
    odometries = [key for key in keys if key[1] == ODOMETRY]
    if len(odometries) == 1 or (EGO_TOPIC, ODOMETRY) in odometries:
        chosen.append(_one_of(name, odometries, EGO_TOPIC, '--topic'))
    return chosen


def _one_of(name: str, keys: Sequence[TopicKey], usual: str, option: str) -> TopicKey:
    """Return the topic of the usual name, else the only one."""
    found = [key for key in keys if key[0] == usual] or keys
    if len(found) > 1:
        raise TrajectoryFormatError(name, f'the topics {", ".join(key[0] for key in found)}',
                                    f'one of them to be named by {option}')
    return found[0]


def truth_topic(name: str, topics: Collection[TopicKey], named: str) -> TopicKey:
    """
    Choose the topic of objects that are the ground truth, in a bag of another program.

    :param name: name of the bag.
    :param topics: topics of the bag that have messages.
    :param named: name given by ``--truth-topic``, ``''`` for none.
    :raises TrajectoryFormatError: if there is none, or several are equally likely.
    """
    tracked = [key for key in sorted(topics) if key[1] == TRACKED and named in ('', key[0])]
    if not tracked:
        raise TrajectoryFormatError(
            name, f'no topic {named} of the type {TRACKED}' if named else
            f'neither frames nor a topic of the type {TRACKED}', 'a recording with ground truth')
    return _one_of(name, tracked, GROUND_TRUTH, '--truth-topic')
