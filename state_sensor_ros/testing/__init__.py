# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Tests for authors of simulators and formats to inherit; they need pytest.

It may import commands/, control/, files/, library/, pipeline/, simulators/ and the modules
directly in the package; nothing else of the package imports it.
"""

import pytest

# The values of a failed assertion are shown.
pytest.register_assert_rewrite(f'{__name__}.format_suite', f'{__name__}.simulator_suite')

from state_sensor_ros.testing.format_suite import (  # noqa: E402
    equal_parts,
    FormatSuite,
    FRAMES,
    write_read,
)
from state_sensor_ros.testing.simulator_suite import Drive, SimulatorSuite  # noqa: E402

__all__ = ['FRAMES', 'Drive', 'FormatSuite', 'SimulatorSuite', 'equal_parts', 'write_read']
