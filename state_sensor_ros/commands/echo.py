# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor echo`: the messages of a topic as text, without the tools of ROS."""

from __future__ import annotations

import argparse
from typing import Any

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.printing import waiting_named
from state_sensor_ros.errors import ConfigError, UsageError
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.ros.graph import looking
from state_sensor_ros.ros.message_text import csv_table, csv_text, message_words

_FIND_S = 5.0
_FOREVER_S = 1e9


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Print messages.

    :param args: the parsed options.
    :param interruption: signal handling of the program.
    :raises StateSensorError: if nothing publishes the topic.
    :raises KeyboardInterrupt: if a signal came before the one message of ``--once``.
    """
    if args.node and args.topic.startswith('/'):
        raise UsageError(f'--node is for a name below the node; {args.topic} is a full name')
    interruption.is_endless = not args.once
    interruption.unblock_errors()
    interruption.describe(lambda: '')
    with looking(lambda: bool(interruption.number)) as graph:
        topic = args.topic
        if not topic.startswith('/'):
            nodes = graph.find_nodes(args.node, _FIND_S)
            if len(nodes) > 1:
                raise ConfigError('--node', f'{len(nodes)} nodes: {", ".join(nodes)}',
                                  'the name of one')
            topic = f'{nodes[0]}/{topic.removeprefix("~/")}'
        printer = _Printer(is_csv=args.csv, is_once=args.once)
        graph.subscribe(topic, graph.type_of(topic, _FIND_S), printer.show)
        with waiting_named(topic, lambda: printer.n_messages > 0, lambda: '',
                           is_quiet=args.quiet, what='message'):
            graph.spin(_FOREVER_S, lambda: args.once and printer.n_messages > 0)


class _Printer:
    """Prints messages; an error of printing ends the command."""

    def __init__(self, *, is_csv: bool, is_once: bool) -> None:
        self.n_messages = 0
        self._is_csv, self._is_once = is_csv, is_once
        self._header: list[str] = []

    def show(self, message: Any) -> None:  # noqa: ANN401
        """
        Print a message.

        :param message: message of any type.
        """
        if self._is_once and self.n_messages:
            return
        self.n_messages += 1
        if not self._is_csv:
            print_output(message_words(message), end='\n' if self._is_once else '\n---\n')
            return
        header, rows = csv_table(message)
        if rows and not self._header:
            self._header = header
            rows = [header, *rows]
        if rows:
            print_output(csv_text(rows))
