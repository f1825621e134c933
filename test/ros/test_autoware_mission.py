# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A stand-in of Autoware drives a mission of 200 m through its topics and its AD API."""

from contextlib import contextmanager, ExitStack
from importlib import import_module
import math
import os

from budgets import AWAIT_S
from commands_rig import message_of, Obeying
from paths import ROOT
from programs import PIPES, start_script
import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from test_follow_line import Turns

ADAPI = 'autoware_adapi_v1_msgs'
LOCALIZATION, ROUTE, MODE = (f'{ADAPI}/{name}State' for name in (
    'LocalizationInitialization', 'Route', 'OperationMode'))
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
VOLATILE = QoSProfile(depth=1)
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
STATE = '/localization/kinematic_state'
CONTROL, COMMANDS = 'autoware_control_msgs/Control', '/control/command/control_cmd'
# As planning and control subscribe to them.
INPUTS = {
    '/localization/initialization_state': (LOCALIZATION, LATCHED),
    STATE: ('nav_msgs/Odometry', VOLATILE),
    '/localization/acceleration': ('geometry_msgs/AccelWithCovarianceStamped', VOLATILE),
    '/perception/object_recognition/objects': (
        'autoware_perception_msgs/PredictedObjects', VOLATILE),
    '/perception/obstacle_segmentation/pointcloud': ('sensor_msgs/PointCloud2', BEST_EFFORT),
    '/perception/occupancy_grid_map/map': ('nav_msgs/OccupancyGrid', VOLATILE),
    **{f'/vehicle/status/{topic}': (f'autoware_vehicle_msgs/{kind}Report', VOLATILE)
       for topic, kind in (('steering_status', 'Steering'), ('velocity_status', 'Velocity'),
                           ('gear_status', 'Gear'), ('control_mode', 'ControlMode'))}}
# Constants of the states of routes, of the operation mode, and of gears.
UNSET, SET, ARRIVED, STOP, AUTONOMOUS, DRIVE = 1, 2, 3, 1, 2, 2
MISSION_M, SPEED, BRAKING, WHEELBASE = 200.0, 15.0, 1.0, 2.9


class StandIn:
    """Holds the ego until it has a route and is engaged; drives straight to the goal; stops."""

    def __init__(self, listener):
        node, self._listener = listener.node, listener
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(node)
        self.received, self.place, self.way_m = {}, 0.0, 0.0
        for topic, (kind, qos) in INPUTS.items():
            node.create_subscription(type(message_of(kind)), topic, lambda message, topic=topic:
                                     self.take(topic, message), qos)
        self.publishers = {kind: node.create_publisher(type(message_of(kind)), topic, qos)
                           for kind, topic, qos in (
                               (LOCALIZATION, '/api/localization/initialization_state', LATCHED),
                               (ROUTE, '/api/routing/state', LATCHED),
                               (MODE, '/api/operation_mode/state', LATCHED),
                               ('autoware_vehicle_msgs/GearCommand',
                                '/control/command/gear_cmd', LATCHED),
                               (CONTROL, COMMANDS, VOLATILE))}
        services = import_module(f'{ADAPI}.srv')
        node.create_service(services.SetRoutePoints, '/api/routing/set_route_points', self.plan)
        node.create_service(services.ChangeOperationMode,
                            '/api/operation_mode/change_to_autonomous', self.engage)
        self.change(UNSET, STOP)

    def until(self, is_done, what):
        # The executor serves the services.
        self._listener.until(
            lambda: self._executor.spin_once(1.0) or is_done(), 10 * AWAIT_S, what)

    def send(self, kind, **fields):
        self.publishers[kind].publish(message_of(kind, **fields))

    def change(self, route, mode):
        self.route, self.mode = route, mode
        self.send(ROUTE, state=route)
        self.send(MODE, mode=mode, is_autonomous_mode_available=route == SET)

    def plan(self, request, response):
        self.goal = complex(request.goal.position.x, request.goal.position.y)
        response.status.success = self.route == UNSET and self.received.keys() == INPUTS.keys()
        self.change(SET, STOP)
        return response

    def engage(self, request, response):
        response.status.success = self.route == SET
        self.send('autoware_vehicle_msgs/GearCommand', command=DRIVE)
        self.change(SET, AUTONOMOUS)
        return response

    def take(self, topic, message):
        self.received[topic] = message
        if topic.endswith('initialization_state'):
            self.send(LOCALIZATION, state=message.state)
        elif topic == STATE:
            self.drive(message)

    def drive(self, state):
        """Answer a state by a command: a pure pursuit of the goal."""
        place, yaw = place_of(state)
        speed = angle = 0.0
        if self.mode == AUTONOMOUS:
            self.way_m += abs(place - self.place)
            way = (self.goal - place) * complex(math.cos(yaw), -math.sin(yaw))
            speed = min(SPEED, math.sqrt(2.0 * BRAKING * max(way.real - 0.5, 0.0)))
            angle = math.atan(WHEELBASE * 2.0 * way.imag / max(abs(way) ** 2, 100.0))
            if abs(way) < 1.0 and state.twist.twist.linear.x < 0.1:
                self.change(ARRIVED, STOP)
        self.place = place
        self.send(CONTROL, stamp=state.header.stamp,
                  longitudinal__velocity=speed, lateral__steering_tire_angle=angle)


def place_of(state):
    """Return position x + yi and yaw."""
    place, turn = state.pose.pose.position, state.pose.pose.orientation
    return complex(place.x, place.y), 2.0 * math.atan2(turn.z, turn.w)


@contextmanager
def started_route(domain, goal, yaw):
    """Provide the process of the example that sets a goal and engages."""
    words = map(str, (ROOT / 'examples' / 'autoware_route.py', goal.real, goal.imag, yaw))
    with start_script([*words], env=os.environ | {'ROS_DOMAIN_ID': str(domain)},
                      **PIPES) as route:
        try:
            yield route
        finally:
            route.kill()


def test_cleared_route_ends_the_example(listener, domain):
    stack = StandIn(listener)
    stack.received = dict.fromkeys(INPUTS)
    stack.send(LOCALIZATION, state=3)
    with started_route(domain, 1j, 0.0) as route:
        stack.until(lambda: stack.mode == AUTONOMOUS, 'the engagement')
        # As of a stack that was started again.
        stack.change(UNSET, STOP)
        output, errors = route.communicate(timeout=AWAIT_S)
    assert errors == 'the route was cleared before the goal\n', output
    assert route.returncode == 1


@pytest.mark.thorough
@pytest.mark.parametrize('simulator', ['monodrive', 'carla9', 'sumo'])
def test_mission_of_200_m(listener, domain, simulator):
    stack = StandIn(listener)
    turns = Turns(listener, type(message_of(CONTROL)), COMMANDS)
    with ExitStack() as exits:
        Obeying(simulator, domain, exits, in_step=True, control_input='autoware',
                outputs=['autoware'], ego_frame='base_link',
                **{'control.timeout': 60.0, 'sumo.ego': 'ego'})
        stack.until(lambda: stack.received.keys() == INPUTS.keys()
                    and stack.received[STATE].twist.twist.linear.x < 0.1, 'an ego that stands')
        if simulator != 'monodrive':
            turns.begin(by_services=True)
        place, yaw = place_of(stack.received[STATE])
        goal = place + (MISSION_M + 2.0) * complex(math.cos(yaw), math.sin(yaw))
        with started_route(domain, goal, yaw) as route:
            stack.until(lambda: turns.go_on(stack.received[STATE].header.stamp)
                        and route.poll() is not None, 'the goal')
            output, errors = route.communicate(timeout=AWAIT_S)
    assert (route.returncode, errors) == (0, ''), output
    assert output.splitlines()[-1] == 'waiting for the goal'
    assert (stack.route, stack.mode) == (ARRIVED, STOP)
    assert stack.way_m > MISSION_M
    assert stack.received['/vehicle/status/gear_status'].report == DRIVE
