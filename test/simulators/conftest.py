# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The processes with the libraries of simulators, as forks of one that has loaded these."""

from importlib.util import find_spec
import subprocess
from types import SimpleNamespace

from programs import start_client
import pytest

from state_sensor_ros.simulators import child_process


@pytest.fixture
def forked_clients(monkeypatch):
    """Run the process of each source as a fork."""
    def forked(words, **options):
        assert words[1] == '-m'
        return start_client([find_spec(words[2]).origin], **options)

    monkeypatch.setattr(child_process, 'subprocess', SimpleNamespace(
        **{**vars(subprocess), 'Popen': forked}))
