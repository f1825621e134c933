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

from dataclasses import replace
import threading

from budgets import AWAIT_S
import numpy as np
import pytest
from stopwatch import until

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.pipeline.pipeline import Counters
from state_sensor_ros.pipeline.stream import FrameQueue, StreamThreads
from state_sensor_ros.source import Faults, Health, LOST


def frame(number):
    return replace(build_frame('v1', 0.0, [], np.zeros((0, 3))), sample_count=number)


class Numbers:
    """A source of n numbered frames; those in ``lost`` are packets that are no frames."""

    def __init__(self, n, lost=()):
        self.health, self.faults, self.details = Health(), Faults(), True
        self._n, self._lost = n, lost

    def frames(self):
        for number in range(1, self._n + 1):
            if number in self._lost:
                self.faults.add(LOST, DecodeError('payload', 'nothing', 'a frame'))
            else:
                yield frame(number)

    def reconfigure(self, settings):
        """Nothing to change."""

    def close(self):
        """Nothing to close."""


class Processor:
    """Record what is called."""

    details = False

    def __init__(self, process=lambda frame: None):
        self.calls, self.numbers, self.faults = [], [], []
        self._process = process
        self.is_canceled = False

    def begin(self):
        self.is_canceled = False
        self.calls.append('begin')

    def cancel(self):
        self.is_canceled = True
        self.calls.append('cancel')

    def apply_settings(self):
        self.calls.append('settings')

    def note(self, faults):
        self.faults += faults

    def process(self, item, received_ns, number):
        self.calls.append(item.sample_count)
        self.numbers.append(number)
        self._process(item)
        return not self.is_canceled


def stream_of(source, processor, *, queue=None, **options):
    if queue is None:
        queue = FrameQueue(2, 'block', Counters())
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
    return [received.frame.sample_count for received in iter(queue.get, None)]


def test_queue_drops_the_oldest_and_counts():
    counters = Counters()
    queue = FrameQueue(3, 'drop_oldest', counters)
    for number in range(1, 8):
        queue.put(frame(number), number, number)
    assert (counters.n_received, counters.n_dropped) == (7, 4)
    assert drained(queue) == [5, 6, 7]


@pytest.mark.parametrize('overflow', ['drop_oldest', 'block'])
def test_queue_wakes_the_waiting_thread_only_where_no_packet_does(overflow):
    counters = Counters()
    queue = FrameQueue(1, overflow, counters)
    queue.wake()
    queue.wake()
    assert queue.get().frame is None
    # A wake-up takes no place: with a packet in the queue there is none.
    queue.put(frame(1), 0, 0)
    queue.wake()
    assert drained(queue) == [1]
    assert (counters.n_received, counters.n_dropped) == (1, 0)


def test_stream_blocking_loses_nothing_of_a_fast_source():
    processor = Processor()
    stream = stream_of(Numbers(500), processor)
    stream.start()
    ended(stream)
    stream.stop()
    assert processor.calls == ['begin', *range(1, 501), 'cancel']
    assert processor.numbers == list(range(500))


def test_stream_numbers_lost_packets_and_passes_their_faults_on():
    processor = Processor()
    source = Numbers(6, lost=(2, 3, 6))
    stream = stream_of(source, processor)
    stream.start()
    ended(stream)
    stream.stop()
    assert processor.numbers == [0, 3, 4]
    assert [fault.kind for fault in processor.faults] == [LOST] * 3
    assert not source.details


@pytest.mark.parametrize('n_packets', [0, 3])
def test_stream_applies_settings_without_a_packet(n_packets):
    caught_up = threading.Event()
    processor = Processor()
    stream = stream_of(Numbers(n_packets), processor,
                       catch_up=lambda: 'settings' in processor.calls and caught_up.set())
    stream.start()
    stream._receiver.join(AWAIT_S)
    # The source has ended; the processing thread serves settings until stop().
    # Without effect while packets wait: the pipeline applies settings with each of them.
    until(lambda: caught_up.wait(0.01), step=stream.queue.wake)
    stream.stop()
    assert stream.join(AWAIT_S)
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


def test_stream_waits_for_the_last_frame_of_its_predecessors():
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
    assert not first.join(0.0)
    second = stream_of(Numbers(2), processor, predecessor=first)
    second.start()
    second.stop()
    last = stream_of(Numbers(2), processor, predecessor=second)
    last.start()
    assert processor.calls == ['begin', 1, 'cancel', 'cancel']
    go_on.set()
    ended(last)
    last.stop()
    assert [call for call in processor.calls if call != 'cancel'] == ['begin', 1, 'begin', 1, 2]
