# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Build the rival in C++ (bench/cpp/) where its libraries are, and measure it beside our node."""

from contextlib import ExitStack
import re
import shutil
import subprocess
import time

from ament_index_python.packages import get_packages_with_prefixes
from in_process import n_readers
from processes import (
    BenchError,
    cpu_between_marks_s,
    HERE,
    Listener,
    node_command,
    reading,
    running,
    serving,
    write_line,
)
from row import Row, show

BUILD = HERE.parent / 'build' / 'bench_cpp'
PACKAGE = 'state_sensor_rival'
LIBRARIES = ('nlohmann_json', 'simdjson')
PEERS = ('ours', *LIBRARIES)
MATCH_S = 60.0
# Frames after the readers are matched and before the measurement; measured frames; Hz.
WARM, LENGTHS = 100, {10: 400, 100: 400, 1000: 200}
# (actors, Hz, reader, goals of C++ / ours with nlohmann_json and simdjson).
CASES = ((10, 50.0, 'all', (1.0, 0.6)), (100, 50.0, 'all', (1.8, 0.9)),
         (100, 50.0, 'rviz', (3.0, 1.1)), (1000, 30.0, 'rviz', (6.0, 1.5)))
READERS = {'all': 'every topic subscribed', 'rviz': 'an RViz-like reader'}


def built():
    """Return the program for each JSON library that has one, without building."""
    programs = {library: BUILD / 'install' / PACKAGE / 'lib' / PACKAGE / f'rival_{library}'
                for library in LIBRARIES}
    return {library: path for library, path in programs.items() if path.exists()}


def build():
    """Build the programs by colcon; print what is missing; return those that there are."""
    if shutil.which('colcon') is None or 'rclcpp' not in get_packages_with_prefixes():
        print('    skipped: the rival in C++ needs colcon and rclcpp; found '
              f'{"no rclcpp" if shutil.which("colcon") else "no colcon"}', flush=True)
        return {}
    # A program of an earlier build does not stay when its library has gone.
    shutil.rmtree(BUILD / 'install', ignore_errors=True)
    done = subprocess.run(
        ['colcon', '--log-base', BUILD / 'log', 'build', '--base-paths', HERE / 'cpp',
         '--build-base', BUILD / 'build', '--install-base', BUILD / 'install',
         '--event-handlers', 'console_direct+', '--cmake-args', '-DBUILD_TESTING=OFF'],
        capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f'colcon build bench/cpp ended with {done.returncode}\n'
                         + (done.stdout + done.stderr)[-4000:])
    for line in re.findall(r'^-- rival: (.*)$', done.stdout, re.MULTILINE):
        print(f'    skipped: {line}', flush=True)
    return built()


def command(peer, programs, port):
    """Return the command line of a node, and its name."""
    if peer == 'ours':
        return node_command('ours', port), 'state_sensor'
    return [programs[peer], '127.0.0.1', port], 'rival'


def await_readers(listener, node, owner, n):
    """Wait until the topics of the process ``node`` have ``n`` subscriptions."""
    deadline_s = time.monotonic() + MATCH_S

    def count():
        topics = [topic for topic, types in listener.node.get_topic_names_and_types()
                  if (topic == '/tf' or topic.startswith(f'/{owner}/'))
                  and not types[0].startswith('lifecycle_msgs/')]
        return sum(listener.node.count_subscribers(topic) for topic in topics)

    while (found := count()) < n:
        if time.monotonic() > deadline_s:
            raise BenchError(f'{found} of {n} subscriptions to {owner} within {MATCH_S:g} s')
        if node.poll() is not None:
            raise BenchError(f'{owner} ended with {node.returncode}')
        listener.spin(0.1)


def cpu_ms(peer, programs, actors, rate, reader):
    """Return the CPU milliseconds per frame of the process of a node with a reader."""
    frames = LENGTHS[actors]
    with ExitStack() as stack:
        server, port = stack.enter_context(serving(
            actors, rate, WARM + frames, '--await', '--marks', WARM, WARM + frames))
        words, owner = command(peer, programs, port)
        node = stack.enter_context(running(words))
        stack.enter_context(reading(reader, owner))
        with Listener() as listener:
            await_readers(listener, node, owner, n_readers(
                reader, 'ours' if peer == 'ours' else 'rival', actors))
        write_line(server, 'go')
        return 1e3 * cpu_between_marks_s(server, node) / frames


def cpp_rows(rounds, cases=CASES):
    """Measure the CPU of whole processes on the same stream with the same reader, in turn."""
    programs = build()
    rows = []
    for actors, rate, reader, goals in cases if programs else ():
        costs = {peer: [] for peer in PEERS if peer == 'ours' or peer in programs}
        for _ in range(rounds):
            for peer, found in costs.items():
                found.append(cpu_ms(peer, programs, actors, rate, reader))
        least = {peer: min(found) for peer, found in costs.items()}
        print(f'    {rate:g} Hz, {READERS[reader]}: '
              + ', '.join(f'{peer} {cost:.3f}' for peer, cost in least.items())
              + ' CPU ms per frame', flush=True)
        rows += show([
            Row(f'C++ with {library} / our process, {READERS[reader]}', actors,
                least[library] / least['ours'], f'>= {goal}')
            for library, goal in zip(LIBRARIES, goals, strict=True) if library in programs])
    return rows
