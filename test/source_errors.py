# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The error of a source that receives nothing, for tests."""

import threading
import time

from budgets import AWAIT_S


def error_of(source, packets):
    """
    Receive until an attempt has failed; return its error.

    That a server has not replied for a second, as on a busy machine, is noted beside an attempt
    that goes on.
    """
    reader = threading.Thread(target=lambda: list(packets), daemon=True)
    reader.start()
    deadline = time.monotonic() + AWAIT_S
    while not (error := source.health.last_error) or 'waiting up to' in error:
        assert reader.is_alive()
        assert time.monotonic() < deadline
        reader.join(0.01)
    source.close()
    reader.join(AWAIT_S)
    assert not reader.is_alive()
    return error
