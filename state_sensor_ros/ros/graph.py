# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The topics that other nodes publish, and their messages, received by a separate node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
import os
import time

import rclpy
from rclpy.exceptions import InvalidTopicNameException
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions
from rclpy.topic_or_service_is_hidden import topic_or_service_is_hidden
from rclpy.validate_full_topic_name import validate_full_topic_name

from state_sensor_ros.errors import ConfigError, importing, TransportError
from state_sensor_ros.ros.log_folder import choose_log_folder
from state_sensor_ros.ros.topic_sink import message_class
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.topic import ORDINARY, Qos, Topic

# Topic and type by which the nodes of this package are recognized.
_OWN_TOPIC, _OWN_TYPE = 'actors', 'state_sensor_ros/msg/ActorArray'
_SPIN_S = 0.05
_DEPTH = 100
# Messages that come within this time, such as lines of the log, have no rate.
_BURST_S = 0.2


class Graph:
    """A node that discovers the other nodes of its ROS domain."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self.is_over = is_over
        self._node = rclpy.create_node(f'state_sensor_look_{os.getpid()}')
        self._executor = SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self.domain = os.environ.get('ROS_DOMAIN_ID') or '0'

    def close(self) -> None:
        """End the node."""
        self._executor.shutdown(0.0)
        self._node.destroy_node()

    def spin(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Receive messages, and discover other nodes."""
        # seconds: longest time, s.
        # Returns whether ``until`` ended it.
        end_s = time.monotonic() + seconds
        while not self.is_over():
            if until():
                return True
            if time.monotonic() >= end_s:
                return False
            self._executor.spin_once(_SPIN_S)
        return False

    def find_nodes(self, name: str, seconds: float) -> list[str]:
        """Return the nodes of this package, or the node of a name."""
        # name: name with its namespace, ``''`` for all nodes of this package.
        # seconds: longest wait for the first one, s.
        found: list[str] = []

        def search() -> bool:
            found[:] = self._nodes(name)
            return bool(found)

        if not self.spin(seconds, search):
            what = f'no node {name}' if name else 'no node of this package'
            raise TransportError(
                f'ROS domain {self.domain}',
                f'{what} is running; start `state_sensor_node` with the same ROS_DOMAIN_ID')
        # Other nodes, and the rest of their topics, are discovered at about the same time.
        self.spin(0.5)
        return self._nodes(name)

    def _nodes(self, name: str) -> list[str]:
        nodes = {f'{namespace.rstrip("/")}/{node}' for node, namespace
                 in self._node.get_node_names_and_namespaces()}
        if name:
            return [f'/{name.lstrip("/")}'] if f'/{name.lstrip("/")}' in nodes else []
        topics = {topic for topic, types in self._node.get_topic_names_and_types()
                  if _OWN_TYPE in types}
        return sorted(node for node in nodes if f'{node}/{_OWN_TOPIC}' in topics)

    def topics(self) -> list[str]:
        """Return the names of all topics with a publisher, without the hidden ones of actions."""
        return [topic for topic, _ in self._node.get_topic_names_and_types()
                if self.n_publishers(topic) and not topic_or_service_is_hidden(topic)]

    def topics_of(self, node: str) -> dict[str, str]:
        """Return the names of the topics that a node publishes, with their types."""
        namespace, _, name = node.rpartition('/')
        listed = self._node.get_publisher_names_and_types_by_node(name, namespace or '/')
        # Hidden ones are of actions.
        return {topic: types[0] for topic, types in sorted(listed)
                if not topic_or_service_is_hidden(topic)}

    def n_others(self, topic: str) -> int:
        """Return the number of other subscribers of ``topic``, to which this node subscribes."""
        return int(self._node.count_subscribers(topic)) - 1

    def n_publishers(self, topic: str) -> int:
        """Return the number of publishers of ``topic``."""
        return int(self._node.count_publishers(topic))

    def type_of(self, topic: str, seconds: float) -> str:
        """Return the type of a topic; ``seconds``: longest wait for a publisher, s."""
        try:
            validate_full_topic_name(topic)
        except InvalidTopicNameException as error:
            reason = str(error).splitlines()[0].removeprefix('Invalid topic name: ').rstrip(':')
            raise ConfigError('TOPIC', repr(topic), f'a name of ROS: {reason}') from error
        if not self.spin(seconds, lambda: bool(self._node.get_publishers_info_by_topic(topic))):
            raise TransportError(topic, f'no publisher in ROS domain {self.domain}',
                                 'a topic that `state_sensor topics` lists')
        info = self._node.get_publishers_info_by_topic(topic)
        type_name: str = info[0].topic_type
        return type_name

    def offer(self, name: str) -> Topic | None:
        """Return a topic with the QoS of its publisher; None without one."""
        for info in self._node.get_publishers_info_by_topic(name):
            profile = info.qos_profile
            return Topic(name, info.topic_type, Qos(
                profile.reliability == ReliabilityPolicy.RELIABLE,
                profile.durability == DurabilityPolicy.TRANSIENT_LOCAL,
                # Some middlewares do not report it.
                profile.depth or ORDINARY.depth))
        return None

    def subscribe(self, topic: str, type_name: str, receive: Callable[..., None], *,
                  raw: bool = False) -> None:
        """Receive the messages of a topic with the QoS of its publisher."""
        # type_name: ``package/msg/Name``.
        # receive: called with each message and, as a second argument, its ``MessageInfo`` if it
        # takes one.
        # raw: whether ``receive`` gets serialized messages.
        profile, info = QoSProfile(depth=_DEPTH), self._node.get_publishers_info_by_topic(topic)
        if info:
            profile.reliability = info[0].qos_profile.reliability
            profile.durability = info[0].qos_profile.durability
        with importing(topic):
            type_ = message_class(type_name)
        self._node.create_subscription(type_, topic, receive, profile, raw=raw)


@contextmanager
def looking(is_over: Callable[[], bool]) -> Iterator[Graph]:
    """Join the ROS graph while the block runs."""
    choose_log_folder()
    try:
        rclpy.init(args=[], signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        raise ConfigError('ROS', str(error).partition(', at /')[0], 'a working ROS environment, '
                          'with a ROS_DOMAIN_ID from 0 to 232') from error
    graph = Graph(is_over)
    try:
        yield graph
    finally:
        graph.close()
        rclpy.try_shutdown()


def rate_text(times_s: Sequence[float]) -> str:
    """Return the rate of messages as text; ``times_s``: times at which they were received, s."""
    if len(times_s) > 1 and times_s[-1] - times_s[0] > _BURST_S:
        return f'{(len(times_s) - 1) / (times_s[-1] - times_s[0]):.1f} Hz'
    return counted(len(times_s), 'message') if times_s else 'silent'
