# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Lines of the log for the changes of a connection that are read now and then."""

from state_sensor_ros.pipeline.source import Health, SourceState
from state_sensor_ros.ros.stream_log import ConnectionLog

INFO, WARN = False, True


def connect(health):
    health.n_connects += 1
    health.state = SourceState.CONNECTED


def test_connection_log_names_each_change_once():
    log, health = ConnectionLog(), Health()
    assert log.new_lines(health) == []
    health.fail('refused')
    assert log.new_lines(health) == [(WARN, 'not connected: refused')]
    health.fail('refused')
    assert log.new_lines(health) == []
    connect(health)
    assert log.new_lines(health) == []
    health.fail('closed')
    health.fail('refused')
    assert log.new_lines(health) == [
        (WARN, 'connection lost: closed'), (WARN, 'not connected: refused')]


def test_connection_log_of_a_loss_between_two_readings():
    log, health = ConnectionLog(), Health()
    connect(health)
    log.new_lines(health)
    for _ in range(2):
        health.fail('closed')
        connect(health)
        assert log.new_lines(health) == [
            (WARN, 'connection lost: closed'), (INFO, 'connected again')]


def test_connection_log_of_a_loss_before_the_first_reading():
    log, health = ConnectionLog(), Health()
    connect(health)
    health.fail('closed')
    assert log.new_lines(health) == [(WARN, 'connection lost: closed')]


def test_connection_log_of_failures_that_repeat():
    log, health, lines = ConnectionLog(), Health(), []
    for _ in range(25):
        connect(health)
        health.failures.add(ValueError('no route'), 2.0)
        health.fail('no route')
        lines += log.new_lines(health)
    assert lines == [(WARN, 'connection lost: no route'),
                     *((WARN, f'connection lost for the {n}th time: no route') for n in (10, 20))]
    connect(health)
    health.failures.add(ValueError('no route'), 3.0)
    health.fail('no route')
    assert log.new_lines(health) == [(WARN, 'connection lost: no route')]


def test_connection_log_of_attempts_that_repeat():
    log, health, lines = ConnectionLog(), Health(), []
    for _ in range(15):
        health.failures.add(ValueError('no network'), 0)
        health.fail('no network')
        lines += log.new_lines(health)
    assert lines == [(WARN, 'not connected: no network'),
                     (WARN, 'not connected for the 10th time: no network')]


def test_connection_log_of_a_recording_is_its_error():
    log, health = ConnectionLog(), Health(state=SourceState.PLAYING, n_connects=1)
    assert log.new_lines(health) == []
    health.last_error = 'drive.json: found a cut'
    health.state = SourceState.ENDED
    assert log.new_lines(health) == [(WARN, 'drive.json: found a cut')]
    assert log.new_lines(health) == []
