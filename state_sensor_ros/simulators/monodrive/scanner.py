# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
r"""
Ends of JSON values in text that arrives in pieces, found with numpy at more than 100 MB/s.

Closing brackets. The text is not checked, it need not be JSON. Example, ``[{"a": "]\""}, 3]``::

    text        [  {  "  a  "  :     "  ]  \  "  "  }  ,     3  ]
    escaped     [  {  "  a  "  :     "  ]  _  _  "  }  ,     3  ]     each escape is replaced
    class      +1 +1  "  .  "  .  .  " -1  .  .  " -1  .  .  . -1     one table look-up per byte
    n_quotes    0  0  1  .  2  .  .  3  3  .  .  4  4  .  .  .  4     odd: inside a string
    step       +1 +1  0  .  0  .  .  0  0  .  .  0 -1  .  .  . -1     class outside of strings
    depth       1  2  2  .  2  .  .  2  2  .  .  2  1  .  .  .  0     sum of the steps

A ``}`` with depth 1 ends a frame of an array. From one piece of a text to the next, the depth and
"in string" are carried over; a backslash at the end of a piece is scanned with the next piece.

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

from state_sensor_ros.simulators.json_values import is_strict_json

_OPEN, _CLOSE, _QUOTE = 1, -1, 2
_CLASSES = bytes({**dict.fromkeys(range(256), 0), **dict.fromkeys(b'{[', _OPEN),
                  **dict.fromkeys(b'}]', _CLOSE % 256), ord('"'): _QUOTE}.values())
_ESCAPED = re.compile(rb'\\.', re.DOTALL)


class BracketScanner:
    """Find the closing brackets down to a depth in text that arrives in pieces."""

    def __init__(self, outer: int, depth: int) -> None:
        self.outer = outer
        self._depth = depth
        self._in_string = False

    def scan(self, text: bytes) -> tuple[list[int], list[int], int]:
        """Scan the next piece of the text."""
        # Returns offsets in ``text`` after the brackets found; the depths there; the number of
        # bytes scanned, which excludes a backslash at the end.
        if b'\\' in text:
            text = _ESCAPED.sub(b'__', text).removesuffix(b'\\')
        classes = np.frombuffer(text.translate(_CLASSES), np.int8)
        # A tenth of the bytes of indented text has a class, a quarter of compact text. The search
        # in booleans takes half the time of that in int8.
        at = np.flatnonzero(classes != 0)
        kinds = classes[at]
        is_quote = kinds == _QUOTE
        # Odd from an opening quote on. Only the parity is used, so the sum may wrap.
        n_quotes = np.cumsum(is_quote, dtype=np.uint8) + np.uint8(self._in_string)
        steps = np.where((n_quotes & 1).astype(np.bool_) | is_quote, np.int8(0), kinds)
        depths = np.cumsum(steps, dtype=np.int32) + self._depth
        if len(at):
            self._in_string, self._depth = bool(n_quotes[-1] & 1), int(depths[-1])
        found = np.flatnonzero((steps == _CLOSE) & (depths <= self.outer))
        return (at[found] + 1).tolist(), depths[found].tolist(), len(text)


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
    :returns: the offset after the frame; INCOMPLETE when more text must be read to decide; NO_LINE
        when the frame does not occupy one line: its brackets must be scanned.
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
