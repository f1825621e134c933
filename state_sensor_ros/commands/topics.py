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
from collections.abc import Mapping, Sequence
from functools import partial
import re
import time
from typing import NamedTuple

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.files.whole.output import print_output
from state_sensor_ros.frame import NS_PER_S
from state_sensor_ros.ros.graph import looking, rate_text

_FIND_S = 5.0
# Topics of one actor, ~/actors/<actor>/…
_OF_ACTOR = re.compile(r'^(.*?)/actors/[^/]+/')


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """Print a table of topics."""
    interruption.unblock_errors()
    interruption.describe(lambda: '')
    with looking(lambda: bool(interruption.number)) as graph:
        nodes = graph.find_nodes(args.node, _FIND_S)
        topics = {name: type_name for node in nodes
                  for name, type_name in graph.topics_of(node).items()}
        received: dict[str, list[float]] = {name: [] for name in topics}

        def receive(name: str, _: object, info: Mapping[str, int]) -> None:
            # Messages that arrive while the next topics are subscribed to are taken at once later.
            received[name].append(info['received_timestamp'] / NS_PER_S or time.monotonic())

        for name, type_name in topics.items():
            graph.subscribe(name, type_name, partial(receive, name), raw=True)
        graph.spin(args.seconds)
        # Not before: other readers are discovered a little later than the node.
        readers = {name: graph.n_others(name) for name in topics}
    rows = [TopicRow(name, type_name, received[name], readers[name])
            for name, type_name in topics.items()]
    print_output('\n'.join(aligned(table(rows) if args.all else grouped(rows))))


class TopicRow(NamedTuple):
    """A topic: name, type, times at which messages were received, s, and number of readers."""

    name: str
    type_name: str
    times_s: Sequence[float]
    n_readers: int

    @property
    def pattern(self) -> str:
        """Name of all topics of its kind: ``*`` in place of the name of an actor."""
        return _OF_ACTOR.sub(r'\1/actors/*/', self.name)


def table(rows: Sequence[TopicRow]) -> list[tuple[str, ...]]:
    """Return a heading and the cells of each topic."""
    return [('topic', 'type', 'rate', 'readers'), *(
        (row.name, row.type_name, rate_text(row.times_s), str(row.n_readers)) for row in rows)]


def grouped(rows: Sequence[TopicRow]) -> list[tuple[str, ...]]:
    """Return a heading and the cells of each topic, in one row those of all actors of one kind."""
    kinds: dict[tuple[str, str], list[TopicRow]] = {}
    for row in rows:
        kinds.setdefault((row.pattern, row.type_name), []).append(row)
    cells: list[tuple[str, ...]] = [('topic', 'type', 'topics', 'rate of each', 'readers of each')]
    for (name, type_name), alike in kinds.items():
        # The actor in the middle, of those in the order of their messages.
        middle = sorted(alike, key=lambda row: len(row.times_s))[len(alike) // 2]
        most = max(row.n_readers for row in alike)
        cells.append((name, type_name, str(len(alike)), rate_text(middle.times_s), str(most)))
    return cells


def aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """Return a line for each row; numbers, from the third column on, are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ['  '.join(text.ljust(width) if i < 2 else text.rjust(width)
                      for i, (text, width) in enumerate(zip(row, widths, strict=True)))
            for row in cells]
