# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Boxes and names as markers for RViz, and the deletion of markers that displays still show.

A display identifies a marker by (namespace, id) and shows it until it is deleted:
doc/interface.md#markers.
"""

from __future__ import annotations

from itertools import chain, compress
import struct
from typing import Any

import numpy as np

from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.patch_buffer import PatchBuffer
from state_sensor_ros.cdr.templates import (
    ALIGNMENT,
    ENCAPSULATION,
    Given,
    MESSAGE_PHASE,
    MessageInstance,
    Template,
    Values,
)
from state_sensor_ros.common_ends import common_ends
from state_sensor_ros.frame import Bools, Boxes, KIND_VEHICLE
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.layout_key import LayoutRequest
from state_sensor_ros.topics.message_block import MessageBlock, rows_where
from state_sensor_ros.topics.per_actor import Column, PerActor
from state_sensor_ros.topics.tables import (
    CUBE,
    Fields,
    given_header,
    given_stamp,
    header,
    LABEL,
    pose,
    xyz,
)
from state_sensor_ros.topics.topic import MARKERS_TOPIC

_CUBE, TEXT = 1, 9
ADD, DELETE, _DELETE_ALL = 0, 2, 3

# Colour, as in pictures, and opacity, 0..1, of each namespace.
COLORS = {'ego': ('#d6336c', 0.9), 'vehicles': ('#218f8d', 0.8), 'objects': ('#f08c00', 0.8),
          'labels': ('#ffffff', 1.0)}
# m: 12 pixels in the view of state_sensor.rviz.
LABEL_HEIGHT = 2.0

# Displays warn of a quaternion of zeros, even in a marker without a pose.
NO_POSE: Fields = {'orientation': {'w': 1.0}}

_NAMESPACES = ('ego', 'vehicles', 'objects')
_LABELS = 'labels'


class _Marker(MessageInstance):
    """One marker; its id is reserved while it is needed or shown."""

    __slots__ = ('id', 'is_needed', 'is_shown', 'namespace')

    def __init__(self, template: Template, values: Values, namespace: str, id_: int) -> None:
        super().__init__(template, values)
        self.namespace, self.id = namespace, id_
        self.is_needed, self.is_shown = True, False


class _Ids:
    """Allocator of marker ids."""

    def __init__(self) -> None:
        self._n_taken = 0
        self._free: list[int] = []

    def take(self) -> int:
        """Return an unused id."""
        if self._free:
            return self._free.pop()
        self._n_taken += 1
        return self._n_taken - 1

    def release(self, id_: int) -> None:
        """Make ``id_`` available again."""
        self._free.append(id_)


class MarkerEncoder:
    """
    One MarkerArray with a cube for each box and a text for each actor.

    :param settings: parameters of the node.
    :param definitions: of the messages.
    """

    def __init__(self, settings: Settings, definitions: Definitions) -> None:
        type_name, frame_id = 'visualization_msgs/msg/Marker', settings.global_frame
        self.head = Template(definitions, MARKERS_TOPIC.type_name, {}, is_message=True)
        self.cubes = [Template(definitions, type_name, {
            'header': header(frame_id), 'ns': namespace, 'id': Given('id'), 'type': _CUBE,
            'action': ADD, 'pose': pose(CUBE), 'scale': xyz(CUBE, 7),
            'color': _color(namespace)}) for namespace in _NAMESPACES]
        self.label = Template(definitions, type_name, {
            'header': header(frame_id), 'ns': _LABELS, 'id': Given('id'), 'type': TEXT,
            'action': ADD, 'pose': {'position': xyz(LABEL, 0), 'orientation': {'w': 1.0}},
            'scale': {'z': LABEL_HEIGHT}, 'color': _color(_LABELS), 'text': Given('text')})
        self.deletion = Template(definitions, type_name, {
            'header': given_header(frame_id), 'ns': Given('ns'), 'id': Given('id'),
            'action': DELETE, 'pose': NO_POSE})
        self.delete_all = Template(definitions, type_name, {
            'header': header(frame_id), 'action': _DELETE_ALL, 'pose': NO_POSE})
        self.only_delete_all = Template(definitions, MARKERS_TOPIC.type_name, {
            'markers': [{'header': given_header(frame_id), 'action': _DELETE_ALL,
                         'pose': NO_POSE}]}, is_message=True)
        self._head = MessageInstance(self.head, {})
        self._delete_all = MessageInstance(self.delete_all, {})
        self._buffer = PatchBuffer(is_array=True)
        self.restart()

    def restart(self) -> None:
        """Remove all markers; the next array first deletes all markers of displays."""
        self._is_first = True
        self.is_transient = False
        self._ids = _Ids()
        self._drawn = PerActor(self._draw, self._drop)
        self._shown: list[_Marker] = []
        self._gone: list[_Marker] = []

    def blocks(self, request: LayoutRequest) -> list[MessageBlock]:
        """
        Lay out the array; markers that only the previous array has are deleted.

        Afterwards ``is_transient`` is True for an array that is valid in one frame only.

        :param request: of which ``settings.labels`` adds the labels.
        :returns: one block or none.
        """
        boxes = request.frame.boxes
        self.is_transient = False
        if not request.demand.markers or boxes is None:
            return []
        are_drawn = request.usable[boxes.actor] & request.drawable_boxes
        markers = self._chosen(request, boxes, are_drawn)
        self._show(markers)
        if not markers and not self._gone and not self._is_first:
            return []
        first = [self._head, self._delete_all] if self._is_first else [self._head]
        self._buffer.update([*first, *markers])
        self.is_transient, self._is_first = self._is_first, False
        return [MessageBlock(
            self._buffer, rows_where(request.usable, LABEL) | rows_where(are_drawn, CUBE),
            [MARKERS_TOPIC])]

    @property
    def has_gone(self) -> bool:
        """Whether markers are to be deleted with the next array."""
        return bool(self._gone)

    def with_deletions(self, array: bytes, stamp_ns: int) -> bytes:
        """
        Append the deletion of removed markers to an array; each is deleted once.

        :param array: serialised message of the block of :meth:`blocks`.
        :param stamp_ns: stamp of the deletions, ns since the epoch of the messages' clock.
        :returns: the serialised message.
        """
        stamp = given_stamp(stamp_ns)
        message = bytearray(array)
        for marker in self._gone:
            values = {**stamp, 'ns': marker.namespace, 'id': marker.id}
            phase = (len(message) - len(ENCAPSULATION)) % ALIGNMENT
            message += self.deletion.lay_out(values, phase).data
        i_count = len(ENCAPSULATION)
        n_markers, = struct.unpack_from('<I', array, i_count)
        struct.pack_into('<I', message, i_count, n_markers + len(self._gone))
        self._hide()
        return bytes(message)

    def encode_delete_all(self, stamp_ns: int) -> bytes:
        """
        Return the array that deletes all markers; :meth:`restart` is to be called next.

        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return self.only_delete_all.lay_out(given_stamp(stamp_ns), MESSAGE_PHASE).data

    def _chosen(self, request: LayoutRequest, boxes: Boxes, are_drawn: Bools) -> list[_Marker]:
        """Return the markers of all usable actors, cubes and label of one after another."""
        actor_list, usable = request.actor_list, request.usable
        with_label = request.settings.labels
        n_boxes = np.bincount(boxes.actor, minlength=len(usable))
        drawn = self._drawn.of(actor_list, *_appearance(actor_list, boxes, with_label))
        markers = list(chain.from_iterable(compress(drawn, usable.tobytes())))
        are_cubes = usable[boxes.actor]
        if np.array_equal(are_cubes, are_drawn):
            return markers
        # A box has no pose or no size: leave its cube out and keep all labels.
        is_label = np.zeros(len(markers), np.bool_)
        if with_label:
            is_label[np.cumsum(n_boxes[usable] + 1) - 1] = True
        is_chosen = is_label.copy()
        is_chosen[~is_label] = are_drawn[are_cubes]
        return list(compress(markers, is_chosen.tobytes()))

    def _draw(self, actor: Actor, appearance: tuple[Any, ...],
              before: tuple[_Marker, ...] | None) -> tuple[_Marker, ...]:
        """Return the markers of an actor; those of ``before`` are used again where possible."""
        i_namespace, boxes, with_label = appearance
        namespaces = [_NAMESPACES[i_namespace]] * len(boxes) + [_LABELS] * with_label
        left = list(before or ())
        markers = []
        for namespace in namespaces:
            same = [marker for marker in left if marker.namespace == namespace]
            if same:
                left.remove(same[0])
                markers.append(same[0])
                continue
            id_ = self._ids.take()
            template = self.label if namespace == _LABELS else self.cubes[i_namespace]
            markers.append(_Marker(template, {'id': id_, 'text': actor.name}, namespace, id_))
        self._drop(tuple(left))
        return tuple(markers)

    def _drop(self, markers: tuple[_Marker, ...]) -> None:
        for marker in markers:
            marker.is_needed = False
            if not marker.is_shown:
                self._ids.release(marker.id)

    def _show(self, markers: list[_Marker]) -> None:
        """Set the markers that displays show from now on, and those to delete."""
        head, tail = common_ends(self._shown, markers)
        new = markers[head:len(markers) - tail]
        kept = set(new)
        self._gone += [marker for marker in self._shown[head:len(self._shown) - tail]
                       if marker not in kept]
        for marker in new:
            marker.is_shown = True
        self._shown = markers

    def _hide(self) -> None:
        """Release the ids of deleted markers that are no longer needed."""
        for marker in self._gone:
            marker.is_shown = False
            if not marker.is_needed:
                self._ids.release(marker.id)
        self._gone = []


def _appearance(actor_list: ActorList, boxes: Boxes,
                with_label: bool) -> tuple[Column, Column, Column]:
    """Return, of each actor, the index of its namespace, a byte for each box, and the label."""
    n_actors = len(actor_list.actors)
    namespaces = np.where(np.frombuffer(actor_list.kinds, np.uint8) == KIND_VEHICLE,
                          np.uint8(_NAMESPACES.index('vehicles')),
                          np.uint8(_NAMESPACES.index('objects')))
    if actor_list.i_ego >= 0:
        namespaces[actor_list.i_ego] = _NAMESPACES.index('ego')
    first_box = np.searchsorted(boxes.actor, np.arange(n_actors + 1))
    return (Column(namespaces.tobytes()), Column(bytes(len(boxes.actor)), first_box),
            Column(bytes([with_label]) * n_actors))


def _color(namespace: str) -> Fields:
    color, opacity = COLORS[namespace]
    channels = [channel / 255 for channel in bytes.fromhex(color.removeprefix('#'))]
    return dict(zip('rgba', [*channels, opacity], strict=True))
