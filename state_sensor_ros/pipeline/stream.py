# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Two threads and the queue between them: one receives frames, one processes them.

The receiving thread waits for the processing thread only if the queue blocks. The processing
thread owns the pipeline with its encoder: it also applies settings while no frame arrives.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import threading
import time
from typing import NamedTuple

from state_sensor_ros.frame import Frame
from state_sensor_ros.pipeline.pipeline import Counters, Pipeline
from state_sensor_ros.source import Source

# Time budget for deferred work after each frame while the queue is not empty.
_CATCH_UP_NS = 1_000_000
# Pause between two pieces of deferred work.
_YIELD_S = 1e-5
# Time budget for the end of both threads: a program has to end within 2 s of a signal.
_JOIN_S = 0.5


class Received(NamedTuple):
    """A frame, or a wake-up without one, see :meth:`FrameQueue.wake`."""

    frame: Frame | None = None
    received_ns: int = 0  # ``time.perf_counter_ns()`` of the receipt
    number: int = 0  # of frames and lost packets of the stream before it


class FrameQueue:
    """Frames that wait to be processed."""

    def __init__(self, size: int, overflow: str, counters: Counters) -> None:
        self._size, self._blocks, self._counters = size, overflow == 'block', counters
        self._waiting: deque[Received] = deque()
        # Guards all below; both threads, the closing one and those of another queue count frames.
        self._changed = threading.Condition(counters.lock)
        self._is_closed = self._is_woken = False

    def put(self, frame: Frame, received_ns: int, number: int) -> None:
        """Add a frame; a full queue blocks or drops its oldest one."""
        with self._changed:
            while self._blocks and len(self._waiting) >= self._size and not self._is_closed:
                self._changed.wait()
            self._counters.n_received += 1
            if self._is_closed:
                self._counters.n_dropped += 1
                return
            if len(self._waiting) >= self._size:
                self._waiting.popleft()
                self._counters.n_dropped += 1
            self._waiting.append(Received(frame, received_ns, number))
            self._changed.notify_all()

    def get(self) -> Received | None:
        """Wait for the oldest frame and return it; None when closed and empty."""
        with self._changed:
            while not (self._waiting or self._is_closed or self._is_woken):
                self._changed.wait()
            self._is_woken = False
            if not self._waiting:
                return None if self._is_closed else Received()
            self._changed.notify_all()
            return self._waiting.popleft()

    def wake(self) -> None:
        """Make :meth:`get` return without a frame if none waits."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._waiting)

    def close(self, *, discard: bool) -> None:
        """Make :meth:`get` return None once the queue is empty; ``discard`` empties it now."""
        with self._changed:
            self._is_closed = True
            if discard:
                self._counters.n_dropped += len(self._waiting)
                self._waiting.clear()
            self._changed.notify_all()

    def count_dropped(self) -> None:
        """Count a frame that was removed from the queue and not processed."""
        with self._changed:
            self._counters.n_dropped += 1


class StreamThreads:
    """Run ``source`` in one thread and ``processor`` in another, until :meth:`stop`."""

    # catch_up: does a piece of deferred work; returns whether there is more. Called after each
    # frame for up to a millisecond, and longer while no frame waits.
    # predecessor: stopped stream that may still be processing its last frame with the same
    # processor; this stream begins after that frame.
    # last_receipt_ns: ``time.perf_counter_ns()`` at the receipt of the last frame, at first that
    # of the start.

    def __init__(self, source: Source, processor: Pipeline, *, queue: FrameQueue,
                 on_failure: Callable[[BaseException], None],
                 catch_up: Callable[[], bool] = lambda: False,
                 predecessor: StreamThreads | None = None) -> None:
        self.source, self.queue = source, queue
        self._processor, self._predecessor = processor, predecessor
        self._on_failure, self._catch_up = on_failure, catch_up
        self._stopping = threading.Event()
        self.last_receipt_ns = time.perf_counter_ns()
        self._receiver, self._worker = (
            threading.Thread(target=self._guard, args=(work,), daemon=True, name=name)
            for name, work in (('receive', self._receive), ('publish', self._work)))

    def start(self) -> None:
        self._receiver.start()
        self._worker.start()

    def join(self, seconds: float | None = None) -> bool:
        """Wait until the processor is not used any more; return whether it is not."""
        self._worker.join(seconds)
        return not self._worker.is_alive()

    def stop(self) -> None:
        """
        End both threads; waiting frames are discarded and nothing more is published.

        If a frame takes longer than half a second, its thread ends later: :meth:`join`.
        """
        self._stopping.set()
        self._processor.cancel()
        self.source.close()
        self.queue.close(discard=True)
        until_s = time.monotonic() + _JOIN_S
        self.join(_JOIN_S)
        self._receiver.join(max(until_s - time.monotonic(), 0.0))

    def _receive(self) -> None:
        health, faults = self.source.health, self.source.faults
        faults.on_lost, faults.has_defects = self.queue.wake, True
        for n_frames, frame in enumerate(self.source.frames()):
            # Of the last byte of a packet, before it was decoded.
            self.last_receipt_ns = health.arrived_ns or time.perf_counter_ns()
            self.queue.put(frame, self.last_receipt_ns, n_frames + faults.n_lost)

    def _work(self) -> None:
        if self._predecessor is not None:
            self._predecessor.join()
            self._predecessor = None
        if not self._stopping.is_set():
            self._processor.begin()
        while (received := self.queue.get()) is not None:
            self._processor.note(self.source.faults.take())
            if received.frame is None:
                self._processor.apply_settings()
            elif self._stopping.is_set() or not self._processor.process(
                    received.frame, received.received_ns, received.number):
                self.queue.count_dropped()
            # At once: the next frame may be the only one for a while.
            self.source.details = self._processor.details
            self._do_deferred_work()
        self._processor.note(self.source.faults.take())

    def _do_deferred_work(self) -> None:
        until_ns = time.perf_counter_ns() + _CATCH_UP_NS
        while self._catch_up() and not self._stopping.is_set() and (
                not len(self.queue) or time.perf_counter_ns() < until_ns):
            # Otherwise the receiving thread would wait up to 5 ms for the interpreter lock.
            time.sleep(_YIELD_S)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001
            # Otherwise the thread would end unnoticed and the node would stop publishing.
            self._on_failure(error)
