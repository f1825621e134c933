# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Frames that have a line of a trajectory to themselves, found without counting brackets.

May know: JSON text, ends of lines. Must not know: files, frames. Most trajectories are written so,
ours among them, and finding the end of a line is five times as fast.
"""

from __future__ import annotations

import re

import msgspec

NO_LINE, INCOMPLETE = -1, 0

_LEAD = re.compile(rb'[ \t\r\n]*(,?)[ \t\r\n]*')
_BLANKS = b' \t\r'
_STRICT_JSON = msgspec.json.Decoder(msgspec.Raw)


def frame_end_on_line(text: bytearray, *, is_first: bool) -> int:
    """
    Find the end of the frame at the beginning of ``text`` if it fills its line.

    Between the brackets of the array, what begins with a brace and is whole JSON up to the end of
    the line is one frame: there is no way to go on with it.

    :param text: with the comma before the frame, unless ``is_first``.
    :returns: the offset behind the frame; INCOMPLETE where more text must be read to tell;
        NO_LINE where the brackets must be counted.
    """
    lead = _LEAD.match(text)
    assert lead is not None
    begin = lead.end()
    if begin == len(text):
        return INCOMPLETE
    # Without a line of its own before it, there is none to be waited for behind it.
    if bool(lead[1]) == is_first or b'\n' not in lead[0] or not text.startswith(b'{', begin):
        return NO_LINE
    end = text.find(b'\n', begin)
    if end < 0:
        return INCOMPLETE
    frame = bytes(text[begin:end]).rstrip(_BLANKS).removesuffix(b',').rstrip(_BLANKS)
    try:
        _STRICT_JSON.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_LINE
    return begin + len(frame)
