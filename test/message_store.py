# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Deserialize messages with rosbags, an implementation independent of the package."""

from functools import cache

from paths import ROOT
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

MSG = ROOT / 'msg'
# Field lists of messages of other packages.
INTERFACES = ROOT / 'resource' / 'interfaces'


@cache
def typestore():
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for path in sorted(MSG.glob('*.msg')):
        types.update(get_types_from_msg(path.read_text(), f'state_sensor_ros/msg/{path.stem}'))
    for path in sorted(INTERFACES.glob('*/*.msg')):
        types.update(get_types_from_msg(path.read_text(), f'{path.parent.name}/msg/{path.stem}'))
    types.update(get_types_from_msg('geometry_msgs/TransformStamped[] transforms',
                                    'tf2_msgs/msg/TFMessage'))
    store.register(types)
    return store


def read(data, type_name):
    return typestore().deserialize_cdr(data, type_name)
