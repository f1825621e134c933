# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
r"""
Ends of trajectory frames that occupy one line each, found without the bracket scanner.

Most trajectories are written so, also those of this package; the search for a line feed takes a
fifth of the time. Example, ``[\n{"a": 1},\n{"b": 2}\n]`` after its ``[``::

    offset  0  1  2  3  4  5  6  7  8  9 10 11 12
    text   \n  {  "  a  "  :     1  }  , \n  {  "  …
            |  |                       |  line feed: the line is complete
            |  begin of the frame      end of the frame, result 9; the comma is the next frame's
            end of the line before
"""

from __future__ import annotations

from collections.abc import Callable
import re

from state_sensor_ros.simulators.json_text import is_strict_json

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
