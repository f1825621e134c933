# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor topics` and `state_sensor echo` beside a node, and without one."""

from contextlib import contextmanager
import csv
import io
import os
import re
import signal
import time

from budgets import AWAIT_S, one_of
from programs import lines_of, PIPES, SCRIPTS, start_node
import pytest

from state_sensor_ros.commands.command_line import main
from state_sensor_ros.commands.topics import aligned, grouped, table, TopicRow
from state_sensor_ros.ros.graph import rate_text
from state_sensor_ros.ros.message_text import csv_table, message_words


@pytest.fixture
def look(domain):
    """Return a function that starts a command in the domain of the test."""
    def start(*words):
        return start_node([str(SCRIPTS / 'state_sensor'), *words],
                          env={**os.environ, 'ROS_DOMAIN_ID': str(domain)}, **PIPES)

    return start


def ended(process):
    output, errors = process.communicate(timeout=2 * AWAIT_S)
    return process.returncode, output, errors


def ended_while_sending(process, bench):
    """Send frames until a command has ended; leave out what it says when they come late."""
    while process.poll() is None:
        bench.send()
        bench.listener.spin_for(0.05)
    code, output, errors = ended(process)
    return code, output, lines_of(errors)


@pytest.mark.parametrize('words', one_of([
    ('topics',), ('echo', 'frame'), ('echo', '/tf', '--once'), ('topics', '--node', '/other')],
    n_always=2))
def test_look_without_a_node_is_one_line(look, domain, words):
    code, output, errors = ended(look(*words))
    assert (code, output) == (1, '')
    [line] = errors.splitlines()
    assert line.startswith('error: ')
    assert f'ROS domain {domain}' in line


@pytest.mark.parametrize('topic', one_of(['/a b', '/', '/a//b', '/1']))
def test_echo_of_a_name_that_no_topic_can_have_is_one_line(look, topic):
    code, output, errors = ended(look('echo', topic))
    assert (code, output) == (1, '')
    assert re.fullmatch(f"error: TOPIC: found '{topic}'; expected a name of ROS: topic name must "
                        'not .*\n', errors)


def test_look_lists_what_the_node_publishes(look, bench):
    at = bench()
    at.connect()
    n_readers, deadline = '', time.monotonic() + AWAIT_S
    # On a busy machine the command ends before it has discovered the reader.
    while n_readers != '1' and time.monotonic() < deadline:
        code, output, errors = ended_while_sending(look('topics'), at)
        assert (code, errors) == (0, [])
        head, *lines = output.splitlines()
        assert re.split(' {2,}', head) == ['topic', 'type', 'topics', 'rate of each',
                                           'readers of each']
        rows = {line.split()[0]: re.split(' {2,}', line.strip()) for line in lines}
        _, type_name, n_topics, rate, n_readers = rows['/state_sensor/frame']
    assert (type_name, n_topics, n_readers) == ('state_sensor_ros/msg/StateFrame', '1', '1')
    assert re.fullmatch(r'\d+\.\d Hz', rate)
    assert rows['/tf'][1] == 'tf2_msgs/msg/TFMessage'
    assert {'/state_sensor/actors', '/diagnostics'} <= rows.keys()
    of_actors = rows['/state_sensor/actors/*/odometry']
    assert of_actors[1] == 'nav_msgs/msg/Odometry'
    # A line for each actor on request.
    code, output, errors = ended_while_sending(look('topics', '--all'), at)
    assert (code, errors) == (0, [])
    head, *lines = output.splitlines()
    assert head.split() == ['topic', 'type', 'rate', 'readers']
    names = [line.split()[0] for line in lines]
    odometry = [name for name in names if re.fullmatch(
        '/state_sensor/actors/[^/<]+/odometry', name)]
    assert len(odometry) == int(of_actors[2]) >= 1


def test_look_groups_the_topics_of_actors():
    rows = [TopicRow(f'/a/state_sensor/actors/{name}/odometry', 'nav_msgs/msg/Odometry',
                     [i / 10 for i in range(n)], n_readers)
            for name, n, n_readers in (('car', 21, 0), ('actors', 21, 3), ('new', 2, 1))]
    rows += [TopicRow('/a/state_sensor/actors', 'state_sensor_ros/msg/ActorArray', [0.0], 1)]
    lines = aligned(grouped(rows))
    assert [re.split(' {2,}', line) for line in lines[1:]] == [
        ['/a/state_sensor/actors/*/odometry', 'nav_msgs/msg/Odometry', '3', '10.0 Hz', '3'],
        ['/a/state_sensor/actors', 'state_sensor_ros/msg/ActorArray', '1', '1 message', '1']]
    assert len({len(line) for line in lines}) == 1
    assert len(table(rows)) == 5


def test_look_prints_messages(look, bench):
    at = bench()
    at.connect()
    # Without a message it names what it waits for, until a signal.
    process = look('echo', 'frame', '--once')
    assert 'waiting for a message from /state_sensor/frame since' in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert ended(process)[0] == 130
    code, output, errors = ended_while_sending(look('echo', '~/frame', '--once'), at)
    assert (code, errors) == (0, [])
    lines = output.splitlines()
    assert lines[0] == 'header:'
    assert re.fullmatch(r'  stamp: \d+\.\d{9} s', lines[1])
    assert any(re.fullmatch(r'actors: [1-9]\d*', line) for line in lines)
    assert any(line.startswith('- name: ') for line in lines)
    # A line of CSV for each actor.
    code, output, errors = ended_while_sending(look('echo', 'frame', '--once', '--csv'), at)
    assert (code, errors) == (0, [])
    head, *rows = csv.reader(io.StringIO(output))
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    row = dict(zip(head, rows[0], strict=True))
    assert float(row['header.stamp']) >= 0.0
    assert row['actors.pose.orientation.w']
    process = look('echo', 'frame')
    printed = []
    while printed.count('---\n') < 2:
        at.send()
        at.listener.spin_for(0.05)
        os.set_blocking(process.stdout.fileno(), False)
        printed += process.stdout.readlines()
    process.send_signal(signal.SIGINT)
    assert ended(process)[::2] == (0, '')


def test_words_and_csv_of_messages():
    from geometry_msgs.msg import TransformStamped
    from sensor_msgs.msg import Image, JointState
    from tf2_msgs.msg import TFMessage
    transform = TransformStamped(child_frame_id='a\nb')
    transform.transform.translation.x = -0.0
    words = message_words(TFMessage(transforms=[transform, transform])).splitlines()
    assert words[:2] == ['transforms: 2', '- header:']
    assert '  child_frame_id: a\\nb' in words
    assert '      x: 0' in words
    head, rows = csv_table(TFMessage(transforms=[transform, transform]))
    assert head[:3] == ['transforms.header.stamp', 'transforms.header.frame_id',
                        'transforms.child_frame_id']
    assert [row[0] for row in rows] == ['0.000000000', '0.000000000']
    assert csv_table(TFMessage()) == ([], [])
    assert 'data: 3 bytes' in message_words(Image(data=b'abc'))
    joints = JointState(name=['a', 'b'], position=[float(i) for i in range(20)])
    assert 'name: [a, b]' in message_words(joints)
    assert 'position: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, … 20 in all]' in message_words(joints)
    head, [row] = csv_table(joints)
    assert row[head.index('name')] == 'a b'


def test_look_gives_no_rate_of_messages_that_come_at_once():
    assert [rate_text(times_s) for times_s in ([], [5.0], [5.0, 5.001, 5.002], [5.0, 5.5, 6.0])] \
        == ['silent', '1 message', '3 messages', '2.0 Hz']


def test_rate_is_that_of_the_receipts_and_not_of_the_callbacks(monkeypatch, capsys):
    """Messages that had arrived before all topics were subscribed to gave 22.7 Hz for 20."""
    callbacks = []

    class FakeGraph:
        def find_nodes(self, *_):
            return ['/state_sensor']

        def topics_of(self, _):
            return {'/state_sensor/frame': 'state_sensor_ros/msg/StateFrame'}

        def subscribe(self, _topic, _type, receive, **_):
            callbacks.append(receive)

        def spin(self, _):
            for i in range(41):
                callbacks[0](b'', {'received_timestamp': 1_700_000_000_000_000_000
                                   + 50_000_000 * i})

        def n_others(self, _):
            return 0

    @contextmanager
    def look(_):
        yield FakeGraph()

    monkeypatch.setattr('state_sensor_ros.commands.topics.looking', look)
    assert main(['topics']) == 0
    assert ' 20.0 Hz ' in capsys.readouterr().out
