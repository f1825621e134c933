# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Encode a frame to the serialized messages of all topics, which are listed here.

The layout of a topic's messages is all their bytes except the numbers. It is kept until its key
changes; a frame with the same key only patches numbers into it.

At start, the definitions that the encoder reads from files are compared with those that the
middleware was built with, and a sample is deserialized: a changed definition, or a middleware with
another serialization, is an error at start, not a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
import itertools
import re
from typing import Any, cast

import numpy as np

from state_sensor_ros import rotations
from state_sensor_ros.cdr.definitions import Definitions, DUMMY, Field, SEQUENCE
from state_sensor_ros.cdr.templates import MESSAGE_PHASE, Template
from state_sensor_ros.errors import EncodeError
from state_sensor_ros.frame import Floats, Frame, FutureFrame
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.objects.object_maker import ObjectMaker
from state_sensor_ros.perception.perceiver import Perceiver
from state_sensor_ros.plug_ins import imported
from state_sensor_ros.settings import ROS_BRIDGE, Settings
from state_sensor_ros.source import ignore, Report
from state_sensor_ros.topics import actors, encoding, map_topics, markers, state_frame, transforms
from state_sensor_ros.topics.encoding import TopicEncoder
from state_sensor_ros.topics.tables import lane_numbers, POSE, STAMP, stamp_numbers
from state_sensor_ros.topics.topic import NOTHING, Subscriptions, Topic
from state_sensor_ros.topics.transforms import BaseLink, move_by

# In the order in which messages are sent: a transform precedes the data that refers to it, and the
# time of which it is looked up.
TOPICS: tuple[type[TopicEncoder], ...] = (
    transforms.TransformEncoder,
    transforms.ClockEncoder,
    actors.OdometryEncoder,
    actors.ControlStateEncoder,
    actors.ControlStatesEncoder,
    actors.JointStateEncoder,
    markers.MarkerEncoder,
    state_frame.StateFrameEncoder,
    map_topics.RoadsEncoder,
    map_topics.LightsEncoder,
    map_topics.MapEncoder,
    map_topics.OpenDriveEncoder,
    actors.ActorArrayEncoder,
)
# By value of the parameter ``outputs``: modules, imported when they are used, and classes.
_OUTPUTS = {
    'autoware': (
        ('objects', 'GroundTruthEncoder'), ('objects', 'TrackingEncoder'),
        ('objects', 'DetectionEncoder'), ('objects', 'PredictionEncoder'),
        ('autoware_ego', 'InitializationEncoder'), ('autoware_ego', 'AutowareEgoEncoder'),
        ('autoware_signals', 'TrafficSignalsEncoder'),
    ),
    'derived_objects': (('objects', 'DerivedObjectsEncoder'),),
    'vision': (('objects', 'LabelInfoEncoder'), ('objects', 'DetectionsEncoder')),
    ROS_BRIDGE: tuple(('carla_bridge', name) for name in (
        'WorldObjectsEncoder', 'EgoObjectsEncoder', 'EgoOdometryEncoder', 'EgoStatusEncoder',
        'EgoInfoEncoder', 'LightInfoEncoder', 'LightStatusEncoder', 'MapEncoder',
        'WorldInfoEncoder', 'ActorListEncoder', 'StatusEncoder')),
}
_NOTHING = nullcontext()
_NO_ROWS: Floats = np.zeros((0, 13))


def output_encoders(output: str) -> list[type[TopicEncoder]]:
    """Return the topics of an output; ``output``: value of the parameter ``outputs``."""
    return [cast(type[TopicEncoder], imported(f'.topics.{module}:{name}'))
            for module, name in _OUTPUTS[output]]


def perception_used(settings: Settings) -> frozenset[str]:
    """Return the names of the parameters ``perception.*`` that the outputs use."""
    return frozenset(name for output in settings.outputs for encoder in output_encoders(output)
                     if encoder.topics_of(settings) for name in encoder.uses_perception)


def _names_of(encoder: TopicEncoder) -> frozenset[str]:
    """Return the names of the topics of an encoder, and the last part of those of actors."""
    return frozenset(filter(None, (encoder.kind, *[topic.name for topic in encoder.topics])))


class Encoder:

    def __init__(self, settings: Settings, definitions: Definitions, report: Report = ignore,
                 further: Sequence[encoding.NewTopicEncoder] = (), *,
                 last_command: Callable[[], encoding.LastCommand | None] = encoding.no_command,
                 ) -> None:
        self._last_command, self._settings = last_command, settings
        self._base_link = BaseLink(settings, report) if settings.ego_frame else None
        self._objects = ObjectMaker(settings)
        self._perceiver = Perceiver(settings, self._objects, report)
        self._encoders: list[TopicEncoder] = []
        news: list[encoding.NewTopicEncoder] = [
            *TOPICS, *itertools.chain.from_iterable(map(output_encoders, settings.outputs)),
            *further]
        for new in news:
            self._add(new(settings, definitions, report))
        self._unopened = [encoder for encoder in self._encoders if encoder.opens_with]
        self.topics = tuple(topic for encoder in self._encoders if not encoder.opens_with
                            for topic in encoder.topics)
        self._set_subscriptions(NOTHING)

    def _add(self, added: TopicEncoder) -> None:
        names = _names_of(added)
        replaced = [encoder for encoder in self._encoders if names & _names_of(encoder)]
        place = self._encoders.index(replaced[0]) if replaced else len(self._encoders)
        self._encoders.insert(place, added)
        self._encoders = [encoder for encoder in self._encoders if encoder not in replaced]

    @property
    def type_names(self) -> set[str]:
        """Types of the messages of all topics, for the check at start."""
        names = [name for encoder in self._encoders for name in (
            encoder.type_name, *[topic.type_name for topic in encoder.topics])]
        return set(filter(None, names))

    def needs(self, subscriptions: Subscriptions) -> bool:
        """Return whether the topics of ``subscriptions`` use boxes, wheels or inputs."""
        return any(encoder.needs(self._settings) for encoder in self._encoders
                   if encoder.is_wanted(self._settings, subscriptions))

    def new_topics(self, frame: Frame) -> list[Topic]:
        opened = [encoder for encoder in self._unopened
                  if encoder.opens_with and encoder.opens_with(frame)]
        if opened:
            self._unopened = [encoder for encoder in self._unopened if encoder not in opened]
            self._set_subscriptions(self._subscriptions)
        return [topic for encoder in opened for topic in encoder.topics]

    def actor_topics(self, actor: Actor, *, has_lanes: bool,
                     has_wheels: bool) -> tuple[Topic, ...]:
        """Return the topics that an actor has of its own, with the current settings."""
        # actor: owner of the topics; its ``topic_name`` is a part of their names.
        # Returns the topics, none for an actor without ``has_topics``.
        return tuple([
            actors.own_topic(actor, encoder.kind, encoder.type_name)
            for encoder in self._encoders
            if actor.has_topics and encoder.kind and encoder.is_on_for_actors(self._settings)
            and {'lanes': has_lanes, 'wheels': has_wheels}.get(encoder.only_with, True)])

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""
        for encoder in self._encoders:
            if encoder.is_on(self._settings) and not encoder.is_on(settings):
                encoder.restart()
        self._settings = settings
        self._objects.reconfigure(settings)
        self._perceiver.reconfigure(settings)
        self._set_subscriptions(NOTHING)

    def restart(self) -> None:
        """Start a new run of the simulator."""
        self._objects.restart()
        for encoder in self._encoders:
            encoder.restart()
        self._set_subscriptions(NOTHING)

    def closing(self, stamp_ns: int, settings: Settings | None = None) -> encoding.Messages:
        """
        Return what is to be sent before topics are switched off; may be called from any thread.

        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return [message for encoder in self._encoders if encoder.is_on(self._settings)
                and (settings is None or not encoder.is_on(settings))
                for message in encoder.closing(stamp_ns)]

    def encode(self, frame: Frame, actor_list: ActorList, stamp_ns: int,
               subscriptions: Subscriptions, *, advanced: bool = True,
               upcoming: FutureFrame | None = None) -> encoding.Messages:
        """Encode the topics that have subscriptions."""
        # stamp_ns: ns since the epoch of the messages' clock.
        # advanced: False for a frame whose clock did not advance: few topics publish it.
        # upcoming: the frame in its recording, None for a live stream.
        if subscriptions is not self._subscriptions and subscriptions != self._subscriptions:
            self._set_subscriptions(subscriptions)
        bodies = frame.bodies()
        # The actor list is immutable and compared by identity: the same object has the same
        # actors, and an equal copy only costs a new layout.
        common = (actor_list, bodies.usable.tobytes(), frame.lanes.actor.tobytes(),
                  bodies.is_finite and frame.forward_speed is None)
        messages: encoding.Messages = []
        # Rows that are not sent are computed, too, whatever they hold.
        with _NOTHING if bodies.is_plain else np.errstate(all='ignore'):
            now, numbers = self._begin(frame, actor_list, stamp_ns, upcoming)
            for encoder in self._wanted:
                if not (advanced or encoder.is_of_every_frame):
                    continue
                key = common if encoder.key is None else (common, encoder.key(now))
                last_key, block = encoder.kept
                if key != last_key:
                    block = encoder.layout(now)
                    encoder.kept = key, block
                if block is not None:
                    if encoder.numbers is not None:
                        encoder.numbers(now, numbers)
                    for table, chosen, put, targets in block.patches:
                        put(targets, numbers[table] if chosen is None else numbers[table][chosen])
                    # A copy of the block and slices of it take less time than a copy of each
                    # message. A slice of all bytes is the object itself.
                    data = block.data.tobytes()
                    for topic, begin, end in block.parts:
                        messages.append((topic, data[begin:end]))
                if encoder.messages is not None:
                    messages += encoder.messages(now)
        return messages

    def _begin(self, frame: Frame, actor_list: ActorList, stamp_ns: int,
               upcoming: FutureFrame | None) -> tuple[encoding.FrameToSend, encoding.Numbers]:
        """Return the frame with the data that several topics use, and the common tables."""
        bodies, i_ego = frame.bodies(), actor_list.i_ego
        numbers: encoding.Numbers = {STAMP: stamp_numbers(stamp_ns)}
        if self._uses_lanes:
            numbers |= lane_numbers(frame.lanes)
        rows, base_link = _NO_ROWS, None
        if self._uses_rows:
            rows = bodies.normalized()
            if self._base_link is not None and i_ego >= 0:
                base_link = i_ego, self._base_link.offset(frame, i_ego)
                ego = rows[i_ego]
                move_by(ego, rotations.global_from_unit(ego[None, 3:7])[0] @ base_link[1])
            numbers[POSE] = rows[:len(bodies.usable), :POSE.width]
        return encoding.FrameToSend(
            self._settings, frame, actor_list, stamp_ns, self._subscriptions, bodies.usable, rows,
            base_link, self._objects, self._perceiver, upcoming,
            last_command=self._last_command), numbers

    def _set_subscriptions(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._wanted = [encoder for encoder in self._encoders if encoder not in self._unopened
                        and encoder.is_wanted(self._settings, subscriptions)]
        for encoder in self._wanted:
            encoder.kept = None, None
        self._uses_rows = any(encoder.uses_rows for encoder in self._wanted)
        self._uses_lanes = any(encoder.uses_lanes for encoder in self._wanted)


# Types as message classes of ROS name them; their bounds of texts and of sequences, such as
# ``sequence<geometry_msgs/Point, 4>``, which definitions do not have.
_NAMES = {'float64': 'double', 'float32': 'float', 'bool': 'boolean', 'byte': 'octet',
          'char': 'uint8'}
_BOUND = re.compile(r'<\d+>|, \d+')
_SAMPLE = 'nav_msgs/msg/Odometry'


def verify(type_names: Iterable[str], definitions: Definitions, class_of: Callable[[str], Any],
           deserialize: Callable[[bytes, Any], Any]) -> None:
    """Compare definitions with message classes; have a sample message deserialized."""
    # class_of: returns the class of a type, which has ``get_fields_and_field_types``.
    waiting, compared = list(type_names), set[str]()
    while waiting:
        type_name = waiting.pop()
        if type_name in compared:
            continue
        compared.add(type_name)
        fields = class_of(type_name).get_fields_and_field_types() or {DUMMY: 'uint8'}
        for own, other in itertools.zip_longest(map(_described, definitions[type_name]), [
                f'{_BOUND.sub("", text)} {name}' for name, text in fields.items()]):
            if own != other:
                raise EncodeError(type_name, other or 'no more fields', own or 'no more fields')
        waiting += [field.type_name for field in definitions[type_name] if '/' in field.type_name]
    # Texts, whose lengths move the numbers after them, and numbers at both ends.
    expected = 'a', 'bcdef', 1.5, 2.5
    data = Template(definitions, _SAMPLE, {
        'header': {'frame_id': expected[0]}, 'child_frame_id': expected[1],
        'pose': {'pose': {'position': {'x': expected[2]}}},
        'twist': {'covariance': [*[0.0] * 35, expected[3]]}}, is_message=True)
    try:
        message = deserialize(data.lay_out({}, MESSAGE_PHASE).data, class_of(_SAMPLE))
    except RuntimeError as error:
        raise EncodeError(_SAMPLE, str(error), 'a message of its definition') from error
    found = (message.header.frame_id, message.child_frame_id, message.pose.pose.position.x,
             message.twist.covariance[35])
    if found != expected:
        raise EncodeError(_SAMPLE, repr(found), repr(expected))


def _described(field: Field) -> str:
    name = _NAMES.get(field.type_name, field.type_name.replace('/msg/', '/'))
    if field.length is not None:
        name = f'sequence<{name}>' if field.length == SEQUENCE else f'{name}[{field.length}]'
    return f'{name} {field.name}'
