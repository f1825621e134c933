# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor topics`: the topics that the node publishes, without the tools of ROS."""

from __future__ import annotations

import argparse
from functools import partial
import time

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import seconds
from state_sensor_ros.files.whole.standard_output import print_output

_FIND_S, _MEASURE_S = 5.0, 2.0
_EPILOG = """The rate is that of messages received within --seconds; topics without a reader are
read meanwhile. It needs rclpy: after `. scripts/env.sh`, or in a sourced ROS 2.

examples:
  state_sensor topics
  state_sensor topics --node /front/state_sensor --seconds 5"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options.

    :param parser: parser of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('--node', default='', metavar='NAME',
                        help='node, with its namespace (default: each node of this package)')
    parser.add_argument('--seconds', type=seconds, default=_MEASURE_S, metavar='S',
                        help=f'time of measuring (default: {_MEASURE_S:g})')


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Print a table of topics.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises StateSensorError: if there is no node.
    """
    from state_sensor_ros.ros.graph import looking, rate_text
    interruption.unblock_errors()
    interruption.describe(lambda: '')
    with looking(lambda: bool(interruption.number)) as graph:
        nodes = graph.find_nodes(args.node, _FIND_S)
        topics = {name: type_name for node in nodes
                  for name, type_name in graph.topics_of(node).items()}
        received: dict[str, list[float]] = {name: [] for name in topics}

        def receive(name: str, _: object) -> None:
            received[name].append(time.monotonic())

        for name, type_name in topics.items():
            graph.subscribe(name, type_name, partial(receive, name), raw=True)
        graph.spin(args.seconds)
        # Not before: other readers are discovered a little later than the node.
        readers = {name: str(graph.n_others(name)) for name in topics}
    rows = [('topic', 'type', 'rate', 'readers')]
    for name, type_name in topics.items():
        times = received[name]
        rows.append((name, type_name, rate_text(times), readers[name]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, type_name, rate, number in rows:
        texts = (f'{name:<{widths[0]}}', f'{type_name:<{widths[1]}}', f'{rate:>{widths[2]}}',
                 f'{number:>{widths[3]}}')
        print_output('  '.join(texts))
