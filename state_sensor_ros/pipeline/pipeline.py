# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames to messages, and the counts of both."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
import math
import threading
import time
from typing import TypeVar

import numpy as np

from state_sensor_ros import classes, errors, naming, parameters, source, texts
from state_sensor_ros.frame import Frame, NO_BOXES, NS_PER_S
from state_sensor_ros.pipeline.actors import ActorTopics, Sink
from state_sensor_ros.pipeline.checks import Checks, SAMPLED
from state_sensor_ros.pipeline.stamps import Stamper, Step
from state_sensor_ros.settings import Settings
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.encoding import Messages
from state_sensor_ros.topics.topic import NOTHING, Subscriptions, TF_TOPIC

Result = TypeVar('Result')
# Above the number of frames in a second, after which the latencies are taken.
_MAX_LATENCIES = 4096

# Frames after which new subscribers get those of a source that has no details.
_MAX_LEAN = 10
_OF_TF = Subscriptions.of((TF_TOPIC,))


@dataclass(slots=True)
class Counters:
    """
    Counts from the configuration of the node to its clean-up.

    While no frame is in flight, ``n_received == n_published + n_skipped + n_dropped``: each frame
    of a packet is counted once. :class:`FrameQueue` writes ``n_received`` and ``n_dropped`` under
    ``lock``, any thread notes ``last_error``, and the thread of the pipeline writes all others.

    ``n_dropped`` frames that were received and not processed: the queue was full, or the stream
    was stopped; ``n_skipped`` frames that cannot be used; ``n_defects`` exceptions that the
    program did not expect, ``last_defect`` the last of them; ``latencies_ns`` from the receipt of
    a frame's last byte to its last message: the pipeline appends, :meth:`take_latencies` removes.
    """

    n_received: int = 0
    n_published: int = 0
    n_skipped: int = 0
    n_dropped: int = 0
    n_defects: int = 0
    n_repeated: int = 0
    n_restarts: int = 0
    n_dropped_actors: int = 0
    n_duplicates: int = 0
    n_bad_poses: int = 0
    n_unknown_velocities: int = 0
    n_without_topics: int = 0
    n_actors: int = 0
    n_egos: int = 0
    game_time: float = math.nan
    generation: str = ''
    last_error: source.LastError = field(default_factory=source.LastError)
    last_defect: str = ''
    latencies_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_LATENCIES))
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def n_in_flight(self) -> int:
        """Return the number of frames that were received and are not processed yet."""
        return self.n_received - self.n_published - self.n_skipped - self.n_dropped

    def take_latencies(self) -> list[int]:
        """
        Remove and return the latencies so far, ns, the oldest first.

        Called by one thread; the pipeline may append meanwhile: both ends of a deque are safe.
        """
        return [self.latencies_ns.popleft() for _ in range(len(self.latencies_ns))]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last frame whose clock advanced, its actors and its stamp."""

    frame: Frame
    actor_list: naming.ActorList
    stamp_ns: int
    received_ns: int  # ``time.perf_counter_ns()`` at its receipt
    before: Frame | None  # the frame before it in the same run, None for none


class _Canceled(Exception):  # noqa: N818
    """The stream was stopped while the frame was processed."""


class Pipeline:
    """
    Turn frames into messages; used by one thread at a time.

    :param new_encoder: returns a new encoder for settings; called once, and again after an
        unexpected exception, which leaves the state of the old one undefined.
    :param on_defect: called with an unexpected exception, whose frame counts as skipped; None
        raises the exception.
    :param counters: counters to update; None makes new ones.
    :param keeps_topics: whether the sink keeps the topics of actors that have left.
    :param ros_now_ns: returns the time for ``stamp_source: ros``, ns.
    :ivar registry: names of the actors.
    :ivar snapshot: the last frame whose clock advanced, None before the first.
    :ivar details: whether boxes, wheels or inputs of the next frames are used.
    :ivar needs_boxes: whether they are used whatever topics have subscribers; may be set.
    """

    def __init__(self, settings: Settings, new_encoder: Callable[[Settings], Encoder],
                 sink: Sink, *,
                 report: source.Report, on_defect: Callable[[Exception], None] | None = None,
                 counters: Counters | None = None, keeps_topics: bool = False,
                 ros_now_ns: Callable[[], int] = time.time_ns) -> None:
        self.counters = counters or Counters()
        self.checks = Checks(periods_s=SAMPLED)
        self.snapshot: Snapshot | None = None
        self.stamper = Stamper(settings.stamp_source)
        self._settings, self._sink = settings, sink
        # Appended by any thread, removed by the one that processes frames.
        self._pending: deque[Settings] = deque(maxlen=1)
        self._new_encoder, self._encoder = new_encoder, new_encoder(settings)
        self._report, self._on_defect, self._ros_now_ns = report, on_defect, ros_now_ns
        self.registry = naming.Registry(settings, keeps_places=keeps_topics)
        self._actor_list, self._lane_rows = naming.EMPTY_ACTOR_LIST, b''
        self._actor_topics = ActorTopics(self._encoder, sink, self.registry,
                                         settings.actor_timeout)
        self._tag_rule = classes.TagRule(settings.desired_tags, settings.undesired_tags)
        # Messages that are held back with the stamp at which they are due, in the order in which
        # they came, also if the delay becomes shorter.
        self._held: deque[tuple[int, Messages]] = deque()
        # Those that are used, and the last ones of the sink: None to compute what they need again.
        self._subscriptions = NOTHING
        self._wanted: Subscriptions | None = None
        # Number of frames without details since they are needed.
        self._n_lean = 0
        self.details = self._needs = True
        self.needs_boxes = self._is_canceled = self._are_tags_checked = False
        # Number of the last frame with a stamp, -1 if the next one is the first of a stream.
        self._last_number = -1
        # Held while messages are sent, so that cancel() does not separate those of one frame.
        self._sending = threading.Lock()

    def reconfigure(self, settings: Settings) -> None:
        """
        Use ``settings`` from the next frame or :meth:`apply_settings` on.

        May be called from any thread; of several changes in between, the last one counts.
        """
        self._pending.append(settings)

    def apply_settings(self) -> None:
        """Apply changed settings; called by the thread that processes frames."""
        self.contain(self._apply_settings, recover=self._recover)

    def begin(self) -> None:
        """Start a new stream: samples before its first frame do not count as missed."""
        self._is_canceled = False
        self._last_number = -1
        self.stamper.resume()
        # cancel() has deleted the markers of displays.
        self._encoder.restart()

    def cancel(self) -> None:
        """
        Close the topics, as markers are deleted, and publish nothing more until :meth:`begin`.

        May be called from any thread; a frame that is being sent is completed first.
        """
        with self._sending:
            self._is_canceled = True
            self._held.clear()
            self._close_topics()

    def finish(self) -> None:
        """Publish the messages that are held back: the stream has ended."""
        with self._sending:
            self._publish_due(math.inf)

    def process(self, frame: Frame, received_ns: int, number: int = 0) -> bool:
        """Process one frame."""
        # received_ns: ``time.perf_counter_ns()`` at the receipt of its last byte.
        # Returns False if :meth:`cancel` prevented its publication; then it is not counted.
        n_published = self.counters.n_published
        try:
            self._process(frame, received_ns, number)
        except errors.DecodeError as error:
            # Its time is none.
            self.counters.n_skipped += 1
            self._report_error(source.LOST, error)
        except _Canceled:
            return False
        except Exception as error:  # noqa: BLE001
            # A frame, or a defect that it triggers, must not end the node.
            self._note_defect(error)
            self.counters.n_skipped += self.counters.n_published == n_published
            self._recover()
        return True

    def note(self, faults: Sequence[source.Fault]) -> None:
        """Count and report what was wrong with actors and packets."""
        counters = self.counters
        for fault in faults:
            with counters.lock:
                counters.n_received += fault.n * (fault.kind == source.LOST)
            counters.n_skipped += fault.n * (fault.kind == source.LOST)
            counters.n_duplicates += fault.n * (fault.kind == source.DUPLICATE)
            counters.n_dropped_actors += fault.n * (fault.kind == source.DROPPED)
            if fault.defect is not None:
                self._note_defect(fault.defect)
                self._recover()
            else:
                # Each unknown member is named, once.
                self._report_error(f'{source.MEMBER} {fault.error.where}' if fault.kind
                                   == source.MEMBER else fault.kind, fault.error)

    def contain(self, work: Callable[[], Result],
                recover: Callable[[], None] = lambda: None) -> Result | None:
        """Do work outside of a frame; an unexpected exception is counted and reported."""
        # Returns the result of ``work``, None if it failed.
        try:
            return work()
        except Exception as error:  # noqa: BLE001
            # As a defect in a frame, one outside of it must not end the node.
            self._note_defect(error)
            recover()
            return None

    def _note_defect(self, error: Exception) -> None:
        """Count and report an unexpected exception."""
        if self._on_defect is None:
            raise error
        self.counters.last_defect = f'{type(error).__name__}: {error}'
        self.counters.last_error.note(f'internal error: {self.counters.last_defect}')
        self.counters.n_defects += 1
        self._on_defect(error)

    def _process(self, frame: Frame, received_ns: int, number: int) -> None:
        if self._pending:
            self._apply_settings()
        wanted = self._sink.subscriptions()
        if wanted is not self._wanted and wanted != self._wanted:
            self._wanted, self._needs = wanted, self._encoder.needs(wanted)
            self._n_lean = 0
        # A frame that was decoded before is not for new subscribers: its sizes would be assumed.
        if self._needs and self._n_lean < _MAX_LEAN and (
                frame.boxes is None or frame.wheels is None):
            self._n_lean += 1
        else:
            self._subscriptions = wanted
        self._publish(frame, self._subscriptions, received_ns, number)
        self.details = self._needs or self.needs_boxes \
            or self.counters.game_time >= self.checks.next_details_s

    def _recover(self) -> None:
        """Replace all state after an unexpected exception, which left it undefined."""
        try:
            self._encoder = self._new_encoder(self._settings)
        except errors.StateSensorError as error:
            # For example, the recording that plays was removed.
            self._report_error('encoder', error)
        self._actor_topics.encoder = self._encoder
        self._wanted = None
        self._restart_actors()

    def _publish(self, whole: Frame, subscriptions: Subscriptions, received_ns: int,
                 number: int) -> None:
        """Publish a frame."""
        frame = self._tag_rule.select(whole)
        if not self._are_tags_checked and whole.n_actors:
            self._are_tags_checked = True
            if not frame.n_actors:
                self._report_tags(sorted(set(chain(*whole.tags))))
        if frame.boxes is not None and not self._settings.include_obb:
            frame = replace(frame, boxes=NO_BOXES)
        if whole.is_behind_gap:
            self.stamper.resume()
        n_lost = max(number - self._last_number - 1, 0) if self._last_number >= 0 else 0
        step = self.stamper.step(
            frame, self._ros_now_ns() if self._settings.stamp_source == 'ros' else 0, n_lost)
        self._last_number = number
        if step is Step.RESTARTED:
            self._restart(is_intended=whole.is_behind_gap)
        advanced = step is not Step.REPEATED
        stamp_ns = self.stamper.stamp_ns
        if whole.is_behind_gap and step is Step.ADVANCED and (last := self.snapshot) is not None:
            # Nothing is derived across it; /tf has the last poses again, just before the new ones.
            self._send(self._encoder.encode(last.frame, last.actor_list, stamp_ns - 1, _OF_TF))
            self._encoder.restart()
            self.checks.begin_run()
        # A repeated frame may have other actors than the last one; ~/frame contains them all.
        actor_list = self._update_actors(frame, stamp_ns)
        new_topics = self._encoder.new_topics(frame)
        if new_topics:
            self._sink.open(new_topics)
        self._send(self._encoder.encode(
            frame, actor_list, stamp_ns, subscriptions, advanced=advanced,
            upcoming=whole.upcoming))
        self.counters.latencies_ns.append(time.perf_counter_ns() - received_ns)
        self._count(frame, advanced)
        if advanced:
            last = None if step is Step.RESTARTED or whole.is_behind_gap else self.snapshot
            self.snapshot = Snapshot(frame, actor_list, stamp_ns, received_ns,
                                     None if last is None else last.frame)
            if frame.game_time >= min(self.checks.next_s, self.checks.next_details_s):
                self.checks.add(frame)
                for complaint in self.checks.new_complaints():
                    self._report(f'consistency {complaint}', f'{complaint} (reported once)')

    def _report_tags(self, known: list[str]) -> None:
        """Report that the tags select no actor."""
        settings = self._settings
        desired, undesired = (texts.shortened(', '.join(tags)) for tags in (
            settings.desired_tags, settings.undesired_tags))
        self._report('tags', f'desired_tags {desired!r} and undesired_tags {undesired!r} select '
                     'no actor of the first frame'
                     + parameters.near_names({*settings.desired_tags}.difference(known), known))

    def _update_actors(self, frame: Frame, stamp_ns: int) -> naming.ActorList:
        """Open and close topics of actors; return the actors of the frame."""
        self._follow(frame, stamp_ns)
        if self._actor_topics.absent_since_ns:
            self._actor_topics.close_absent(stamp_ns)
        if self.registry.n_without_topics:
            self._actor_topics.make_room(self.registry.n_without_topics)
            # Those that get a place have topics with this frame.
            self._follow(frame, stamp_ns)
        self.counters.n_without_topics = self.registry.n_without_topics
        return self._actor_list

    def _follow(self, frame: Frame, stamp_ns: int) -> None:
        before, self._actor_list = self._actor_list, self.registry.update(frame)
        lane_rows = frame.lanes.actor.tobytes()
        if self._actor_list.version != before.version or lane_rows != self._lane_rows:
            self._lane_rows = lane_rows
            self._actor_topics.follow(self._actor_list, before, frame.lanes.actor, stamp_ns)

    def _restart(self, *, is_intended: bool) -> None:
        """Start a new run; ``is_intended`` if a recording was sought or begins again."""
        self.counters.n_restarts += 1
        self.finish()
        if not is_intended:
            self._report('restart', 'the simulator was restarted, or its clock was set: '
                         + self.stamper.restart_cause)
        self._encoder.restart()
        self._restart_actors()

    def _restart_actors(self) -> None:
        self.registry.restart(self._actor_topics.restart(max(self.stamper.stamp_ns, 0)))
        self._actor_list, self._lane_rows = naming.EMPTY_ACTOR_LIST, b''
        self.checks.restart()

    def _apply_settings(self) -> None:
        if not self._pending:
            return
        settings = self._pending.popleft()
        # Under the lock, so that either this or cancel() closes the topics.
        with self._sending:
            if not self._is_canceled:
                self._close_topics(settings)
            self._settings = settings
            self._encoder.reconfigure(settings)
        self._tag_rule = classes.TagRule(settings.desired_tags, settings.undesired_tags)
        self._are_tags_checked = False
        self._wanted = None
        self._actor_topics.reconfigure()

    def _close_topics(self, settings: Settings | None = None) -> None:
        """Publish the last messages of topics that ``settings`` switch off, None for all."""
        stamp_ns = max(self.stamper.stamp_ns, 0)
        messages = self._encoder.closing(stamp_ns, settings)
        if messages:
            self._sink.publish(messages, stamp_ns)

    def _send(self, messages: Messages) -> None:
        with self._sending:
            if self._is_canceled:
                raise _Canceled
            stamp_ns = max(self.stamper.stamp_ns, 0)
            delay_s = self._settings.perception.delay
            if delay_s or self._held:
                late = [message for message in messages if message[0].is_perceived]
                self._held.append((stamp_ns + round(delay_s * NS_PER_S), late))
                messages = [message for message in messages if not message[0].is_perceived]
                self._publish_due(stamp_ns)
            self._sink.publish(messages, stamp_ns)

    def _publish_due(self, stamp_ns: float) -> None:
        """Publish the messages that are held back until a stamp, ns, or an earlier one."""
        while self._held and self._held[0][0] <= stamp_ns:
            due_ns, messages = self._held.popleft()
            self._sink.publish(messages, due_ns)

    def _count(self, frame: Frame, advanced: bool) -> None:
        counters = self.counters
        counters.n_published += 1
        counters.n_repeated += not advanced
        counters.n_actors, counters.n_egos = frame.n_actors, self._actor_list.n_egos
        counters.game_time, counters.generation = frame.game_time, frame.generation
        if frame.bodies().is_plain:
            return
        # A frame with forward speeds has no other velocities: they are not missing.
        if frame.forward_speed is None:
            velocities = np.isfinite(frame.kinematics[:, 7:]).all(axis=1)
            counters.n_unknown_velocities += int(np.count_nonzero(~velocities))
        counters.n_bad_poses += frame.n_actors - int(np.count_nonzero(frame.has_pose()))

    def _report_error(self, kind: str, error: Exception) -> None:
        self.counters.last_error.note(str(error))
        self._report(kind, str(error))
