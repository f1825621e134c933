# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""usage: autoware_route.py X Y YAW: Autoware drives to a goal in the frame map, m and rad."""
import math
import signal
import sys
import threading

from autoware_adapi_v1_msgs import msg, srv
import rclpy
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.signals import SignalHandlerOptions

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STATES = {'localization/initialization_state': msg.LocalizationInitializationState,
          'routing/state': msg.RouteState, 'operation_mode/state': msg.OperationModeState}


def wait(what, is_done):
    print(f'waiting for {what}', flush=True)
    while not (states.keys() == STATES.keys() and is_done()):
        if ended.is_set():
            sys.exit(f'interrupted while waiting for {what}; Autoware goes on')
        rclpy.spin_once(node, timeout_sec=0.1)


def call(kind, name, request=None):
    client = node.create_client(kind, f'/api/{name}')
    wait(f'/api/{name}', client.service_is_ready)
    answer = client.call_async(request or kind.Request())
    wait('its answer', answer.done)
    if not answer.result().status.success:
        sys.exit(f'/api/{name}: {answer.result().status.message}')


if len(sys.argv) != 4:
    sys.exit(print(__doc__, file=sys.stderr) or 2)
x, y, yaw = map(float, sys.argv[1:])
# A KeyboardInterrupt could break into the C++ code of rclpy, which ends with a RuntimeError.
ended, states = threading.Event(), {}
signal.signal(signal.SIGINT, lambda *_: ended.set())
rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
node = rclpy.create_node('autoware_route')
for each, type_ in STATES.items():
    node.create_subscription(
        type_, f'/api/{each}', lambda state, each=each: states.update({each: state}), LATCHED)
wait('localization', lambda: states['localization/initialization_state'].state == 3)  # INITIALIZED
if states['routing/state'].state != msg.RouteState.UNSET:
    call(srv.ClearRoute, 'routing/clear_route')
wait('no other route', lambda: states['routing/state'].state == msg.RouteState.UNSET)
goal = srv.SetRoutePoints.Request()
goal.header.frame_id, goal.goal.position.x, goal.goal.position.y = 'map', x, y
goal.goal.orientation.z, goal.goal.orientation.w = math.sin(yaw / 2), math.cos(yaw / 2)
call(srv.SetRoutePoints, 'routing/set_route_points', goal)
wait('a trajectory', lambda: states['routing/state'].state == msg.RouteState.SET
     and states['operation_mode/state'].is_autonomous_mode_available)
call(srv.ChangeOperationMode, 'operation_mode/change_to_autonomous')
wait('the goal', lambda: states['routing/state'].state in (
    msg.RouteState.ARRIVED, msg.RouteState.UNSET))
if states['routing/state'].state == msg.RouteState.UNSET:
    sys.exit('the route was cleared before the goal')
