# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
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
