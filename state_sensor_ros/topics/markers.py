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

from collections.abc import Callable
from itertools import chain, compress, count
import math
from typing import Any, NamedTuple

import numpy as np

from state_sensor_ros.cdr.templates import Given, MESSAGE_PHASE, MessageInstance, Table, Template
from state_sensor_ros.common_ends import common_ends
from state_sensor_ros.frame import Boxes, Floats, KIND_VEHICLE, NS_PER_S, Rows
from state_sensor_ros.naming import Actor, ActorList, EMPTY_ACTOR_LIST
from state_sensor_ros.rotations import global_from_unit
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import Fields, given_header, given_stamp, header, pose, xyz
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_encoder import (
    FrameToSend,
    MessageBlock,
    Messages,
    Numbers,
    rows_where,
    TopicEncoder,
)
from state_sensor_ros.topics.traffic_lights import LightMarkers

# A display that is slower than the frames takes only some of the arrays: a deletion is repeated in
# the frames of this time, ns.
DELETION_NS = NS_PER_S
# Above this number the oldest deletions are repeated for a shorter time, as a stream of ever new
# names would fill the arrays.
_MAX_DELETIONS = 4096
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


class NewMarker(NamedTuple):
    """A marker to make for an actor."""

    namespace: str
    template: Template
    text: str = ''


class Marker(MessageInstance):
    """A marker; its id is that of no other marker."""

    __slots__ = ('actor', 'id', 'made_of')

    def __init__(self, actor: Actor, made_of: NewMarker, id_: int) -> None:
        super().__init__(made_of.template, {'id': id_, 'text': made_of.text})
        self.actor, self.made_of, self.id = actor, made_of, id_


class _Deletion(MessageInstance):
    """The deletion of a marker; ``expires_ns`` stamp of the last frame with which it is sent."""

    __slots__ = ('expires_ns',)

    def __init__(self, template: Template, marker: Marker, expires_ns: int) -> None:
        super().__init__(template, {'ns': marker.made_of.namespace, 'id': marker.id})
        self.expires_ns = expires_ns


class ShownMarkers:
    """The markers of all actors, and the deletions of markers that are no longer sent."""

    # deletion: template of a deletion, with the givens ``ns`` and ``id``.

    def __init__(self, deletion: Template,
                 new_markers: Callable[[Actor, tuple[Any, ...]], list[NewMarker]]) -> None:
        self._deletion, self._new_markers = deletion, new_markers
        self._ids = count()
        self._of_actors = PerActor(self._make)
        self._shown: list[Marker] = []
        # In the order in which they expire.
        self._deletions: dict[Marker, _Deletion] = {}

    @property
    def deletions(self) -> list[_Deletion]:
        return list(self._deletions.values())

    @property
    def expires_ns(self) -> float:
        """Return the stamp of the last frame with these deletions, infinity without any."""
        return next((deletion.expires_ns for deletion in self._deletions.values()), math.inf)

    def of(self, actor_list: ActorList, *columns: Column) -> list[tuple[Marker, ...]]:
        return self._of_actors.of(actor_list, *columns)

    def clear(self) -> None:
        self._of_actors.of(EMPTY_ACTOR_LIST)
        self.show([], 0)

    def show(self, markers: list[Marker], stamp_ns: int, *, is_first: bool = False) -> None:
        """
        Set the markers that displays show from now on; the others of the last call are deleted.

        :param stamp_ns: stamp of the frame, ns.
        :param is_first: whether it is the first frame after a restart.
        """
        if is_first:
            # The stamps before a restart may be greater.
            for deletion in self._deletions.values():
                deletion.expires_ns = stamp_ns + DELETION_NS
        for marker, deletion in list(self._deletions.items()):
            if deletion.expires_ns >= stamp_ns and len(self._deletions) <= _MAX_DELETIONS:
                break
            del self._deletions[marker]
        head, tail = common_ends(self._shown, markers)
        new = markers[head:len(markers) - tail]
        kept = set(new)
        for marker in self._shown[head:len(self._shown) - tail]:
            if marker not in kept:
                self._deletions[marker] = _Deletion(self._deletion, marker,
                                                    stamp_ns + DELETION_NS)
        for marker in new:
            self._deletions.pop(marker, None)
        self._shown = markers

    def _make(self, actor: Actor, appearance: tuple[Any, ...],
              before: tuple[Marker, ...] | None) -> tuple[Marker, ...]:
        """Return the markers of an actor; those of ``before`` are used again if possible."""
        # Markers of an actor that returns are no longer deleted.
        left = [marker for marker in self._deletions if marker.actor == actor] \
            if before is None else list(before)
        markers = []
        for new in self._new_markers(actor, appearance):
            same = next((marker for marker in left if marker.made_of == new), None)
            if same is None:
                same = Marker(actor, new, next(self._ids) % _N_IDS)
            else:
                left.remove(same)
            markers.append(same)
        return tuple(markers)


class MarkerEncoder(TopicEncoder):
    """One MarkerArray with a cube for each box and a text for each actor."""

    topics = (MARKERS_TOPIC,)
    uses_rows = True

    def set_up(self, settings: Settings) -> None:
        frame_id = settings.global_frame
        self._cubes = [self.element(MARKER, {
            'header': header(frame_id), 'ns': namespace, 'id': Given('id'), 'type': _CUBE,
            'action': ADD, 'pose': pose(CUBE), 'scale': xyz(CUBE, 7),
            'color': _color(namespace)}) for namespace in _NAMESPACES]
        self._label = self.element(MARKER, {
            'header': header(frame_id), 'ns': _LABELS, 'id': Given('id'), 'type': TEXT,
            'action': ADD, 'pose': {'position': xyz(LABEL, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': LABEL_HEIGHT}, 'color': _color(_LABELS), 'text': Given('text')})
        deletion = self.element(MARKER, {
            'header': header(frame_id), 'ns': Given('ns'), 'id': Given('id'),
            'action': _DELETE, 'pose': _NO_POSE})
        deletes_all: Fields = {'action': _DELETE_ALL, 'pose': _NO_POSE}
        delete_all = self.element(MARKER, {'header': header(frame_id), **deletes_all})
        self._first = MessageInstance(delete_all, {})
        self._lights = LightMarkers(settings, self._definitions, MARKER)
        self._array = self.array({})
        self._only_delete_all = self.message(MARKERS_TOPIC.type_name, {
            'markers': [{'header': given_header(frame_id), **deletes_all}]})
        self._shown = ShownMarkers(deletion, self.new_markers)
        self._is_first, self._are_boxes_reported = True, False

    def restart(self) -> None:
        """Delete all markers of displays: together in the next array, singly in later ones."""
        self._is_first, self._are_boxes_reported = True, False
        self._shown.clear()

    def is_on(self, settings: Settings) -> bool:
        """Return whether ``debug_drawing`` and ``include_obb`` are true."""
        return settings.debug_drawing and settings.include_obb

    def needs(self, settings: Settings) -> bool:
        """Return the boxes."""
        return True

    def key(self, now: FrameToSend) -> object:
        """Return the boxes of each actor that can be drawn, and the lights."""
        boxes = now.frame.boxes
        if boxes is None:
            return None
        lights = now.frame.traffic_lights
        return (boxes.actor.tobytes(), now.frame.bodies().drawable_boxes().tobytes(),
                lights if lights is None else self._lights.key(lights))

    def blocks(self, now: FrameToSend) -> list[MessageBlock]:
        """Lay out the array; markers that only arrays of the last second had are deleted."""
        boxes = now.frame.boxes
        if boxes is None:
            return []
        drawable = now.frame.bodies().drawable_boxes()
        if not self._are_boxes_reported and not drawable.all():
            self._report_boxes(now, boxes)
        are_drawn = now.usable[boxes.actor] & drawable
        of_actors = self._shown.of(now.actor_list, *self.appearance(now, boxes))
        markers = list(chain.from_iterable(compress(of_actors, now.usable.tobytes())))
        if not np.array_equal(are_drawn, now.usable[boxes.actor]):
            # The cube of a box without a pose or a size is dropped; the label stays.
            flags = iter(are_drawn[now.usable[boxes.actor]].tolist())
            markers = [marker for marker in markers
                       if marker.made_of.namespace not in _NAMESPACES or next(flags)]
        self._shown.show(markers, now.stamp_ns, is_first=self._is_first)
        instances: list[MessageInstance] = [self._first, *markers] if self._is_first \
            else [*markers, *self._shown.deletions]
        self.expires_ns = now.stamp_ns if self._is_first else self._shown.expires_ns
        self._is_first = False
        instances += self._lights.of(now.frame.traffic_lights)
        if not instances:
            return []
        rows = rows_where(now.usable, LABEL) | rows_where(are_drawn, CUBE) | self.further_rows(now)
        return self._array.blocks(instances, rows, self.topics)

    def numbers(self, now: FrameToSend, numbers: Numbers) -> None:
        """Compute the cubes, and the labels if there are any."""
        boxes = now.rows[len(now.usable):]
        size_xyz = boxes[:, 7:10]
        size_xyz *= boxes[:, 10:]
        numbers[CUBE] = boxes[:, :CUBE.width]
        if now.settings.labels:
            numbers[LABEL] = self._label_numbers(now, boxes)

    def closing(self, stamp_ns: int) -> Messages:
        """Return the array that deletes all markers; :meth:`restart` must follow."""
        return [(MARKERS_TOPIC, self._only_delete_all.lay_out(
            given_stamp(stamp_ns), MESSAGE_PHASE).data)]

    def appearance(self, now: FrameToSend, boxes: Boxes) -> tuple[Column, ...]:
        """
        Return what the markers of each actor depend on.

        :param now: the frame.
        :param boxes: its boxes.
        :returns: index of the namespace; a byte for each box; whether there is a label.
        """
        actor_list = now.actor_list
        n_actors = len(actor_list.actors)
        namespaces = np.where(np.frombuffer(actor_list.kinds, np.uint8) == KIND_VEHICLE,
                              np.uint8(_NAMESPACES.index('vehicles')),
                              np.uint8(_NAMESPACES.index('objects')))
        if actor_list.i_ego >= 0:
            namespaces[actor_list.i_ego] = _NAMESPACES.index('ego')
        first_box = np.searchsorted(boxes.actor, np.arange(n_actors + 1))
        return (Column(namespaces.tobytes()), Column(bytes(len(boxes.actor)), first_box),
                Column(bytes([now.settings.labels]) * n_actors))

    def new_markers(self, actor: Actor, appearance: tuple[Any, ...]) -> list[NewMarker]:
        """
        Return the markers of an actor, the cubes first.

        :param actor: owner of the markers.
        :param appearance: its entries of :meth:`appearance`.
        """
        i_namespace, boxes, with_label, *_ = appearance
        cube = NewMarker(_NAMESPACES[i_namespace], self._cubes[i_namespace])
        return [cube] * len(boxes) + [NewMarker(_LABELS, self._label, actor.name)] * with_label

    def further_rows(self, now: FrameToSend) -> dict[Table, Rows]:
        """Return the rows of the tables of further markers, as for :class:`MessageBlock`."""
        return {}

    def _report_boxes(self, now: FrameToSend, boxes: Boxes) -> None:
        """Report once in a run that boxes are not drawn."""
        self._are_boxes_reported = True
        are_dropped = np.flatnonzero(~now.frame.bodies().drawable_boxes())
        row = int(are_dropped[0])
        name = now.frame.names[int(boxes.actor[row])]
        numbers = ', '.join(f'{number:g}' for number in boxes.rows[row].tolist())
        self._report('boxes', f'boxes that cannot be drawn: {len(are_dropped)}, the first of '
                     f'{name!r}: found {numbers}; expected x y z, a unit quaternion, three '
                     'lengths and three scales above 0 (reported once)')

    def _label_numbers(self, now: FrameToSend, cubes: Floats) -> Floats:
        """Return (N, 3) positions of labels: above the highest box of their actor."""
        frame, boxes = now.frame, now.frame.boxes
        labels = frame.position_xyz.copy()
        if boxes is not None and len(boxes.actor):
            # Row of the first box of each actor that has any.
            is_first = np.ones(len(boxes.actor), np.bool_)
            np.not_equal(boxes.actor[1:], boxes.actor[:-1], out=is_first[1:])
            first = is_first.nonzero()[0]
            up = np.abs(global_from_unit(cubes[:, 3:7])[:, 2])
            tops = cubes[:, 2] + 0.5 * np.einsum('ij,ij->i', up, cubes[:, 7:10])
            drawable = frame.bodies().drawable_boxes()
            if not drawable.all():
                # A box that is not drawn has no top; fmax ignores NaN.
                tops[~drawable] = np.nan
            owners = boxes.actor[first]
            labels[owners, 2] = np.fmax(np.fmax.reduceat(tops, first), labels[owners, 2])
        labels[:, 2] += LABEL_HEIGHT
        return labels


def _color(namespace: str) -> Fields:
    color, opacity = COLORS[namespace]
    channels = [channel / 255 for channel in bytes.fromhex(color.removeprefix('#'))]
    return dict(zip('rgba', [*channels, opacity], strict=True))
