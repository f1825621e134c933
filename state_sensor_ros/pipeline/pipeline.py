# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
One packet after another: decode, select, stamp, name, encode, publish, count.

May know: the order of these steps, what is dropped and what is counted. Must not know: any source
or sink by name, or a message's layout. Ordering and duplicates are decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
import math
import threading
import time
from typing import Protocol

import numpy as np

from state_sensor_ros.encode import Demand, Encoder, needs_of, Topic
from state_sensor_ros.errors import DecodeError, StateSensorError
from state_sensor_ros.frame import Frame, Needs, NO_BOXES, Rows
from state_sensor_ros.naming import Cast, NOBODY, Registry
from state_sensor_ros.payloads import Decoded, Packet, PayloadDecoder, Report
from state_sensor_ros.pipeline.actor_topics import ActorTopics, TopicSwitch
from state_sensor_ros.pipeline.consistency import TruthMonitor
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.pipeline.stamps import float32_step, Stamper, Step
from state_sensor_ros.pipeline.tag_rule import TagRule
from state_sensor_ros.settings import Settings

# The truth is looked at in pairs of frames this far apart: enough to find a lie within 3 s; once
# it has been seen to hold, seldom enough not to be seen in what a frame costs.
_TRUTH_PERIOD_S = 0.8
_SETTLED_PERIOD_S = 4.0
# Wheels and boxes testify, too, but cost as much as all the rest of decoding; what they say of
# axes and units they say in the first frame.
_WITNESS_PERIOD_S = 5.0


class Sink(TopicSwitch, Protocol):
    """Where messages go. Used by one thread."""

    def demand(self) -> Demand:
        """Say what somebody listens to; the same object as long as that stays the same."""

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """Send serialised messages in their order."""


class ExtraEncoder(Protocol):
    """Messages that only one simulator has, such as CARLA's traffic lights."""

    def encode(self, frame: Frame, cast: Cast, stamp_ns: int, demand: Demand, *,
               advanced: bool = True) -> list[tuple[Topic, bytes]]:
        """Encode what the common encoder does not know."""

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings``, which differ in dynamic parameters only, from the next frame on."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last frame whose clock advanced, who was in it, and its stamp."""

    frame: Frame
    cast: Cast
    stamp_ns: int


@dataclass(frozen=True, slots=True)
class Codec:
    """
    What reads and writes the frames of one stream, and remembers the last ones.

    ``decoder`` of the source's payloads; ``encoder`` of all topics; ``extra_encoders`` of topics
    that only one simulator has.
    """

    decoder: PayloadDecoder
    encoder: Encoder
    extra_encoders: Sequence[ExtraEncoder] = ()


class _Cancelled(Exception):  # noqa: N818
    """The stream was stopped while a frame was processed."""


class Pipeline:
    """
    Turn packets into messages; used by one thread at a time.

    :param settings: parameters; :meth:`reconfigure` replaces them between two frames.
    :param codec: returns a new codec for settings. It is called once, and again after an
        exception that the program did not expect, as nothing that the old one remembers can be
        relied on then.
    :param sink: where messages go.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    :param on_defect: called with an exception that the program did not expect; the frame counts
        as skipped. None raises it.
    :param counters: to count in.
    :param ros_now_ns: the clock for ``stamp_source: ros``.
    """

    def __init__(self, settings: Settings, codec: Callable[[Settings], Codec], sink: Sink, *,
                 report: Report, on_defect: Callable[[Exception], None] | None = None,
                 counters: Counters | None = None,
                 ros_now_ns: Callable[[], int] = time.time_ns) -> None:
        self.counters = counters or Counters()
        self.truth = TruthMonitor()
        self.snapshot: Snapshot | None = None
        self.stamper = Stamper(settings.stamp_source)
        self._settings = settings
        self._pending: Settings | None = None
        self._new_codec, self._codec = codec, codec(settings)
        self._sink = sink
        self._report, self._on_defect, self._ros_now_ns = report, on_defect, ros_now_ns
        self._registry = Registry(
            frame_prefix=settings.frame_prefix, ego_tag=settings.ego_tag,
            ego_frame=settings.ego_frame, max_actor_topics=settings.max_actor_topics,
            reserved_frames=(settings.global_frame, settings.parent_frame))
        self._cast: Cast = NOBODY
        # Whose ~/actors was published last, None where it has to be published again.
        self._announced: Cast | None = None
        self._lane_rows = b''
        self._actor_topics = ActorTopics(self._codec.encoder, sink, self._registry,
                                         settings.actor_timeout)
        self._tag_rule = TagRule(settings.desired_tags, settings.undesired_tags)
        self._selection: tuple[object, object, Rows | None] = (None, None, None)
        self._demand: Demand | None = None
        self._needs = Needs()
        # Number of the last frame that had a stamp, -1 where the next one has no predecessor.
        self._last_number = -1
        # Held while messages are sent: cancel() comes before or behind the messages of a frame.
        self._sending = threading.Lock()
        self._is_cancelled = False
        self._unknown_members: frozenset[str] = frozenset()
        self._next_truth = self._next_witness = -math.inf
        self._is_pair_open = False
        self._are_clocks_told = False

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings`` from the next packet on; may be called from any thread."""
        self._pending = settings

    def split(self, packet: Packet) -> Sequence[Packet]:
        """Return a packet for each frame of ``packet``; may be called from any thread."""
        try:
            payloads = self._codec.decoder.split(packet.payload)
        except Exception as error:  # noqa: BLE001
            self._note_defect(error)
            return (packet,)
        if len(payloads) == 1:
            return (packet,)
        # The constructor costs a tenth of replace().
        return [Packet(payload, packet.game_time, packet.time, packet.sample_count, False)
                for payload in payloads]

    def begin(self) -> None:
        """Prepare for a new stream: what the simulator did meanwhile is not missing in it."""
        self._is_cancelled = False
        self._last_number = -1
        self.stamper.resume()
        # Displays were emptied by cancel().
        self._codec.encoder.restart()

    def cancel(self) -> None:
        """
        Remove the markers and publish nothing more until :meth:`begin`.

        May be called from any thread; a frame that is being sent is sent completely before.
        """
        with self._sending:
            self._is_cancelled = True
            if self._draws(self._settings):
                self._publish_delete_all()

    def process(self, packet: Packet, received_ns: int, number: int = 0) -> bool:
        """
        Process one frame.

        :param packet: with one frame, as :meth:`split` returns it.
        :param received_ns: ``time.perf_counter_ns()`` when its last byte was received.
        :param number: of the frame in the stream; numbers that are missing between two calls are
            frames that were dropped.
        :returns: False where :meth:`cancel` came before it was published; it is not counted then.
        :raises Exception: whatever the program did not expect, where there is no ``on_defect``.
        """
        n_published = self.counters.n_published
        try:
            self._process(packet, received_ns, number)
        except DecodeError as error:
            self.counters.n_skipped += 1
            self._complain('payload', error)
        except _Cancelled:
            return False
        except Exception as error:  # noqa: BLE001
            # One frame must not end the node, whatever is wrong in it or in the program.
            self._note_defect(error)
            self.counters.n_skipped += self.counters.n_published == n_published
            self._recover()
        return True

    def contain(self, work: Callable[[], bool]) -> bool:
        """
        Do ``work`` that belongs to no frame; an exception that the program did not expect counts.

        :returns: what ``work`` returns, False where it failed.
        """
        try:
            return work()
        except Exception as error:  # noqa: BLE001
            self._note_defect(error)
            return False

    def _note_defect(self, error: Exception) -> None:
        """
        Count and report an exception that the program did not expect.

        :raises Exception: ``error`` itself where there is no ``on_defect``.
        """
        if self._on_defect is None:
            raise error
        self.counters.last_defect = f'{type(error).__name__}: {error}'
        self.counters.last_error.note(f'internal error: {self.counters.last_defect}')
        self.counters.n_defects += 1
        self._on_defect(error)

    def _process(self, packet: Packet, received_ns: int, number: int) -> None:
        if self._pending is not None:
            self._reconfigure()
        demand = self._sink.demand()
        if demand is not self._demand:
            self._demand, self._needs = demand, needs_of(self._settings, demand)
        decoded = self._decode(packet)
        if packet.is_alone and not self._are_clocks_told:
            self._compare_clocks(packet, decoded.frame)
        self._publish(packet, decoded, demand, received_ns, number)
        unknown_members = self._codec.decoder.unknown_members
        if not unknown_members <= self._unknown_members:
            self._unknown_members |= unknown_members
            self._report('unknown', 'ignored members that no known generation has: '
                         + ', '.join(sorted(self._unknown_members)))

    def _recover(self) -> None:
        """Begin anew after an exception, as nothing that was remembered can be relied on."""
        try:
            self._codec = self._new_codec(self._settings)
        except StateSensorError as error:
            # The recording that plays was removed, for example.
            self._complain('decoder', error)
        self._actor_topics.encoder = self._codec.encoder
        self._selection = (None, None, None)
        self._demand = None
        self._forget_actors()

    def _decode(self, packet: Packet) -> Decoded:
        if not packet.payload:
            raise DecodeError('payload', 'nothing', 'a frame')
        decoder, needs = self._codec.decoder, self._needs
        if self.counters.game_time >= self._next_witness:
            needs = replace(needs, wheels=True, boxes=True)
        decoder.needs = needs
        decoded = decoder.decode(packet.payload, game_time=packet.game_time, time=packet.time,
                                 sample_count=packet.sample_count)
        if len(decoded) > 1:
            raise DecodeError('payload', 'an array inside an array', 'a frame')
        return decoded[0]

    def _compare_clocks(self, packet: Packet, frame: Frame) -> None:
        """Say once that a packet's header and its JSON, which counts, tell different times."""
        if (packet.game_time, packet.time) == (frame.game_time, frame.time):
            return
        # In the header game_time is a float32. NaN: the source has no header.
        if abs(packet.game_time - frame.game_time) > float32_step(frame.game_time) or (
                packet.time and frame.time and abs(packet.time - frame.time) > 1):
            self._are_clocks_told = True
            self._report('clocks', 'the header of a packet says game_time '
                         f'{packet.game_time:.9g}, time {packet.time}, its JSON '
                         f'{frame.game_time:.9g}, {frame.time}: the JSON counts (said once)')

    def _publish(self, packet: Packet, decoded: Decoded, demand: Demand, received_ns: int,
                 number: int) -> None:
        """Publish the frame of a packet, and count what is wrong with it."""
        for fault in decoded.faults:
            if fault.kind == 'duplicate':
                self.counters.n_duplicates += 1
            else:
                self.counters.n_left_out += 1
            self._complain(fault.kind, fault.error)
        frame = self._selected(decoded.frame)
        if frame.boxes is not None and not self._settings.include_obb:
            frame = replace(frame, boxes=NO_BOXES)
        if packet.is_behind_gap:
            self.stamper.resume()
        n_lost = max(number - self._last_number - 1, 0) if self._last_number >= 0 else 0
        step = self.stamper.step(
            frame, self._ros_now_ns() if self._settings.stamp_source == 'ros' else 0, n_lost)
        self._last_number = number
        if step is Step.RESTARTED:
            self._restart()
        advanced = step is not Step.REPEATED
        stamp_ns = self.stamper.stamp_ns
        messages = self._recast(frame, stamp_ns) if advanced else []
        # A repeated frame may have other actors than the one before; ~/frame names them all.
        cast = self._cast if advanced else self._registry.name_repeated(frame)
        codec = self._codec
        messages[:0] = codec.encoder.encode(frame, cast, stamp_ns, demand, advanced=advanced)
        for extra in codec.extra_encoders:
            messages += extra.encode(frame, cast, stamp_ns, demand, advanced=advanced)
        self._send(messages)
        if advanced:
            self._announced = self._cast
        self.counters.latencies_ns.append(time.perf_counter_ns() - received_ns)
        self._count(frame, advanced)
        if advanced:
            self.snapshot = Snapshot(frame, cast, stamp_ns)
            self._look_at_truth(frame)

    def _selected(self, frame: Frame) -> Frame:
        """Keep the actors whose tags are asked for."""
        if self._tag_rule.passes_all:
            return frame
        names, tags, rows = self._selection
        if frame.names != names or frame.tags != tags:
            rows = np.flatnonzero([self._tag_rule.passes(own) for own in frame.tags])
            self._selection = (frame.names, frame.tags, rows)
        assert rows is not None
        return frame if len(rows) == frame.n_actors else frame.select(rows)

    def _recast(self, frame: Frame, stamp_ns: int) -> list[tuple[Topic, bytes]]:
        """Follow the actors that are new or have left; return ~/actors when it changed."""
        cast, before = self._registry.update(frame), self._cast
        is_announced = cast is self._announced
        lane_rows = frame.lanes.actor.tobytes()
        if cast is not before or lane_rows != self._lane_rows:
            self._follow(cast, frame, stamp_ns)
        self._actor_topics.close_absent(stamp_ns)
        if self.counters.n_without_topics:
            self._actor_topics.make_room(self.counters.n_without_topics)
            granted = self._registry.grant_topics()
            if granted is not cast:
                self._follow(granted, frame, stamp_ns)
        return [] if is_announced else [self._codec.encoder.encode_actors(cast, stamp_ns)]

    def _follow(self, cast: Cast, frame: Frame, stamp_ns: int) -> None:
        before, self._cast = self._cast, cast
        self._lane_rows = frame.lanes.actor.tobytes()
        self._actor_topics.follow(cast, before, frame.lanes.actor, stamp_ns)
        self.counters.n_without_topics = sum(not actor.has_topics for actor in cast.actors)

    def _restart(self) -> None:
        """Begin a new run: the simulator was restarted."""
        self.counters.n_restarts += 1
        self._report('restart', 'the simulator was restarted, or its clock set: '
                     f'{self.stamper.went_back} went back')
        self._codec.encoder.restart()
        self._forget_actors()

    def _forget_actors(self) -> None:
        self._registry.restart(self._actor_topics.restart(max(self.stamper.stamp_ns, 0)))
        self._cast, self._announced = NOBODY, None
        self._lane_rows = b''
        self.truth.restart()
        self._next_truth = self._next_witness = -math.inf
        self._is_pair_open = False

    def _reconfigure(self) -> None:
        """Switch to the settings that wait, between two frames."""
        settings, self._pending = self._pending, None
        assert settings is not None
        if self._draws(self._settings) and not self._draws(settings):
            with self._sending:
                if not self._is_cancelled:
                    self._publish_delete_all()
            self._codec.encoder.restart()
        self._settings = settings
        self._codec.encoder.reconfigure(settings)
        for extra in self._codec.extra_encoders:
            extra.reconfigure(settings)
        self._tag_rule = TagRule(settings.desired_tags, settings.undesired_tags)
        self._selection = (None, None, None)
        self._demand = None
        self._actor_topics.reconfigure()

    def _publish_delete_all(self) -> None:
        stamp_ns = max(self.stamper.stamp_ns, 0)
        self._sink.publish([self._codec.encoder.encode_delete_all(stamp_ns)], stamp_ns)

    @staticmethod
    def _draws(settings: Settings) -> bool:
        return settings.debug_drawing and settings.include_obb

    def _send(self, messages: Sequence[tuple[Topic, bytes]]) -> None:
        with self._sending:
            if self._is_cancelled:
                raise _Cancelled
            self._sink.publish(messages, max(self.stamper.stamp_ns, 0))

    def _count(self, frame: Frame, advanced: bool) -> None:
        counters = self.counters
        counters.n_published += 1
        counters.n_repeated += not advanced
        counters.n_actors = frame.n_actors
        counters.n_egos = self._cast.n_egos
        counters.game_time = frame.game_time
        counters.generation = frame.generation
        if frame.bodies().is_plain:
            return
        # Where only a forward speed is measured, all others are unknown: nothing to count.
        if frame.forward_speed is None:
            velocities = np.isfinite(frame.kinematics[:, 7:]).all(axis=1)
            counters.n_unknown_velocities += int(np.count_nonzero(~velocities))
        counters.n_bad_poses += frame.n_actors - int(np.count_nonzero(frame.has_pose()))

    def _look_at_truth(self, frame: Frame) -> None:
        if frame.wheels is not None:
            self._next_witness = frame.game_time + _WITNESS_PERIOD_S
        if self._is_pair_open:
            self.truth.add(frame)
            self._is_pair_open = False
        elif frame.game_time >= self._next_truth:
            self._next_truth = frame.game_time + (
                _SETTLED_PERIOD_S if self.truth.is_settled else _TRUTH_PERIOD_S)
            self.truth.begin()
            self.truth.add(frame)
            self._is_pair_open = True

    def _complain(self, kind: str, error: Exception) -> None:
        self.counters.last_error.note(str(error))
        self._report(kind, str(error))
