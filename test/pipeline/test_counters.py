# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Counters that two threads use."""

import threading

from state_sensor_ros.pipeline.counters import Counters

N = 100_000


def test_counters_latencies_are_taken_once_while_the_pipeline_appends():
    counters, taken = Counters(), []
    ended = threading.Event()

    def append():
        for latency_ns in range(N):
            counters.latencies_ns.append(latency_ns)
        ended.set()

    thread = threading.Thread(target=append)
    thread.start()
    while not ended.is_set():
        taken += counters.take_latencies()
    thread.join()
    taken += counters.take_latencies()
    # Where nothing is taken for long, the oldest are dropped.
    assert taken == sorted(set(taken))
    assert taken[-1] == N - 1
    assert counters.take_latencies() == []
