# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A file of CARLA's dataset with something of everything, for tests; all numbers are invented."""

# Written from the description of the dataset: camelCase from the simulator, snake_case from its
# collector, and nothing that equals its default.
EXAMPLE = {
    'brake': 0.0, 'brake_noise': 0.25, 'directions': 4.0, 'hand_brake': False, 'reverse': True,
    'steer': 0.125, 'steer_noise': -0.25, 'throttle': 0.5, 'throttle_noise': 0.75,
    'stop_pedestrian': 1.0, 'stop_vehicle': 0, 'stop_traffic_lights': 0.5,
    'waypoints': [[1.5, -2], [3, 4]],
    'frameNumber': '4294967301', 'gameTimestamp': 12300, 'platformTimestamp': 987654,
    'nonPlayerAgents': [
        {'id': 30, 'vehicle': {
            'forwardSpeed': -3.5,
            'boundingBox': {'extent': {'x': 2.5, 'y': 1.0, 'z': 0.75},
                            'transform': {'location': {'x': 0.5, 'z': 0.75}, 'rotation': {}}},
            'transform': {'location': {'x': 100.0, 'y': 20.0, 'z': 38.0},
                          'rotation': {'yaw': 90.0}}}},
        {'id': 4000000000, 'pedestrian': {
            'boundingBox': {'extent': {'x': 0.25, 'y': 0.25, 'z': 1.0}},
            'transform': {'location': {'x': 90.0, 'y': -20.0, 'z': 39.0}, 'rotation': {}}}},
        {'id': 31, 'trafficLight': {'transform': {'location': {'x': 88.0, 'y': 12.5},
                                                  'orientation': {'x': 1.0}, 'rotation': {}}}},
        {'id': 32, 'trafficLight': {'state': 'RED', 'transform': {'location': {'x': 90.0}}}},
        {'id': 33, 'speedLimitSign': {'speedLimit': 12.5, 'transform': {'location': {'z': 3.0}}}},
    ],
    'playerMeasurements': {
        'acceleration': {'x': 0.5, 'y': -0.25},
        'autopilotControl': {'throttle': 0.5, 'handBrake': True},
        'boundingBox': {'extent': {'x': 2.25, 'y': 1.0, 'z': 0.75},
                        'transform': {'location': {'z': 0.5}, 'orientation': {'x': 1.0},
                                      'rotation': {}}},
        'collisionVehicles': 100.0, 'collisionPedestrians': 5.0, 'collisionOther': 7.5,
        'intersectionOtherlane': 0.25, 'intersectionOffroad': 0.125,
        'forwardSpeed': 6.5,
        'transform': {'location': {'x': 80.0, 'y': 12.0, 'z': 38.0}, 'orientation': {'x': 1.0},
                      'rotation': {'yaw': 180.0, 'pitch': 0.0}}},
}
