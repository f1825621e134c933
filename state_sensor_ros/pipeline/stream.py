# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Two threads and the queue between them: one receives packets, one processes their frames.

May know: threads, a full queue, the end of a stream. Must not know: what a frame means. The
receiving thread never waits for the processing thread, unless the queue is to block.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
import threading
import time
from typing import Protocol

from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.pipeline.source import Source

# Time budget for deferred work after each frame while the queue is not empty.
_CATCH_UP_NS = 1_000_000
# Both threads together get this long to end: a quarter of what a program has after a signal.
_JOIN_S = 0.5
# While a stream waits for the last frame of its predecessor, it looks this often for its own end.
_PREDECESSOR_PERIOD_S = 0.1


@dataclass(frozen=True, slots=True)
class Batch:
    """
    The frames of one packet: several where its payload is an array.

    ``received_ns`` of ``time.perf_counter_ns``; ``number`` frames received before its first one.
    """

    frames: Sequence[Packet]
    received_ns: int
    number: int


class PacketQueue:
    """
    Packets that wait to be processed.

    Made of the library's own queues, which wake a waiting thread at half the cost of a condition.

    :param size: how many packets may wait.
    :param overflow: ``drop_oldest`` or ``block``, what a full queue does.
    :param counters: ``n_received`` and ``n_dropped`` are counted there, in frames.
    """

    def __init__(self, size: int, overflow: str, counters: Counters) -> None:
        self._size = size
        self._blocks = overflow == 'block'
        self._counters = counters
        # Behind the last packet of a closed queue there is None, for ever.
        self._waiting: SimpleQueue[Batch | None] = SimpleQueue()
        # A token for each free place, where a full queue blocks.
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(size):
            self._places.put(None)
        # Either thread, the one that closes and those of another queue may count frames.
        self._lock = counters.lock
        self._is_closed = False

    def put(self, frames: Sequence[Packet], received_ns: int) -> None:
        """
        Add the frames of a packet; a full queue waits for room or drops its oldest packet.

        :param received_ns: ``time.perf_counter_ns()`` of the receipt.
        """
        if self._blocks:
            self._places.get()
        with self._lock:
            if not self._blocks and self._waiting.qsize() >= self._size:
                self._drop_oldest()
            batch = Batch(frames, received_ns, self._counters.n_received)
            self._counters.n_received += len(frames)
            if self._is_closed:
                self._counters.n_dropped += len(frames)
                # Let the next put() return as well: no packet is taken out any more.
                self._places.put(None)
            else:
                self._waiting.put(batch)

    def get(self) -> Batch | None:
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
        with self._lock:
            self._is_closed = True
            while discard and self._drop_oldest():
                pass
        self._waiting.put(None)
        self._places.put(None)

    def count_dropped(self, n_frames: int) -> None:
        """Count frames that were taken out of the queue and not processed."""
        with self._lock:
            self._counters.n_dropped += n_frames

    def _drop_oldest(self) -> bool:
        """Take out and count the oldest packet; return False where there is none."""
        try:
            oldest = self._waiting.get_nowait()
        except Empty:
            return False
        if oldest is None:
            self._waiting.put(None)
            return False
        self._counters.n_dropped += len(oldest.frames)
        return True


class Processor(Protocol):
    """What processes frames: the pipeline. Used by one thread at a time."""

    def split(self, packet: Packet) -> Sequence[Packet]:
        """Return a packet for each frame; called by the receiving thread."""

    def begin(self) -> None:
        """Prepare for the frames of a new stream."""

    def process(self, packet: Packet, received_ns: int, number: int) -> bool:
        """Process one frame; return False where :meth:`cancel` came before it was published."""

    def cancel(self) -> None:
        """Clean up after the last frame and publish nothing more until :meth:`begin`."""


class Stream:
    """
    Run ``source`` in one thread and ``processor`` in another, until the source ends or a stop.

    :param on_failure: called with the exception that ended a thread.
    :param catch_up: does a part of the work that can wait for a pause; returns whether there is
        more. Called after each frame for a millisecond, and longer while no packet waits.
    :param predecessor: a stopped stream that may still be processing its last frame with the same
        processor; the first frame of this one waits for it.
    """

    def __init__(self, source: Source, processor: Processor, *, queue: PacketQueue,
                 on_failure: Callable[[BaseException], None],
                 catch_up: Callable[[], bool] = lambda: False,
                 predecessor: Stream | None = None) -> None:
        self.source = source
        self.queue = queue
        self._processor = processor
        self._on_failure, self._catch_up = on_failure, catch_up
        self._predecessor = predecessor
        self._stopping = threading.Event()
        self.last_receipt_ns = time.perf_counter_ns()
        self._receiver, self._worker = (
            threading.Thread(target=self._guard, args=(work,), daemon=True, name=name)
            for name, work in (('receive', self._receive), ('publish', self._work)))

    @property
    def is_running(self) -> bool:
        """Whether the processor is still used, by this stream or by its predecessor."""
        return self._worker.is_alive() or (
            self._predecessor is not None and self._predecessor.is_running)

    def start(self) -> None:
        """Begin to receive and to publish."""
        self._receiver.start()
        self._worker.start()

    def stop(self) -> None:
        """
        End both threads; packets that wait are discarded and nothing more is published.

        A frame that takes longer than half a second to process is left to its thread, which then
        ends: see :attr:`is_running`.
        """
        self._stopping.set()
        self._processor.cancel()
        self.source.close()
        self.queue.close(discard=True)
        until_s = time.monotonic() + _JOIN_S
        for thread in (self._worker, self._receiver):
            thread.join(max(until_s - time.monotonic(), 0.0))

    def _receive(self) -> None:
        for packet in self.source.packets():
            self.last_receipt_ns = time.perf_counter_ns()
            self.queue.put(self._processor.split(packet), self.last_receipt_ns)
        self.queue.close(discard=False)

    def _work(self) -> None:
        if not self._wait_for_predecessor():
            return
        self._processor.begin()
        while (batch := self.queue.get()) is not None:
            for i, packet in enumerate(batch.frames):
                if self._stopping.is_set():
                    self.queue.count_dropped(len(batch.frames) - i)
                    break
                if not self._processor.process(packet, batch.received_ns, batch.number + i):
                    self.queue.count_dropped(1)
                self._do_deferred_work()

    def _wait_for_predecessor(self) -> bool:
        """Return whether the predecessor has ended, False where this stream was stopped first."""
        while self._predecessor is not None and self._predecessor.is_running:
            if self._stopping.wait(_PREDECESSOR_PERIOD_S):
                return False
        self._predecessor = None
        return True

    def _do_deferred_work(self) -> None:
        until_ns = time.perf_counter_ns() + _CATCH_UP_NS
        while self._catch_up() and not self._stopping.is_set() and (
                not len(self.queue) or time.perf_counter_ns() < until_ns):
            pass

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            # Otherwise the thread would end unnoticed and the node would stop publishing.
            self._on_failure(error)
