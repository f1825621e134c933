# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Where brackets of JSON text close and where its arrays divide, at more than 100 MB/s.

May know: strings, escapes, depth. Must not know: whether the text is JSON at all, files, frames.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

_OPEN, _CLOSE, _QUOTE, _COMMA = 1, -1, 2, 3
# A long array is scanned in pieces of this size: numpy takes up to 40 bytes for each of them.
_PIECE_BYTES = 1 << 20


def _classes(separators: bytes = b'') -> bytes:
    """Map each byte to what it means to us; 0 is nothing."""
    table = np.zeros(256, np.int8)
    table[list(b'{[')], table[list(b'}]')], table[list(b'"')] = _OPEN, _CLOSE, _QUOTE
    table[list(separators)] = _COMMA
    return table.tobytes()


_BRACKETS, _BRACKETS_AND_COMMAS = _classes(), _classes(b',')
_ESCAPED = re.compile(rb'\\.', re.DOTALL)


class _Structure:
    """
    Brackets and separators outside of strings, in text that arrives in pieces.

    :param classes: of each byte.
    :param depth: of the first byte.
    """

    def __init__(self, classes: bytes, depth: int) -> None:
        self._class_of_byte = classes
        self._depth = depth
        self._in_string = False

    def scan(self, text: bytes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8],
                                         npt.NDArray[np.int32], int]:
        """
        Scan the next piece.

        :returns: offsets in ``text``, what is there (0 for what is part of a string), the depths
            behind it; how much has been scanned: a backslash at the end comes again with what it
            escapes.
        """
        if b'\\' in text:
            text = _ESCAPED.sub(b'__', text).removesuffix(b'\\')
        classes = np.frombuffer(text.translate(self._class_of_byte), np.int8)
        # About a tenth of the bytes of indented text matter, a quarter of compact text.
        # Of booleans numpy finds them in half the time.
        at = np.flatnonzero(classes != 0)
        kinds = classes[at]
        is_quote = kinds == _QUOTE
        # Odd from an opening quote on. Only the parity counts, so the sum may wrap.
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

    :param outer: depth behind the brackets to find, and all below.
    :param depth: of the first byte.
    """

    def __init__(self, outer: int, depth: int) -> None:
        self.outer = outer
        self._structure = _Structure(_BRACKETS, depth)

    def scan(self, text: bytes) -> tuple[list[int], list[int], int]:
        """
        Scan the next piece.

        :returns: offsets in ``text`` behind the brackets found; the depths there; how much has
            been scanned: a backslash at the end comes again with what it escapes.
        """
        at, kinds, depths, n_scanned = self._structure.scan(text)
        found = np.flatnonzero((kinds == _CLOSE) & (depths <= self.outer))
        return (at[found] + 1).tolist(), depths[found].tolist(), n_scanned


def split_array(text: bytes, most: int) -> list[bytes]:
    """
    Split an array at its commas, in time and memory linear in its length.

    :param text: which begins with ``[``.
    :param most: elements.
    :returns: the elements without blanks around them, whether or not each of them is JSON; none
        where the array is empty, does not end where the text does, or has more elements.
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
