# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Repair of a truncated or damaged trajectory: a copy of its whole frames, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from state_sensor_ros.simulators import counted, TrajectoryFormatError, TruncatedError
from state_sensor_ros.simulators.json_text import is_strict_json
from state_sensor_ros.simulators.monodrive.trajectory import MAX_ELEMENT_BYTES, read_payloads

_BLOCK_BYTES = 1024 * 1024


def copy_whole_frames(source: BinaryIO, target: BinaryIO, name: str) -> tuple[int, str]:
    """
    Copy a trajectory up to its last whole frame, and end the array there.

    Frames after a damaged place are copied as well if each frame occupies one line.

    :param source: open for reading, at the beginning, seekable.
    :param target: open for writing.
    :param name: name of the file, for messages.
    :returns: the number of frames copied; a description of the loss, ``''`` for none.
    :raises TrajectoryFormatError: when there is no whole frame; nothing has been written then.
    """
    n_frames = end = 0
    have_lines = True
    try:
        for payload in read_payloads(source, name):
            n_frames += 1
            end = payload.offset + len(payload.data)
            have_lines = have_lines and b'\n' not in payload.data
    except TrajectoryFormatError as caught:
        error = caught
    else:
        n_bytes = source.seek(0, 2)
        _copy(source, target, n_bytes)
        return n_frames, ''
    if not n_frames or not _is_array(source):
        raise error
    _copy(source, target, end)
    if isinstance(error, TruncatedError):
        lost = error.lost
    else:
        n_lost = source.seek(0, 2) - end
        source.seek(end)
        for frame in _frames_on_lines(source) if have_lines else ():
            target.write(b',\n' + frame)
            n_frames += 1
            n_lost -= len(frame)
        place = error.where.removeprefix(f'{name}: ')
        lost = f'{counted(n_lost, "byte")} at {place} or behind it, where there is {error.found}'
    target.write(b'\n]\n')
    return n_frames, lost


def _is_array(source: BinaryIO) -> bool:
    source.seek(0)
    return source.read(_BLOCK_BYTES).lstrip(b'\xef\xbb\xbf \t\r\n').startswith(b'[')


def _copy(source: BinaryIO, target: BinaryIO, n_bytes: int) -> None:
    """Copy the first ``n_bytes``."""
    source.seek(0)
    while n_bytes and (block := source.read(min(n_bytes, _BLOCK_BYTES))):
        target.write(block)
        n_bytes -= len(block)


def _frames_on_lines(source: BinaryIO) -> Iterator[bytes]:
    """Yield the JSON objects that occupy one line each."""
    while line := source.readline(MAX_ELEMENT_BYTES):
        text = line.strip(b', \t\r\n')
        if text.startswith(b'{') and is_strict_json(text):
            yield text
