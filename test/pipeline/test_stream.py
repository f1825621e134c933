# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The queue between the receiving and the processing thread, and both threads."""

import threading
import time

from budgets import AWAIT_S
import pytest
from stopwatch import until

from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.counters import Counters
from state_sensor_ros.pipeline.stream import PacketQueue, StreamThreads
from state_sensor_ros.source import Health


def packet(number):
    return Packet(b'{}', 0.0, 0, number)


def packets(*numbers):
    return [packet(number) for number in numbers]


class Numbers:
    """A source of n numbered packets."""

    def __init__(self, n):
        self.health = Health()
        self._n = n

    def packets(self):
        for number in range(1, self._n + 1):
            yield packet(number)

    def reconfigure(self, settings):
        """Nothing to change."""

    def close(self):
        """Nothing to close."""


class Processor:
    """Record what is called; each packet has ``n_frames`` frames."""

    def __init__(self, process=lambda packet: None, n_frames=1):
        self.calls, self.numbers = [], []
        self._process, self._n_frames = process, n_frames
        self.is_canceled = False

    def split(self, item):
        return [item] * self._n_frames

    def begin(self):
        self.is_canceled = False
        self.calls.append('begin')

    def cancel(self):
        self.is_canceled = True
        self.calls.append('cancel')

    def apply_settings(self):
        self.calls.append('settings')

    def process(self, item, received_ns, number):
        self.calls.append(item.sample_count)
        self.numbers.append(number)
        self._process(item)
        return not self.is_canceled


def stream_of(source, processor, *, queue=None, **options):
    if queue is None:
        queue = PacketQueue(2, 'block', Counters())
    return StreamThreads(source, processor, queue=queue,
                         **{'on_failure': lambda error: None, **options})


def ended(stream):
    """Wait until the source has ended and everything is processed."""
    stream._receiver.join(AWAIT_S)
    assert not stream._receiver.is_alive()
    stream.queue.close(discard=False)
    stream._worker.join(AWAIT_S)
    assert not stream._worker.is_alive()


def drained(queue):
    queue.close(discard=False)
    return [batch.frames[0].sample_count for batch in iter(queue.get, None)]


def test_queue_drops_the_oldest_and_counts():
    counters = Counters()
    queue = PacketQueue(3, 'drop_oldest', counters)
    for number in range(1, 8):
        queue.put(packets(number), number)
    assert (counters.n_received, counters.n_dropped) == (7, 4)
    assert drained(queue) == [5, 6, 7]


def test_queue_counts_the_frames_of_packets():
    counters = Counters()
    queue = PacketQueue(2, 'drop_oldest', counters)
    for numbers in ((1, 2, 3), (4,), (5, 6)):
        queue.put(packets(*numbers), 0)
    assert (counters.n_received, counters.n_dropped) == (6, 3)
    assert [queue.get().number, queue.get().number] == [3, 4]
    queue.put(packets(7, 8), 0)
    queue.close(discard=True)
    queue.put(packets(9), 0)
    assert (counters.n_received, counters.n_dropped) == (9, 6)
    assert queue.get() is None


@pytest.mark.parametrize('overflow', ['drop_oldest', 'block'])
def test_queue_wakes_the_waiting_thread_only_where_no_packet_does(overflow):
    counters = Counters()
    queue = PacketQueue(1, overflow, counters)
    queue.wake()
    queue.wake()
    assert not queue.get().frames
    # A wake-up takes no place: with a packet in the queue there is none.
    queue.put(packets(1), 0)
    queue.wake()
    assert drained(queue) == [1]
    assert (counters.n_received, counters.n_dropped) == (1, 0)


def test_queue_blocks_until_there_is_room():
    counters = Counters()
    queue = PacketQueue(2, 'block', counters)
    seen, third_is_in = [], threading.Event()

    def fill():
        for number in (1, 2, 3):
            queue.put(packets(number), number)
        third_is_in.set()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    seen.append(queue.get().frames[0].sample_count)
    assert third_is_in.wait(AWAIT_S)
    thread.join(AWAIT_S)
    assert seen + drained(queue) == [1, 2, 3]
    assert counters.n_dropped == 0


def test_queue_closed_releases_a_blocked_writer():
    counters = Counters()
    queue = PacketQueue(1, 'block', counters)
    queue.put(packets(1), 1)
    thread = threading.Thread(target=lambda: [queue.put(packets(i), i) for i in (2, 3, 4)],
                              daemon=True)
    thread.start()
    queue.close(discard=True)
    thread.join(AWAIT_S)
    assert not thread.is_alive()
    assert queue.get() is None
    assert (counters.n_received, counters.n_dropped) == (4, 4)


def test_stream_blocking_loses_nothing_of_a_fast_source():
    processor = Processor()
    stream = stream_of(Numbers(500), processor)
    stream.start()
    ended(stream)
    stream.stop()
    assert processor.calls == ['begin', *range(1, 501), 'cancel']
    assert processor.numbers == list(range(500))


@pytest.mark.parametrize('n_packets', [0, 3])
def test_stream_applies_settings_without_a_packet(n_packets):
    caught_up = threading.Event()
    processor = Processor()
    stream = stream_of(Numbers(n_packets), processor,
                       catch_up=lambda: 'settings' in processor.calls and caught_up.set())
    stream.start()
    stream._receiver.join(AWAIT_S)
    # The source has ended; the processing thread serves settings until stop().
    until_s = time.monotonic() + AWAIT_S
    while not caught_up.wait(0.01):
        # Without effect while packets wait: the pipeline applies settings with each of them.
        stream.wake()
        assert time.monotonic() < until_s
    stream.stop()
    assert not stream.is_running
    assert [call for call in processor.calls if call != 'settings'] \
        == ['begin', *range(1, n_packets + 1), 'cancel']


def test_stream_reports_a_failed_thread():
    failures, failed = [], threading.Event()

    def process(item):
        raise ZeroDivisionError

    def on_failure(error):
        failures.append(error)
        failed.set()

    stream = stream_of(Numbers(1), Processor(process), on_failure=on_failure)
    stream.start()
    assert failed.wait(AWAIT_S)
    stream.stop()
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


def test_stream_catches_up_between_packets_and_a_step_behind_each():
    taken, done = [], threading.Event()

    def catch_up():
        taken.append('step')
        is_behind = taken.count('step') < 40
        if not is_behind and taken.count('packet') == 10:
            done.set()
        return is_behind

    stream = stream_of(Numbers(10), Processor(lambda item: taken.append('packet')),
                       catch_up=catch_up)
    stream.start()
    assert done.wait(AWAIT_S)
    stream.stop()
    assert all(taken[i + 1] == 'step' for i, what in enumerate(taken) if what == 'packet')


def test_stream_stops_in_the_middle_of_catching_up():
    begun = threading.Event()

    def catch_up():
        begun.set()
        return True

    stream = stream_of(Numbers(1), Processor(), catch_up=catch_up)
    stream.start()
    assert begun.wait(AWAIT_S)
    stream.stop()
    # Other tests' libraries may have left threads of their own.
    assert not {thread.name for thread in threading.enumerate()} & {'receive', 'publish'}


def test_stream_stops_inside_an_array_and_counts_the_rest_as_dropped():
    counters, begun, go_on = Counters(), threading.Event(), threading.Event()

    def process(item):
        begun.set()
        assert go_on.wait(AWAIT_S)

    processor = Processor(process, n_frames=1000)
    stream = stream_of(Numbers(1), processor, queue=PacketQueue(2, 'block', counters))
    stream.start()
    assert begun.wait(AWAIT_S)
    stopper = threading.Thread(target=stream.stop)
    stopper.start()
    until(lambda: 'cancel' in processor.calls, 'a stream that stops')
    go_on.set()
    stopper.join(AWAIT_S)
    assert processor.calls == ['begin', 1, 'cancel']
    assert (counters.n_received, counters.n_dropped) == (1000, 1000)


@pytest.mark.parametrize('n_streams', [2, 3])
def test_stream_waits_for_the_last_frame_of_its_predecessor(n_streams):
    begun, go_on = threading.Event(), threading.Event()

    def process(item):
        begun.set()
        assert go_on.wait(AWAIT_S)

    processor = Processor(process)
    first = stream_of(Numbers(1), processor)
    first.start()
    assert begun.wait(AWAIT_S)
    # The frame takes longer than stop() waits.
    first.stop()
    assert first.is_running
    last = first
    for _ in range(n_streams - 1):
        if last is not first:
            last.stop()
        last = stream_of(Numbers(2), processor, predecessor=last)
        last.start()
    assert processor.calls == ['begin', 1, *['cancel'] * (n_streams - 1)]
    go_on.set()
    ended(last)
    last.stop()
    assert [call for call in processor.calls if call != 'cancel'] == ['begin', 1, 'begin', 1, 2]
