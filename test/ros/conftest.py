# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The rigs of the tests with ROS, and the programs of the package on PATH."""

import os
from pathlib import Path

from ament_index_python import get_package_prefix
import pytest
from rig import Bench, listening, ScriptedSimulator

# `colcon test` does not put them there.
_PROGRAMS = Path(get_package_prefix('state_sensor_ros'), 'lib', 'state_sensor_ros')
os.environ['PATH'] = os.pathsep.join((str(_PROGRAMS), os.environ['PATH']))


@pytest.fixture(autouse=True)
def _own_marks(tmp_path_factory, monkeypatch):
    """
    Give the programs of a test a folder for temporary files.

    A node that is killed while it drives leaves a mark there for the next one of the same port,
    which would be one of another test, at the same time or days later.
    """
    monkeypatch.setenv('TMPDIR', str(tmp_path_factory.mktemp('temporary')))


@pytest.fixture
def listener(domain):
    """Provide a listener in the test's domain."""
    with listening(domain) as found:
        yield found


@pytest.fixture
def simulator():
    """Provide a scripted simulator."""
    with ScriptedSimulator() as found:
        yield found


@pytest.fixture
def bench(domain, listener, simulator):
    """Provide a function that starts a node with parameters; returns its :class:`Bench`."""
    made = []

    def make(**parameters):
        made.append(Bench(domain, listener, simulator, **parameters))
        return made[-1]

    yield make
    for each in made:
        with each.node:
            pass
