# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Two threads and the queue between them: one receives packets, one works on them.

May know: threads, a full queue, the end of a stream. Must not know: what a packet means. The
receiving side never waits for the publishing side, unless ``block`` asks it to.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading
import time

from state_sensor_ros.framing import Packet
from state_sensor_ros.sources import Source

# What can wait for a pause gets this much behind each packet where there is none.
_CATCH_UP_NS = 1_000_000
_JOIN_S = 1.5  # a thread that does not end in this time is left to the end of the process


class PacketQueue:
    """
    Packets that wait, each with the time of its receipt, ns of ``time.perf_counter_ns``.

    :param size: how many may wait.
    :param overflow: ``drop_oldest`` or ``block``, what a full queue does.
    """

    def __init__(self, size: int, overflow: str) -> None:
        self._size = size
        self._blocks = overflow == 'block'
        self._waiting: deque[tuple[Packet, int]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self.n_dropped = 0

    def put(self, packet: Packet, received_ns: int) -> None:
        """Add a packet; a full queue waits for room or drops its oldest one."""
        with self._changed:
            if self._blocks:
                self._changed.wait_for(lambda: len(self._waiting) < self._size or self._is_closed)
            elif len(self._waiting) >= self._size:
                self._waiting.popleft()
                self.n_dropped += 1
            self._waiting.append((packet, received_ns))
            self._changed.notify_all()

    def get(self) -> tuple[Packet, int] | None:
        """Return the oldest packet, waiting for it; None when closed and empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            if not self._waiting:
                return None
            oldest = self._waiting.popleft()
            if self._blocks:
                self._changed.notify_all()
            return oldest

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self, *, discard: bool) -> None:
        """Let :meth:`get` end once the queue is empty, at once where ``discard`` is true."""
        with self._changed:
            self._is_closed = True
            if discard:
                self._waiting.clear()
            self._changed.notify_all()


class Stream:
    """
    Run ``source`` in one thread and ``process`` in another, until the source ends or a stop.

    :param process: called with each packet and the time of its receipt.
    :param on_failure: called with the exception that ended a thread: a defect of ours.
    :param catch_up: does a little of what can wait for a pause; returns whether there is more.
        Called behind each packet for a millisecond, and longer as long as no other waits.
    """

    def __init__(self, source: Source, process: Callable[[Packet, int], None], *,
                 queue: PacketQueue, on_failure: Callable[[BaseException], None],
                 catch_up: Callable[[], bool] = lambda: False) -> None:
        self.source = source
        self.queue = queue
        self._process, self._on_failure, self._catch_up = process, on_failure, catch_up
        self._is_stopping = False
        self.last_receipt_ns = time.perf_counter_ns()
        self._threads = [threading.Thread(target=self._guard, args=(work,), daemon=True, name=name)
                         for name, work in (('receive', self._receive), ('publish', self._work))]

    def start(self) -> None:
        """Begin to receive and to publish."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End both threads; packets that wait are discarded. Nothing is processed afterwards."""
        self._is_stopping = True
        self.source.close()
        self.queue.close(discard=True)
        for thread in self._threads:
            thread.join(_JOIN_S)

    def _receive(self) -> None:
        for packet in self.source.packets():
            self.last_receipt_ns = time.perf_counter_ns()
            self.queue.put(packet, self.last_receipt_ns)
        self.queue.close(discard=False)

    def _work(self) -> None:
        while (item := self.queue.get()) is not None:
            self._process(*item)
            until_ns = time.perf_counter_ns() + _CATCH_UP_NS
            while self._catch_up() and not self._is_stopping and (
                    not len(self.queue) or time.perf_counter_ns() < until_ns):
                pass

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            # Unheard, the program would live on, deaf.
            self._on_failure(error)
