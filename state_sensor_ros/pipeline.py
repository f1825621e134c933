# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
One packet after another: decode, select, stamp, name, encode, publish, count.

May know: the order of these steps, what is dropped and what is counted. Must not know: any source
or sink by name, or a message's layout. Ordering and duplicates are decided here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
import math
import time
from typing import Protocol

import numpy as np

from state_sensor_ros.decode import Decoded
from state_sensor_ros.encode import Demand, Encoder, needs_of, Topic
from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame, Needs, NO_BOXES, Rows
from state_sensor_ros.framing import Packet
from state_sensor_ros.naming import Cast, NOBODY, Registry
from state_sensor_ros.presence import Presence, TopicSwitch
from state_sensor_ros.settings import Settings
from state_sensor_ros.stamps import float32_step, Stamper, Step
from state_sensor_ros.tag_rule import TagRule
from state_sensor_ros.truth import TruthMonitor

# The truth is looked at in pairs of frames this far apart: enough to find a lie within 3 s; once
# it has been seen to hold, seldom enough not to be seen in what a frame costs.
_TRUTH_PERIOD_S = 0.8
_SETTLED_PERIOD_S = 4.0
# Wheels and boxes testify, too, but cost as much as all the rest of decoding; what they say of
# axes and units they say in the first frame.
_WITNESS_PERIOD_S = 5.0
# More than a second of latencies at any rate that can be sustained.
_MAX_LATENCIES = 4096


class PayloadDecoder(Protocol):
    """
    What understands the payloads of one source.

    ``needs`` parts of the frame that somebody will read; may be set between payloads.
    ``unknown_members`` key paths that were ignored so far.
    """

    needs: Needs

    @property
    def unknown_members(self) -> frozenset[str]:
        """Return the key paths that were ignored so far."""

    def decode(self, payload: bytes | bytearray | memoryview, *, game_time: float = ...,
               time: int = ..., sample_count: int = ...) -> list[Decoded]:
        """
        Decode one payload; the numbers are its packet's, for what it does not say itself.

        :raises DecodeError: where the payload is no frame.
        """


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


@dataclass(slots=True)
class Counters:
    """What happened to the stream so far; written by the pipeline's thread only."""

    n_published: int = 0
    n_skipped: int = 0
    n_repeated: int = 0
    n_restarts: int = 0
    n_left_out: int = 0
    n_duplicates: int = 0
    n_bad_poses: int = 0
    n_unknown_velocities: int = 0
    n_without_topics: int = 0
    n_actors: int = 0
    n_egos: int = 0
    game_time: float = math.nan
    generation: str = ''
    last_error: str = ''
    # Receipt of the last byte to the last publish, ns; whoever reads them takes them away.
    latencies_ns: deque[int] = field(default_factory=lambda: deque(maxlen=_MAX_LATENCIES))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last frame whose clock advanced, who was in it, and its stamp."""

    frame: Frame
    cast: Cast
    stamp_ns: int


Report = Callable[[str, str], None]


class Pipeline:
    """
    Turn packets into messages.

    :param settings: parameters; :meth:`reconfigure` replaces them between two frames.
    :param decoder: of the source's payloads.
    :param encoder: of all topics.
    :param sink: where messages go.
    :param report: called with a kind, for throttling, and a line about what went wrong.
    :param ros_now_ns: the clock for ``stamp_source: ros``.
    """

    def __init__(self, settings: Settings, decoder: PayloadDecoder, encoder: Encoder,
                 sink: Sink, *,
                 report: Report, extra_encoders: Sequence[ExtraEncoder] = (),
                 ros_now_ns: Callable[[], int] = time.time_ns) -> None:
        self.counters = Counters()
        self.truth = TruthMonitor()
        self.snapshot: Snapshot | None = None
        self.stamper = Stamper(settings.stamp_source)
        self._settings = settings
        self._pending: Settings | None = None
        self._decoder, self._encoder, self._sink = decoder, encoder, sink
        self._extra_encoders = extra_encoders
        self._report, self._ros_now_ns = report, ros_now_ns
        self._registry = Registry(
            frame_prefix=settings.frame_prefix, ego_tag=settings.ego_tag,
            ego_frame=settings.ego_frame, max_actor_topics=settings.max_actor_topics,
            reserved_frames=(settings.global_frame, settings.parent_frame))
        self._cast: Cast = NOBODY
        self._lane_rows = b''
        self._presence = Presence(encoder, sink, self._registry, settings.actor_timeout)
        self._tag_rule = TagRule(settings.desired_tags, settings.undesired_tags)
        self._selection: tuple[object, object, Rows | None] = (None, None, None)
        self._demand: Demand | None = None
        self._needs = Needs()
        self._unknown_members: frozenset[str] = frozenset()
        self._next_truth = self._next_witness = -math.inf
        self._is_pair_open = False
        self._are_clocks_told = False

    def reconfigure(self, settings: Settings) -> None:
        """Use ``settings`` from the next packet on; may be called from any thread."""
        self._pending = settings

    def process(self, packet: Packet, received_ns: int) -> None:
        """
        Take one packet all the way.

        :param received_ns: ``time.perf_counter_ns()`` when its last byte was there.
        """
        if self._pending is not None:
            self._reconfigure()
        demand = self._sink.demand()
        if demand is not self._demand:
            self._demand, self._needs = demand, needs_of(self._settings, demand)
        try:
            frames = self._decode(packet)
            if not self._are_clocks_told and len(frames) == 1:
                self._compare_clocks(packet, frames[0].frame)
            for decoded in frames:
                self._publish(decoded, demand, received_ns)
        except DecodeError as error:
            self.counters.n_skipped += 1
            self._complain('payload', error)
        if self._decoder.unknown_members != self._unknown_members:
            self._unknown_members = self._decoder.unknown_members
            self._report('unknown', 'ignored members that no known generation has: '
                         + ', '.join(sorted(self._unknown_members)))

    def finish(self) -> None:
        """Take back what displays would keep: the markers."""
        if self._draws(self._settings):
            self._send([self._encoder.encode_delete_all(max(self.stamper.stamp_ns, 0))])
            self._encoder.restart()

    def _decode(self, packet: Packet) -> list[Decoded]:
        if not packet.payload:
            raise DecodeError('payload', 'nothing', 'a frame')
        needs = self._needs
        if self.counters.game_time >= self._next_witness:
            needs = replace(needs, wheels=True, boxes=True)
        self._decoder.needs = needs
        return self._decoder.decode(packet.payload, game_time=packet.game_time, time=packet.time,
                                    sample_count=packet.sample_count)

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

    def _publish(self, decoded: Decoded, demand: Demand, received_ns: int) -> None:
        """Publish one frame, and count what is wrong with it."""
        for fault in decoded.faults:
            if fault.kind == 'duplicate':
                self.counters.n_duplicates += 1
            else:
                self.counters.n_left_out += 1
            self._complain(fault.kind, fault.error)
        frame = self._selected(decoded.frame)
        if frame.boxes is not None and not self._settings.include_obb:
            frame = replace(frame, boxes=NO_BOXES)
        step = self.stamper.step(
            frame, self._ros_now_ns() if self._settings.stamp_source == 'ros' else 0)
        if step is Step.RESTARTED:
            self._restart()
        advanced = step is not Step.REPEATED
        stamp_ns = self.stamper.stamp_ns
        messages = self._recast(frame, stamp_ns) if advanced else []
        # A repeated frame may still bring or take an actor; ~/frame names it all the same.
        cast = self._cast if advanced else self._registry.update(frame)
        messages[:0] = self._encoder.encode(frame, cast, stamp_ns, demand, advanced=advanced)
        for extra in self._extra_encoders:
            messages += extra.encode(frame, cast, stamp_ns, demand, advanced=advanced)
        self._send(messages)
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
        """Follow who comes and goes; return ~/actors when that changed."""
        cast, before = self._registry.update(frame), self._cast
        lane_rows = frame.lanes.actor.tobytes()
        if cast is not before or lane_rows != self._lane_rows:
            self._cast, self._lane_rows = cast, lane_rows
            self._presence.follow(cast, before, frame.lanes.actor, stamp_ns)
            self.counters.n_without_topics = sum(not actor.has_topics for actor in cast.actors)
        self._presence.shut_absent(stamp_ns)
        return [] if cast is before else [self._encoder.encode_actors(cast, stamp_ns)]

    def _restart(self) -> None:
        """Begin a new run: the simulator was restarted."""
        self.counters.n_restarts += 1
        self._report('restart', 'the simulator was restarted: its clock went back')
        self._presence.restart(self.stamper.stamp_ns)
        self._registry.restart()
        self._cast = NOBODY
        self._encoder.restart()
        self.truth.restart()
        self._next_truth = self._next_witness = -math.inf

    def _reconfigure(self) -> None:
        """Switch to the settings that wait, between two frames."""
        settings, self._pending = self._pending, None
        assert settings is not None
        if self._draws(self._settings) and not self._draws(settings):
            self._send([self._encoder.encode_delete_all(max(self.stamper.stamp_ns, 0))])
            self._encoder.restart()
        self._settings = settings
        self._encoder.reconfigure(settings)
        for extra in self._extra_encoders:
            extra.reconfigure(settings)
        self._tag_rule = TagRule(settings.desired_tags, settings.undesired_tags)
        self._selection = (None, None, None)
        self._demand = None
        self._presence.reconfigure()

    @staticmethod
    def _draws(settings: Settings) -> bool:
        return settings.debug_drawing and settings.include_obb

    def _send(self, messages: Sequence[tuple[Topic, bytes]]) -> None:
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
        self.counters.last_error = str(error)
        self._report(kind, str(error))
