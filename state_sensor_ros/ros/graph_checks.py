# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Checks of the ROS graph: packages of messages, other publishers of topics, duplicate nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from importlib.util import find_spec
import os

from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import CORE, Settings
from state_sensor_ros.topics.topic import Topic


def check_packages(settings: Settings) -> None:
    """Check that the message packages are installed that the values of parameters need."""
    for parameter in CORE.names:
        for value, package in CORE.find(parameter).packages(CORE.value_of(settings, parameter)):
            if find_spec(package) is None:
                distribution = os.environ.get('ROS_DISTRO', '$ROS_DISTRO')
                raise ConfigError(
                    parameter, f'{value} needs the package {package}: apt install '
                    f'ros-{distribution}-{package.replace("_", "-")}, or `make setup STACKS=1` '
                    'if ROS 2 is from PyPI')


# Name that rmw gives the node of a publisher that is discovered before the node.
_UNKNOWN = '_NODE_NAME_UNKNOWN_'
# Text that stands for it.
UNDISCOVERED = 'a node that is not discovered yet'


def rival_publishers(node: Node, topic: str) -> list[str]:
    """Return the names of the nodes that publish a topic if there are several publishers."""
    # Returns a name with its namespace for each publisher, sorted; empty for fewer than two.
    if node.count_publishers(topic) < 2:
        return []
    return sorted(
        UNDISCOVERED if publisher.node_name == _UNKNOWN
        else f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'
        for publisher in node.get_publishers_info_by_topic(topic))


class OtherPublishers:
    """
    Warn of other publishers on the topics of a stack, which contradict those of the node.

    A stack may start long after the node.
    """

    # For the name of a publisher: discovery takes some time.
    _N_SEARCHES = 20

    def __init__(self, node: Node, topics: Iterable[Topic], warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self._topics = {topic.name for topic in topics if topic.is_exclusive}
        # Number of searches that found a publisher without a name, by topic.
        self._n_unnamed: Counter[str] = Counter()

    def search(self) -> None:
        """Warn once for each topic that has another publisher now."""
        for topic in sorted(self._topics):
            names = set(rival_publishers(self._node, topic))
            if UNDISCOVERED in names and self._n_unnamed[topic] < self._N_SEARCHES:
                self._n_unnamed[topic] += 1
            elif names:
                names.discard(self._node.get_fully_qualified_name())
                self._topics.remove(topic)
                self._warn(f'{topic} has another publisher, '
                           f'{", ".join(sorted(names)) or "a node of the same name"}')


class DuplicateNodes:
    """Warn of other nodes with the name of this one: both then publish on the same topics."""

    def __init__(self, node: Node, warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self._n_known = 1

    def search(self) -> None:
        """Compare the name with those of the nodes that are discovered now."""
        name = self._node.get_name(), self._node.get_namespace()
        n_nodes = self._node.get_node_names_and_namespaces().count(name)
        if n_nodes > self._n_known:
            self._warn(f'{n_nodes} nodes have the name {self._node.get_fully_qualified_name()} '
                       'and publish on the same topics: start each with a name of its own '
                       '(--ros-args -r __node:=NAME) or end the others')
        self._n_known = max(n_nodes, 1)


class UnreadPublishers:
    """
    Warn of publishers on the topics to which a node subscribes, whose messages it cannot receive.

    These have another type, or are best-effort while the subscription is reliable.
    """

    def __init__(self, node: Node, warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self._known: set[tuple[str, str, str]] = set()

    def search(self) -> None:
        """Look at the publishers that are discovered now."""
        for subscription in self._node.subscriptions:
            topic = subscription.topic_name
            expected = _type_name(subscription.msg_type)
            is_reliable = subscription.qos_profile.reliability is ReliabilityPolicy.RELIABLE
            for publisher in self._node.get_publishers_info_by_topic(topic):
                reliability = publisher.qos_profile.reliability
                reason = f'publishes {publisher.topic_type}; expected {expected}' \
                    if publisher.topic_type != expected else \
                    'is best-effort; expected a reliable publisher' \
                    if is_reliable and reliability is ReliabilityPolicy.BEST_EFFORT else ''
                found = topic, bytes(publisher.endpoint_gid).hex(), reason
                if reason and publisher.node_name != _UNKNOWN and found not in self._known:
                    self._known.add(found)
                    self._warn(f'{topic}: {publisher.node_namespace.rstrip("/")}/'
                               f'{publisher.node_name} {reason}: its messages are not received')


def _type_name(type_: type) -> str:
    package, kind, *_ = type_.__module__.split('.')
    return f'{package}/{kind}/{type_.__name__}'
