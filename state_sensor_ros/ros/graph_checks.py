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

from collections.abc import Callable
from importlib.util import find_spec
import os

from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.settings import CORE, Settings


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


class GraphWatch:
    """
    Warn once of each other node of the same name, publisher of an own topic, and unread publisher.

    An unread publisher is one on a topic to which the node subscribes, of another type, or
    best-effort while the subscription is reliable. All of them may start long after the node.

    :ivar exclusive: names of topics that are wrong with a second publisher, as those of a stack.
    """

    def __init__(self, node: Node, warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self.exclusive: set[str] = set()
        self._n_nodes = 1
        self._unread: set[tuple[str, str, str]] = set()

    def search(self) -> None:
        """Look at what is discovered now."""
        self.find_duplicates()
        self.find_others()
        self.find_unread()

    def find_duplicates(self) -> None:
        """Compare the name with those of other nodes: both publish on the same topics."""
        name = self._node.get_name(), self._node.get_namespace()
        n_nodes = self._node.get_node_names_and_namespaces().count(name)
        if n_nodes > self._n_nodes:
            self._warn(f'{n_nodes} nodes have the name {self._node.get_fully_qualified_name()} '
                       'and publish on the same topics: start each with a name of its own '
                       '(--ros-args -r __node:=NAME) or end the others')
        self._n_nodes = max(n_nodes, 1)

    def find_others(self) -> None:
        """Find other publishers of exclusive topics, once their nodes have names."""
        for topic in sorted(self.exclusive):
            names = set(rival_publishers(self._node, topic))
            if names and UNDISCOVERED not in names:
                names.discard(self._node.get_fully_qualified_name())
                self.exclusive.remove(topic)
                self._warn(f'{topic} has another publisher, '
                           f'{", ".join(sorted(names)) or "a node of the same name"}')

    def find_unread(self) -> None:
        """Find publishers whose messages are not received."""
        for subscription in self._node.subscriptions:
            topic, expected = subscription.topic_name, _type_name(subscription.msg_type)
            is_reliable = subscription.qos_profile.reliability is ReliabilityPolicy.RELIABLE
            for publisher in self._node.get_publishers_info_by_topic(topic):
                reliability = publisher.qos_profile.reliability
                reason = f'publishes {publisher.topic_type}; expected {expected}' \
                    if publisher.topic_type != expected else \
                    'is best-effort; expected a reliable publisher' \
                    if is_reliable and reliability is ReliabilityPolicy.BEST_EFFORT else ''
                found = topic, bytes(publisher.endpoint_gid).hex(), reason
                if reason and publisher.node_name != _UNKNOWN and found not in self._unread:
                    self._unread.add(found)
                    self._warn(f'{topic}: {publisher.node_namespace.rstrip("/")}/'
                               f'{publisher.node_name} {reason}: its messages are not received')


def _type_name(type_: type) -> str:
    package, kind, *_ = type_.__module__.split('.')
    return f'{package}/{kind}/{type_.__name__}'
