# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Limits of time that hold on a busy machine too."""

import os
import threading
import time

from budgets import AWAIT_S
from process_state import children, has_ended, read_threads

_PERIOD_S = 0.02


def until(condition, what='what the test waits for', step=lambda: time.sleep(0.005)):
    """Wait until a condition holds, with ``step()`` again and again; return its value."""
    deadline_s = time.monotonic() + AWAIT_S
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f'{what}: not within {AWAIT_S:g} s'
        step()
    return found


class Stopwatch:
    """
    Measures time without that in which a process was ready to run and all cores were taken.

    The own process, which has to notice the end of what is measured, is one of them, and so are
    children of the others. A thread notes the delays of those that end before the time is read.

    :param processes: the others, as :class:`subprocess.Popen` or numbers.
    """

    def __init__(self, *processes):
        self._process = next(iter(processes), None)
        self._pids = [getattr(each, 'pid', each) for each in processes]
        self._before = self._delays_s()
        self._after = dict(self._before)
        self._is_read = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        self._began_s = time.monotonic()

    def _look(self):
        while not self._is_read.wait(_PERIOD_S) and not all(map(has_ended, self._pids)):
            self._after |= self._delays_s()

    def _delays_s(self):
        """Return the time on run queues, of each thread."""
        own = [child for pid in self._pids for child in children(pid)]
        with open('/proc/stat') as file:
            # What the host of a virtual machine took for others.
            delays_s = {'steal': int(file.readline().split()[8]) / os.sysconf('SC_CLK_TCK')}
        for pid in (os.getpid(), *self._pids, *own):
            for thread, times in read_threads(pid, 'schedstat'):
                delays_s[thread] = int(times.split()[1]) / 1e9
        return delays_s

    @property
    def seconds(self):
        """Return the time since the start."""
        elapsed_s = time.monotonic() - self._began_s
        return elapsed_s - self.delay_s

    @property
    def delay_s(self):
        """Return how long threads have been ready to run without a core since the start."""
        self._is_read.set()
        self._thread.join()
        self._after |= self._delays_s()
        return sum(delay_s - self._before.get(thread, 0.0)
                   for thread, delay_s in self._after.items())

    def wait(self):
        """Wait until the first of the processes has ended; return its exit code."""
        until(lambda: self._process.poll() is not None, 'the end')
        return self._process.returncode
