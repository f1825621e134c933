# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA on the topics of the node: a live server, its sensors, and a recording."""


from carla_server.town import CRUISE_SPEED
from carla_server.town_server import CarlaOptions, CarlaServer
import numpy as np
from paths import CARLA as SAMPLE
from PIL import Image
import pytest
from rig import NodeProcess, statuses

OWN = 'state_sensor_ros'


def stamp_of(message):
    return message.header.stamp.sec + message.header.stamp.nanosec / 1e9


def forward_axis(q):
    """Return the x axis of a body, REP-103."""
    return np.array((1 - 2 * (q.y * q.y + q.z * q.z), 2 * (q.x * q.y + q.z * q.w),
                     2 * (q.x * q.z - q.y * q.w)))


def place(message):
    position = message.pose.pose.position
    return np.array((position.x, position.y, position.z))


@pytest.fixture
def server():
    """Serve a town at 50 frames a second of simulated tenths of seconds."""
    with CarlaServer(CarlaOptions(rate=50.0, n_vehicles=3, n_pedestrians=2)) as found:
        yield found


def test_carla_server_on_the_topics(domain, listener, server):
    ego = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    status = listener.subscribe('/state_sensor/player/status', f'{OWN}/CarlaPlayerStatus')
    lights = listener.subscribe('/state_sensor/traffic_lights', f'{OWN}/TrafficLightStateArray')
    limits = listener.subscribe('/state_sensor/speed_limits', f'{OWN}/SpeedLimitArray')
    frames = listener.subscribe('/state_sensor/frame', f'{OWN}/StateFrame')
    markers = listener.subscribe('/state_sensor/markers', 'visualization_msgs/MarkerArray')
    transforms = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    with NodeProcess(domain, source='carla', port=server.port, debug_drawing=True,
                     ego_frame='base_link') as node:
        listener.until(lambda: min(map(len, (ego, status, lights, limits, frames, transforms)))
                       > 40 and markers)
        assert node.end()[0] == 0
    assert {t.child_frame_id for t in transforms[-1].transforms} >= {
        'base_link', 'vehicle_100', 'pedestrian_103', 'traffic_light_105', 'speed_limit_sign_109'}
    by_stamp = {stamp_of(message): message for message in ego}
    pairs = [(by_stamp[stamp], by_stamp[stamp + 0.1]) for stamp in by_stamp
             if stamp + 0.1 in by_stamp]
    assert pairs
    for first, second in pairs:
        forward = forward_axis(first.pose.pose.orientation)
        twist = first.twist.twist
        np.testing.assert_allclose(place(second) - place(first), 0.1 * twist.linear.x * forward,
                                   atol=0.05)
        assert (twist.linear.y, twist.linear.z, twist.angular.z) == (0.0, 0.0, 0.0)
        assert first.twist.covariance[0] == 1e-9
        assert first.twist.covariance[7] == 1e6
    assert ego[-1].child_frame_id == 'base_link'
    assert (frames[-1].generation, frames[-1].actors[0].name) == ('carla', 'player')
    assert {len(array.traffic_lights) for array in lights} == {4}
    assert {round(3.6 * sign.speed_limit) for sign in limits[-1].speed_limits} == {30, 60, 90}


def test_carla_episodes_are_restarts_and_the_node_plays_the_client(domain, listener):
    with CarlaServer(CarlaOptions(rate=100.0, n_vehicles=2, n_pedestrians=0)) as server:
        control = listener.subscribe('/state_sensor/player/autopilot_control',
                                     f'{OWN}/VehicleControl')
        ego = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
        diagnostics = listener.subscribe('/diagnostics', 'diagnostic_msgs/DiagnosticArray')
        with NodeProcess(domain, source='carla', port=server.port,
                         control_port=server.world_port) as node:
            listener.until(lambda: control and ego
                           and ego[-1].twist.twist.linear.x > 0.8 * CRUISE_SPEED)
            before = stamp_of(ego[-1])
            server.disconnect()
            listener.until(lambda: stamp_of(ego[-1]) < before)
            listener.until(lambda: any(status.get('simulator restarts', '0') != '0'
                                       for status in statuses(diagnostics)))
            assert node.end()[0] == 0
    assert all(each.origin == each.ORIGIN_AUTOPILOT for each in control)
    # The ring turns right, and + is left.
    assert control[-1].steer < 0.0 < control[-1].raw_steer


def check_pixels(images):
    """Compare what was received of a step with its files."""
    depth = next(each for each in images['central/depth'] if round(10 * stamp_of(each)) == 34)
    tags = next(each for each in images['central/segmentation']
                if round(10 * stamp_of(each)) == 34)
    with Image.open(SAMPLE / 'episode_00000' / 'CentralDepth_00004.png') as file:
        r, g, b = np.moveaxis(np.asarray(file, np.float64), -1, 0)
    meters = 1000.0 * (r + 256.0 * g + 65536.0 * b) / 16777215.0
    assert np.frombuffer(bytes(depth.data), '<f4').tolist() == meters.astype('f4').ravel().tolist()
    with Image.open(SAMPLE / 'episode_00000' / 'CentralSemanticSeg_00004.png') as file:
        assert bytes(tags.data) == np.asarray(file)[..., 0].tobytes()


def test_carla_dataset_on_the_topics(domain, listener):
    images = {name: listener.subscribe(f'/state_sensor/camera/{name}', 'sensor_msgs/Image')
              for name in ('central/image', 'left/image', 'right/image', 'central/depth',
                           'central/segmentation', 'central/segmentation_color')}
    expert = listener.subscribe('/state_sensor/player/expert_control', f'{OWN}/VehicleControl')
    applied = listener.subscribe('/state_sensor/player/control', f'{OWN}/VehicleControl')
    legend = listener.subscribe('/state_sensor/camera/segmentation_classes',
                                f'{OWN}/SegmentationClassArray', latched=True)
    static = listener.subscribe('/tf_static', 'tf2_msgs/TFMessage', latched=True)
    with NodeProcess(domain, source='file', trajectory_file=str(SAMPLE), loop=True,
                     **{'carla.camera_tf': True, 'carla.camera_poses': [
                         1.5, 0.0, 1.25, 0.0, 0.0, 0.0] * 3}) as node:
        listener.until(lambda: min(map(len, images.values())) > 6 and len(expert) > 12
                       and len(applied) > 12 and legend and static)
        assert node.end()[0] == 0
    assert len(legend[0].classes) == 13
    assert len(static[0].transforms) == 6
    for name, received in images.items():
        assert {(image.width, image.height) for image in received} == {(40, 40)}
        # Every second step has images.
        assert {round(10 * stamp_of(image)) % 2 for image in received} == {0}, name
    check_pixels(images)
    commands = {stamp_of(each): each for each in expert}
    differences = {round(commands[stamp_of(each)].raw_steer - each.raw_steer, 6)
                   for each in applied if stamp_of(each) in commands}
    assert differences == {0.0, 0.25}
