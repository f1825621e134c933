# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Two threads and the queue between them: one receives packets, one works on them.

May know: threads, a full queue, the end of a stream. Must not know: what a packet means. The
receiving side never waits for the publishing side, unless ``block`` asks it to.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
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

    Made of the library's own queues, which wake who waits at half the cost of a condition.

    :param size: how many may wait.
    :param overflow: ``drop_oldest`` or ``block``, what a full queue does.
    """

    def __init__(self, size: int, overflow: str) -> None:
        self._size = size
        self._blocks = overflow == 'block'
        # Behind the last packet of a closed queue there is None, for ever.
        self._waiting: SimpleQueue[tuple[Packet, int] | None] = SimpleQueue()
        # A token for each free place, where a full queue blocks.
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self._places.put(None)
        self._is_closed = False
        self.n_dropped = 0

    def put(self, packet: Packet, received_ns: int) -> None:
        """Add a packet; a full queue waits for room or drops its oldest one."""
        if self._blocks:
            self._places.get()
        elif self._waiting.qsize() >= self._size and self._drop():
            self.n_dropped += 1
        if not self._is_closed:
            self._waiting.put((packet, received_ns))
        elif self._blocks:
            # Whoever still puts shall not wait for a reader that has gone.
            self._places.put(None)

    def get(self) -> tuple[Packet, int] | None:
        """Return the oldest packet, waiting for it; None when closed and empty."""
        oldest = self._waiting.get()
        if oldest is None:
            self._waiting.put(None)
        elif self._blocks:
            self._places.put(None)
        return oldest

    def __len__(self) -> int:
        return self._waiting.qsize()

    def close(self, *, discard: bool) -> None:
        """Let :meth:`get` end once the queue is empty, at once where ``discard`` is true."""
        self._is_closed = True
        while discard and self._drop():
            pass
        self._waiting.put(None)
        self._places.put(None)

    def _drop(self) -> bool:
        """Take out the oldest packet; return False where there is none."""
        try:
            oldest = self._waiting.get_nowait()
        except Empty:
            return False
        if oldest is None:
            self._waiting.put(None)
        return oldest is not None


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
