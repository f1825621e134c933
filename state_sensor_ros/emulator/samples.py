# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
A frame on its way out: its clock, and its JSON text for each sensor, written once.

May know: the clock members of a frame, JSON text. Must not: sockets, where frames come from.
Source of truth: PROTOCOL 4.3 and 5.g.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from state_sensor_ros.emulator.selection import actors, select, Selection
from state_sensor_ros.emulator.wire import encode_json

CLOCK_KEYS = ('game_time', 'sample_count', 'time')
# Texts kept per frame: one for each filter in use, forgotten when filters keep changing.
MAX_KEPT_TEXTS = 4


@dataclass(frozen=True, slots=True)
class Clock:
    """
    When a frame was sampled; None where it does not say.

    :param game_time: simulated time, s.
    :param time: Unix time, s.
    :param sample_count: number.
    """

    game_time: float | None = None
    time: int | None = None
    sample_count: int | None = None


class _Head(msgspec.Struct):
    """The clock members alone: the rest of the text is skipped, not decoded."""

    game_time: float | None = None
    time: float | None = None
    sample_count: float | None = None

    def clock(self) -> Clock:
        """Return the same as a clock."""
        return Clock(self.game_time, None if self.time is None else int(self.time),
                     None if self.sample_count is None else int(self.sample_count))


_HEAD_DECODER = msgspec.json.Decoder(_Head)


class Frame:
    """
    One frame, either as text (a file) or as plain JSON data.

    :param source: JSON text, or the members of a frame, which must not change any more.
    """

    __slots__ = ('_bodies', '_clock', '_source')

    def __init__(self, source: bytes | msgspec.Raw | dict[str, object]) -> None:
        self._source = source
        self._clock: Clock | None = None
        self._bodies: dict[Selection | None, bytes] = {}

    @property
    def members(self) -> dict[str, object] | None:
        """Return the frame as plain data, or None when the text is not an object."""
        if isinstance(self._source, dict):
            return self._source
        try:
            members = msgspec.json.decode(self._source)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return members if isinstance(members, dict) else None

    @property
    def clock(self) -> Clock:
        """Return the clock that the frame itself carries; v1t hides it in an actor."""
        if self._clock is None:
            try:
                self._clock = self._read_clock()
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                self._clock = Clock()
        return self._clock

    def _read_clock(self) -> Clock:
        if isinstance(self._source, dict):
            head = msgspec.convert({key: self._source.get(key) for key in CLOCK_KEYS}, _Head)
        else:
            head = _HEAD_DECODER.decode(self._source)
        if head.game_time is None and (members := self.members) is not None:
            inner = next((actor for actor in actors(members) if 'game_time' in actor), {})
            head = msgspec.convert({key: inner.get(key) for key in CLOCK_KEYS}, _Head)
        return head.clock()

    def text(self, selection: Selection | None) -> bytes:
        """
        Write the frame with its own clock.

        :param selection: the sensor's filter, None for everything as it is.
        :returns: JSON text; text from a file stays as it is where nothing is filtered.
        """
        if selection is not None and (members := self.members) is not None:
            return encode_json(select(members, selection))
        if isinstance(self._source, dict):
            return encode_json(self._source)
        return bytes(self._source)

    def text_at(self, clock: Clock, selection: Selection | None) -> tuple[bytes, ...]:
        """
        Write the frame with another clock; everything else is written once and kept.

        :param clock: what to say; members that are None are left out.
        :param selection: the sensor's filter, None for everything as it is.
        :returns: pieces of JSON text, the clock members in the last one.
        """
        if (body := self._bodies.get(selection)) is None:
            members = self.members
            if members is None:
                return (self.text(selection),)
            body = self._write_body(members, selection)
        tail = {key: value for key in CLOCK_KEYS
                if (value := getattr(clock, key)) is not None}
        comma = b',' if len(body) > 1 and tail else b''
        return body, comma + encode_json(tail)[1:]

    def _write_body(self, members: dict[str, object], selection: Selection | None) -> bytes:
        """Write everything but the clock and the last brace, and keep it."""
        chosen = members if selection is None else select(members, selection)
        body = encode_json({k: v for k, v in chosen.items() if k not in CLOCK_KEYS})[:-1]
        if len(self._bodies) >= MAX_KEPT_TEXTS:
            self._bodies.clear()
        self._bodies[selection] = body
        return body

    def freeze(self) -> None:
        """Keep the text instead of the data, which needs ten times the memory."""
        if isinstance(self._source, dict):
            self._clock = self.clock
            self._source = self._write_body(self._source, None) + b'}'
