# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Checks of the outputs for autonomy stacks: their packages, and other publishers of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
import os

from rclpy.node import Node
from rclpy.topic_endpoint_info import TopicEndpointInfo

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.topics.topic import Topic
from state_sensor_ros.topics.topic_list import packages_of


def check_packages(outputs: Iterable[str]) -> None:
    """
    Check that the message packages of outputs are installed.

    :param outputs: of the parameter.
    :raises ConfigError: naming the output, the package and how to get it.
    """
    for output in outputs:
        for package in packages_of(output):
            check_package('outputs', output, package)


def check_package(parameter: str, value: str, package: str) -> None:
    """
    Check that a message package is installed.

    :param parameter: name of the parameter that needs it.
    :param value: value of the parameter that needs it.
    :param package: its name.
    :raises ConfigError: naming all of them and how to get the package.
    """
    if find_spec(package) is None:
        name = package.replace('_', '-')
        distribution = os.environ.get('ROS_DISTRO', '$ROS_DISTRO')
        raise ConfigError(
            parameter, f'{value} without the package {package}',
            f'it installed: apt install ros-{distribution}-{name}, or `make '
            'setup STACKS=1` where ROS 2 is from PyPI')


# rmw's name of the node of a publisher that is discovered before its node.
_UNKNOWN = '_NODE_NAME_UNKNOWN_'
# The text for it.
UNDISCOVERED = 'of a node that is not discovered yet'


def publisher_name(publisher: TopicEndpointInfo) -> str:
    """Return the name of the node of a publisher, with its namespace."""
    if publisher.node_name == _UNKNOWN:
        return UNDISCOVERED
    return f'{publisher.node_namespace.rstrip("/")}/{publisher.node_name}'


class OtherPublishers:
    """
    Search for other publishers on the topics of a stack, which would contradict those of the node.

    Discovery takes some time, so the search is repeated some times.

    :param node: that publishes.
    :param topics: of the node; those of a stack are searched.
    :param warn: called once for each topic that has another publisher.
    """

    _N_SEARCHES = 20

    def __init__(self, node: Node, topics: Iterable[Topic], warn: Callable[[str], None]) -> None:
        self._node, self._warn = node, warn
        self._topics = [topic.name for topic in topics if topic.is_exclusive]
        self._n_left = self._N_SEARCHES

    def search(self) -> None:
        """Warn of what was found since the last search."""
        if not self._n_left:
            return
        self._n_left -= 1
        own = self._node.get_name(), self._node.get_namespace()
        for name in list(self._topics):
            if self._node.count_publishers(name) < 2:
                continue
            publishers = self._node.get_publishers_info_by_topic(name)
            if self._n_left and any(each.node_name == _UNKNOWN for each in publishers):
                continue
            others = sorted({publisher_name(each) for each in publishers
                             if (each.node_name, each.node_namespace) != own})
            self._topics.remove(name)
            self._warn(f'{name} has another publisher, {", ".join(others) or "of this name"}')
