# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node in a ROS graph: QoS, names, frames, two of them side by side, another distribution."""

import math
import os
from pathlib import Path
import shutil
import subprocess
import sys

from paths import ROOT
import pytest
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rig import frame, framed, listening, NodeProcess, packet, ScriptedSimulator, state, statuses

FAST = {'reconnect_min': 0.05, 'reconnect_max': 0.2}


def ego(number, **more):
    return state('Ego.Car-1', position=(100.0 * number, -200.0, 3.0), velocity=(2000.0, 0.0, 0.0),
                 tags=('vehicle', 'ego'), **more)


def stream(listener, simulator, condition, make=lambda i: framed(i, ego(i))):
    """Send frames until ``condition`` holds."""
    number = iter(range(10 ** 6))
    return listener.until(lambda: (simulator.send(make(next(number))), listener.spin(0.05),
                                   condition())[-1])


def test_graph_offers_the_qos_of_the_contract_and_the_registry_to_late_listeners(
        domain, listener, simulator):
    tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    with NodeProcess(domain, port=simulator.port, publish_clock=True):
        simulator.accept()
        stream(listener, simulator, lambda: tf)
        topic = '/state_sensor/actors/Ego_Car_1/odometry'
        listener.matched(topic)

        def offered(name):
            (info,) = listener.node.get_publishers_info_by_topic(name)
            qos = info.qos_profile
            return (qos.reliability is ReliabilityPolicy.RELIABLE,
                    qos.durability is DurabilityPolicy.TRANSIENT_LOCAL)

        for name in ('/tf', '/clock', '/state_sensor/frame', '/state_sensor/markers',
                     '/state_sensor/control_states', '/state_sensor/ego/odometry', topic):
            assert offered(name) == (True, False), name
        assert offered('/state_sensor/actors') == (True, True)
        # A late listener gets the registry.
        actors = listener.subscribe('/state_sensor/actors', 'state_sensor_ros/ActorArray', depth=1,
                                    latched=True)
        listener.until(lambda: actors, what='the latched registry')
        (actor,) = actors[-1].actors
        assert (actor.name, actor.topic_name, actor.frame_id, actor.kind, list(actor.tags)) == (
            'Ego.Car-1', 'Ego_Car_1', 'Ego_Car_1', 1, ['vehicle', 'ego'])


def test_graph_qos_can_be_overridden(domain, listener, simulator):
    tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    override = {'qos_overrides./state_sensor/frame.publisher.reliability': 'best_effort',
                'actor_qos.reliability': 'best_effort', 'actor_qos.depth': 3}
    with NodeProcess(domain, port=simulator.port, **override):
        simulator.accept()
        stream(listener, simulator, lambda: tf)
        topic = '/state_sensor/actors/Ego_Car_1/odometry'
        listener.matched(topic)
        for name in ('/state_sensor/frame', topic):
            (info,) = listener.node.get_publishers_info_by_topic(name)
            assert info.qos_profile.reliability is ReliabilityPolicy.BEST_EFFORT


def test_graph_frames_prefix_ego_frame_and_parent(domain, listener, simulator):
    tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    static = listener.subscribe('/tf_static', 'tf2_msgs/TFMessage', depth=1, latched=True)
    odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    with NodeProcess(domain, port=simulator.port, frame_prefix='sim/', ego_frame='base_link',
                     parent_frame='earth', global_frame='world',
                     global_frame_pose=[1.0, 2.0, 3.0, 0.0, 0.0, math.pi / 2]):
        simulator.accept()
        stream(listener, simulator, lambda: tf and odometry and static,
               lambda i: framed(i, ego(i), state('2nd')))
        assert [(each.header.frame_id, each.child_frame_id) for each in tf[-1].transforms] == [
            ('world', 'base_link'), ('world', 'sim/actor_2nd')]
        assert (odometry[-1].header.frame_id, odometry[-1].child_frame_id) == (
            'world', 'base_link')
        (fixed,) = static[-1].transforms
        assert (fixed.header.frame_id, fixed.child_frame_id) == ('earth', 'world')
        assert fixed.transform.translation.y == 2.0
        assert fixed.transform.rotation.z == pytest.approx(math.sqrt(0.5))


def test_graph_twist_is_in_the_body_frame_by_default(domain, listener, simulator):
    """A car that drives along -y of the simulator: +y in REP-103, its own x."""
    half = math.sqrt(0.5)

    def driving(i):
        return framed(i, state('car', orientation=(0.0, 0.0, -half, half),
                               velocity=(0.0, -1500.0, 0.0), tags=('vehicle', 'ego')))

    for parameters, expected in ({}, (15.0, 0.0)), ({'twist_frame': 'global'}, (0.0, 15.0)):
        odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        with NodeProcess(domain, port=simulator.port, **parameters):
            simulator.accept()
            stream(listener, simulator, lambda received=odometry: received, driving)
            linear = odometry[-1].twist.twist.linear
            assert (linear.x, linear.y) == pytest.approx(expected, abs=1e-12)


def wheeled(i):
    """Make a frame whose ego has four wheels that have rolled a quarter turn and steer left."""
    content = frame(i, ego(i))
    wheels = []
    steer, spin = math.radians(-10.0), math.pi / 2  # the simulator's yaw is positive to the right
    for wheel_id, (x, y) in enumerate(((140.0, -75.0), (140.0, 75.0), (-140.0, -75.0),
                                       (-140.0, 75.0))):
        turn = steer if wheel_id < 2 else 0.0
        cs, ss, cp, sp = (math.cos(turn / 2), math.sin(turn / 2), math.cos(spin / 2),
                          math.sin(spin / 2))
        wheels.append({'id': wheel_id, 'speed': 30.0 + wheel_id, 'pose': {
            'position': {'x': x, 'y': y, 'z': 34.0},
            'orientation': {'w': cs * cp, 'x': -ss * sp, 'y': cs * sp, 'z': ss * cp}}})
    content['frame']['vehicles'][0]['wheels'] = wheels
    return packet(content)


def test_graph_wheels_as_frames_and_joints(domain, listener, simulator):
    tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    joints = listener.subscribe('/state_sensor/actors/Ego_Car_1/joint_states',
                                'sensor_msgs/JointState')
    with NodeProcess(domain, port=simulator.port, wheel_tf=True, joint_states=True):
        simulator.accept()
        stream(listener, simulator, lambda: tf and joints, wheeled)
        found = {each.child_frame_id: each for each in tf[-1].transforms}
        assert list(found) == ['Ego_Car_1', *(f'Ego_Car_1/wheel_{k}' for k in range(4))]
        left = found['Ego_Car_1/wheel_0']
        assert left.header.frame_id == 'Ego_Car_1'
        place = left.transform.translation
        assert (place.x, place.y, place.z) == pytest.approx((1.4, 0.75, 0.34))
        joint = joints[-1]
        assert list(joint.name) == [f'Ego_Car_1/wheel_{k}' for k in range(4)]
        assert list(joint.position) == pytest.approx([math.pi / 2] * 4)
        assert list(joint.velocity) == [30.0, 31.0, 32.0, 33.0]


def test_graph_two_nodes_two_simulators(domain, listener):
    with ScriptedSimulator() as one, ScriptedSimulator() as two, \
            NodeProcess(domain, port=one.port, frame_prefix='one/',
                        arguments=['-r', '__ns:=/one']), \
            NodeProcess(domain, port=two.port, frame_prefix='two/',
                        arguments=['-r', '__node:=second']):
        received = {name: listener.subscribe(f'{name}/ego/odometry', 'nav_msgs/Odometry')
                    for name in ('/one/state_sensor', '/second')}
        tf = listener.subscribe('/tf', 'tf2_msgs/TFMessage')

        def children():
            return {each.child_frame_id for message in tf for each in message.transforms}

        for i, simulator in enumerate((one, two)):
            simulator.accept()
            # One topic may be connected before the other.
            stream(listener, simulator,
                   lambda i=i: list(received.values())[i] and len(children()) > i)
        assert received['/one/state_sensor'][-1].child_frame_id == 'one/Ego_Car_1'
        assert received['/second'][-1].child_frame_id == 'two/Ego_Car_1'
        assert children() == {'one/Ego_Car_1', 'two/Ego_Car_1'}
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        listener.until(lambda: {status.name for array in diagnostics for status in array.status}
                       >= {'one/state_sensor: stream', 'second: stream'})


def test_graph_consistency_status_warns_within_3_s(domain, listener, simulator):
    """A car on a circle, 20 Hz, in wrong units: the warning names them in 3 s of stream."""
    def circling(i):
        angle = 0.05 * i * 0.4
        radius = 5000.0
        place = (radius * math.sin(angle), radius * (1 - math.cos(angle)), 0.0)
        car = state('car', position=place, tags=('vehicle', 'ego'),
                    orientation=(0.0, 0.0, math.sin(angle / 2), math.cos(angle / 2)),
                    velocity=(20.0 * math.cos(angle), 20.0 * math.sin(angle), 0.0))
        car['odometry']['angular_velocity']['z'] = 0.4
        return framed(i, car)

    diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
    with NodeProcess(domain, port=simulator.port, overflow='block', **FAST):
        simulator.accept()
        listener.matched('/diagnostics')
        simulator.send(*(circling(i) for i in range(60)))
        values = listener.until(lambda: [each for each in statuses(diagnostics, 'truth')
                                         if each['level'] == 1], what='the warning')[0]
        assert 'not in the same units' in values['message']


PRINT_ODOMETRY = """
from nav_msgs.msg import Odometry
import rclpy
rclpy.init()
node, received = rclpy.create_node('subscriber'), []
node.create_subscription(Odometry, '/state_sensor/ego/odometry', received.append, 10)
while not received:
    rclpy.spin_once(node, timeout_sec=0.1)
message = received[0]
print(message.header.frame_id, message.child_frame_id, message.twist.twist.linear.x)
rclpy.shutdown()
"""


def test_graph_other_distribution_receives_odometry(domain, listener, simulator, tmp_path):
    """A node of one distribution sends to a subscriber of the other, where both are set up."""
    mine = Path(os.environ.get('VIRTUAL_ENV', sys.prefix)).name
    others = [path for path in sorted(ROOT.glob('.venv-*')) if path.name != mine
              and (ROOT / 'install' / path.name.removeprefix('.venv-')).is_dir()]
    if not others:
        pytest.skip('one distribution only is set up: `ROS_DISTRO_WHEELS=kilted make setup`')
    distribution = others[0].name.removeprefix('.venv-')
    script = tmp_path / 'print_odometry.py'
    script.write_text(PRINT_ODOMETRY)
    environment = {key: os.environ[key] for key in ('PATH', 'HOME') if key in os.environ}
    environment |= {'ROS_DOMAIN_ID': str(domain), 'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}
    with NodeProcess(domain, port=simulator.port), subprocess.Popen(
            [shutil.which('sh'), '-c', (f'ROS_DISTRO_WHEELS={distribution}; . scripts/env.sh && '
                                        f'exec python3 "{script}"')],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as subscriber:
        simulator.accept()
        stream(listener, simulator, lambda: subscriber.poll() is not None)
        assert subscriber.stdout.read().split() == ['map', 'Ego_Car_1', '20.0']


def test_graph_tf2_finds_the_frames(domain, simulator):
    tf2_ros = pytest.importorskip('tf2_ros', reason='comes with a full ROS 2 only')
    from rclpy.time import Time
    with listening(domain, 'buffer') as own, NodeProcess(domain, port=simulator.port):
        buffer = tf2_ros.Buffer()
        tf2_ros.TransformListener(buffer, own.node)
        simulator.accept()
        stream(own, simulator, lambda: buffer.can_transform('map', 'Ego_Car_1', Time()))
        found = buffer.lookup_transform('map', 'Ego_Car_1', Time()).transform.translation
        assert (found.y, found.z) == pytest.approx((2.0, 0.03))
