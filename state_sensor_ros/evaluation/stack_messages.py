# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Topics and messages of an autonomy stack: Autoware, derived_object_msgs, vision_msgs.

Fields, classes and axes of twists: doc/reference/outputs.md. Poses, twists and vectors are decoded
as arrays of numbers, in half the time: in CDR a pose has the bytes of an array of seven float64,
only the type that rosbags makes of the definition differs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
import math
from sys import intern
from typing import Any, Final, NamedTuple

import numpy as np
from rosbags.typesys import get_types_from_msg, get_typestore, Stores
from rosbags.typesys.store import Typestore

from state_sensor_ros.bodies import usable_poses
from state_sensor_ros.classes import CLASSES, UNKNOWN
from state_sensor_ros.errors import ConfigError, DecodeError, TrajectoryFormatError
from state_sensor_ros.evaluation.matching import (
    BUS_OR_TRAILER,
    N_COLUMNS,
    ObjectSet,
    PathOfObject,
    SIZE,
    VELOCITY,
    XYZ,
    YAW,
)
from state_sensor_ros.files.bag_types import definition, NOT_SUCH
from state_sensor_ros.frame import Floats, NS_PER_S
from state_sensor_ros.parameters import nearest
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

_OF_AUTOWARE = {each.autoware: i for i, each in enumerate(CLASSES)}
_OF_DERIVED = {each.derived: i for i, each in enumerate(CLASSES)}
_OF_DERIVED[9] = BUS_OR_TRAILER
_OF_VISION = {name: i for i, each in enumerate(CLASSES) for name in (each.name, *each.tags)}
_CYLINDER, _POLYGON = 1, 2
_NO_ORIENTATION = 0
_SOLID_BOX, _SOLID_SPHERE, _SOLID_CYLINDER = 1, 2, 3
_DERIVED_TRACKED = 1
_UNKNOWN_XYZ = (math.nan, math.nan, math.nan)
# Name and type of a topic.
TopicKey = tuple[str, str]

ODOMETRY: Final = 'nav_msgs/msg/Odometry'
_PERCEPTION = '/perception/object_recognition'
GROUND_TRUTH: Final = f'{_PERCEPTION}/ground_truth/objects'
EGO_TOPIC: Final = '/localization/kinematic_state'
# Usual name and type of topics, in the order in which one is chosen if none is named.
_USUAL = ((f'{_PERCEPTION}/tracking/objects', TRACKED),
          (f'{_PERCEPTION}/detection/objects', DETECTED),
          (f'{_PERCEPTION}/objects', PREDICTED), ('', DERIVED), ('', VISION),
          (GROUND_TRUTH, TRACKED))


# So many topics are named in an error.
_N_LISTED = 10


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
    """
    Return a time or a duration, ns.

    :param time: builtin_interfaces/Time or Duration.
    """
    return int(time.sec) * NS_PER_S + int(time.nanosec)


def is_unknown(each: Any) -> bool:  # noqa: ANN401
    """
    Return whether the variance of x or y says that a pose or a twist is unknown.

    :param each: geometry_msgs/PoseWithCovariance or TwistWithCovariance.
    """
    return bool(max(each.covariance[[0, 7]].tolist()) >= UNKNOWN_VARIANCE)


def motion_of(each: Any) -> Floats:  # noqa: ANN401
    """
    Return the numbers of a twist, NaN if it is unknown.

    :param each: geometry_msgs/TwistWithCovariance.
    """
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
    """
    The K objects of a message, in the axes of its frame.

    ``stamp_ns`` and ``frame_id`` of the header; ``objects``, whose velocities and yaws
    :meth:`in_frame` sets; ``orientations`` (K, 4) xyzw, ``velocities`` (K, 3) m/s; ``has_ids``
    whether the ids are those of tracks; ``n_unusable`` objects dropped: a position that is not
    finite, or a quaternion that is not a rotation; ``n_wrong`` objects with a negative size,
    which is unknown, or a confidence that is no number, which is 0.
    """

    stamp_ns: int
    frame_id: str
    objects: ObjectSet
    orientations: Floats
    velocities: Floats
    has_ids: bool
    n_unusable: int
    n_wrong: int

    def in_frame(self, turn: Floats, origin: Floats) -> ObjectSet:
        """
        Return the objects in another frame.

        :param turn: (4,) float64, orientation xyzw of this frame in the other one.
        :param origin: (3,) float64, of this frame in the other one, m.
        """
        objects, axes = self.objects, global_from_body(turn[None])[0]
        states = objects.states.copy()
        states[:, XYZ] = states[:, XYZ] @ axes.T + origin
        forward = global_from_body(self.orientations)[:, :, 0] @ axes.T
        yaw = np.arctan2(forward[:, 1], forward[:, 0])
        # NaN marks an orientation that the stack does not send.
        states[:, YAW] = np.where(np.isnan(states[:, YAW]), np.nan, yaw)
        states[:, VELOCITY] = (self.velocities @ axes.T)[:, :2]
        return ObjectSet(objects.ids, objects.classes, states, objects.scores, tuple([
            tuple([_moved(path, turn, axes, origin) for path in paths])
            for paths in objects.paths]))


def _moved(path: PathOfObject, turn: Floats, axes: Floats, origin: Floats) -> PathOfObject:
    """Return a path in another frame."""
    if turn[3] == 1.0 and not origin.any():
        return path
    return PathOfObject(path.step_ns, np.column_stack((
        path.poses[:, :3] @ axes.T + origin,
        quaternion_product(np.broadcast_to(turn, (len(path.poses), 4)), path.poses[:, 3:]))),
        path.confidence)


class _Object(NamedTuple):
    """An object of a message; ``velocity`` in its own axes or in those of the message."""

    id_: str
    class_: int
    score: float
    pose: Sequence[float]
    size: Sequence[float]
    velocity: Sequence[float] | Floats
    has_yaw: bool = True
    paths: tuple[PathOfObject, ...] = ()


def _collected(header: Any, objects: Sequence[_Object], *, has_ids: bool,  # noqa: ANN401
               are_own_axes: bool = False, has_paths: bool = False,
               elements: Sequence[Any] = ()) -> MessageObjects:
    """Return the objects whose poses are usable; ``elements`` have headers, too."""
    columns: Any = zip(*objects, strict=True) if objects else ((),) * len(_Object._fields)
    ids, classes, scores, poses, sizes, velocities, have_yaws, paths = columns
    poses = np.array(poses, np.float64).reshape(-1, 7)
    velocities = np.array(velocities, np.float64).reshape(-1, 3)
    usable = usable_poses(poses[:, :3], poses[:, 3:])
    states = np.full((len(objects), N_COLUMNS), np.nan)
    states[:, XYZ], states[:, SIZE] = poses[:, :3], np.array(sizes).reshape(-1, 3)
    scores, are_negative = np.array(scores, np.float64), states[:, SIZE] < 0.0
    states[:, SIZE][are_negative] = np.nan
    are_wrong = np.logical_or.reduce(are_negative, axis=1) | ~np.isfinite(scores)
    states[:, YAW] = np.where(np.array(have_yaws, np.bool_), 0.0, np.nan)
    found = ObjectSet(ids, np.array(classes, np.int64), states,
                      np.nan_to_num(scores, posinf=0.0, neginf=0.0),
                      paths if has_paths else ()).select(usable)
    orientations, velocities = poses[usable, 3:], velocities[usable]
    velocities[~np.isfinite(velocities)] = np.nan
    if are_own_axes:
        velocities = (global_from_body(orientations) @ velocities[:, :, None])[:, :, 0]
    return MessageObjects(
        nanoseconds(header.stamp), _frame_of(header, elements), found, orientations, velocities,
        has_ids, int((~usable).sum()), int((are_wrong & usable).sum()))


def _frame_of(header: Any, elements: Sequence[Any]) -> str:  # noqa: ANN401
    """Return the frame of a message, the first of its elements' if it names none itself."""
    return next((str(each.frame_id) for each in (header, *(
        element.header for element in elements)) if each.frame_id), '')


def _tracked(message: Any) -> MessageObjects:  # noqa: ANN401
    return _collected(message.header, [_autoware(
        each, each.kinematics.pose_with_covariance, each.kinematics.twist_with_covariance,
        id_=_track_id(each), has_yaw=_has_yaw(each)) for each in message.objects],
        has_ids=True, are_own_axes=True)


def _predicted(message: Any) -> MessageObjects:  # noqa: ANN401
    return _collected(message.header, [_autoware(
        each, each.kinematics.initial_pose_with_covariance,
        each.kinematics.initial_twist_with_covariance, id_=_track_id(each),
        paths=tuple(map(_path, each.kinematics.predicted_paths))) for each in message.objects],
        has_ids=True, are_own_axes=True, has_paths=True)


def _detected(message: Any) -> MessageObjects:  # noqa: ANN401
    return _collected(message.header, [_autoware(
        each, each.kinematics.pose_with_covariance,
        each.kinematics.twist_with_covariance if each.kinematics.has_twist else None,
        has_yaw=_has_yaw(each)) for each in message.objects], has_ids=False, are_own_axes=True)


def _track_id(each: Any) -> str:  # noqa: ANN401
    # One text for all messages: 80 bytes less for each object.
    return intern(bytes(each.object_id.uuid).hex())


def _has_yaw(each: Any) -> bool:  # noqa: ANN401
    return bool(each.kinematics.orientation_availability != _NO_ORIENTATION)


def _autoware(each: Any, pose: Any, twist: Any, *, id_: str = '',  # noqa: ANN401
              has_yaw: bool = True, paths: tuple[PathOfObject, ...] = ()) -> _Object:
    likely = max(each.classification, key=lambda label: label.probability, default=None)
    length, width, height = each.shape.dimensions.values.tolist()
    if each.shape.type == _CYLINDER:
        width = length
    elif each.shape.type == _POLYGON and each.shape.footprint.points:
        corners = np.array([(point.x, point.y) for point in each.shape.footprint.points])
        length, width = np.ptp(corners, axis=0).tolist()
    return _Object(
        id_, UNKNOWN if likely is None else _OF_AUTOWARE.get(likely.label, UNKNOWN),
        each.existence_probability, pose.pose.values, (length, width, height),
        _UNKNOWN_XYZ if twist is None else motion_of(twist)[:3], has_yaw, paths)


def _path(path: Any) -> PathOfObject:  # noqa: ANN401
    poses = np.array([pose.values for pose in path.path], np.float64).reshape(-1, 7)
    return PathOfObject(nanoseconds(path.time_step), poses,
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
        objects.append(_Object(
            each.id, UNKNOWN if likely is None else _OF_VISION.get(
                likely.class_id.lower(), UNKNOWN), 0.0 if likely is None else likely.score,
            each.bbox.center.values, each.bbox.size.values, _UNKNOWN_XYZ))
    return _collected(message.header, objects, elements=message.detections, has_ids=bool(
        objects) and all(each.id_ for each in objects))


_DECODERS: dict[str, Callable[[Any], MessageObjects]] = {
    TRACKED: _tracked, DETECTED: _detected, PREDICTED: _predicted, DERIVED: _derived,
    VISION: _vision}
OBJECT_TYPES: Final = tuple(_DECODERS)


def objects_in(data: bytes, type_name: str) -> MessageObjects:
    """
    Return the objects of a message.

    :param data: serialized message with its encapsulation.
    :param type_name: one of OBJECT_TYPES.
    :raises DecodeError: if it is not such a message.
    """
    return _DECODERS[type_name](decode_flat(data, type_name))


def chosen_topics(name: str, topics: Collection[TopicKey], named: Sequence[str],
                  ) -> list[TopicKey]:
    """
    Choose the topics to evaluate.

    :param name: name of the bag.
    :param topics: topics of the bag that have messages.
    :param named: names given by ``--topic``, in the order in which parts of the result are taken
        from them; empty for the first topic of objects and that of the ego.
    :raises ConfigError: if a named topic is missing or its type cannot be evaluated.
    :raises TrajectoryFormatError: if there is none, or several are equally likely.
    """
    evaluable = [key for key in sorted(topics) if key[1] in (*OBJECT_TYPES, ODOMETRY)]
    if named:
        by_name = {key[0]: key for key in evaluable}
        for topic in named:
            if topic not in by_name:
                raise ConfigError('--topic', f'{topic}, which is not a topic of {name} that '
                                  'can be evaluated',
                                  nearest(topic, by_name) or f'one of {_listed(by_name)}')
        return [by_name[topic] for topic in named]
    found = [key for key in (_objects(name, evaluable), _ego(evaluable)) if key is not None]
    if not found:
        raise TrajectoryFormatError(
            name, 'no topic to evaluate', f'one of the types {", ".join(OBJECT_TYPES)}, or '
            f'{EGO_TOPIC} of the type {ODOMETRY}')
    return found


def _listed(topics: Collection[str]) -> str:
    """Return names of topics as text; of many, those of the usual ones first."""
    names = sorted(topics, key=lambda name: 'odometry' in name)
    return listed(names, _N_LISTED) or 'none'


def _objects(name: str, evaluable: Sequence[TopicKey]) -> TopicKey | None:
    for topic, type_name in _USUAL:
        if (topic, type_name) in evaluable:
            return topic, type_name
        others = [key for key in evaluable if key[1] == type_name and key[0] != GROUND_TRUTH]
        if others and topic != GROUND_TRUTH:
            return _only(name, others, '--topic')
    return None


def _only(name: str, keys: Sequence[TopicKey], option: str) -> TopicKey:
    if len(keys) > 1:
        raise TrajectoryFormatError(name, f'the topics {", ".join(key[0] for key in keys)}',
                                    f'one of them to be named by {option}')
    return keys[0]


def _ego(evaluable: Sequence[TopicKey]) -> TopicKey | None:
    """Return the ego's odometry: the topic of the usual name, else the only one."""
    odometries = [key for key in evaluable if key[1] == ODOMETRY]
    if (EGO_TOPIC, ODOMETRY) in odometries:
        return EGO_TOPIC, ODOMETRY
    return odometries[0] if len(odometries) == 1 else None


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
    if (GROUND_TRUTH, TRACKED) in tracked:
        return GROUND_TRUTH, TRACKED
    return _only(name, tracked, '--truth-topic')
