# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Every parameter of the driver: name, default, unit, range and one line of help.

The node declares its parameters from these fields; commands take them by ``-p``.
What only one simulator needs is declared by that simulator: :meth:`Settings.of`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
import math
import re
from types import MappingProxyType
from typing import Any, cast, TypeVar

from state_sensor_ros.classes import CLASS_NAMES, CLASSES
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.parameters import near_names, Parameter, parameter, parameters_in, Value
from state_sensor_ros.texts import counted

Own = TypeVar('Own')

# The simulators of this package: each is a folder of this name in simulators/. The first one is
# the default; simulators without a format of their own are recorded in its format.
SIMULATORS = ('monodrive', 'carla', 'carla9', 'sumo', 'osi')
# Value of ``source`` for a recording.
FILE = 'file'
# Value of ``outputs`` and ``control_input`` for the topics of a simulator's own bridge; the usual
# role of the ego there.
ROS_BRIDGE, EGO_ROLE = 'carla_ros_bridge', 'ego_vehicle'
NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})
_WORD = re.compile(r'\S+')
_FRAME_ID = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_/.-]*')
_FRAME_PREFIX = re.compile(r'([A-Za-z0-9_][A-Za-z0-9_/.-]*)?')


# Longest reasonable wait or rate: a value above it is a unit mistake (ms for s).
_LONG_S = 86400.0
_NO_COVARIANCE = (1e-9,) * 6
# Packages of messages that the values of outputs and control_input need, beside those that
# package.xml names.
_OUTPUT_MESSAGES = {
    'autoware': ('autoware_perception_msgs', 'autoware_vehicle_msgs', 'autoware_adapi_v1_msgs'),
    'derived_objects': ('derived_object_msgs',), 'vision': ('vision_msgs',),
    ROS_BRIDGE: ('carla_msgs', 'derived_object_msgs')}
_INPUT_MESSAGES = {
    'vehicle_control': (), 'ackermann': ('ackermann_msgs',), 'twist': (),
    'autoware': ('autoware_control_msgs', 'autoware_vehicle_msgs'),
    ROS_BRIDGE: ('carla_msgs', 'ackermann_msgs')}
OUTPUTS, CONTROL_INPUTS = tuple(_OUTPUT_MESSAGES), tuple(_INPUT_MESSAGES)
AUTOWARE_OBJECTS = ('ground_truth', 'tracking', 'detection', 'predicted')
# Noise, and what else may change while the node runs.
_perceived = partial(parameter, dynamic=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Perception:
    """The parameters ``perception.*``: how the objects of outputs differ from the ground truth."""

    range: float = _perceived(
        0.0, "Largest distance of an object's center from the ego's origin, m; 0 = unlimited.",
        low=0.0, high=1e9)
    field_of_view: float = _perceived(
        0.0, "Field of view about the ego's x axis, deg; 0 = all around.", low=0.0, high=360.0)
    occlusion: float = _perceived(
        0.0, "Smallest visible share of an object's width, seen from the ego's origin; 0 = "
        'off.', low=0.0, high=1.0)
    position_std: float = _perceived(
        0.0, 'Standard deviation of the noise of x and y, m.', low=0.0, high=100.0)
    yaw_std: float = _perceived(
        0.0, 'Standard deviation of the noise of the yaw, rad.', low=0.0, high=math.pi)
    size_std: float = _perceived(
        0.0, 'Standard deviation of the noise of length, width and height, m.',
        low=0.0, high=100.0)
    velocity_std: float = _perceived(
        0.0, 'Standard deviation of the noise of the velocity along global x and y, m/s.',
        low=0.0, high=100.0)
    missing: float = _perceived(
        0.0, 'Probability that an object is missed in a frame.', low=0.0, high=1.0)
    ghosts: float = _perceived(
        0.0, 'Mean number of false positives in a frame.', low=0.0, high=100.0)
    delay: float = _perceived(
        0.0, 'Delay of the publication after the stamp, s.', low=0.0, high=10.0)
    seed: int = _perceived(0, 'Seed of the random numbers.', low=0, high=2 ** 31 - 1)


_AS_IT_IS = Perception()


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoware:
    """The parameters ``autoware.*``: the ids of traffic lights in the map of Autoware."""

    lanelet2_map: str = parameter(
        '', 'Lanelet2 map of Autoware, NAME.osm: each traffic light gets the groups of the '
        'nearest light head.')
    traffic_light_ids: str = parameter(
        '', 'YAML file with the group, or the list of groups, of each traffic light by its name '
        'or id; takes precedence over the map.')


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorQos:
    """The parameters ``actor_qos.*``: quality of service of the topics of single actors."""

    reliability: str = parameter('reliable', 'Reliability of the topics of each actor.',
                                 choices=('reliable', 'best_effort'))
    depth: int = parameter(10, 'History depth of the topics of each actor.', low=1, high=10000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All parameters, checked by :func:`parse_settings` (doc/reference/parameters.md)."""

    autostart: bool = parameter(True, 'Configure and activate the node at start.',
                                subject='source')
    source: str = parameter(
        SIMULATORS[0], 'Source of frames: a simulator, or `file` for a recording.',
        choices=(*SIMULATORS, FILE), is_open=True, pattern=_WORD)
    host: str = parameter('127.0.0.1', 'Host of the simulator.', pattern=_WORD)
    port: int = parameter(8700, "Port of the simulator's frames; the default depends on the "
                          'source.', low=1, high=65535)
    control_port: int = parameter(0, 'Control port of the simulator; with 0 the node does not '
                                  'configure it.', low=0, high=65535)
    sample_rate: float = parameter(0.0, 'Rate of sample commands, Hz; 0 sends none. Needs '
                                   'control_port.', low=0.0, high=1000.0)
    config_file: str = parameter('', "The simulator's own sensor configuration file.")
    trajectory_file: str = parameter('', 'Recording to play, with source `file`.',
                                     subject='recordings')
    rate: float = parameter(
        1.0, 'Speed of a recording, or of a paced simulator, relative to real time; 0 = as fast '
        'as possible.', low=0.0, high=1000.0, dynamic=True)
    loop: bool = parameter(False, 'Repeat the recording endlessly.')
    global_frame: str = parameter('map', 'TF frame of the world.', pattern=_FRAME_ID,
                                  subject='frames')
    frame_prefix: str = parameter('', "Prefix of each actor's TF frame.", pattern=_FRAME_PREFIX)
    parent_frame: str = parameter('', 'Parent frame of global_frame on /tf_static; empty: none.',
                                  pattern=_FRAME_PREFIX)
    global_frame_pose: tuple[float, ...] = parameter(
        (0.0,) * 6, 'Pose of global_frame in parent_frame: x y z (m) roll pitch yaw (rad).',
        length=6)
    odom_frame: str = parameter(
        '', 'Frame between global_frame and the ego, such as odom of REP 105: fixed on '
        '/tf_static, parent of the ego on /tf; empty: none.', pattern=_FRAME_PREFIX)
    odom_frame_pose: tuple[float, ...] = parameter(
        (0.0,) * 6, 'Pose of odom_frame in global_frame: x y z (m) roll pitch yaw (rad).',
        length=6)
    ego_tag: str = parameter('ego', 'Tag that marks the ego actor.', pattern=_WORD)
    ego_frame: str = parameter(
        '', 'TF frame of the ego, such as base_link; empty: named like other actors.',
        pattern=_FRAME_PREFIX)
    desired_tags: tuple[str, ...] = parameter(
        (), 'Publish actors with one of these tags; empty: all.', dynamic=True, subject='actors')
    undesired_tags: tuple[str, ...] = parameter(
        (), 'Drop actors with one of these tags.', dynamic=True)
    include_obb: bool = parameter(
        True, 'Decode and publish oriented bounding boxes.', dynamic=True)
    debug_drawing: bool = parameter(False, 'Publish boxes as markers.', dynamic=True,
                                    subject='topics')
    labels: bool = parameter(True, 'Publish a text marker with the name of each actor.',
                             dynamic=True)
    tf: str = parameter('all', 'Which actors have a transform on /tf.',
                        choices=('all', 'ego', 'none'), dynamic=True)
    wheel_tf: bool = parameter(False, 'Publish a TF frame for each wheel.', dynamic=True)
    joint_states: bool = parameter(False, 'Publish wheel angles as joint states.', dynamic=True)
    odometry: bool = parameter(True, 'Publish topics for each actor.', dynamic=True)
    frame: bool = parameter(True, 'Publish ~/frame, the whole frame as one message.', dynamic=True)
    map_file: str = parameter(
        '', 'Map to publish on ~/map: NAME.xodr, NAME.net.xml or a Lanelet2 NAME.osm; empty: that '
        'of the source.')
    max_actor_topics: int = parameter(
        1024, 'Largest number of actors with topics of their own, in a bag in all.', low=0,
        high=65536)
    actor_timeout: float = parameter(
        5.0, 'Time after which the topics of an absent actor are removed, s of stream time.',
        low=0.0, high=_LONG_S)
    stamp_source: str = parameter('game_time', 'Clock that the stamps come from.',
                                  choices=('game_time', 'utc', 'ros'), subject='stamps')
    publish_clock: bool = parameter(
        True, 'Publish /clock from stamps that are game_time, unless another node publishes it '
        'at activation.', dynamic=True)
    twist_frame: str = parameter('child', 'Axes of the twist in Odometry.', subject='units',
                                 choices=('child', 'global'))
    obb_extents: str = parameter(
        'full', 'Box extents that the simulator sends: full or half edge lengths.',
        choices=('full', 'half'))
    road_s_unit: str = parameter(
        'cm', 'Unit of control_state.s that the simulator sends.', choices=('cm', 'm'))
    pose_covariance_diagonal: tuple[float, ...] = parameter(
        _NO_COVARIANCE, 'Variances of x y z (m2) and rotation about X Y Z (rad2).',
        length=6, low=0.0)
    twist_covariance_diagonal: tuple[float, ...] = parameter(
        _NO_COVARIANCE, 'Variances of linear (m2/s2) and angular velocity (rad2/s2).',
        length=6, low=0.0)
    outputs: tuple[str, ...] = parameter(
        (), 'Autonomy stacks to publish topics for.', choices=OUTPUTS,
        messages=_OUTPUT_MESSAGES, subject='stacks')
    autoware_objects: tuple[str, ...] = parameter(
        ('ground_truth', 'predicted'), 'Object topics of the output autoware.',
        choices=AUTOWARE_OBJECTS)
    object_classes: tuple[str, ...] = parameter(
        (), 'Classes of objects in outputs; empty: all.', choices=CLASS_NAMES, dynamic=True)
    object_range: float = parameter(
        0.0, "Largest distance of objects in outputs from the ego's origin, m; 0 = unlimited.",
        low=0.0, high=1e9, dynamic=True)
    base_link_xyz: tuple[float, ...] = parameter(
        (math.nan,) * 3, "Position of base_link in the ego's axes, m; NaN: the middle of the "
        "rear wheels if known, else the ego's origin.",
        length=3, may_be_nan=True)
    default_sizes: tuple[float, ...] = parameter(
        tuple(chain.from_iterable(each.size_xyz for each in CLASSES[:-1])),
        'Length, width, height of objects without a box, m: person, cyclist, '
        'motorcycle, bus, truck, trailer, car (and unknown).', low=0.01)
    control_input: str = parameter(
        '', 'Command topic that drives the ego; empty: none. With autoware, the ego stands '
        'still until its gear is known; if no node publishes a gear within 1 s of the first '
        'command, the gear is drive.',
        choices=('', *CONTROL_INPUTS), messages=_INPUT_MESSAGES, subject='commands')
    queue_size: int = parameter(8, 'Largest number of packets waiting to be published.',
                                low=1, high=10000, subject='stream')
    overflow: str = parameter('drop_oldest', 'What happens when the queue is full.',
                              choices=('drop_oldest', 'block'))
    max_frame_bytes: int = parameter(
        67108864, 'Largest packet, bytes; a longer one is a protocol error.', low=1024,
        high=2147483647)
    reconnect_min: float = parameter(0.1, 'First wait before reconnecting, s.', low=0.001,
                                     high=_LONG_S)
    reconnect_max: float = parameter(2.0, 'Longest wait before reconnecting, s.', low=0.001,
                                     high=_LONG_S)
    stale_after: float = parameter(2.0, 'Time without frames after which the stream is stale, s.',
                                   low=0.01, high=_LONG_S)

    # Not a parameter: the parameters of Perception and of simulators that are not the defaults.
    own: tuple[object, ...] = ()

    def of(self, owner: type[Own]) -> Own:
        """
        Return the parameters of a class of their own.

        :param owner: a simulator's class of parameters, or Perception.
        """
        return next((part for part in self.own if isinstance(part, owner)), None) or owner()

    @property
    def role(self) -> str:
        """Role name of the ego: that of the simulator, a property of its parameters."""
        return next((role for part in self.own if (role := getattr(part, 'ego_role', ''))),
                    EGO_ROLE)

    @property
    def perception(self) -> Perception:
        """How the objects of outputs differ from the ground truth."""
        # One object as long as it does not change, by which a change is noticed.
        return next((part for part in self.own if isinstance(part, Perception)), _AS_IT_IS)


PERCEPTION = parameters_in(Perception, 'perception.')
_CORE = {**parameters_in(Settings), **PERCEPTION, **parameters_in(Autoware, 'autoware.'),
         **parameters_in(ActorQos, 'actor_qos.')}
# Names of the parameters of the driver, which no simulator declares.
NAMES: tuple[str, ...] = tuple(_CORE)
DEFAULTS = Settings()


class ParameterTable:
    """
    The parameters of the driver, and those of simulators, prefixed by their names.

    :param owners: classes of parameters by name of the simulator.
    :param aliases: other names of parameters; an alias that is also the name of a parameter of the
        driver means the other parameter here.
    """

    def __init__(self, owners: Mapping[str, type], aliases: Mapping[str, str]) -> None:
        self.aliases = aliases
        self._parameters = {**_CORE, **{
            name: declared for simulator, owner in owners.items()
            for name, declared in parameters_in(owner, f'{simulator}.').items()}}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, without other names of the same."""
        return tuple(self._parameters)

    def by_subject(self) -> dict[str, list[str]]:
        """Return the names of the parameters by subject, a heading or a prefix."""
        found: dict[str, list[str]] = {}
        subject = ''
        for name, declared in self._parameters.items():
            subject = name.rpartition('.')[0] or declared.rule.subject or subject
            found.setdefault(subject, []).append(name)
        return found

    def has(self, name: str) -> bool:
        """Return whether a name is that of a parameter, or an alias."""
        return self.aliases.get(name, name) in self._parameters

    def find(self, name: str) -> Parameter:
        """
        Return a parameter.

        :param name: name or alias.
        :raises ConfigError: if there is no such parameter.
        """
        if self.has(name):
            return self._parameters[self.aliases.get(name, name)]
        raise ConfigError(name, f'unknown parameter{near_names([name], self.names)}')

    def value_of(self, settings: Settings, name: str) -> Value:
        """
        Return the value of a parameter.

        :param settings: all parameters.
        :param name: name of a parameter, or an alias.
        """
        declared = self.find(name)
        owner = settings if declared.owner is Settings else settings.of(declared.owner)
        return cast(Value, getattr(owner, declared.attribute))

    def parse(self, values: Mapping[str, object], base: Settings = DEFAULTS) -> Settings:
        """
        Check values one by one and against each other.

        :param values: values by name or alias; lists and arrays are taken as tuples.
        :param base: settings with the values of the other parameters.
        :raises ConfigError: naming the parameter, the value and what is allowed.
        """
        checked: dict[type, dict[str, Value]] = {}
        for name in self._chosen(values):
            declared = self.find(name)
            # An error has the name that was given.
            checked.setdefault(declared.owner, {})[declared.attribute] = replace(
                declared, name=name).checked(values[name])
        core: dict[str, Any] = checked.pop(Settings, {})
        parts: dict[type, Any] = {type(part): part for part in base.own}
        for owner, given in checked.items():
            parts[owner] = replace(parts.get(owner) or owner(), **given)
        changed = tuple(part for part in parts.values() if part != type(part)())
        settings = replace(base, own=changed, **core)
        _check_together(settings)
        return settings

    def _chosen(self, values: Mapping[str, object]) -> Iterable[str]:
        """Return one name for each parameter: of two, that of another value than its default."""
        chosen: dict[str, str] = {}
        for name in values:
            target = self.aliases.get(name, name)
            other = chosen.get(target, name)
            changed = [each for each in dict.fromkeys((other, name))
                       if values[each] != _CORE.get(each, self.find(each)).default]
            if len(changed) == 2 and values[other] != values[name]:
                raise ConfigError(name, repr(values[name]), f'one value: {other} is another name '
                                  f'of {target}, and has {values[other]!r}')
            chosen[target] = changed[0] if changed else target if target in values else name
        return chosen.values()


CORE = ParameterTable({}, {})


def parse_settings(values: Mapping[str, object], base: Settings = DEFAULTS) -> Settings:
    """
    Check parameters of the driver one by one and against each other.

    :param values: parameter name to value; lists and arrays are taken as tuples.
    :param base: settings with the values of the other parameters.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    return CORE.parse(values, base)


def _check_together(settings: Settings) -> None:
    """Check parameters that depend on each other."""
    n_sizes, n_usual = len(settings.default_sizes), 3 * len(CLASS_NAMES)
    for name, is_right, found, expected in (
            ('reconnect_min', settings.reconnect_min <= settings.reconnect_max,
             f'{settings.reconnect_min:g}', f'at most reconnect_max, {settings.reconnect_max:g}'),
            ('trajectory_file', settings.source != FILE or settings.trajectory_file,
             'nothing', 'a recording, because source is file'),
            ('sample_rate', not settings.sample_rate or settings.control_port,
             f'{settings.sample_rate:g}', 'a control_port, by default 8999 in monoDrive, or 0'),
            ('base_link_xyz', len({number == number for number in settings.base_link_xyz}) == 1,
             repr(list(settings.base_link_xyz)), 'three numbers, or NaN three times'),
            ('default_sizes', n_sizes in (n_usual - 3, n_usual),
             counted(n_sizes, 'number'), f'{n_usual - 3}: three for each class')):
        if not is_right:
            raise ConfigError(name, found, expected)
    frames: dict[str, str] = {}
    for name in ('global_frame', 'parent_frame', 'odom_frame', 'ego_frame'):
        frame = str(getattr(settings, name))
        if frame in frames:
            raise ConfigError(name, repr(frame), f'another name than {frames[frame]}')
        if frame:
            frames[frame] = name
