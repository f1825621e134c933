# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""~/markers: boxes and names of actors for displays such as RViz: doc/interface.md#markers."""

from __future__ import annotations

from itertools import compress, count

import numpy as np

from state_sensor_ros.cdr.templates import Given, MessageInstance, Table
from state_sensor_ros.frame import Floats, KIND_VEHICLE
from state_sensor_ros.rotations import global_from_unit
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics import encoding
from state_sensor_ros.topics.map_topics import light_fields, light_values
from state_sensor_ros.topics.tables import Fields, header, pose, xyz
from state_sensor_ros.topics.topic import Topic

# An id is an int32.
_N_IDS = 2 ** 31
MARKERS_TOPIC = Topic('~/markers', 'visualization_msgs/msg/MarkerArray')
MARKER = 'visualization_msgs/msg/Marker'

# Of boxes: center xyz, orientation xyzw of unit length, scaled edge lengths xyz.
CUBE = Table('cube', np.float64, 10)
# Of actors: position of the label xyz.
LABEL = Table('label', np.float64, 3)

_CUBE, TEXT = 1, 9
ADD, _DELETE, _DELETE_ALL = 0, 2, 3

# Color, as in pictures, and opacity, 0..1, of each namespace.
COLORS = {'ego': ('#d6336c', 0.9), 'vehicles': ('#218f8d', 0.8), 'objects': ('#f08c00', 0.8),
          'labels': ('#ffffff', 1.0)}
LABEL_HEIGHT = 2.2

_NAMESPACES = ('ego', 'vehicles', 'objects')
_LABELS = 'labels'

# Displays warn of a quaternion of zeros, even in a marker without a pose.
_NO_POSE: Fields = {'orientation': {'w': 1.0}}


class MarkerEncoder(encoding.TopicEncoder):
    """One MarkerArray with a cube for each box and a text for each actor."""

    topics = (MARKERS_TOPIC,)
    has_details = uses_rows = True

    def set_up(self, settings: Settings) -> None:
        frame_id = settings.global_frame
        self._templates = {namespace: self.element(MARKER, {
            'header': header(frame_id), 'ns': namespace, 'id': Given('id'), 'type': _CUBE,
            'action': ADD, 'pose': pose(CUBE), 'scale': xyz(CUBE, 7),
            'color': _color(namespace)}) for namespace in _NAMESPACES}
        self._templates[_LABELS] = self.element(MARKER, {
            'header': header(frame_id), 'ns': _LABELS, 'id': Given('id'), 'type': TEXT,
            'action': ADD, 'pose': {'position': xyz(LABEL, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': LABEL_HEIGHT}, 'color': _color(_LABELS), 'text': Given('text')})
        self._deletion = self.element(MARKER, {
            'header': header(frame_id), 'ns': Given('ns'), 'id': Given('id'),
            'action': _DELETE, 'pose': _NO_POSE})
        self._first = MessageInstance(self.element(MARKER, {
            'header': header(frame_id), 'action': _DELETE_ALL, 'pose': _NO_POSE}), {})
        self._lights = self.element(MARKER, light_fields(frame_id))
        self._head = MessageInstance(self.message(MARKERS_TOPIC.type_name, {}), {})
        ids = count()
        # Their ids are those of no other marker.
        self._markers = encoding.PerActor(lambda actor, namespace, number: MessageInstance(
            self._templates[namespace],
            {'ns': namespace, 'id': next(ids) % _N_IDS, 'text': actor.name}))
        # How many arrays had deletions.
        self._n_deleting = 0
        self.restart()

    def restart(self) -> None:
        """Delete all markers of displays with the next array."""
        self._is_first, self._are_boxes_reported = True, False
        self._shown: list[MessageInstance] = []

    def is_on(self, settings: Settings) -> bool:
        """Return whether ``debug_drawing`` and ``include_obb`` are true."""
        return settings.debug_drawing and settings.include_obb

    def key(self, now: encoding.FrameToSend) -> object:
        """Return the boxes of each actor that can be drawn, and the lights."""
        boxes = now.frame.boxes
        if boxes is None:
            return None
        lights = now.frame.traffic_lights
        return (boxes.actor.tobytes(), now.frame.bodies().drawable_boxes().tobytes(),
                (lights.states.tobytes(), lights.poses.tobytes()) if lights else None,
                self._n_deleting)

    def layout(self, now: encoding.FrameToSend) -> encoding.MessageBlock | None:
        """Lay out the array; what only the last array had is deleted."""
        boxes, lights = now.frame.boxes, now.frame.traffic_lights
        if boxes is None:
            return None
        drawable = now.frame.bodies().drawable_boxes()
        if not self._are_boxes_reported and not drawable.all():
            self._are_boxes_reported = True
            rows = np.flatnonzero(~drawable)
            name, numbers = now.frame.names[boxes.actor[rows[0]]], boxes.rows[rows[0]].tolist()
            self._report('boxes', f'boxes that cannot be drawn: {len(rows)}, the first of '
                         f'{name!r}: found {", ".join(f"{number:g}" for number in numbers)}; '
                         'expected x y z, a unit quaternion, three lengths and three scales '
                         'above 0 (reported once)')
        are_drawn = now.usable[boxes.actor] & drawable
        flags, actor_list = iter(are_drawn.tolist()), now.actor_list
        namespaces = ['vehicles' if kind == KIND_VEHICLE else 'objects'
                      for kind in actor_list.kinds]
        if actor_list.i_ego >= 0:
            namespaces[actor_list.i_ego] = 'ego'
        n_boxes = np.bincount(boxes.actor, minlength=len(namespaces)).tolist()
        # The cube of a box without a pose or a size is dropped; the label stays.
        found = [marker for actor, namespace, is_usable, n in zip(
            actor_list.actors, namespaces, now.usable.tolist(), n_boxes, strict=True)
            for marker in (*[(actor, namespace, i, next(flags)) for i in range(n)],
                           *[(actor, _LABELS, 0, is_usable)] * now.settings.labels)]
        *columns, are_shown = zip(*found, strict=True) if found else ((),) * 4
        markers = list(compress(self._markers.of(*columns), are_shown))
        kept = set(markers)
        first: list[MessageInstance] = [self._first] if self._is_first else []
        gone = [MessageInstance(self._deletion, marker.values)
                for marker in self._shown if marker not in kept]
        self._n_deleting += bool(first or gone)
        self._shown, self._is_first = markers, False
        instances = [self._head, *first, *markers, *gone]
        if lights:
            instances.append(MessageInstance(self._lights, light_values(lights)))
        return encoding.MessageBlock(instances, {
            **encoding.rows_where(now.usable, LABEL), **encoding.rows_where(are_drawn, CUBE)},
            self.topics, is_array=True) if len(instances) > 1 else None

    def numbers(self, now: encoding.FrameToSend, numbers: encoding.Numbers) -> None:
        """Compute the cubes, and the labels if there are any."""
        boxes = now.rows[len(now.usable):]
        boxes[:, 7:10] *= boxes[:, 10:]
        numbers[CUBE] = boxes[:, :CUBE.width]
        if now.settings.labels:
            numbers[LABEL] = self._label_numbers(now, boxes)

    def closing(self, stamp_ns: int) -> encoding.Messages:
        """Return the array that deletes all markers; :meth:`restart` must follow."""
        return [(MARKERS_TOPIC, encoding.stamped([self._head, self._first], stamp_ns))]

    def _label_numbers(self, now: encoding.FrameToSend, cubes: Floats) -> Floats:
        """Return (N, 3) positions of labels: above the highest box of their actor."""
        frame, boxes = now.frame, now.frame.boxes
        labels = frame.position_xyz.copy()
        if boxes is not None:
            up = np.abs(global_from_unit(cubes[:, 3:7])[:, 2])
            tops = cubes[:, 2] + 0.5 * np.einsum('ij,ij->i', up, cubes[:, 7:10])
            # A box that is not drawn has no top; fmax ignores NaN.
            tops[~frame.bodies().drawable_boxes()] = np.nan
            np.fmax.at(labels[:, 2], boxes.actor, tops)
        labels[:, 2] += LABEL_HEIGHT
        return labels


def _color(namespace: str) -> Fields:
    color, opacity = COLORS[namespace]
    channels = [channel / 255 for channel in bytes.fromhex(color.removeprefix('#'))]
    return dict(zip('rgba', [*channels, opacity], strict=True))
