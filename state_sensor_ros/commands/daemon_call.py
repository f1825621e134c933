# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A call in a daemon thread, which does not keep the process alive."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
import threading
from typing import TypeVar

Result = TypeVar('Result')


def call_in_daemon(call: Callable[[], Result], name: str) -> Future[Result]:
    """
    Run a call that may never end, such as the look-up of a host name, in a daemon thread.

    An executor would wait for its threads when the process ends.

    :param call: function to call.
    :param name: name of the thread.
    :returns: future with the result, or with any exception of the call.
    """
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again by the future
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
