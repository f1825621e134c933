# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The end of the node by a signal, in the middle of anything: exit 0 within 2 s, no traceback."""

from itertools import count
import shutil
import signal

from budgets import one_of
import pytest
from rig import END_S, framed, NodeProcess, state, statuses
from slow_names import HOST, SlowNames
from test_lifecycle import Managed, streaming  # noqa: F401

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
each_signal = pytest.mark.parametrize('signum', one_of(SIGNALS))


def check_end(node, signum):
    """End the node by a signal and check how it ended."""
    code, seconds = node.end(signum)
    log = node.log
    assert code == 0, log
    assert seconds < END_S, f'{seconds:.2f} s: {log}'
    assert 'Traceback' not in log


def emptied(markers):
    """Return whether the last array of markers empties the displays."""
    return [each.action for each in markers[-1].markers] == [3]


@each_signal
def test_ending_removes_the_markers(domain, listener, streaming, signum):  # noqa: F811
    markers = listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    with NodeProcess(domain, port=streaming.port, debug_drawing=True) as node:
        listener.until(lambda: len(markers) > 2)
        check_end(node, signum)
    listener.until(lambda: emptied(markers), what='the array that empties displays')


def test_ending_publishes_the_numbers_since_the_last_status(domain, listener, simulator):
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    numbers = count()

    def send():
        number = next(numbers)
        simulator.send(framed(number, state('a', position=(10.0 * number, 0.0, 0.0))))
        return number

    with NodeProcess(domain, port=simulator.port, overflow='block') as node:
        simulator.accept()
        listener.until(lambda: (send(), listener.spin(0.05), frames)[-1])
        n_before = len(diagnostics)
        listener.until(lambda: len(diagnostics) > n_before)
        # The next one is due in a second.
        n_sent = [send() for _ in range(3)][-1] + 1
        listener.until(lambda: frames[-1].sample_count == n_sent)
        check_end(node, signal.SIGTERM)
    listener.until(lambda: statuses(diagnostics)[-1].get('frames published') == str(n_sent),
                   what='a last status')
    # Stale, if the test waits for a core.
    assert statuses(diagnostics)[-1]['level'] != 2, statuses(diagnostics)[-1]


def test_ending_ignores_sighup_where_nohup_does(domain, listener, streaming):  # noqa: F811
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    markers = listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    with NodeProcess(domain, port=streaming.port, debug_drawing=True,
                     prefix=[shutil.which('nohup')]) as node:
        listener.until(lambda: frames)
        node.process.send_signal(signal.SIGHUP)
        n_frames = len(frames)
        listener.until(lambda: len(frames) > n_frames + 20, what='frames after the signal')
        check_end(node, signal.SIGTERM)
        listener.until(lambda: emptied(markers), what='the array that empties displays')


@each_signal
def test_ending_twice_is_ending_once(domain, listener, streaming, signum):  # noqa: F811
    frames = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
    with NodeProcess(domain, port=streaming.port) as node:
        listener.until(lambda: frames)
        for _ in range(3):
            node.process.send_signal(signum)
        check_end(node, signum)


@each_signal
@pytest.mark.parametrize('options', one_of([
    {'port': 8700}, {'control_port': 8999, 'desired_tags': ['x']},
    {'source': 'carla', 'control_port': 2000}]))
def test_ending_while_a_host_name_is_looked_up(domain, tmp_path, signum, options):
    names = SlowNames(tmp_path)
    with NodeProcess(domain, host=HOST, environment=names.environment, **options) as node:
        names.wait()
        check_end(node, signum)
