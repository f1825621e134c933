# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The start of ``state_sensor``, also as ``python -m state_sensor_ros``: signals, then imports."""
from contextlib import suppress
import os
import signal
import sys
from types import FrameType

_STANDARD_ERROR = 2


def main() -> int:
    """Run the command line; during its imports a signal ends the process as it does later."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    from state_sensor_ros.commands.command_line import main as run
    return run()


def _end(number: int, frame: FrameType | None) -> None:
    """End the process, which has made nothing so far."""
    # The work of this command is ended by signals only (doc/interface.md#exit-codes).
    if 'simulate' in sys.argv[1:2]:
        os._exit(0)
    with suppress(OSError):
        os.write(_STANDARD_ERROR, b'interrupted: nothing was written\n')
    os._exit(128 + number)


if __name__ == '__main__':
    sys.exit(main())
