# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Blocks of serialized messages: a patch buffer, the rows of tables in it, and the topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr import templates
from state_sensor_ros.cdr.definitions import Definitions
from state_sensor_ros.cdr.templates import MessageInstance, Table, Template, Values
from state_sensor_ros.frame import Bools, Floats, Frame, FutureFrame, Rows
from state_sensor_ros.naming import Actor, ActorList
from state_sensor_ros.objects.object_maker import ObjectMaker
from state_sensor_ros.perception.perceiver import Perceiver
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import Report
from state_sensor_ros.topics.tables import Fields, stamp_numbers
from state_sensor_ros.topics.topic import NO_ACTORS, Subscriptions, Topic

Item = TypeVar('Item')
Messages = list[tuple[Topic, bytes]]
# The numbers of tables, (rows, table.width) each.
Numbers = dict[Table, npt.NDArray[Any]]


class MessageBlock:
    """
    All messages of one patch buffer, valid until their layout changes.

    ``patches`` for each table in the buffer: the table, its rows or None for all, and the function
    that patches them with its first argument. They are looked up once for a layout: in each frame,
    that would take as long as the patches. ``rows`` those given. ``data`` the bytes; ``parts``
    topic, begin and end of each message in them.

    :param instances: as for :class:`templates.PatchBuffer`.
    :param rows: by table (R,) int64, the rows of the table in the order of the buffer; a table
        without an entry has all its rows in the buffer.
    :param topics: topic of each message.
    :param also: further topics, each with the index of the message that it shares.
    :param is_array: whether the first instance is a message that ends with a sequence, and the
        others are its elements.
    """

    __slots__ = ('data', 'parts', 'patches', 'rows')

    def __init__(self, instances: Sequence[MessageInstance], rows: Mapping[Table, Rows],
                 topics: Iterable[Topic], also: Iterable[tuple[Topic, int]] = (), *,
                 is_array: bool = False) -> None:
        buffer = templates.PatchBuffer(instances, is_array=is_array)
        self.rows, (begins, ends), begin = rows, buffer.bounds, int(buffer.bounds[0][0])
        self.patches = [(table, rows.get(table), put, targets)
                        for table, put, targets in buffer.patches]
        self.data = buffer.data[begin:]
        self.parts = list(zip(topics, (begins - begin).tolist(), (ends - begin).tolist(),
                              strict=True))
        self.parts += [(topic, *self.parts[i][1:]) for topic, i in also]


class PerActor(Generic[Item]):
    """
    Items that are kept for each actor until it leaves or its appearance changes.

    :param make: returns the item of an actor from it and its entry of each column.
    """

    def __init__(self, make: Callable[..., Item]) -> None:
        self._make = make
        self._known: dict[tuple[Any, ...], Item] = {}

    def of(self, actors: Sequence[Actor], *columns: Sequence[Any]) -> list[Item]:
        """Return the items of actors; ``columns``: hashable entries in the order of the actors."""
        known, keys = self._known, list(zip(actors, *columns, strict=True))
        self._known = {key: known[key] if key in known else self._make(*key) for key in keys}
        return [self._known[key] for key in keys]


def split(entries: Sequence[Any] | bytes, owners: Rows, n_actors: int) -> list[Any]:
    """
    Return the entries of each actor.

    :param entries: of parts of actors, such as boxes.
    :param owners: (P,) int64, row of the actor of each part, ascending.
    """
    first = np.searchsorted(owners, np.arange(n_actors + 1)).tolist()
    return [entries[begin:end] for begin, end in pairwise(first)]


def rows_where(are_chosen: Bools, *tables: Table) -> dict[Table, Rows]:
    """Return the ``rows`` of a :class:`MessageBlock`."""
    # are_chosen: (R,) bool, for each row of the tables; if all are True the tables have no entry,
    # which saves a copy of the rows in each frame.
    return {} if are_chosen.all() else dict.fromkeys(tables, np.flatnonzero(are_chosen))


def stamped(instances: Sequence[MessageInstance], stamp_ns: int) -> bytes:
    """Return a message, or the head and the elements of an array, with its stamp, ns."""
    buffer = templates.PatchBuffer(instances, is_array=len(instances) > 1)
    # The stamp is the only table.
    for _, put, targets in buffer.patches:
        put(targets, stamp_numbers(stamp_ns))
    return buffer.data[buffer.bounds[0][0]:].tobytes()


class LastCommand(NamedTuple):
    """What the last command to the ego that was sent says of its gear and its tires."""

    is_reverse: bool
    is_parked: bool
    steering_angle: float  # rad, + = left


def no_command() -> None:
    """Stand for a node that has sent no command."""


@dataclass(slots=True, eq=False)
class FrameToSend:
    """The frame that is encoded, with the data that several topics use."""

    settings: Settings
    frame: Frame
    actor_list: ActorList  # its N actors
    stamp_ns: int  # ns since the epoch of the messages' clock
    subscriptions: Subscriptions
    usable: Bools  # (N,) bool, actors with a pose
    # (N + M, 13) float64, actors then boxes as in :class:`Bodies`, orientations of unit length,
    # the ego's row at base_link; (0, 13) if no topic ``uses_rows``.
    rows: Floats
    # Row of the ego and (3,) position of base_link in its axes, None if that is its origin.
    base_link: tuple[int, Floats] | None
    objects: ObjectMaker  # makes the objects of the frame
    perceiver: Perceiver  # those that a sensor reports
    upcoming: FutureFrame | None  # the frame in its recording, None for a live stream
    # Returns what was sent to the ego last, None before the first command and without commands.
    last_command: Callable[[], LastCommand | None] = no_command

    @property
    def is_partial(self) -> bool:
        """Whether a number of an actor's motion may be unknown."""
        return self.frame.forward_speed is not None or not self.frame.bodies().is_finite


class TopicEncoder:
    """
    The messages of one topic, or of topics whose messages are alike.

    It has :meth:`layout`, kept until its ``key`` changes, and ``numbers``, patched in each frame.
    ``key``, ``numbers`` and ``messages``, which many topics do not need, are methods or None, to
    save their calls in each frame.

    :param settings: parameters at the start.
    :param definitions: definitions of the messages.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    :cvar topics: topics that do not belong to single actors.
    :cvar kind: :attr:`Topic.kind` of the topics of single actors, empty for none.
    :cvar type_name: type of the messages of single actors.
    :cvar switch: parameter that switches :attr:`topics` on, unless it is false or ``none``.
    :cvar actor_switch: likewise of the topics of single actors.
    :cvar only_with: what actors with a topic of this kind have: ``lanes`` (a frame had a lane
        state of the actor), ``wheels`` (it is a vehicle), or empty for all actors.
    :cvar has_details: whether boxes, wheels or inputs of a frame are used.
    :cvar is_of_every_frame: whether a frame whose clock did not advance has messages, too.
    :cvar opens_with: returns the part of a frame that the topics need: they are advertised with
        the first frame that has it; None if they exist from the start.
    :cvar uses_rows: whether :attr:`FrameToSend.rows` or POSE are used; ``uses_lanes`` LANE_TABLES.
    :cvar uses_perception: names of the parameters ``perception.*`` that are used.
    :cvar key: ``key(now)`` returns what the layout depends on besides the actors, their poses and
        lanes; it is compared with that of the frame before.
    :cvar numbers: ``numbers(now, numbers)`` adds the numbers of the tables of the layout to STAMP,
        POSE, LANE_TABLES and the tables of other topics.
    :cvar messages: ``messages(now)`` returns the messages of a frame that have no layout to keep.
    """

    topics: tuple[Topic, ...] = ()
    kind = type_name = switch = actor_switch = only_with = ''
    has_details = is_of_every_frame = uses_rows = uses_lanes = False
    opens_with: Callable[[Frame], object] | None = None
    uses_perception: frozenset[str] = frozenset()
    key: Callable[[FrameToSend], object] | None = None
    numbers: Callable[[FrameToSend, Numbers], None] | None = None
    messages: Callable[[FrameToSend], Messages] | None = None
    # The layout of the last frame, and its key.
    kept: tuple[object, MessageBlock | None] = (None, None)

    def __init__(self, settings: Settings, definitions: Definitions, report: Report) -> None:
        self.topics = self.topics_of(settings)
        self._definitions = definitions
        self._report = report
        self.set_up(settings)

    def set_up(self, settings: Settings) -> None:
        """Make the templates and what else depends on the parameters at the start."""

    @classmethod
    def topics_of(cls, settings: Settings) -> tuple[Topic, ...]:
        """Return the :attr:`topics` that exist with ``settings``."""
        return cls.topics

    def is_on(self, settings: Settings) -> bool:
        """Return whether ``settings`` switch :attr:`topics` on."""
        return _is_set(settings, self.switch)

    def is_on_for_actors(self, settings: Settings) -> bool:
        """Return whether ``settings`` switch the topics of single actors on."""
        return _is_set(settings, self.actor_switch)

    def is_wanted(self, settings: Settings, subscriptions: Subscriptions) -> bool:
        """Return whether there is anything to encode; a latched topic may have later readers."""
        return (self.is_on(settings) and any(subscriptions.has(topic) or topic.qos.latched
                                             for topic in self.topics)) or bool(
            self.kind and self.is_on_for_actors(settings)
            and subscriptions.actors_of(self.kind) != NO_ACTORS)

    def needs(self, settings: Settings) -> bool:
        """Return whether these topics use boxes, wheels or inputs of a frame."""
        return self.has_details

    def message(self, type_name: str, prototype: Fields) -> Template:
        """
        Return the template of a whole message.

        :param type_name: ``package/msg/Name``.
        :param prototype: the fields that are not zero or empty.
        """
        return Template(self._definitions, type_name, prototype, is_message=True)

    def element(self, type_name: str, prototype: Fields) -> Template:
        """
        Return the template of an element of a sequence.

        :param type_name: ``package/msg/Name``.
        :param prototype: the fields that are not zero or empty.
        """
        return Template(self._definitions, type_name, prototype)

    def layout(self, now: FrameToSend) -> MessageBlock | None:
        """
        Lay out the messages, None for none; their numbers are patched in each frame.

        :param now: the first frame with a new key.
        """
        return None

    def closing(self, stamp_ns: int) -> Messages:
        """
        Return the messages to send when the topics are switched off or the stream ends.

        May be called from any thread.

        :param stamp_ns: ns since the epoch of the messages' clock.
        """
        return []

    def restart(self) -> None:
        """Start a new run of the simulator, or start again after :meth:`closing`."""


class ChangeEncoder(TopicEncoder):
    """A topic with a message whenever what it says has changed."""

    def set_up(self, settings: Settings) -> None:
        self._template = self.message(self.topics[0].type_name, self.prototype(settings))
        self.restart()

    def prototype(self, settings: Settings) -> Fields:
        """Return the fields that are not zero or empty: constant, given, or the stamp."""
        raise NotImplementedError

    def restart(self) -> None:
        """Send the message of the next frame, whether it changed or not."""
        self._sent: object = None

    def state(self, now: FrameToSend) -> object:
        """Return what decides about the message, None for none; by default it never changes."""
        return True

    def values(self, now: FrameToSend) -> Values:
        """Return the given values; by default the state."""
        return {'state': self._sent}

    def instances(self, now: FrameToSend) -> list[MessageInstance]:
        """Return the message, or its head and elements."""
        return [MessageInstance(self._template, self.values(now))]

    def messages(self, now: FrameToSend) -> Messages:
        """Return the message if it is not the one that was sent last."""
        state = self.state(now)
        if state is None or state == self._sent:
            return []
        self._sent = state
        return [(self.topics[0], stamped(self.instances(now), now.stamp_ns))]


def _is_set(settings: Settings, switch: str) -> bool:
    return not switch or getattr(settings, switch) not in (False, 'none')


# A subclass of TopicEncoder, or a function that makes one.
NewTopicEncoder = Callable[[Settings, Definitions, Report], TopicEncoder]
