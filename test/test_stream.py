# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""The queue between the receiving and the publishing side."""

import threading

from state_sensor_ros.framing import Packet
from state_sensor_ros.sources import Health
from state_sensor_ros.stream import PacketQueue, Stream

AWAIT_S = 10.0


def packet(number):
    return Packet(b'{}', 0.0, 0, number)


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


def drained(queue):
    queue.close(discard=False)
    return [item[0].sample_count for item in iter(queue.get, None)]


def test_queue_drops_the_oldest_and_counts():
    queue = PacketQueue(3, 'drop_oldest')
    for number in range(1, 8):
        queue.put(packet(number), number)
    assert queue.n_dropped == 4
    assert drained(queue) == [5, 6, 7]


def test_queue_discards_on_demand():
    queue = PacketQueue(3, 'drop_oldest')
    queue.put(packet(1), 1)
    queue.close(discard=True)
    assert queue.get() is None


def test_queue_blocks_until_there_is_room():
    queue = PacketQueue(2, 'block')
    seen, third_is_in = [], threading.Event()

    def fill():
        for number in (1, 2, 3):
            queue.put(packet(number), number)
        third_is_in.set()

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    seen.append(queue.get()[0].sample_count)
    assert third_is_in.wait(AWAIT_S)
    thread.join(AWAIT_S)
    assert seen + drained(queue) == [1, 2, 3]
    assert queue.n_dropped == 0


def test_queue_closed_lets_a_blocked_writer_go():
    queue = PacketQueue(1, 'block')
    queue.put(packet(1), 1)
    thread = threading.Thread(target=lambda: [queue.put(packet(i), i) for i in (2, 3, 4)],
                              daemon=True)
    thread.start()
    queue.close(discard=True)
    thread.join(AWAIT_S)
    assert not thread.is_alive()
    assert queue.get() is None


def test_stream_blocking_loses_nothing_of_a_fast_source():
    seen, done = [], threading.Event()

    def process(item, received_ns):
        seen.append(item.sample_count)
        if len(seen) == 500:
            done.set()

    stream = Stream(Numbers(500), process, queue=PacketQueue(2, 'block'), on_failure=seen.append)
    stream.start()
    assert done.wait(AWAIT_S)
    stream.stop()
    assert seen == list(range(1, 501))


def test_stream_tells_of_a_failed_thread():
    failures, failed = [], threading.Event()

    def process(item, received_ns):
        raise ZeroDivisionError

    def on_failure(error):
        failures.append(error)
        failed.set()

    stream = Stream(Numbers(1), process, queue=PacketQueue(2, 'block'), on_failure=on_failure)
    stream.start()
    assert failed.wait(AWAIT_S)
    stream.stop()
    assert [type(failure) for failure in failures] == [ZeroDivisionError]


def test_stream_catches_up_between_packets_and_a_step_behind_each():
    taken, done = [], threading.Event()

    def process(item, received_ns):
        taken.append('packet')

    def catch_up():
        taken.append('step')
        is_behind = taken.count('step') < 40
        if not is_behind and taken.count('packet') == 10:
            done.set()
        return is_behind

    stream = Stream(Numbers(10), process, queue=PacketQueue(2, 'block'), on_failure=taken.append,
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

    stream = Stream(Numbers(1), lambda *_: None, queue=PacketQueue(2, 'block'),
                    on_failure=lambda error: None, catch_up=catch_up)
    stream.start()
    assert begun.wait(AWAIT_S)
    stream.stop()
    # Other tests' libraries may have left threads of their own.
    assert not {thread.name for thread in threading.enumerate()} & {'receive', 'publish'}
