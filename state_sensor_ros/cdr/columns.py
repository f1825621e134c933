# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Columns of the numbers and texts of a serialized message: the way back from a template.

A type is compiled into steps. Numbers that follow each other are one run, whose offsets depend
only on its phase, the position modulo 8. A walk along a message collects its texts and the offset
of each run; of most messages, the texts and lengths are those of the message before, and only the
numbers are taken, from the same offsets.

Example: ``string name, geometry_msgs/Point[] points, uint8 kind`` has the steps text ``name``, for
each of ``points`` the run of ``points`` (3 float64), and the run of ``kind`` (1 uint8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from state_sensor_ros.cdr.definitions import Definitions, PRIMITIVES, SEQUENCE
from state_sensor_ros.cdr.templates import ALIGNMENT, COUNT, ENCAPSULATION


class _Run:
    """Numbers that follow each other: blocks of one type each, by their names."""

    def __init__(self) -> None:
        self.blocks: dict[str, tuple[np.dtype[Any], int | None]] = {}
        # By phase: size up to the end; and for each block, offset from the begin.
        self.sizes = [0] * ALIGNMENT
        self.offsets: dict[str, list[int]] = {}

    def add(self, name: str, dtype: np.dtype[Any], length: int | None) -> None:
        """Add a block; ``length``: its numbers, None for a single one."""
        self.blocks[name] = dtype, length
        ends = [phase + size for phase, size in enumerate(self.sizes)]
        begins = [_up(end, dtype.itemsize) for end in ends]
        self.offsets[name] = [begin - phase for phase, begin in enumerate(begins)]
        n_bytes = dtype.itemsize * (1 if length is None else length)
        self.sizes = [begin + n_bytes - phase for phase, begin in enumerate(begins)]


class _Text(str):
    """Name of a text, in a sequence of texts if it ends with ``[]``."""

    __slots__ = ()


_Each: TypeAlias = tuple[str, 'list[_Step]']
_Step: TypeAlias = _Run | _Text | _Each


class ColumnReader:
    """
    Reads messages of a type, one after another.

    Names of columns are paths of fields with points. A field whose numbers are all of one type,
    such as a pose, is one column.

    >>> from state_sensor_ros.cdr.definitions import load_definitions
    >>> reader = ColumnReader(load_definitions(), 'std_msgs/msg/Header')
    >>> reader.read(bytes.fromhex('00010000 01000000 02000000 02000000 6100'))
    >>> reader.numbers('stamp.sec').tolist(), reader.texts('frame_id')
    ([1], ['a'])
    """

    def __init__(self, definitions: Definitions, type_name: str) -> None:
        self._definitions = definitions
        self._steps: list[_Step] = []
        self._add(type_name, '', self._steps)
        self._body = b''
        self._texts: dict[str, list[Any]] = {}
        self._lengths: dict[str, list[int]] = {}
        # Indices of the numbers of each column in the message, counted in them.
        self._indices: dict[str, tuple[np.dtype[Any], npt.NDArray[np.int64]]] = {}
        # 0 where a byte is of a number, 255 elsewhere; the bytes elsewhere.
        self._mask: npt.NDArray[Any] = np.zeros(0, np.uint8)
        self._constants, self._is_read = self._mask, False

    def read(self, data: bytes) -> bool:
        """
        Take the next message.

        :param data: serialized message with its encapsulation.
        :returns: whether its texts and lengths are those of the message before.
        :raises ValueError: if it is no such message; also IndexError or struct.error.
        """
        before, self._body = self._body, data[len(ENCAPSULATION):]
        octets = np.frombuffer(self._body, np.uint8)
        if self._is_read and len(before) == len(self._body) and bool(
                ((octets & self._mask) == self._constants).all()):
            return True
        self._is_read, walk = False, _Walk(self._body)
        at = walk.along(self._steps, 0)
        if data[1] != ENCAPSULATION[1] or not at <= len(self._body) < at + len(ENCAPSULATION):
            raise ValueError(f'{len(self._body)} bytes in place of {at}, little-endian')
        self._texts, self._lengths = walk.texts, walk.lengths
        self._set_indices(walk.begins)
        self._constants, self._is_read = octets & self._mask, True
        return False

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """Return a column: (N,) or (N, numbers), an entry for each element that has the field."""
        dtype, indices = self._indices[name]
        return np.frombuffer(self._body, dtype, len(self._body) // dtype.itemsize)[indices]

    def texts(self, name: str) -> list[Any]:
        """Return a column of texts, or of tuples of texts."""
        return self._texts.get(name, [])

    def lengths(self, name: str) -> list[int]:
        """Return the lengths of a sequence of messages, one of each element that has the field."""
        return self._lengths.get(name, [])

    def _set_indices(self, begins: Mapping[_Run, list[int]]) -> None:
        self._mask = np.full(len(self._body), 255, np.uint8)
        self._indices = {}
        for run in _runs(self._steps):
            at = np.array(begins.get(run, ()), np.int64)
            for name, (dtype, length) in run.blocks.items():
                offsets = at + np.array(run.offsets[name])[at % ALIGNMENT]
                n_bytes = dtype.itemsize * (1 if length is None else length)
                self._mask[offsets[:, None] + np.arange(n_bytes)] = 0
                indices = offsets // dtype.itemsize
                self._indices[name] = dtype, indices if length is None \
                    else indices[:, None] + np.arange(length)

    def _add(self, type_name: str, prefix: str, steps: list[_Step]) -> None:
        """Append the steps of the fields of a message."""
        for field in self._definitions[type_name]:
            name, is_number = prefix + field.name, field.type_name in PRIMITIVES
            if field.type_name == 'string':
                steps.append(_Text(f'{name}[]' if field.length == SEQUENCE else name))
            elif field.length == SEQUENCE:
                elements: list[_Step] = []
                if is_number:
                    _run_at(elements).add(name, np.dtype(self._leaves(field.type_name)[0]), None)
                else:
                    self._add(field.type_name, f'{name}.', elements)
                steps.append((name, elements))
            else:
                leaves = self._leaves(field.type_name) * (field.length or 1)
                if len({*leaves}) == 1 and '' not in leaves:
                    _run_at(steps).add(name, np.dtype(leaves[0]), None if is_number and (
                        field.length is None) else len(leaves))
                else:
                    self._add(field.type_name, f'{name}.', steps)

    def _leaves(self, type_name: str) -> list[str]:
        """Return the types of the numbers of a field, '' for what is not a number."""
        if type_name in PRIMITIVES:
            return [PRIMITIVES[type_name].format[-1:]]
        if type_name == 'string':
            return ['']
        return [leaf for field in self._definitions[type_name]
                for leaf in ([''] if field.length == SEQUENCE
                             else self._leaves(field.type_name) * (field.length or 1))]


class _Walk:
    """One pass over a message: texts and lengths by name, offsets of the runs."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.texts: dict[str, list[Any]] = {}
        self.lengths: dict[str, list[int]] = {}
        self.begins: dict[_Run, list[int]] = {}

    def along(self, steps: list[_Step], at: int) -> int:
        """Return the offset after some steps from an offset on."""
        for step in steps:
            if isinstance(step, _Run):
                self.begins.setdefault(step, []).append(at)
                at += step.sizes[at % ALIGNMENT]
            elif isinstance(step, _Text):
                if step.endswith('[]'):
                    length, at = self._length(at)
                    texts = []
                    for _ in range(length):
                        text, at = self._text(at)
                        texts.append(text)
                    self.texts.setdefault(step[:-2], []).append(tuple(texts))
                else:
                    text, at = self._text(at)
                    self.texts.setdefault(step, []).append(text)
            else:
                name, inner = step
                length, at = self._length(at)
                self.lengths.setdefault(name, []).append(length)
                for _ in range(length):
                    at = self.along(inner, at)
        return at

    def _text(self, at: int) -> tuple[str, int]:
        length, at = self._length(at)
        return str(self._body[at:at + max(length - 1, 0)], 'utf-8'), at + length

    def _length(self, at: int) -> tuple[int, int]:
        at = _up(at, 4)
        [length] = COUNT.unpack_from(self._body, at)
        if length > len(self._body):
            raise ValueError(f'a length of {length}')
        return length, at + 4


def _up(at: int, n_bytes: int) -> int:
    """Return the first multiple of a power of two from an offset on."""
    return (at + n_bytes - 1) & -n_bytes


def _run_at(steps: list[_Step]) -> _Run:
    """Return the run at the end of some steps, a new one if there is none."""
    last = steps[-1] if steps else None
    if isinstance(last, _Run):
        return last
    run = _Run()
    steps.append(run)
    return run


def _runs(steps: list[_Step]) -> list[_Run]:
    return [run for step in steps for run in (
        [step] if isinstance(step, _Run) else [] if isinstance(step, str) else _runs(step[1]))]
