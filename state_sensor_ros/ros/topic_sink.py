# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""A publisher for each topic, the topics that have subscribers, and the static transforms."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
import threading
import time
from typing import Any

from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message

from state_sensor_ros.topics.topic import NOTHING, Qos, Subscriptions, Topic

# A new subscriber misses frames for at most this long, that of an actor's topic for _N_TURNS times
# as long: after the pause between two frames, a publisher takes 1.7 us. A scan is done up to
# _EARLY_SCAN_NS before it is due, in a pause between frames.
_SCAN_PERIOD_NS = 100_000_000
_N_TURNS = 4
_EARLY_SCAN_NS = 20_000_000
# How long subscribers have for the last messages, such as the one that empties displays.
_DELIVERY_S = 0.5
# With the default event callbacks a turn of the executor takes 22 ms at 1000 publishers.
_NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)


@dataclass(frozen=True, slots=True)
class _OpenTopic:
    """
    A topic with its publisher, and the functions of the publisher used for every message.

    ``turn`` of the scans in which its subscribers are counted, -1 for each scan.
    """

    topic: Topic
    publisher: Publisher
    publish_raw: Callable[[bytes], None]
    count_subscriptions: Callable[[], int]
    turn: int


class TopicSink:
    """
    Publish on topics of ``node``.

    :param node: owner of the publishers.
    :param actor_qos: QoS of the topics of single actors, instead of their own.
    :param fixed: topics that exist as long as the sink; the parameters ``qos_overrides.*`` can
        override their QoS.
    """

    def __init__(self, node: Node, fixed: Iterable[Topic], actor_qos: Qos) -> None:
        self._node = node
        self._actor_qos = actor_qos
        self._open: dict[str, _OpenTopic] = {}
        self._fixed: dict[str, _OpenTopic] = {}
        # The thread of the stream may still publish when another one closes the sink.
        self._lock = threading.Lock()
        self._is_closed = False
        # Creating or destroying a publisher takes 0.1 to 0.4 ms: deferred to a pause.
        self._to_open: dict[str, Topic] = {}
        self._to_destroy: deque[Publisher] = deque()
        self._subscriptions = NOTHING
        self._next_scan_ns = 0
        # Names of the topics with subscribers, the turn of a scan, and topics of actors so far.
        self._read: frozenset[str] = frozenset()
        self._turn = self._n_actor_topics = 0
        for topic in fixed:
            self._fixed[topic.name] = self._open[topic.name] = self._create(
                topic, topic.qos, QoSOverridingOptions.with_default_policies())

    def open(self, topics: Iterable[Topic]) -> None:
        """
        Create a publisher for those of ``topics`` without one.

        For topics of actors, :meth:`catch_up` does it.
        """
        with self._lock:
            if self._is_closed:
                return
            for topic in topics:
                if topic.name in self._open:
                    continue
                if topic.actor:
                    self._to_open[topic.name] = topic
                else:
                    # Its first message may be the only one.
                    self._open[topic.name] = self._create(topic, topic.qos, None)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Let :meth:`catch_up` destroy the publishers of ``topics``; fixed ones stay."""
        with self._lock:
            for topic in topics:
                self._to_open.pop(topic.name, None)
                if topic.name not in self._fixed and topic.name in self._open:
                    self._to_destroy.append(self._open.pop(topic.name).publisher)
            self._next_scan_ns = 0

    def catch_up(self) -> bool:
        """
        Do one piece of deferred work: destroy a publisher, create one, or scan subscribers.

        :returns: whether publishers are left to destroy or to create.
        """
        with self._lock:
            if self._is_closed:
                return False
            # Destroyed first, so that the limit on publishers is kept at any time.
            if self._to_destroy:
                # Through the node: Publisher.destroy() would leave it in the node's list.
                self._node.destroy_publisher(self._to_destroy.popleft())
            elif self._to_open:
                name = next(iter(self._to_open))
                self._open[name] = self._create(self._to_open.pop(name), self._actor_qos, None)
            elif time.monotonic_ns() >= self._next_scan_ns - _EARLY_SCAN_NS:
                self._scan()
            return bool(self._to_open or self._to_destroy)

    def close(self) -> None:
        """
        Destroy all publishers; may be called twice.

        :meth:`publish` has no effect afterward.
        """
        with self._lock:
            self._is_closed = True
            publishers = [*[opened.publisher for opened in self._open.values()],
                          *self._to_destroy]
            for names in (self._to_open, self._to_destroy, self._open, self._fixed):
                names.clear()
        # The last messages would be lost with their publishers.
        await_delivery(publishers, _DELIVERY_S)
        for publisher in publishers:
            self._node.destroy_publisher(publisher)

    def subscriptions(self) -> Subscriptions:
        """Return which topics have subscribers, as of the last scan."""
        if time.monotonic_ns() >= self._next_scan_ns:
            with self._lock:
                self._scan()
        return self._subscriptions

    def _scan(self) -> None:
        self._next_scan_ns = time.monotonic_ns() + _SCAN_PERIOD_NS
        self._turn = turn = (self._turn + 1) % _N_TURNS
        read, turns = self._read, (-1, turn)
        topics = [opened.topic for name, opened in self._open.items() if (
            opened.count_subscriptions() if opened.turn in turns else name in read)]
        self._read = frozenset([topic.name for topic in topics])
        subscriptions = Subscriptions.of(topics)
        # Keep an equal object: the comparison for each frame is then fast.
        if subscriptions != self._subscriptions:
            self._subscriptions = subscriptions

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """
        Send each message on its topic.

        :param messages: topic and serialized message of each; each topic has a publisher.
        :param stamp_ns: unused, as DDS stamps messages.
        """
        with self._lock:
            if self._is_closed:
                return
            opened = self._open
            for topic, data in messages:
                opened[topic.name].publish_raw(data)

    def _create(self, topic: Topic, qos: Qos,
                overriding: QoSOverridingOptions | None) -> _OpenTopic:
        publisher = self._node.create_publisher(
            message_class(topic.type_name), topic.name, _profile(qos), event_callbacks=_NO_EVENTS,
            qos_overriding_options=overriding)
        # Half the time of publish(), which checks types first. The handle is valid until shut().
        handle: Any = publisher.handle
        turn = -1
        if topic.actor:
            self._n_actor_topics += 1
            turn = self._n_actor_topics % _N_TURNS
        return _OpenTopic(topic, publisher, handle.publish_raw, handle.get_subscription_count,
                          turn)


def await_delivery(publishers: Iterable[Publisher], seconds: float) -> None:
    """
    Wait until the subscribers of publishers have acknowledged the last messages.

    :param publishers: publishers that exist.
    :param seconds: longest wait for all of them, s.
    """
    end_s = time.monotonic() + seconds
    for publisher in publishers:
        publisher.wait_for_all_acked(Duration(seconds=max(0.0, end_s - time.monotonic())))


def message_class(type_name: str) -> type:
    """Return the generated class of ``type_name``, such as ``nav_msgs/msg/Odometry``."""
    package, _, name = type_name.split('/')
    found: type = getattr(import_module(f'{package}.msg'), name)
    return found


def _profile(qos: Qos) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST, depth=qos.depth,
        reliability=ReliabilityPolicy.RELIABLE if qos.reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if qos.latched else DurabilityPolicy.VOLATILE)


class StaticFrame:
    """
    Publish static transforms once, latched.

    :param node: owner of the publisher.
    :param data: serialized TFMessage.
    """

    def __init__(self, node: Node, data: bytes) -> None:
        from tf2_msgs.msg import TFMessage
        self._node = node
        try:
            from tf2_ros import StaticTransformBroadcaster
        except ImportError:  # tf2_ros is part of a full ROS 2 only; the message is the same
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self._publisher: Any = node.create_publisher(TFMessage, '/tf_static', latched)
            self._publisher.publish(data)
        else:
            broadcaster = StaticTransformBroadcaster(node)
            broadcaster.sendTransform(deserialize_message(data, TFMessage).transforms)
            self._publisher = broadcaster.pub_tf

    def close(self) -> None:
        """Destroy the publisher: later subscribers receive no transform."""
        self._node.destroy_publisher(self._publisher)
