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
The publishers of the node: one for each topic, and which of them have subscribers.

What the node takes from inside rclpy is here, each with what is done in a version without it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
import threading
import time
from typing import Any, cast, NamedTuple

import rclpy
from rclpy.duration import Duration
from rclpy.event_handler import PublisherEventCallbacks
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message

from state_sensor_ros.topics.topic import NOTHING, Qos, STATIC_TF_TOPIC, Subscriptions, Topic

# A new subscriber misses frames for at most this long. A scan, which takes 0.3 us a topic, is done
# up to _EARLY_SCAN_NS before it is due, in a pause between frames.
_SCAN_PERIOD_NS, _EARLY_SCAN_NS = 100_000_000, 20_000_000
# How long subscribers have for the last messages, such as the one that empties displays.
_DELIVERY_S = 0.5
# With the default event callbacks a turn of the executor takes 22 ms at 1000 publishers.
_NO_EVENTS = PublisherEventCallbacks(use_default_callbacks=False)
# Middleware whose acknowledgments are those of the subscribers; that of Zenoh returns at once.
_ACKNOWLEDGING = ('fastrtps', 'cyclonedds', 'connext', 'gurumdds')
# How long messages take to subscribers that do not acknowledge them, s.
_IN_FLIGHT_S = 0.1


class _OpenTopic(NamedTuple):
    """A topic with its publisher, and the functions of the publisher used for every message."""

    topic: Topic
    publisher: Publisher
    publish_raw: Callable[[bytes], None]
    count_subscriptions: Callable[[], int]


class TopicSink:
    """Publish on topics of ``node``."""

    # fixed: topics that exist as long as the sink. The parameters ``qos_overrides.*`` can override
    # the QoS of topics that are not of actors.

    def __init__(self, node: Node, fixed: Iterable[Topic], actor_qos: Qos) -> None:
        self._node, self._actor_qos = node, actor_qos
        # The thread of the stream may still publish when another one closes the sink.
        self._lock = threading.Lock()
        self._is_closed = False
        # Creating or destroying a publisher takes 0.1 to 0.4 ms: deferred to a pause.
        self._to_open: dict[str, Topic] = {}
        self._to_destroy: deque[Publisher] = deque()
        self._subscriptions, self._next_scan_ns = NOTHING, 0
        self._fixed = {topic.name: self._create(topic) for topic in fixed}
        self._open = dict(self._fixed)

    def open(self, topics: Iterable[Topic]) -> None:
        """
        Create a publisher for those of ``topics`` without one.

        For topics of actors, :meth:`catch_up` does it.
        """
        with self._lock:
            for topic in () if self._is_closed else topics:
                if topic.actor and topic.name not in self._open:
                    self._to_open[topic.name] = topic
                elif topic.name not in self._open:
                    # Its first message may be the only one.
                    self._open[topic.name] = self._create(topic)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Let :meth:`catch_up` destroy the publishers of ``topics``; fixed ones stay."""
        with self._lock:
            for topic in topics:
                self._to_open.pop(topic.name, None)
                if topic.name not in self._fixed and topic.name in self._open:
                    self._to_destroy.append(self._open.pop(topic.name).publisher)
            self._next_scan_ns = 0

    def catch_up(self) -> bool:
        """Do one piece of deferred work: destroy a publisher, create one, or scan subscribers."""
        with self._lock:
            if self._is_closed:
                return False
            # Destroyed first, so that the limit on publishers is kept at any time.
            if self._to_destroy:
                destroy_publisher(self._node, self._to_destroy.popleft())
            elif self._to_open:
                name = next(iter(self._to_open))
                self._open[name] = self._create(self._to_open.pop(name))
            elif time.monotonic_ns() >= self._next_scan_ns - _EARLY_SCAN_NS:
                self._scan()
            return bool(self._to_destroy or self._to_open)

    def close(self) -> None:
        """
        Destroy all publishers; may be called twice.

        :meth:`publish` has no effect afterward.
        """
        with self._lock:
            self._is_closed = True
            publishers = [*(opened.publisher for opened in self._open.values()), *self._to_destroy]
            for names in (self._to_open, self._to_destroy, self._open, self._fixed):
                names.clear()
        # The last messages would be lost with their publishers.
        await_delivery(publishers, _DELIVERY_S)
        for publisher in publishers:
            destroy_publisher(self._node, publisher)

    def subscriptions(self) -> Subscriptions:
        """Return which topics have subscribers, as of the last scan."""
        if time.monotonic_ns() >= self._next_scan_ns:
            with self._lock:
                self._scan()
        return self._subscriptions

    def _scan(self) -> None:
        self._next_scan_ns = time.monotonic_ns() + _SCAN_PERIOD_NS
        subscriptions = Subscriptions.of(
            [opened.topic for opened in self._open.values() if opened.count_subscriptions()])
        # Keep an equal object: the comparison for each frame is then fast.
        if subscriptions != self._subscriptions:
            self._subscriptions = subscriptions

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        with self._lock:
            if not self._is_closed:
                opened = self._open
                for topic, data in messages:
                    opened[topic.name].publish_raw(data)

    def _create(self, topic: Topic) -> _OpenTopic:
        publisher = self._node.create_publisher(
            message_class(topic.type_name), topic.name,
            _profile(self._actor_qos if topic.actor else topic.qos), event_callbacks=_NO_EVENTS,
            qos_overriding_options=None if topic.actor
            else QoSOverridingOptions.with_default_policies())
        return _OpenTopic(
            topic, publisher, fast(publisher, 'publish_raw', publisher.publish),
            fast(publisher, 'get_subscription_count', publisher.get_subscription_count))


def message_class(type_name: str) -> type:
    """Return the generated class of ``type_name``, such as ``nav_msgs/msg/Odometry``."""
    package, _, name = type_name.split('/')
    return cast(type, getattr(import_module(f'{package}.msg'), name))


def _profile(qos: Qos) -> QoSProfile:
    return QoSProfile(
        depth=qos.depth,
        reliability=ReliabilityPolicy.RELIABLE if qos.reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if qos.latched else DurabilityPolicy.VOLATILE)


def publish_static(node: Node, data: bytes) -> Publisher:
    """Publish static transforms; without the publisher, later subscribers get none."""
    class_ = message_class(STATIC_TF_TOPIC.type_name)
    if find_spec('tf2_ros') is not None:
        from tf2_ros import StaticTransformBroadcaster
        broadcaster = StaticTransformBroadcaster(node)
        broadcaster.sendTransform(deserialize_message(data, class_).transforms)
        return broadcaster.pub_tf
    # The ROS 2 of PyPI has no tf2_ros.
    publisher = node.create_publisher(class_, STATIC_TF_TOPIC.name, _profile(STATIC_TF_TOPIC.qos))
    publisher.publish(data)
    return publisher


def fast(publisher: Publisher, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the C++ object of a publisher, twice as fast as its own ``method``."""
    return cast('Callable[..., Any]', getattr(getattr(publisher, 'handle', None), name, method))


def given_parameters(node: Node) -> Mapping[str, Parameter]:
    """Return the parameters given at start, declared or not; none if rclpy does not keep them."""
    return cast('Mapping[str, Parameter]', getattr(node, '_parameter_overrides', {}))


def release_state_machine(node: Node) -> None:
    """
    Destroy the state machine of a lifecycle node, which its ``destroy_node()`` leaves.

    It keeps the participant of the middleware: that was then destroyed by the exit of the process,
    beside its own threads, which ended some processes with SIGSEGV.
    """
    machine = getattr(node, '_state_machine', None)
    if machine is not None:
        machine.destroy_when_not_in_use()


def guard_service(node: Node, type_: type,
                  guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace the callback of a service that rclpy has made."""
    for service in node.services:
        if getattr(service, 'srv_type', None) is type_ and hasattr(service, 'callback'):
            service.callback = guard(service.callback)


def destroy_publisher(node: Node, publisher: Publisher) -> None:
    """Destroy a publisher through its node, which lists it; one that is destroyed is left."""
    with suppress(InvalidHandle):
        node.destroy_publisher(publisher)


def await_delivery(publishers: Iterable[Publisher], seconds: float) -> None:
    """Wait until the subscribers of publishers have the last messages."""
    # seconds: longest wait for all of them, s.
    start_s = time.monotonic()
    has_subscribers = False
    for publisher in publishers:
        has_subscribers |= publisher.get_subscription_count() > 0
        left_s = max(0.0, start_s + seconds - time.monotonic())
        with suppress(AttributeError, RuntimeError):
            publisher.wait_for_all_acked(Duration(seconds=left_s))
    identifier = rclpy.get_rmw_implementation_identifier()
    if has_subscribers and not any(name in identifier for name in _ACKNOWLEDGING):
        time.sleep(max(0.0, start_s + min(seconds, _IN_FLIGHT_S) - time.monotonic()))
