# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Real frames over TCP into the node; every actor of every frame compared on the topics.

The expected values are computed from the numbers of the source by the rules of
doc/protocol/units.md, with scalar arithmetic and without the package.
"""

import json
import math
import re

from budgets import one_of, tries
from paths import GOOD, SAMPLE
import pytest
from raw_actors import into
from real_recordings import RECORDINGS
from rig import NodeProcess, packet, statuses

SAMPLES = [SAMPLE, *sorted(GOOD.glob('sample*'))]
# Enough of a file to have turned, braked and repeated a frame in `make test-all`.
MAX_FRAMES = min(tries(10), 120)
BURST = 5


def triple(value):
    return [value[key] for key in 'xyz'] if isinstance(value, dict) else value


def quadruple(value):
    return [value[key] for key in 'xyzw'] if isinstance(value, dict) else value


def actors_of(frame):
    """Return name, position, orientation, linear and angular velocity of all, in order."""
    if 'frame' not in frame:
        items = [(name, actor) for name, actor in frame.items() if isinstance(actor, dict)]
    elif isinstance(frame['frame'], list):
        items = [(actor['name'], actor) for actor in frame['frame']]
    else:
        states = frame['frame']['objects'] + [each['state'] for each in frame['frame']['vehicles']]
        return [(each['name'], triple(each['odometry']['pose']['position']),
                 quadruple(each['odometry']['pose']['orientation']),
                 triple(each['odometry']['linear_velocity']),
                 triple(each['odometry']['angular_velocity'])) for each in states]
    return [(name, triple(actor['position']), quadruple(actor['orientation']),
             triple(actor['velocity']), triple(actor.get('angular_velocity', [None] * 3)))
            for name, actor in items]


def number(value):
    return math.nan if value is None else value


def expected_odometry(position, orientation, velocity, angular):
    """Convert by hand: mirror y, centimeters to meters, twist into the body."""
    x, y, z, w = orientation
    norm = math.sqrt(x * x + y * y + z * z + w * w)
    q = (-x / norm, y / norm, -z / norm, w / norm)
    v = [number(component) for component in velocity]
    r = [number(component) for component in angular]
    linear = [0.0 if math.isnan(c) else c for c in (v[0] / 100, -v[1] / 100, v[2] / 100)]
    rates = [0.0 if math.isnan(c) else c for c in (-r[0], r[1], -r[2])]
    return ((position[0] / 100, -position[1] / 100, position[2] / 100), q, into(q, linear),
            into(q, rates))


def topic_name(raw):
    return re.sub('[^A-Za-z0-9_]', '_', raw)


def xyz(vector):
    return [vector.x, vector.y, vector.z]


def xyzw(quaternion):
    return [quaternion.x, quaternion.y, quaternion.z, quaternion.w]


def advancing(frames):
    """Return the frames whose clock advances: of the others, ~/frame alone is published."""
    kept, last = [], -1.0
    for frame in frames:
        game_time = time_of(frame)
        if game_time > last:
            kept.append(frame)
            last = game_time
    return kept


def time_of(frame):
    return frame['game_time'] if 'game_time' in frame else frame['frame'][0]['game_time']


def stamp_ns(header):
    return header.stamp.sec * 1_000_000_000 + header.stamp.nanosec


@pytest.mark.parametrize('path', one_of(RECORDINGS + SAMPLES, n_always=3),
                         ids=lambda path: path.name)
def test_node_publishes_every_actor_of_every_frame(path, domain, listener, simulator):
    content = json.loads(path.read_text())
    frames = content[:MAX_FRAMES] if isinstance(content, list) else [content]
    if len(frames) == 1:
        pytest.skip('one frame: without a second one, it cannot be sent again')
    names = [actor[0] for actor in actors_of(frames[0])]
    with NodeProcess(domain, port=simulator.port, overflow='block'):
        simulator.accept()
        tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
        whole = listener.subscribe('/state_sensor/frame', 'state_sensor_ros/StateFrame')
        odometry = {name: listener.subscribe(
            f'/state_sensor/actors/{topic_name(name)}/odometry', 'nav_msgs/Odometry')
            for name in names}
        lists, sent = (tf, whole, *odometry.values()), []
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        # Until all is connected: a clock that goes back is a restart, which publishes again.
        listener.until(lambda: (simulator.send(packet(frames[-1]), packet(frames[0])),
                                sent.append(2), listener.spin_for(0.1), all(lists))[-1],
                       what='all topics')
        listener.until(lambda: statuses(diagnostics) and statuses(diagnostics)[-1][
            'frames published'] == str(sum(sent)), what='an end of these frames')
        listener.receive_all(*lists)
        for received in lists:
            received.clear()
        # The first one is there.
        expected, frames = advancing(frames)[1:], frames[1:]
        # A publisher keeps ten messages for a reader that lags; a test in Python lags.
        for i in range(0, len(frames), BURST):
            simulator.send(*(packet(frame) for frame in frames[i:i + BURST]))
            listener.until(lambda i=i: len(whole) >= min(i + BURST, len(frames)))
        listener.until(lambda: all(len(each) >= len(expected) for each in lists), what='all')
    for frame, message in zip(frames, whole, strict=True):
        compare_frame(frame, message)
    for i, frame in enumerate(expected):
        assert [each.child_frame_id for each in tf[i].transforms] == [
            topic_name(name) for name in names]
        for (name, *numbers), transform in zip(actors_of(frame), tf[i].transforms, strict=True):
            compare_odometry(numbers, odometry[name][i], transform, topic_name(name))
    stamps = [stamp_ns(each.transforms[0].header) for each in tf]
    assert stamps == sorted(set(stamps))


def compare_odometry(numbers, message, transform, child):
    position, orientation, linear, angular = expected_odometry(*numbers)
    pose, twist = message.pose.pose, message.twist.twist
    assert (message.header.frame_id, message.child_frame_id) == ('map', child)
    assert xyz(pose.position) == pytest.approx(position, abs=1e-9)
    assert xyzw(pose.orientation) == pytest.approx(orientation, abs=1e-12)
    assert xyz(twist.linear) == pytest.approx(linear, abs=1e-9)
    assert xyz(twist.angular) == pytest.approx(angular, abs=1e-9)
    assert transform.header.frame_id == 'map'
    assert xyz(transform.transform.translation) == xyz(pose.position)
    assert xyzw(transform.transform.rotation) == xyzw(pose.orientation)
    assert list(message.pose.covariance) == [1e-9 if i % 7 == 0 else 0.0 for i in range(36)]


def compare_frame(frame, message):
    """~/frame has every actor in its order, velocities in global axes."""
    actors = actors_of(frame)
    assert [actor.name for actor in message.actors] == [actor[0] for actor in actors]
    assert message.game_time == pytest.approx(time_of(frame), abs=1e-9)
    assert message.sample_count == frame.get('sample_count', 0)
    for (_, position, orientation, velocity, angular), actor in zip(actors, message.actors,
                                                                    strict=True):
        x, y, z, w = orientation
        assert xyzw(actor.pose.orientation) == [-x, y, -z, w]
        assert xyz(actor.pose.position) == pytest.approx(
            [position[0] / 100, -position[1] / 100, position[2] / 100])
        v = [number(component) for component in velocity]
        r = [number(component) for component in angular]
        assert xyz(actor.twist.linear) == pytest.approx(
            [v[0] / 100, -v[1] / 100, v[2] / 100], nan_ok=True)
        assert xyz(actor.twist.angular) == pytest.approx([-r[0], r[1], -r[2]], nan_ok=True)
