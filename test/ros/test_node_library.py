# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A library that the node needs and that is not installed is named in one line."""

from blocked_modules import environment_without
from budgets import AWAIT_S, first_of
import pytest
from rig import NodeProcess


@pytest.mark.parametrize(('module', 'library', 'parameters'), first_of([
    ('google.protobuf', 'protobuf', {'source': 'carla'}), ('msgspec', 'msgspec', {})]))
def test_node_names_a_missing_library(domain, tmp_path, module, library, parameters):
    with NodeProcess(domain, environment=environment_without(module, tmp_path),
                     **parameters) as node:
        assert node.process.wait(AWAIT_S) == 1
        lines = node.log.splitlines()
    assert lines[-1].startswith('error: state_sensor')
    assert f': found no module {module}; expected the library {library}: pip install ' in lines[-1]
    assert lines[-1].rstrip(')').endswith(f'pip install {library}')
    assert not [line for line in lines if 'Traceback' in line]
