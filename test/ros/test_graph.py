# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The node in a ROS graph: QoS, names, frames, two of them side by side, another distribution."""


import pytest
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from rig import framed, listening, NodeProcess, ScriptedSimulator, state

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
            listener.matched(name)
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
                'qos_overrides./state_sensor/control_states.publisher.depth': 3,
                'qos_overrides./state_sensor/control_states.publisher.reliability': 'best_effort',
                'actor_qos.reliability': 'best_effort', 'actor_qos.depth': 3}
    with NodeProcess(domain, port=simulator.port, **override):
        simulator.accept()
        stream(listener, simulator, lambda: tf)
        topic = '/state_sensor/actors/Ego_Car_1/odometry'
        listener.matched(topic)
        for name in ('/state_sensor/frame', '/state_sensor/control_states', topic):
            listener.matched(name)
            (info,) = listener.node.get_publishers_info_by_topic(name)
            assert info.qos_profile.reliability is ReliabilityPolicy.BEST_EFFORT


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


def test_graph_tf2_finds_the_frames_of_now(domain, simulator):
    """On simulated time, with the defaults of the driver."""
    tf2_ros = pytest.importorskip('tf2_ros', reason='comes with a full ROS 2 only')
    from rclpy.parameter import Parameter
    with listening(domain, 'buffer') as own, NodeProcess(domain, port=simulator.port):
        own.node.set_parameters([Parameter('use_sim_time', value=True)])
        buffer, clock = tf2_ros.Buffer(), own.node.get_clock()
        tf2_ros.TransformListener(buffer, own.node)
        simulator.accept()
        stream(own, simulator, lambda: clock.now().nanoseconds and buffer.can_transform(
            'map', 'Ego_Car_1', clock.now()))
        found = buffer.lookup_transform('map', 'Ego_Car_1', clock.now()).transform.translation
        assert (found.y, found.z) == pytest.approx((2.0, 0.03))
