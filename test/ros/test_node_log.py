# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Lines that the node logs about its stream, its parameters and its libraries."""

from functools import partial
import json
import re
import signal
import time
from types import SimpleNamespace

from budgets import AWAIT_S, first_of, one_of
import pytest
from rig import frame, NodeProcess, packet, state
from stopwatch import until

from state_sensor_ros.pipeline.pipeline import Counters
from state_sensor_ros.pipeline.stamps import Stamper
from state_sensor_ros.ros.report import Level, StreamReport
from state_sensor_ros.settings import Settings
from state_sensor_ros.source import Health, SourceState

GAME_TIME = 'game time, not the time of day: nodes that use them need use_sim_time'


def lines_of(node, level, words):
    """Return the lines of a level that have the given words."""
    return [line for line in node.log.splitlines() if f'[{level}]' in line and words in line]


def until_logged(node, level, words):
    """Wait for a line; return it."""
    def found():
        assert node.is_alive, node.log
        return lines_of(node, level, words)
    return until(found, f'a line with {words!r}')[0]


def test_node_logs_the_course_of_a_connection_once(bench):
    bench_ = bench()
    bench_.connect(warm=False)
    words = (f'connected to 127.0.0.1:{bench_.simulator.port}: generation v2, 2 actors, 1 with '
             'the ego tag')
    _send_until(bench_, lambda: lines_of(bench_.node, 'INFO', words))
    bench_.simulator.hang_up()
    bench_.connect(warm=False)
    before = len(bench_.frames)
    _send_until(bench_, lambda: len(bench_.frames) > before + 5)
    bench_.finish()
    assert len(lines_of(bench_.node, 'INFO', 'connected to')) == 1, bench_.node.log


def _send_until(bench_, condition):
    """Send frames of two actors until the condition is true."""
    def send():
        content = bench_.content(state('ego', tags=('vehicle', 'ego')), state('other'))
        bench_.send_packet(packet(content, game_time=content['game_time'],
                                  sample_count=content['sample_count']))
        bench_.listener.spin(0.05)
    until(condition, step=send)


@pytest.mark.parametrize('rate', one_of([0.0, 10.0]))
def test_node_logs_the_course_of_a_recording_once(domain, tmp_path, rate):
    path = tmp_path / 'drive.json'
    path.write_text(json.dumps([frame(i) for i in range(30)]))
    with NodeProcess(domain, source='file', trajectory_file=str(path), rate=rate) as node:
        until_logged(node, 'INFO', f'end of the recording {path}: 30 frames published')
        assert node.end()[0] == 0
        line, = lines_of(node, 'INFO', 'play')
        assert re.fullmatch(rf'play(ed|ing) {path}: generation v2, 1 actor, 1 with the ego tag; '
                            f'stamps are {GAME_TIME}', line.split(']: ', 1)[1]), line
        assert len(lines_of(node, 'INFO', 'end of the recording')) == 1
        assert not lines_of(node, 'WARN', '')


def test_node_names_unknown_parameters(domain, simulator, tmp_path):
    params = tmp_path / 'params.yaml'
    params.write_text('/**:\n  ros__parameters:\n    reconect_max: 1.0\n    odometry: false\n'
                      '    actor_qos:\n      dept: 3\n    qos_overrides:\n      /tf:\n'
                      '        publisher:\n          depth: 20\n')
    with NodeProcess(domain, port=simulator.port, wholly_other=1, use_sim_time=False,
                     arguments=['--params-file', str(params)]) as node:
        simulator.accept()
        assert node.end()[0] == 0
        found = [line.partition(']: ')[2] for line in lines_of(node, 'WARN', 'unknown parameter')]
    similar = '; did you mean '
    assert sorted(found) == [
        f"unknown parameter actor_qos.dept is ignored{similar}'actor_qos.depth'?",
        f"unknown parameter reconect_max is ignored{similar}'reconnect_max'?",
        'unknown parameter wholly_other is ignored']


def test_node_warns_of_another_node_of_its_name(domain, bench):
    bench_ = bench()
    with NodeProcess(domain, port=bench_.simulator.port, autostart=False) as other:
        for node in (bench_.node, other):
            until_logged(node, 'WARN', '2 nodes have the name /state_sensor')


@pytest.mark.parametrize(('signum', 'is_first'), first_of([
    (signal.SIGINT, False), (signal.SIGTERM, True)]))
def test_node_logs_no_loss_where_the_simulator_ends_with_it(bench, signum, is_first):
    bench_ = bench()
    bench_.connect()
    process = bench_.node.process
    ends = [bench_.simulator.close, lambda: process.send_signal(signum)]
    # It finds both at once, however long the test takes.
    process.send_signal(signal.SIGSTOP)
    for end in ends if is_first else reversed(ends):
        end()
    process.send_signal(signal.SIGCONT)
    assert bench_.node.process.wait(AWAIT_S) == 0
    assert 'connection lost' not in bench_.node.log


# Lines for the changes of a connection that are read now and then.
INFO, WARN = False, True


def report_of(health, source='sim', use_sim_time=False, **parameters):
    """Return the report of a stream without frames, and a function that sets its silence."""
    stream = type('Stream', (), {
        'source': SimpleNamespace(health=health), 'silence_s': 0.0, 'last_receipt_ns': property(
            lambda self: time.perf_counter_ns() - round(self.silence_s * 1e9))})()
    pipeline = SimpleNamespace(counters=Counters(), stamper=Stamper('game_time'))
    return StreamReport(source, Settings(**parameters), stream, pipeline,
                        use_sim_time=use_sim_time), partial(setattr, stream, 'silence_s')


def connect(health):
    health.n_connects += 1
    health.state = SourceState.CONNECTED


def test_log_of_failures_that_repeat():
    health, lines = Health(), []
    report, _ = report_of(health)
    for _ in range(25):
        connect(health)
        health.fail('no route')
        lines += report.lines()
    assert lines == [(WARN, 'connection lost: no route'), (INFO, 'connected again')]
    connect(health)
    health.fail('refused')
    assert report.lines() == [(WARN, 'connection lost: refused')]


def test_log_names_dropped_frames_once_a_burst():
    report, _ = report_of(Health())
    lines = []
    for n in (245, 3, 0, 7, 0):
        report._pipeline.counters.n_dropped += n
        lines += [text.partition(':')[0] for is_warning, text in report.lines() if is_warning]
    assert lines == ['245 frames dropped', '7 frames dropped']


def test_log_and_diagnostics_say_the_same_of_a_connection():
    health = Health()
    report, be_silent = report_of(health)
    health.fail('no route')
    assert report.lines() == [(WARN, 'not connected: no route')]
    status = report.status()
    assert (status.level, status.message) == (Level.ERROR, 'not connected: no route')
    connect(health)
    health.silence = 'paused?'
    lines = []
    for silence_s in (3.0, 4.0, 0.1, 3.0):
        be_silent(silence_s)
        status = report.status()
        assert silence_s < 1.0 or (status.level, status.message) == (
            Level.STALE, f'nothing received for {silence_s} s: paused?')
        lines.append(report.lines())
    stale = [(WARN, 'sim: nothing received for 3.0 s: paused?')]
    assert lines == [stale, [], [], stale]


@pytest.mark.parametrize(('stamp_source', 'use_sim_time', 'words'), [
    ('game_time', False, GAME_TIME), ('game_time', True, 'game time'), ('utc', False, 'utc')])
def test_log_and_diagnostics_say_what_stamps_are(stamp_source, use_sim_time, words):
    health = Health(state=SourceState.CONNECTED, n_connects=1)
    report, _ = report_of(health, 'sim', use_sim_time, stamp_source=stamp_source)
    assert report.status().values['stamps'] == words


def test_log_of_a_recording_is_its_error():
    health = Health(state=SourceState.PLAYING, n_connects=1)
    report, _ = report_of(health, 'drive.json')
    assert report.lines() == []
    health.last_error = 'drive.json: found a cut'
    health.state = SourceState.ENDED
    end = (INFO, 'end of the recording drive.json: 0 frames published')
    assert report.lines() == [(WARN, 'drive.json: found a cut'), end]
    assert report.lines() == []
