# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The field lists of other packages' messages have the hashes of the originals.

The hashes were computed from the definitions of autoware_msgs 1.12.0, vision_msgs 4.1.1,
astuff_sensor_msgs 4.0.0 and carla_msgs 1.3.0.
"""

from paths import ROOT
import pytest

from state_sensor_ros.files.bag import type_hash
from state_sensor_ros.small_files import share_file

HASHES = dict(line.split() for line in (
    ROOT / 'test' / 'golden' / 'type_hashes.txt').read_text('utf-8').splitlines())


@pytest.mark.parametrize('type_name', HASHES)
def test_hash_is_that_of_the_original(type_name):
    assert type_hash(type_name) == HASHES[type_name]


def test_every_field_list_has_a_hash():
    assert {f'{path.parent.name}/msg/{path.stem}' for path in share_file(
        'resource', 'interfaces').glob('*/*.msg')} == HASHES.keys()
