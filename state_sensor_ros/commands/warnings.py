# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A005
"""One warning for each kind of fault in a recording."""

from __future__ import annotations

from collections import Counter

from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.files.frame_writer import ACCELERATIONS, Losses
from state_sensor_ros.library.faults import CUT, FaultList, PAYLOAD


class Warnings:
    """
    The first warning of each kind, and the number of them.

    :param name: name of the recording.
    :ivar place: place of the frame that is being processed.
    :ivar losses: what a bag does not carry of the frames.
    """

    def __init__(self, name: str) -> None:
        self.place = ''
        self.losses = Losses('a bag', frozenset((ACCELERATIONS,)))
        self._name = name
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, kind: str, text: str) -> None:
        """
        Count a warning about the frame at :attr:`place`; keep the first text of each kind.

        :param kind: kind of the fault, with ``_`` for spaces.
        :param text: one line, without the place.
        """
        self._counts[kind] += 1
        self._first.setdefault(kind, f'{self.place}: {text}')

    def lines(self) -> list[str]:
        """Return one line for each kind, without the name of the recording."""
        return [*(_line(kind, count, self._first[kind]) for kind, count in self._counts.items()),
                *self.losses.lines]

    def show(self) -> None:
        """Print one line for each kind."""
        for line in self.lines():
            print_line(f'warning: {self._name}: {line}')


def show_faults(name: str, faults: FaultList) -> None:
    """
    Print one line for each kind of fault except a cut, which :func:`reading` reports.

    :param name: name of the recording.
    :param faults: faults after the last frame.
    """
    for kind, count in faults.counts.items():
        if kind != CUT:
            first = next(fault for fault in faults if fault.kind == kind)
            line = _line(kind, count, f'{first.place}: {first.text}')
            print_line(f'warning: {name}: {line}')


def _line(kind: str, count: int, first: str) -> str:
    what = 'payload left out' if kind == PAYLOAD else kind.replace('_', ' ')
    more = f' (and {count - 1} more of this kind)' if count > 1 else ''
    return f'{what}: {first}{more}'
