# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The managed node: transitions in any order, many times, and the ends of the process."""

import os
import subprocess
import sys
import threading

from budgets import tries
import pytest
from rig import framed, Managed, NodeProcess, ScriptedSimulator

N_ROUNDS = tries(8)


class Streaming:
    """A simulator that serves one client after the other without end."""

    def __init__(self, period_s=0.02):
        self._simulator = ScriptedSimulator()
        self.port = self._simulator.port
        self._ended = threading.Event()
        self._period_s = period_s
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        number = 0
        while not self._ended.is_set():
            try:
                self._simulator.accept(0.2)
                while not self._ended.wait(self._period_s):
                    self._simulator.send(framed(number))
                    number += 1
            except OSError:
                continue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()
        self._simulator.close()


@pytest.fixture
def streaming():
    with Streaming() as found:
        yield found


def n_open_files(node):
    return len(os.listdir(f'/proc/{node.process.pid}/fd'))


def test_lifecycle_any_order_many_times(domain, listener, streaming):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, port=streaming.port, autostart=False) as node:
        managed = Managed(listener)
        assert managed.state == 'unconfigured'
        assert not managed.request('activate')
        early_mb = early_files = 0
        for i in range(N_ROUNDS):
            assert managed.request('configure')
            assert not managed.request('configure')
            assert managed.request('activate')
            if i % 10 == 0:
                n_before = len(frames)
                listener.until(lambda n=n_before: len(frames) > n, what=f'a frame in round {i}')
            assert managed.request('deactivate')
            assert managed.request('cleanup')
            if i == N_ROUNDS // 5:
                early_mb, early_files = node.memory_mb(), n_open_files(node)
        assert managed.state == 'unconfigured'
        assert n_open_files(node) <= early_files + 2
        assert node.memory_mb() < early_mb + 15.0
        code, _ = node.end()
        assert code == 0, node.log
        assert 'Traceback' not in node.log


def test_lifecycle_nothing_comes_after_deactivate_but_delete_all(domain, listener, streaming):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    markers = listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    with NodeProcess(domain, port=streaming.port, debug_drawing=True):
        managed = Managed(listener)
        listener.until(lambda: len(frames) > 2 and len(markers) > 2)
        assert managed.request('deactivate')
        listener.until(lambda: [each.action for each in markers[-1].markers] == [3],
                       what='the array that empties displays')
        # What was sent before may come on another topic after that.
        listener.receive_all(frames, markers)
        n_frames, n_markers = len(frames), len(markers)
        listener.spin_for(1.0)
        assert (len(frames), len(markers)) == (n_frames, n_markers)
        assert managed.request('activate')
        listener.until(lambda: len(frames) > n_frames, what='frames after activation')


THREADS_LEFT = """
from contextlib import suppress
from pathlib import Path
import rclpy
from rclpy.node import Node
from state_sensor_ros.ros.node import StateSensorNode

def n_threads():
    # A thread that was joined is listed for a moment: it has PF_EXITING of linux/sched.h.
    n_running = 0
    for path in Path('/proc/self/task').iterdir():
        with suppress(OSError):
            flags = int((path / 'stat').read_text().rpartition(') ')[2].split()[6])
            n_running += not flags & 4
    return n_running

for make in (lambda: Node('a'), StateSensorNode):
    rclpy.init()
    node = make()
    n_before = n_threads()
    node.destroy_node()
    rclpy.try_shutdown()
    print(n_before - n_threads())
"""


def test_lifecycle_node_leaves_no_participant_when_it_is_destroyed(domain):
    """The exit of the process would destroy it beside its own threads, which ended some nodes."""
    ended = subprocess.run([sys.executable, '-c', THREADS_LEFT], capture_output=True, text=True,
                           env={**os.environ, 'ROS_DOMAIN_ID': str(domain)}, check=True)
    n_plain, n_managed = map(int, ended.stdout.split())
    assert n_managed == n_plain > 0
