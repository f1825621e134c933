# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Faults over real sockets: the node continues, publishes again, counts."""

import math
import socket

import pytest
from rig import packet, ScriptedSimulator, state, statuses


def test_fault_changes_of_the_connection_are_logged_after_a_late_start(bench, simulator):
    port = simulator.port
    simulator.close()
    rig = bench()
    rig.listener.until(lambda: 'refused' in rig.node.log, what='the refusal')
    rig.simulator = ScriptedSimulator(port)
    with rig.simulator:
        rig.connect()
        rig.listener.until(lambda: rig.send() or 'connected to' in rig.node.log)
    # Nothing listens any more: the next failure is the first one once more.
    rig.listener.until(lambda: rig.node.log.count('refused') == 2, what='the second refusal')
    rig.simulator = ScriptedSimulator(port)
    with rig.simulator:
        rig.connect(warm=False)
        rig.publishes_again()
        rig.listener.until(lambda: 'connected again' in rig.node.log)
        rig.finish()
    lines = [line.partition(']: ')[2] for line in rig.node.log.splitlines()
             if 'connect' in line and 'connecting to' not in line]
    refused = (f'not connected: cannot connect to 127.0.0.1:{port}: connection refused; '
               'is the simulator running?')
    assert lines[1].startswith(f'connected to 127.0.0.1:{port}: generation v2, ')
    assert lines == [refused, lines[1], 'connection lost: the peer closed the connection',
                     refused, 'connected again']
    assert '[INFO]' in next(line for line in rig.node.log.splitlines() if 'again' in line)


def test_fault_half_open(bench):
    repair = 19  # TCP_REPAIR of linux/tcp.h; Python has no name for it
    rig = bench()
    rig.connect()
    connection = rig.simulator.connection
    try:
        # In repair mode a socket closes without a packet to its peer, as with a pulled cable.
        connection.setsockopt(socket.IPPROTO_TCP, repair, 1)
    except PermissionError:
        pytest.skip('a connection can be dropped silently by root alone')
    connection.close()
    # stale_after 1 s, then keep-alive probes fail within 3 s.
    rig.connect(warm=False)
    rig.publishes_again()
    rig.counted('reconnects')
    rig.finish()


def test_fault_payload_is_no_frame(bench):
    rig = bench(overflow='block')
    rig.connect()
    n_lines = []
    for i, garbage in enumerate((
            b'not json', b'\xff\xfe\x00', b'{"frame":', b'[' * 100_000, b'{"frame": 3}', b'true',
            b'{"frame": {"vehicles": 7}, "game_time": 1}'), 1):
        n_before = rig.node.log.count('expected')
        rig.simulator.send(*[packet(garbage)] * 20)
        rig.publishes_again()
        values = rig.counted('frames skipped', 20 * i)
        assert (values['frames skipped'], values['reconnects']) == (str(20 * i), '0')
        if not n_lines:
            rig.listener.until(lambda n=n_before: rig.node.log.count('expected') > n,
                               what='a line of the log')
        n_lines.append(rig.node.log.count('expected') - n_before)
    rig.finish()
    # One line per second for each kind.
    assert max(n_lines) <= 4, rig.node.log


def test_fault_actors_and_members_cost_themselves(bench):
    rig = bench(overflow='block')
    rig.connect(warm=False)

    def send(content):
        rig.simulator.send(packet(content))

    def received():
        # Unknown members are named once.
        content = rig.content(weather='rain', **{'sky\n[ERROR] forged': 'red'})
        content['frame']['vehicles'][0]['state']['mood'] = {'x': 1}
        send(content)
        rig.listener.spin(0.1)
        return len(rig.frames) > 3 and rig.tf

    rig.listener.until(received)
    bad = rig.content(state('good'), state('bad'), state('fine'))
    bad['frame']['vehicles'][1]['state']['odometry']['pose']['position']['x'] = 'far away'
    send(bad)
    rig.listener.until(lambda: [actor.name for actor in rig.frames[-1].actors] == ['good', 'fine'])
    rig.counted('actors dropped')
    rig.listener.until(lambda: 'frame.vehicles[1].state.odometry.pose.position' in rig.node.log,
                       what='the line of the log')
    assert 'far away' in rig.node.log
    twins = rig.content(state('twin', position=(100.0, 0.0, 0.0)),
                        state('twin', position=(200.0, 0.0, 0.0)), state('lost'))
    twins['frame']['vehicles'][2]['state']['odometry']['pose']['position']['z'] = None
    send(twins)
    rig.listener.until(lambda: [each.name for each in rig.frames[-1].actors] == ['twin', 'lost'])
    first, lost = rig.frames[-1].actors
    assert first.pose.position.x == 1.0
    assert math.isnan(lost.pose.position.z)
    rig.listener.until(lambda: [each.child_frame_id for each in rig.tf[-1].transforms] == ['twin'])
    rig.counted('duplicate names')
    rig.counted('unusable poses')
    rig.publishes_again()
    rig.finish()
    # Each is named once, when it is found.
    named = [line for line in rig.node.log.splitlines() if 'unknown member' in line]
    for member in ('mood', 'weather', r'sky\n[ERROR] forged'):
        assert sum(member in line for line in named) == 1, member


def test_fault_silence_is_stale_and_transforms_are_not_repeated(bench):
    rig = bench()
    rig.connect()
    rig.listener.until(lambda: [values for values in statuses(rig.diagnostics)
                                if values['level'] == 3], what='a STALE report')
    rig.listener.until(lambda: statuses(rig.diagnostics[-1:], 'truth')[0]['level'] == 3,
                       what='a STALE consistency check')
    n_tf = len(rig.tf)
    rig.listener.spin_for(2.0)
    assert len(rig.tf) == n_tf
    rig.publishes_again()
    assert rig.counted('frames received', 2)['reconnects'] == '0'
    rig.listener.until(lambda: rig.send_until_received() and
                       statuses(rig.diagnostics[-1:], 'truth')[0]['level'] == 0,
                       what='a consistency check that is OK')
    rig.simulator.close()
    # Before, it may be a silence, if the test waits for a core.
    last = rig.listener.until(lambda: [
        each for each in statuses(rig.diagnostics[-1:], 'truth')
        if each['message'].startswith('not connected')],
        what='a consistency check without a simulator')[0]
    assert last['level'] == 3
    rig.finish()
