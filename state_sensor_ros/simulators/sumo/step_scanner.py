# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The texts of the steps of FCD output, found while it is read; no byte is searched twice."""

from __future__ import annotations

from collections.abc import Iterator
import re
from typing import BinaryIO

from state_sensor_ros.simulators import TrajectoryFormatError

# A comment, a step, or a tag of the root element.
_TOKEN = re.compile(rb'<!--|<timestep[\s/>]|</?fcd-export[\s/>]')
_LONGEST_TOKEN = len('</fcd-export>')
_BLOCK_BYTES = 262144
# Longest step; one of a hundred thousand vehicles takes 30 MB.
_MAX_STEP_BYTES = 67108864


class StepScanner:
    """
    Finds `<timestep>` elements.

    :param content: text, at its beginning.
    :param name: name of the file, for errors.
    :ivar n_steps: number of steps so far.
    :ivar is_in_step: whether the text has ended in a step.
    :ivar is_over: whether the root element has ended.
    """

    def __init__(self, content: BinaryIO, name: str) -> None:
        self.n_steps = 0
        self.is_in_step = self.is_over = False
        self._content, self._name = content, name
        self._text = bytearray()

    def steps(self) -> Iterator[bytes]:
        """
        Yield the text of each whole step.

        :raises TrajectoryFormatError: if a step is too long.
        """
        while token := self._next_token():
            self.is_in_step = token.startswith(b'<timestep')
            end = self._end_of(token)
            if not end:
                return
            if self.is_in_step:
                self.is_in_step = False
                self.n_steps += 1
                yield bytes(self._text[:end])
            elif b'fcd-export' in token:
                self.is_over = token.startswith(b'</') or self._is_empty_tag(end)
            del self._text[:end]

    def _next_token(self) -> bytes:
        """Return the next token, with which the text then begins; empty at the end."""
        while (match := _TOKEN.search(self._text)) is None:
            # A token may be cut at the end of a block.
            del self._text[:-_LONGEST_TOKEN]
            if not self._read():
                return b''
        token = bytes(match[0])
        del self._text[:match.start()]
        return token

    def _end_of(self, token: bytes) -> int:
        """Return the end of what begins with a token, 0 if the text ends before."""
        if token == b'<!--':
            return self._after(b'-->', len(token))
        # The last character may be the end of the tag.
        end = self._after(b'>', len(token) - 1)
        if self.is_in_step and end and not self._is_empty_tag(end):
            end = self._after(b'</timestep', end)
            return end and self._after(b'>', end)
        return end

    def _is_empty_tag(self, end: int) -> bool:
        return self._text.endswith(b'/>', 0, end)

    def _after(self, mark: bytes, begin: int) -> int:
        """Return the place after the next mark, 0 if there is none."""
        while (place := self._text.find(mark, begin)) < 0:
            begin = max(begin, len(self._text) - len(mark) + 1)
            if not self._read():
                return 0
        return place + len(mark)

    def _read(self) -> bool:
        """Append a block to the text; return whether there was one."""
        if len(self._text) > _MAX_STEP_BYTES:
            raise TrajectoryFormatError(
                f'{self._name}: step {self.n_steps + 1}', f'more than {_MAX_STEP_BYTES} bytes',
                f'at most {_MAX_STEP_BYTES}')
        block = self._content.read(_BLOCK_BYTES)
        self._text += block
        return bool(block)
