# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Start servers, nodes and readers, measure them from outside, and always end them."""

from contextlib import contextmanager
import os
from pathlib import Path
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.signals import SignalHandlerOptions

HERE = Path(__file__).parent
# s; longer than any run on a machine that can sustain the load.
LIMIT_S = 300.0
END_S = 20.0
# Still running, at its end, or ended by us.
WELL = (None, 0, -signal.SIGTERM, -signal.SIGKILL)
PAGE_MB = os.sysconf('SC_PAGE_SIZE') / 2 ** 20


class BenchError(Exception):
    """A program of the benchmark failed."""


@contextmanager
def running(command, limit_s=LIMIT_S, **options):
    """Run a program for as long as the block lasts, at most ``limit_s``; yields it."""
    with tempfile.TemporaryFile('w+') as errors:
        process = subprocess.Popen([str(part) for part in command], stderr=errors, text=True,
                                   stdin=subprocess.PIPE, **options)
        limit = threading.Timer(limit_s, process.kill)
        limit.start()
        try:
            yield process
            if process.poll() not in WELL:
                raise BenchError(f'{name_of(process)} ended with {process.returncode}')
        except BenchError as failure:
            errors.seek(0)
            raise BenchError(f'{failure}\n{errors.read()[-2000:]}') from failure
        finally:
            limit.cancel()
            end(process)


def end(process):
    """End a program with SIGTERM first, so that DDS removes its files in shared memory."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.stdin.close()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()


def line_of(process, expected=''):
    """Read a line that begins as ``expected``; return it."""
    line = process.stdout.readline().strip()
    if not line or not line.startswith(expected):
        raise BenchError(
            f'{name_of(process)} printed {line!r}; expected {expected or "anything"!r}')
    return line


def write_line(process, line):
    """Write a line to a program."""
    process.stdin.write(f'{line}\n')
    process.stdin.flush()


def name_of(process):
    """Return which program a process runs."""
    return next(Path(part).name for part in process.args if part != sys.executable)


@contextmanager
def serving(actors, rate, frames, *arguments, limit_s=LIMIT_S):
    """Run a server of synthetic frames; yields its process and its port."""
    command = [sys.executable, HERE / 'serve.py', '--actors', actors, '--rate', rate, '--frames',
               frames, *arguments]
    with running(command, limit_s, stdout=subprocess.PIPE) as server:
        yield server, int(line_of(server))


@contextmanager
def reading(kind, owner, limit_s=LIMIT_S, **options):
    """Run a reader, which is ready as soon as it is matched with a publisher."""
    with running([sys.executable, HERE / 'reader.py', kind, owner], limit_s, **options) as reader:
        yield reader


def parameters(port, **given):
    """Return the parameters with which our node makes the same outputs as the rival."""
    return {'port': port, 'frame': 'false', 'debug_drawing': 'true', 'labels': 'false',
            'overflow': 'block', 'max_actor_topics': 65536, **given}


def node_command(path, port, **given):
    """Return the command line of the rival's or of our node."""
    if path == 'rival':
        return [sys.executable, HERE / 'rival.py', '127.0.0.1', port]
    arguments = [part for name, value in parameters(port, **given).items()
                 for part in ('-p', f'{name}:={value}')]
    return [shutil.which('state_sensor_node'), '--ros-args', *arguments]


def cpu_s(pid):
    """Return the CPU time of a process so far, all threads, s."""
    # The clock id of clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


def cpu_between_marks_s(server, node):
    """Return the CPU time of a node between two marks of a server, s; end the server."""
    line_of(server, 'mark')
    before_s = cpu_s(node.pid)
    line_of(server, 'mark')
    spent_s = cpu_s(node.pid) - before_s
    server.kill()
    return spent_s


def command_cpu_s(*command):
    """Run a command; return its CPU time (s)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise BenchError(f'{command[0]} ended with {done.returncode}\n{done.stderr}')
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def memory_mb(pid):
    """Return the resident memory of a process."""
    return int(Path(f'/proc/{pid}/statm').read_text().split()[1]) * PAGE_MB


def n_handles(pid):
    """Return how many files a process has open."""
    return len(os.listdir(f'/proc/{pid}/fd'))


class Listener:
    """A ROS node of the benchmark's own process."""

    def __enter__(self):
        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node('bench_listener')
        return self

    def __exit__(self, *_):
        self.node.destroy_node()
        rclpy.try_shutdown()

    def spin(self, seconds):
        rclpy.spin_once(self.node, timeout_sec=seconds)

    def diagnostics(self):
        """Subscribe; return a dictionary with the latest values of the stream's status."""
        values = {}

        def take(array):
            for status in array.status:
                if status.name.endswith(': stream'):
                    values.update({pair.key: pair.value for pair in status.values})

        self.node.create_subscription(DiagnosticArray, '/diagnostics', take, 10)
        return values
