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

The node declares its parameters from these fields, and the commands build their options from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
import math
import re
from typing import Any, cast, get_args, get_type_hints, TypeAlias

from state_sensor_ros.classes import CLASS_NAMES
from state_sensor_ros.errors import ConfigError, counted

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | tuple[float, ...]

_FRAME_ID = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_/.-]*')
_FRAME_PREFIX = re.compile(r'([A-Za-z0-9_][A-Za-z0-9_/.-]*)?')


@dataclass(frozen=True, slots=True)
class Rule:
    """
    What a parameter may be.

    ``help`` one line; ``low``/``high`` inclusive bounds of a number; ``choices`` of a string or of
    each item, to which other packages may add where ``is_open``; ``length`` of an array;
    ``pattern`` of a string with what it means; ``dynamic`` whether it may change while running;
    ``may_be_nan`` whether NaN stands for a number that is found otherwise.
    """

    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    is_open: bool = False
    length: int | None = None
    pattern: re.Pattern[str] | None = None
    dynamic: bool = False
    may_be_nan: bool = False


def _parameter(default: Value, help_: str, name: str = '', **rule: Any) -> Any:  # noqa: ANN401
    """Describe a field; ``name`` of the parameter where it is not that of the field."""
    return field(default=default, metadata={'rule': Rule(help_, **rule), 'name': name})


# Longest reasonable wait or rate: a value above it is a unit mistake (ms for s).
_LONG_S = 86400.0
_NO_COVARIANCE = (1e-9,) * 6
OUTPUTS = ('autoware', 'derived_objects', 'vision')
AUTOWARE_OBJECTS = ('ground_truth', 'tracking', 'detection', 'predicted')
# In the order of CLASS_NAMES, without the last.
_DEFAULT_SIZES = (0.6, 0.6, 1.75, 1.8, 0.6, 1.7, 2.2, 0.8, 1.6, 12.0, 2.55, 3.2,
                  8.0, 2.5, 3.2, 8.0, 2.5, 3.2, 4.6, 1.85, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All parameters, checked by :func:`parse_settings` (doc/reference/parameters.md)."""

    autostart: bool = _parameter(True, 'Configure and activate the node at its start.')
    source: str = _parameter('tcp', 'Source of frames: a simulator, a recording, or CARLA.',
                             choices=('tcp', 'file', 'carla'), is_open=True)
    host: str = _parameter('127.0.0.1', 'Host of the simulator.',
                           pattern=re.compile(r'\S+'))
    port: int = _parameter(
        8700, 'TCP port of the State sensor on that host; of CARLA, its measurements (2001).',
        low=1, high=65535)
    control_port: int = _parameter(
        0, 'Control port of the simulator (8999; world port of CARLA, 2000); 0 does not '
        'configure it.',
        low=0, high=65535)
    sample_rate: float = _parameter(
        0.0, 'Sample commands per second, Hz; 0 sends none. Needs control_port.',
        low=0.0, high=1000.0)
    config_file: str = _parameter(
        '', "The simulator's own sensor JSON, whose State entry sets port, tags, boxes; of CARLA, "
        'the settings of an episode.')
    relay_port: int = _parameter(
        0, "First of three ports for the user's own client of CARLA, whose traffic with the "
        'server goes on unchanged and is read; 0 opens none.', low=0, high=65533)
    relay_bind: str = _parameter('127.0.0.1', 'Address of the ports of the relay.',
                                 pattern=re.compile(r'\S+'))
    carla_start_spot: int = _parameter(
        0, 'Index of the start spot of an episode that the node requests of CARLA.',
        name='carla.start_spot', low=0, high=4294967295)
    trajectory_file: str = _parameter('', 'Recording to play where source is file.')
    rate: float = _parameter(1.0, 'Pace of a recording against real time; 0 = unpaced.',
                             low=0.0, high=1000.0, dynamic=True)
    loop: bool = _parameter(False, 'Play a recording again from its start, without end.')
    global_frame: str = _parameter('map', 'TF frame of the world.', pattern=_FRAME_ID)
    frame_prefix: str = _parameter('', "Put before each actor's name to make its TF frame.",
                                   pattern=_FRAME_PREFIX)
    parent_frame: str = _parameter('', 'Parent of global_frame on /tf_static; empty: none.',
                                   pattern=_FRAME_PREFIX)
    global_frame_pose: tuple[float, ...] = _parameter(
        (0.0,) * 6, 'Pose of global_frame in parent_frame: x y z (m) roll pitch yaw (rad).',
        length=6)
    camera_tf: bool = _parameter(
        False, "Frames of CARLA's cameras on /tf_static, under the player's.")
    camera_poses: tuple[float, ...] = _parameter(
        (0.0,) * 18, 'Poses of the central, left and right camera of CARLA on the player, each '
        'x y z (m) roll pitch yaw (rad); six zeros leave that of metadata.json or config_file.',
        length=18)
    camera_fov: float = _parameter(
        0.0, "Horizontal field of view of CARLA's cameras, degrees; 0 leaves that of the server, "
        'metadata.json or config_file.', low=0.0, high=179.0)
    ego_tag: str = _parameter('ego', 'Tag that marks the ego actor.', pattern=re.compile(r'\S+'))
    ego_frame: str = _parameter('', "The ego's TF frame, such as base_link; empty: as others.",
                                pattern=_FRAME_PREFIX)
    desired_tags: tuple[str, ...] = _parameter(
        (), 'An actor needs one of these tags; empty passes all.', dynamic=True)
    undesired_tags: tuple[str, ...] = _parameter(
        (), 'An actor with one of these tags is left out.', dynamic=True)
    include_obb: bool = _parameter(True, 'Use the oriented bounding boxes.', dynamic=True)
    debug_drawing: bool = _parameter(False, 'Publish the boxes as markers.', dynamic=True)
    labels: bool = _parameter(True, 'A text marker with its name above each actor.', dynamic=True)
    tf: str = _parameter('all', 'Actors with a transform on /tf.', choices=('all', 'ego', 'none'),
                         dynamic=True)
    wheel_tf: bool = _parameter(False, 'Wheel frames under each actor.', dynamic=True)
    joint_states: bool = _parameter(False, 'Wheel angles as joint states.', dynamic=True)
    odometry: bool = _parameter(True, 'The topics of each actor.', dynamic=True)
    frame: bool = _parameter(True, 'The topic ~/frame with everything.', dynamic=True)
    max_actor_topics: int = _parameter(1024, 'Actors with topics of their own.', low=0, high=65536)
    actor_timeout: float = _parameter(
        5.0, 'Stream time without an actor before its topics are removed, s.',
        low=0.0, high=_LONG_S)
    stamp_source: str = _parameter('game_time', 'Clock of the stamps.',
                                   choices=('game_time', 'utc', 'ros'))
    publish_clock: bool = _parameter(False, 'Publish /clock from the stamps.')
    twist_frame: str = _parameter('child', "Axes of Odometry's twist.",
                                  choices=('child', 'global'))
    obb_extents: str = _parameter('full', 'Meaning of the extents of a box on the wire.',
                                  choices=('full', 'half'))
    road_s_unit: str = _parameter('cm', 'Unit of control_state.s on the wire.',
                                  choices=('cm', 'm'))
    pose_covariance_diagonal: tuple[float, ...] = _parameter(
        _NO_COVARIANCE, 'Variances of x y z (m2) and rotation about X Y Z (rad2).',
        length=6, low=0.0)
    twist_covariance_diagonal: tuple[float, ...] = _parameter(
        _NO_COVARIANCE, 'Variances of linear (m2/s2) and angular velocity (rad2/s2).',
        length=6, low=0.0)
    outputs: tuple[str, ...] = _parameter(
        (), 'Topics of autonomy stacks.', choices=OUTPUTS)
    autoware_objects: tuple[str, ...] = _parameter(
        ('ground_truth', 'predicted'), 'Topics of objects of the output autoware.',
        choices=AUTOWARE_OBJECTS)
    object_classes: tuple[str, ...] = _parameter(
        (), 'Classes of the objects of outputs; empty passes all.', choices=CLASS_NAMES,
        dynamic=True)
    object_range: float = _parameter(
        0.0, "Largest distance of an object's centre from the ego's origin, m; 0 passes all.",
        low=0.0, high=1e9, dynamic=True)
    base_link_xyz: tuple[float, ...] = _parameter(
        (math.nan,) * 3, "Origin of the stack's base_link in the ego's axes, m; NaN takes the "
        "middle of the rear wheels where the frame has them, else the ego's origin.",
        length=3, may_be_nan=True)
    default_sizes: tuple[float, ...] = _parameter(
        _DEFAULT_SIZES, 'Length, width, height of objects without a box, m: person, cyclist, '
        'motorcycle, bus, truck, trailer, car (and unknown).', low=0.01)
    queue_size: int = _parameter(8, 'Frames that may wait to be published.', low=1, high=10000)
    overflow: str = _parameter('drop_oldest', 'Behaviour of a full queue.',
                               choices=('drop_oldest', 'block'))
    max_frame_bytes: int = _parameter(67108864, 'A longer packet is a protocol error, bytes.',
                                      low=1024, high=2147483647)
    reconnect_min: float = _parameter(0.1, 'First wait before connecting again, s.',
                                      low=0.001, high=_LONG_S)
    reconnect_max: float = _parameter(2.0, 'Longest wait before connecting again, s.',
                                      low=0.001, high=_LONG_S)
    stale_after: float = _parameter(2.0, 'Silence after which the stream counts as stale, s.',
                                    low=0.01, high=_LONG_S)

    @property
    def max_bag_bytes(self) -> int:
        """Size above which a part of a bag is refused: a limit on packets may raise it."""
        return max(self.max_frame_bytes, DEFAULTS.max_frame_bytes)


# Name of each parameter and its field.
_FIELDS = {f.metadata['name'] or f.name: f for f in fields(Settings)}
NAMES: tuple[str, ...] = tuple(_FIELDS)
DEFAULTS = Settings()
_HINTS = get_type_hints(Settings)


def rule_of(name: str) -> Rule:
    """Return what the parameter ``name`` may be."""
    return cast(Rule, _FIELDS[name].metadata['rule'])


def type_of(name: str) -> Any:  # noqa: ANN401
    """Return the type of the parameter ``name``, such as ``int`` or ``tuple[str, ...]``."""
    return _HINTS[_FIELDS[name].name]


def value_of(settings: Settings, name: str) -> Value:
    """
    Return the value of the parameter ``name``.

    :param settings: all parameters.
    :param name: of one of them.
    """
    return cast(Value, getattr(settings, _FIELDS[name].name))


def nearest(name: str, known: Iterable[str]) -> str:
    """
    Return the known name that is most similar to ``name``, ``''`` where none is similar.

    :param name: that is not known.
    :param known: names.
    """
    # Imported here: a name is wrong in few starts of a program.
    from difflib import get_close_matches
    return next(iter(get_close_matches(name.lower(), known, n=1)), '')


def as_yaml(value: Value) -> str:
    """
    Return a value of a parameter as a file of parameters has it.

    :param value: as :class:`Settings` has it.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f'[{", ".join(map(as_yaml, value))}]'
    if value != value:
        return '.nan'
    # Without a point, YAML 1.1 reads 1e-09 as text.
    return re.sub(r'^(\d+)e', r'\1.0e', str(value)) if isinstance(value, float) \
        else str(value) or "''"


def parse_settings(values: Mapping[str, object], base: Settings = DEFAULTS) -> Settings:
    """
    Check ``values`` one by one and against each other.

    :param values: parameter name to value; lists and arrays are taken as tuples.
    :param base: what the others keep.
    :raises ConfigError: naming the parameter, the value and what is allowed.
    """
    unknown = [name for name in values if name not in _FIELDS]
    if unknown:
        raise ConfigError(unknown[0], 'an unknown parameter',
                          nearest(unknown[0], NAMES) or f'one of {", ".join(NAMES)}')
    checked: dict[str, Any] = {_FIELDS[name].name: _checked(name, value)
                               for name, value in values.items()}
    settings = replace(base, **checked)
    _check_together(settings)
    return settings


def _checked(name: str, value: object) -> Value:
    rule, type_ = rule_of(name), type_of(name)
    if get_args(type_):
        return _checked_array(name, value, get_args(type_)[0], rule)
    if type_ is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if type(value) is not type_:
        raise ConfigError(name, repr(value), f'a value of type {type_.__name__}')
    if isinstance(value, str):
        _check_text(name, value, rule)
    else:
        _check_number(name, cast(float, value), rule)
    return cast(Value, value)


def _checked_array(name: str, value: object, item: type, rule: Rule) -> Value:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(name, repr(value), 'a list')
    items = tuple(float(v) if item is float and isinstance(v, int) and not isinstance(v, bool)
                  else v for v in value)
    wrong = [v for v in items if type(v) is not item]
    if wrong:
        raise ConfigError(name, repr(wrong[0]), f'items of type {item.__name__}')
    if rule.choices:
        # An empty list of YAML has no type of items: a list of '' stands for it.
        items = tuple(item for item in items if item != '')
    if rule.length is not None and len(items) != rule.length:
        raise ConfigError(name, counted(len(items), 'item'), f'{rule.length} items: {rule.help}')
    if item is float:
        if rule.may_be_nan:
            # One object for all NaN: tuples compare equal by identity.
            items = tuple(math.nan if math.isnan(number) else number for number in items)
        for number in items:
            if not (rule.may_be_nan and number is math.nan):
                _check_number(name, number, rule)
    else:
        for text in items:
            _check_text(name, cast(str, text), rule)
    return items


def _check_number(name: str, value: float, rule: Rule) -> None:
    if not math.isfinite(value):
        raise ConfigError(name, repr(value), 'a finite number')
    low, high = rule.low, rule.high
    if (low is not None and value < low) or (high is not None and value > high):
        raise ConfigError(name, repr(value), f'{_bounds(rule)}: {rule.help}')


def _bounds(rule: Rule) -> str:
    if rule.low is None or rule.high is None:
        return f'at least {rule.low:g}' if rule.high is None else f'at most {rule.high:g}'
    return f'{rule.low:.12g} to {rule.high:.12g}'


def _check_text(name: str, value: str, rule: Rule) -> None:
    if rule.choices and not rule.is_open and value not in rule.choices:
        raise ConfigError(name, repr(value), f'one of {", ".join(rule.choices)}')
    if rule.pattern is not None and not rule.pattern.fullmatch(value):
        raise ConfigError(name, repr(value), f'text of the form {rule.pattern.pattern}')


def _check_together(settings: Settings) -> None:
    """Check what one parameter demands of another."""
    if settings.reconnect_min > settings.reconnect_max:
        raise ConfigError('reconnect_min', f'{settings.reconnect_min:g}',
                          f'at most reconnect_max, {settings.reconnect_max:g}')
    if settings.source == 'file' and not settings.trajectory_file:
        raise ConfigError('trajectory_file', 'nothing', 'a recording, because source is file')
    if settings.sample_rate > 0 and not settings.control_port:
        raise ConfigError('sample_rate', f'{settings.sample_rate:g}',
                          '0 where control_port is 0: samples are requested on the control port')
    if settings.parent_frame == settings.global_frame:
        raise ConfigError('parent_frame', repr(settings.parent_frame),
                          'another name than global_frame')
    if len({math.isnan(number) for number in settings.base_link_xyz}) > 1:
        raise ConfigError('base_link_xyz', repr(list(settings.base_link_xyz)),
                          'three numbers, or NaN three times')
    n_sizes = len(settings.default_sizes)
    if n_sizes not in (3 * len(CLASS_NAMES) - 3, 3 * len(CLASS_NAMES)):
        raise ConfigError('default_sizes', counted(n_sizes, 'number'),
                          f'{3 * len(CLASS_NAMES) - 3}: three for each class')
    if settings.ego_frame == settings.global_frame:
        raise ConfigError('ego_frame', repr(settings.ego_frame), 'another name than global_frame')
