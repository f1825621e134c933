# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Texts about inputs and outputs that a user mistakes for others."""

import pytest


@pytest.mark.parametrize(('profile', 'found'), [
    ('', 'an MCAP file without a profile'), ('ros1', "an MCAP file of the profile 'ros1'")])
def test_mcap_of_another_profile_is_not_called_damaged(tmp_path, refusal, profile, found):
    writer_module = pytest.importorskip('mcap.writer')
    path = tmp_path / 'other.mcap'
    with path.open('wb') as file:
        writer = writer_module.Writer(file)
        writer.start(profile=profile)
        schema = writer.register_schema('anything', 'jsonschema', b'{}')
        writer.add_message(writer.register_channel('/topic', 'json', schema), 1, b'{}', 1)
        writer.finish()
    assert refusal('inspect', path) == (
        f'error: {path}: found {found}; expected one of the profile ros2, as a bag of ROS 2 is')
