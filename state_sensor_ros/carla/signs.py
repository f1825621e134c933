# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Traffic lights and speed limit signs: messages, and markers in their colour with their number.

May know: TrafficLightStateArray, SpeedLimitArray, visualization_msgs. Must not know: how CARLA
sent them, who listens.
"""

from __future__ import annotations

from collections.abc import Sequence
import math

import numpy as np

from state_sensor_ros.carla.extension import (
    CarlaExtension,
    CLASS_SPEED_LIMIT_SIGN,
    CLASS_TRAFFIC_LIGHT,
)
from state_sensor_ros.carla.topics import LIGHTS_TOPIC, LIMITS_TOPIC
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import Given, MessageInstance, Slot, Table, Template
from state_sensor_ros.encode.message_block import MessageBlock
from state_sensor_ros.encode.numbers import Numbers
from state_sensor_ros.encode.tables import Fields, header, pose, xyz
from state_sensor_ros.encode.topics import MARKERS_TOPIC, Topic
from state_sensor_ros.frame import Bools, Frame
from state_sensor_ros.naming import Cast
from state_sensor_ros.rep103 import normalised
from state_sensor_ros.settings import Settings

# Rows of these tables are actors: pose, state of a light, limit of a sign, colour of a light
# (float32), place of a sign's number.
SIGN_POSES = Table('sign poses', 8, 7)
LIGHT_STATES = Table('light states', 1, 1)
SPEED_LIMITS = Table('speed limits', 8, 1)
LIGHT_COLORS = Table('light colours', 4, 4)
NUMBER_PLACES = Table('number places', 8, 3)

_SPHERE, _TEXT = 2, 9
_ADD, _DELETE = 0, 2
# Metres: seen from where all of a crossing is seen; the number above the sign's own sphere.
_DIAMETER = 1.0
_NUMBER_ABOVE = 1.2
# By state, 0..1: green, yellow, red, and what no light is.
_LIGHT_COLORS = np.array(((0.0, 0.8, 0.2, 1.0), (1.0, 0.8, 0.0, 1.0), (0.9, 0.1, 0.1, 1.0),
                          (0.5, 0.5, 0.5, 1.0)), np.float32)
_SIGN_COLOR: Fields = {'r': 1.0, 'g': 1.0, 'b': 1.0, 'a': 1.0}
_KMH_PER_MS = 3.6

LIGHTS_NS, SIGNS_NS, NUMBERS_NS = 'traffic_lights', 'speed_limits', 'speed_limit_numbers'


class SignArrays:
    """All lights and all signs of a frame, in one message each."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        self.heads = {topic: Template(definitions, topic.type_name,
                                      {'header': header(settings.global_frame)}, is_message=True)
                      for topic in (LIGHTS_TOPIC, LIMITS_TOPIC)}
        names: Fields = {name: Given(name) for name in ('name', 'frame_id', 'id')}
        self.elements = {
            LIGHTS_TOPIC: Template(definitions, 'state_sensor_ros/msg/TrafficLightState', {
                **names, 'state': Slot(LIGHT_STATES, 0), 'pose': pose(SIGN_POSES)}),
            LIMITS_TOPIC: Template(definitions, 'state_sensor_ros/msg/SpeedLimit', {
                **names, 'speed_limit': Slot(SPEED_LIMITS, 0), 'pose': pose(SIGN_POSES)})}

    def parts(self, extension: CarlaExtension, cast: Cast,
              wanted: Sequence[Topic]) -> list[MessageBlock]:
        """Lay out the arrays of the topics that are wanted."""
        return [self._part(topic, extension, cast) for topic in wanted if topic in self.heads]

    def _part(self, topic: Topic, extension: CarlaExtension, cast: Cast) -> MessageBlock:
        class_ = CLASS_TRAFFIC_LIGHT if topic is LIGHTS_TOPIC else CLASS_SPEED_LIMIT_SIGN
        rows = np.flatnonzero(extension.classes == class_)
        element = self.elements[topic]
        strand = PatchBuffer(is_array=True)
        strand.update([MessageInstance(self.heads[topic], {}), *[
            MessageInstance(element, {
                'name': cast.actors[i].name, 'frame_id': cast.actors[i].frame_id,
                'id': int(extension.ids[i])}) for i in rows.tolist()]])
        return MessageBlock(
            strand, dict.fromkeys((SIGN_POSES, LIGHT_STATES, SPEED_LIMITS), rows), [topic])


class SignMarkers:
    """One MarkerArray: a sphere for each light and sign, and the number of each sign."""

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        marker = 'visualization_msgs/msg/Marker'
        common: Fields = {'header': header(settings.global_frame), 'id': Given('id')}
        sphere: Fields = {
            **common, 'type': _SPHERE, 'action': _ADD, 'pose': pose(SIGN_POSES),
            'scale': dict.fromkeys('xyz', _DIAMETER)}
        self.head = Template(definitions, MARKERS_TOPIC.type_name, {}, is_message=True)
        self.elements = {
            LIGHTS_NS: Template(definitions, marker, {
                **sphere, 'ns': LIGHTS_NS,
                'color': {name: Slot(LIGHT_COLORS, i) for i, name in enumerate('rgba')}}),
            SIGNS_NS: Template(definitions, marker, {
                **sphere, 'ns': SIGNS_NS, 'color': _SIGN_COLOR}),
            NUMBERS_NS: Template(definitions, marker, {
                **common, 'ns': NUMBERS_NS, 'type': _TEXT, 'action': _ADD,
                'pose': {'position': xyz(NUMBER_PLACES, 0), 'orientation': {'w': 1.0}},
                'scale': {'z': _DIAMETER}, 'color': _SIGN_COLOR, 'text': Given('text')})}
        self.deletion = Template(definitions, marker, {
            **common, 'ns': Given('ns'), 'action': _DELETE,
            'pose': {'orientation': {'w': 1.0}}})
        self.restart()

    def restart(self) -> None:
        """Forget what displays show: they were emptied."""
        self._shown: set[tuple[str, int]] = set()
        self.is_transient = False

    def parts(self, extension: CarlaExtension, usable: Bools) -> list[MessageBlock]:
        """
        Lay out the array; whatever the last one had and this one has not is deleted.

        ``is_transient`` says afterwards that the array is for one frame only.
        """
        lights = np.flatnonzero(usable & (extension.classes == CLASS_TRAFFIC_LIGHT))
        signs = np.flatnonzero(usable & (extension.classes == CLASS_SPEED_LIMIT_SIGN))
        entries = [(LIGHTS_NS, i) for i in lights.tolist()] + [
            (ns, i) for i in signs.tolist() for ns in (SIGNS_NS, NUMBERS_NS)]
        # An id is unique among agents of a class; a marker's is signed.
        ids = extension.ids.view(np.int32).tolist()
        segments = [MessageInstance(self.elements[ns], {'id': ids[i], 'text': number_text(
            float(extension.speed_limits[i]))}) for ns, i in entries]
        shown = {(ns, ids[i]) for ns, i in entries}
        gone = sorted(self._shown - shown)
        self._shown, self.is_transient = shown, bool(gone)
        segments += [MessageInstance(self.deletion, {'ns': ns, 'id': id_}) for ns, id_ in gone]
        if not segments:
            return []
        strand = PatchBuffer(is_array=True)
        strand.update([MessageInstance(self.head, {}), *segments])
        return [MessageBlock(
            strand, {SIGN_POSES: np.concatenate((lights, signs)), LIGHT_COLORS: lights,
                     NUMBER_PLACES: signs}, [MARKERS_TOPIC])]


def number_text(speed_limit: float) -> str:
    """Return what stands on a sign: km/h, as in the towns of CARLA."""
    return f'{speed_limit * _KMH_PER_MS:.0f}' if math.isfinite(speed_limit) else '?'


def sign_numbers(frame: Frame, extension: CarlaExtension, tables: frozenset[Table]) -> Numbers:
    """Return the numbers of lights and signs; rows of other actors are never looked at."""
    states = np.minimum(extension.lights, len(_LIGHT_COLORS) - 1)
    poses = frame.kinematics[:, :7].copy()
    # Displays take unit quaternions only.
    signs = frame.has_pose() & (extension.classes >= CLASS_TRAFFIC_LIGHT)
    poses[signs, 3:] = normalised(poses[signs, 3:])
    numbers: Numbers = {
        SIGN_POSES: poses, LIGHT_STATES: extension.lights[:, None],
        SPEED_LIMITS: extension.speed_limits[:, None],
        # Words of four bytes are whole numbers to the table, whatever is in them.
        LIGHT_COLORS: _LIGHT_COLORS[states].view(np.int32)}
    if NUMBER_PLACES in tables:
        numbers[NUMBER_PLACES] = frame.position_xyz + np.array((0.0, 0.0, _NUMBER_ABOVE))
    return numbers
