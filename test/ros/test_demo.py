# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The demonstration, as `make demo` runs it."""

from importlib.util import find_spec
import math
import os
from pathlib import Path
import re
import signal

from budgets import AWAIT_S, one_of
from paths import ROOT
from PIL import Image
from programs import PIPES, start_node
import pytest
from rosbags.rosbag2 import Reader
from stack_bags import messages_of
from stopwatch import Stopwatch, until

from state_sensor_ros import open_recording  # noqa: I100
from state_sensor_ros.drawing.style import ROADS

DEMO = ROOT / 'scripts' / 'demo.py'
END_S = 10.0


def environment(domain, **others):
    return {**os.environ, 'ROS_DOMAIN_ID': str(domain),
            'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST', **others}


def demo(domain, *arguments, **others):
    return start_node([str(DEMO), *map(str, arguments)], **PIPES,
                      env=environment(domain, **others))


def rows(text):
    """Return the table that was printed: type, topics, messages and rate by topic."""
    found = re.findall(r'^(/\S+) +(\S+) +(\d+) +(\d+) +(\S+)(?: Hz)?$', text, re.MULTILINE)
    return {name: (type_, int(n_topics), int(n_messages), rate)
            for name, type_, n_topics, n_messages, rate in found}


@pytest.mark.thorough
def test_demo_records_all_topics(domain, tmp_path):
    tmp_path /= 'a demo'
    process = demo(domain, '--duration', 8, '--output', tmp_path)
    text, error = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, error) == (0, '')
    table = rows(text)
    type_, n_topics, n_messages, rate = table['/state_sensor/actors/*/odometry']
    assert (type_, n_topics) == ('nav_msgs/msg/Odometry', 21)
    # A machine that stands for a moment records less in these seconds.
    assert n_messages >= 21
    assert rate == '-' or float(rate) > 0.0
    assert table['/state_sensor/frame'][2] > 0
    assert re.search(r'median \d+\.\d+ ms, p99 \d+\.\d+ ms', text)
    for name in ('bag', 'picture.png', 'animation.html', 'driver.log', 'simulator.log'):
        assert str(tmp_path / name) in text
        assert (tmp_path / name).exists()
    assert table['/state_sensor/map'][1:3] == (1, 1)
    # A machine that is busy elsewhere drops frames, which is no defect.
    assert [line for line in (tmp_path / 'driver.log').read_text().splitlines()
            if 'WARN' in line and 'dropped' not in line] == []
    # What is copied into a shell.
    assert f"state_sensor view '{tmp_path}/bag' " in text
    with Image.open(tmp_path / 'picture.png') as picture:
        assert picture.size[0] == 1650
    with Reader(tmp_path / 'bag') as bag:
        counts = {one.topic: one.msgcount for one in bag.connections}
        assert counts['/state_sensor/frame'] == table['/state_sensor/frame'][2]
        own = [count for topic, count in counts.items()
               if re.fullmatch('/state_sensor/actors/[^/]+/odometry', topic)]
        assert (len(own), sum(own)) == (n_topics, n_messages)
        assert min(own) > 0
    assert {len(frame.actors) for *_, frame in messages_of(
        tmp_path / 'bag', ['/state_sensor/frame'])} == {21}


@pytest.mark.thorough
@pytest.mark.skipif(find_spec('libsumo') is None, reason='needs libsumo')
def test_demo_of_sumo_records_its_topics_and_draws_its_map(domain, tmp_path):
    process = demo(domain, '--duration', 8, '--output', tmp_path, '--simulator', 'sumo')
    text, error = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, error) == (0, '')
    table = rows(text)
    for name in ('roads', 'map'):
        assert table[f'/state_sensor/{name}'][1:3] == (1, 1)
    # Vehicles come and go: several messages within moments, which are no rate.
    assert table['/state_sensor/actors'][3] == '-'
    for name in ('traffic_lights', 'ego/odometry', 'frame'):
        assert table[f'/state_sensor/{name}'][2] > 0
    assert not (tmp_path / 'simulator.log').exists()
    with Image.open(tmp_path / 'picture.png') as picture:
        colors = {color[:3] for _, color in picture.convert('RGB').getcolors(1 << 24)}
    assert tuple(bytes.fromhex(ROADS[1].removeprefix('#'))) in colors


@pytest.mark.thorough
def test_demo_drives_the_ego_along_a_line(domain, tmp_path):
    process = demo(domain, '--duration', 8, '--output', tmp_path, '--drive')
    text, error = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, error) == (0, '')
    assert rows(text)['/state_sensor/command_status'][2] > 0
    assert rows(text)['/state_sensor/actors/*/odometry'][1] == 21
    assert str(tmp_path / 'line_follower.log') in text
    assert {each.origin for *_, each in messages_of(
        tmp_path / 'bag', ['/state_sensor/command_status'])} == {3}
    *_, (*_, odometry) = messages_of(tmp_path / 'bag', ['/state_sensor/ego/odometry'])
    at = odometry.pose.pose.position
    with open_recording(ROOT / 'resource' / 'lines' / 'monodrive.json.gz') as line:
        track = line.ego_track().position_xyz
    # Its points are some meters apart.
    assert min(math.dist((at.x, at.y), point[:2]) for point in track) < 6.5


@pytest.mark.parametrize('signum', one_of([signal.SIGINT, signal.SIGTERM]))
def test_demo_interrupted_leaves_no_process_and_no_half_bag(domain, tmp_path, signum):
    process = demo(domain, '--duration', 600, '--output', tmp_path)
    assert 'recording for' in process.stdout.readline()
    programs = Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()
    assert len(programs) == 2
    until(lambda: any('.bag' in path.name for path in tmp_path.iterdir()))
    watch = Stopwatch(process, *map(int, programs))
    process.send_signal(signum)
    assert watch.wait() == 0
    assert watch.seconds < END_S
    text, error = process.communicate()
    assert (text.splitlines()[-1], error) == ('interrupted', '')
    assert not any(Path(f'/proc/{pid}').exists() for pid in programs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ['driver.log', 'simulator.log']


def test_demo_names_the_reason_where_the_driver_does_not_start(domain, tmp_path):
    broken = tmp_path / 'bin'
    broken.mkdir()
    (broken / 'state_sensor_node').write_text('#!/bin/sh\necho "no luck today"; exit 3\n')
    (broken / 'state_sensor_node').chmod(0o755)
    process = demo(domain, '--output', tmp_path / 'out',
                   PATH=f'{broken}{os.pathsep}{os.environ["PATH"]}')
    _, error = process.communicate(timeout=AWAIT_S)
    assert process.returncode == 1
    assert error == 'error: demo: state_sensor_node ended with 3: no luck today\n'
