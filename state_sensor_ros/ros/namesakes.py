# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A search for other nodes with the name of this one, which publish on the same topics."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node


class Namesakes:
    """
    Warn of other nodes with the name of this one: both then publish on the same topics.

    :param node: the node that warns.
    :param warn: called with one line, and again if the number of such nodes grows.
    """

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
