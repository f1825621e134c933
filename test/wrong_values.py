# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Values that a parameter must refuse, at least one for each."""

_FLAGS = ('autostart', 'loop', 'include_obb', 'debug_drawing', 'labels', 'wheel_tf',
          'joint_states', 'odometry', 'frame', 'publish_clock', 'carla.camera_tf',
          'carla9.tick', 'carla9.static', 'sumo.step_it')
_CHOICES = ('source', 'tf', 'stamp_source', 'twist_frame', 'obb_extents', 'road_s_unit',
            'overflow', 'sumo.release')
_INTEGERS = ('port', 'control_port', 'carla.relay_port', 'carla.start_spot', 'max_actor_topics',
             'queue_size', 'max_frame_bytes', 'sumo.port', 'sumo.order', 'sumo.seed',
             'perception.seed', 'osi.port', 'carla9.port')
_FLOATS = ('sample_rate', 'rate', 'actor_timeout', 'reconnect_min', 'reconnect_max',
           'stale_after', 'sumo.step', 'control.kp', 'control.ki', 'control.full_throttle',
           'control.full_brake', 'control.wheelbase', 'control.max_steering_angle',
           'control.max_speed', 'control.max_acceleration', 'control.max_deceleration',
           'control.timeout', 'carla9.timeout', 'carla9.step')
_TEXTS = ('host', 'carla.relay_bind', 'config_file', 'map_file', 'trajectory_file', 'global_frame',
          'frame_prefix', 'parent_frame', 'ego_tag', 'ego_frame', 'sumo.config', 'sumo.host',
          'sumo.ego', 'sumo.net', 'osi.bind', 'osi.ego',
          'carla9.host', 'carla9.ego')
_TAGS = ('desired_tags', 'undesired_tags', 'sumo.args')
_SIXES = ('global_frame_pose', 'pose_covariance_diagonal', 'twist_covariance_diagonal')

WRONG = [
    *((name, value) for name in _FLAGS for value in (1, 'true')),
    *((name, value) for name in _CHOICES for value in ('', 'sometimes', 3)),
    *((name, value) for name in _INTEGERS for value in (-1, 2 ** 40, 'many', 1.5)),
    *((name, value) for name in _FLOATS for value in (-0.5, float('nan'), float('inf'), 'fast')),
    *((name, 7) for name in _TEXTS), ('control_input', 'sometimes'), ('control_input', 3),
    ('carla.relay_port', 65534), ('carla.relay_bind', ''), ('relay_port', 65534),
    ('host', ''), ('host', 'a b'), ('global_frame', ''), ('global_frame', '/map'),
    ('frame_prefix', '/a'), ('parent_frame', 'a b'), ('ego_tag', ''), ('ego_frame', '/base_link'),
    ('port', 0), ('port', 65536), ('queue_size', 0), ('max_frame_bytes', 0), ('rate', 1e9),
    *((name, value) for name in _TAGS for value in ('car', [1], 3)),
    *((name, value) for name in _SIXES for value in ([0.0] * 5, [0.0] * 7, ['a'] * 6,
                                                     [float('nan')] * 6)),
    ('carla.camera_fov', 180.0),
    *(('carla.camera_poses', value) for value in ([0.0] * 17, [0.0] * 6, ['a'] * 18,
                                                  [float('inf')] * 18)),
    *((name, value) for name in ('outputs', 'autoware_objects', 'object_classes')
      for value in ('vision', [1], 3, ['all of them'])),
    *(('object_range', value) for value in (-1.0, float('nan'), float('inf'), 'far')),
    *(('base_link_xyz', value) for value in ([0.0] * 2, ['a'] * 3, [float('inf')] * 3,
                                             [0.0, float('nan'), 0.0])),
    *(('default_sizes', value) for value in ([1.0] * 20, [0.0] * 21, [float('nan')] * 21)),
    *((f'perception.{name}', value) for value in (-0.5, float('nan'), float('inf'), 'far')
      for name in ('range', 'field_of_view', 'occlusion', 'position_std', 'yaw_std', 'size_std',
                   'velocity_std', 'missing', 'ghosts', 'delay')),
    ('perception.field_of_view', 361.0), ('perception.occlusion', 1.1),
    ('perception.missing', 1.1), ('perception.delay', 200.0),
    ('pose_covariance_diagonal', [-1.0] * 6), ('twist_covariance_diagonal', [-1.0] * 6),
]
