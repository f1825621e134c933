# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
r"""
Ends of JSON values in text, found with numpy at more than 100 MB/s.

Closing brackets and commas. The text is not checked, it need not be JSON. Example,
``[{"a": "]\""}, 3]``::

    text        [  {  "  a  "  :     "  ]  \  "  "  }  ,     3  ]
    escaped     [  {  "  a  "  :     "  ]  _  _  "  }  ,     3  ]     each escape is replaced
    class      +1 +1  "  .  "  .  .  " -1  .  .  " -1  ,  .  . -1     one table look-up per byte
    n_quotes    0  0  1  .  2  .  .  3  3  .  .  4  4  4  .  .  4     odd: inside a string
    in string   -  -  x  .  x  .  .  x  x  .  .  x  -  -  .  .  -     or a quote itself
    step       +1 +1  0  .  0  .  .  0  0  .  .  0 -1  0  .  . -1     class outside of strings
    depth       1  2  2  .  2  .  .  2  2  .  .  2  1  1  .  .  0     sum of the steps

From the third row on, only bytes with a class are kept. A ``}`` with depth 1 ends a frame of an
array, a comma with depth 1 divides two elements. From one piece of a text to the next, the depth
and "in string" are carried over; a backslash at the end of a piece is scanned with the next piece.

Ends of frames that occupy one line each. Most trajectories are written so, also those of this
package; the search for a line feed takes a fifth of the time. Example,
``[\n{"a": 1},\n{"b": 2}\n]`` after its ``[``::

    offset  0  1  2  3  4  5  6  7  8  9 10 11 12
    text   \n  {  "  a  "  :     1  }  , \n  {  "  …
            |  |                       |  line feed: the line is complete
            |  begin of the frame      end of the frame, result 9; the comma is the next frame's
            end of the line before
"""

from __future__ import annotations

from collections.abc import Callable
import re

import numpy as np
import numpy.typing as npt

from state_sensor_ros.simulators.json_values import is_strict_json

_OPEN, _CLOSE, _QUOTE, _COMMA = 1, -1, 2, 3
# A long array is scanned in pieces of this size: numpy takes up to 40 bytes of memory a byte.
_PIECE_BYTES = 1 << 20


def _classes(separators: bytes = b'') -> bytes:
    """Return the class of each of the 256 bytes, 0 for those without one."""
    table = np.zeros(256, np.int8)
    table[list(b'{[')], table[list(b'}]')], table[list(b'"')] = _OPEN, _CLOSE, _QUOTE
    table[list(separators)] = _COMMA
    return table.tobytes()


_BRACKETS, _BRACKETS_AND_COMMAS = _classes(), _classes(b',')
_ESCAPED = re.compile(rb'\\.', re.DOTALL)


class _Structure:
    """
    Brackets and separators outside of strings, in text that arrives in pieces.

    :param classes: class of each byte.
    :param depth: depth of the first byte.
    """

    def __init__(self, classes: bytes, depth: int) -> None:
        self._class_of_byte = classes
        self._depth = depth
        self._in_string = False

    def scan(self, text: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8],
                                         npt.NDArray[np.int32], int]:
        """
        Scan the next piece of the text.

        :param text: text after the bytes that were scanned before.
        :returns: of the bytes with a class: offsets in ``text``, class (0 inside a string) and
            depth after the byte; and the number of bytes scanned, which excludes a backslash at
            the end.
        """
        if b'\\' in text:
            text = _ESCAPED.sub(b'__', text).removesuffix(b'\\')
        classes = np.frombuffer(text.translate(self._class_of_byte), np.int8)
        # A tenth of the bytes of indented text has a class, a quarter of compact text. The search
        # in booleans takes half the time of that in int8.
        at = np.flatnonzero(classes != 0)
        kinds = classes[at]
        is_quote = kinds == _QUOTE
        # Odd from an opening quote on. Only the parity is used, so the sum may wrap.
        n_quotes = np.cumsum(is_quote, dtype=np.uint8) + np.uint8(self._in_string)
        is_text = (n_quotes & 1).astype(np.bool_) | is_quote
        kinds = np.where(is_text, np.int8(0), kinds)
        steps = np.where(kinds == _COMMA, np.int8(0), kinds)
        depths = np.cumsum(steps, dtype=np.int32) + self._depth
        if len(at):
            self._in_string, self._depth = bool(n_quotes[-1] & 1), int(depths[-1])
        return at, kinds, depths, len(text)


class BracketScanner:
    """
    Find the closing brackets down to a depth in text that arrives in pieces.

    :param outer: greatest depth after the brackets to find.
    :param depth: depth of the first byte.
    """

    def __init__(self, outer: int, depth: int) -> None:
        self.outer = outer
        self._structure = _Structure(_BRACKETS, depth)

    def scan(self, text: bytes) -> tuple[list[int], list[int], int]:
        """
        Scan the next piece of the text.

        :param text: text after the bytes that were scanned before.
        :returns: offsets in ``text`` after the brackets found; the depths there; the number of
            bytes scanned, which excludes a backslash at the end.
        """
        at, kinds, depths, n_scanned = self._structure.scan(text)
        found = np.flatnonzero((kinds == _CLOSE) & (depths <= self.outer))
        return (at[found] + 1).tolist(), depths[found].tolist(), n_scanned


def split_array(text: bytes, most: int) -> list[bytes]:
    """
    Split an array at its commas, in time and memory linear in its length.

    :param text: begins with ``[``.
    :param most: greatest number of elements.
    :returns: the elements without blanks around them, which need not be JSON; none when the array
        is empty, does not end with the text or has more than ``most`` elements.
    """
    structure = _Structure(_BRACKETS_AND_COMMAS, 0)
    begin, ends = 0, []
    while begin < len(text):
        at, kinds, depths, n_scanned = structure.scan(text[begin:begin + _PIECE_BYTES])
        ends += (at[(depths == 1) & (kinds == _COMMA)] + begin).tolist()
        closed = at[(depths <= 0) & (kinds != 0)]
        if len(ends) >= most or (len(closed) and begin + closed[0] != len(text) - 1):
            return []
        if len(closed):
            ends.append(len(text) - 1)
            elements = [text[i + 1:j].strip() for i, j in zip([0, *ends], ends, strict=False)]
            return elements if len(elements) > 1 or elements[0] else []
        begin += n_scanned or 1
    return []


NO_LINE, INCOMPLETE = -1, 0

_LEAD = re.compile(rb'[ \t\r\n]*(,?)[ \t\r\n]*')
_BLANKS = b' \t\r'


def frame_end_on_line(text: bytearray, *, is_first: bool,
                      is_json: Callable[[bytes], bool] = is_strict_json) -> int:
    """
    Return the end of the frame at the beginning of ``text`` if it occupies one line.

    Inside the array, text that begins with a brace and is a JSON value up to the end of its line
    is one frame: no text that follows can belong to it.

    :param text: with the comma before the frame, unless ``is_first``.
    :param is_first: whether it is the first frame of the array.
    :param is_json: returns whether a text is strict JSON.
    :returns: the offset after the frame; INCOMPLETE when more text must be read to decide;
        NO_LINE when the frame does not occupy one line: its brackets must be scanned.
    """
    lead = _LEAD.match(text)
    assert lead is not None
    begin = lead.end()
    if begin == len(text):
        return INCOMPLETE
    # A frame that does not begin a line is not expected to end one: do not wait for a line feed.
    if bool(lead[1]) == is_first or b'\n' not in lead[0] or not text.startswith(b'{', begin):
        return NO_LINE
    end = text.find(b'\n', begin)
    if end < 0:
        return INCOMPLETE
    # Where the comma ends the line, one copy is enough.
    ends_with_comma = text.endswith(b',', begin, end)
    frame = bytes(memoryview(text)[begin:end - ends_with_comma]).rstrip(_BLANKS)
    if not ends_with_comma:
        frame = frame.removesuffix(b',').rstrip(_BLANKS)
    return begin + len(frame) if is_json(frame) else NO_LINE
