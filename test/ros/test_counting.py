# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Each frame is counted once: received equals published, skipped and dropped in every fault."""

from contextlib import suppress
import itertools
import struct

from budgets import each_once
import pytest
from rig import (
    arrayed,
    framed,
    packet,
    state,
    statuses,
)
import scripted_simulator

MAX_FRAME_BYTES = 10_000


def difference(before, now):
    """Return by how much each counter of frames increased."""
    return {what: int(now[f'frames {what}']) - int(before[f'frames {what}'])
            for what in ('published', 'skipped', 'dropped')}


def counted(published=0, skipped=0, dropped=0):
    return {'published': published, 'skipped': skipped, 'dropped': dropped}


def vehicles(content, change):
    """Change the first vehicle of a frame."""
    change(content['frame']['vehicles'][0]['state'])
    return content


def cut(data):
    """Return what sends a part of a packet and hangs up."""
    return lambda simulator: (simulator.send(data), simulator.hang_up())


def wrong_length(number):
    """Return what sends the header of a packet of a length, and waits for the node to leave."""
    def send(simulator):
        simulator.send(struct.pack('>IIfI', number, 0, 0.0, 0))
        with suppress(ConnectionResetError):
            assert simulator.connection.recv(1) == b''
        simulator.hang_up()
    return send


CUT_PACKET, SHORT_LENGTH = cut(framed(0)[:-1]), wrong_length(3)


CROWD = [state(f'car_{i}', position=(i * 500.0, 0.0, 0.0)) for i in range(60)]


@pytest.mark.parametrize(('n_each', 'overflow'), each_once((1, 3), ('block', 'drop_oldest')))
def test_what_the_queue_drops_is_not_missed_and_what_the_simulator_leaves_out_is(
        bench, overflow, n_each):
    rig = bench(overflow=overflow, queue_size=1, max_actor_topics=1)
    rig.connect()
    before = rig.wait_until_counted()
    n_missing = n_frames = 0
    packets = []
    for i in range(40 // n_each):
        contents = []
        for _ in range(n_each):
            contents.append(rig.content(*CROWD))
            # A repeated frame has a sample of its own; a bad one is skipped, not missed.
            if i % 5 == 1:
                contents.append({**contents[-1], 'sample_count': rig.n_sent + 1})
                rig.n_sent += 1
        if i % 7 == 3:
            contents.append(rig.content(frame=3))
        if i % 4 == 2:
            rig.n_sent += 2
            n_missing += 2
        n_frames += len(contents)
        packets += map(packet, contents) if n_each == 1 else [arrayed(*contents)]
    # At once: faster than the node can work.
    rig.send_packet(b''.join(packets), n_frames)
    rig.send()
    values = rig.wait_until_counted()
    changed = difference(before, values)
    if overflow == 'block':
        assert changed['dropped'] == 0
    else:
        assert changed['dropped'] >= 1
    assert values['samples missed'] == str(n_missing), values
    assert values['simulator restarts'] == '0'
    # The last one is never dropped.
    rig.listener.until(lambda: rig.frames[-1].sample_count == rig.n_sent)
    order = [each.sample_count for each in rig.frames]
    assert order == sorted(order)
    rig.finish()


def test_last_error_is_the_last_whatever_its_kind(bench):
    rig = bench()
    rig.connect()

    def last_error(part):
        return rig.listener.until(
            lambda: [values for values in statuses(rig.diagnostics)[-1:]
                     if part in values.get('last error', '')], what=f'last error {part}')

    for n_losses in (1, 2):
        rig.simulator.hang_up()
        rig.connect(warm=False)
        last_error('the peer closed the connection')
        rig.listener.until(lambda n=n_losses: rig.node.log.count(
            'the peer closed the connection') >= n, what='a line of the log for each loss')
        rig.send_packet(packet(b'{"frame": 3}'))
        last_error('frame: found 3')
        CUT_PACKET(rig.simulator)
        rig.connect(warm=False)
        last_error('bytes into a packet')
        bad = vehicles(rig.content(state('bad'), state('good')), lambda own: own.update(tags=7))
        rig.send_packet(arrayed(rig.content(), bad), 2)
        last_error('frame.vehicles[0].state.tags')
        SHORT_LENGTH(rig.simulator)
        rig.connect(warm=False)
        last_error('packet length 3')
        rig.send_packet(arrayed(rig.content(), rig.content(game_time=-1.0)), 2)
        last_error('game_time: found -1.0')
    # What goes on well leaves it as it is.
    rig.send(5)
    rig.wait_until_counted()
    last_error('game_time: found -1.0')
    rig.finish()


def test_last_error_may_be_that_of_the_control_port(domain, listener, bench):
    payloads = (scripted_simulator.frame(i / 20) for i in itertools.count(1))
    with scripted_simulator.ScriptedSimulator(payloads=payloads) as peer:
        rig = bench(port=peer.port, control_port=peer.control_port, sample_rate=20.0,
                    desired_tags=['vehicle'])
        rig.listener.until(lambda: len(rig.frames) > 3)
        peer.drop_control()
        values = rig.listener.until(
            lambda: [each for each in statuses(rig.diagnostics)
                     if str(peer.control_port) in each.get('last error', '')],
            what='an error of the control port')[-1]
        assert int(values['frames skipped']) == 0
        rig.finish()
