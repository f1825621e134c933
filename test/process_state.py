# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What a process does, as the system knows it: its threads, its signals."""

from contextlib import suppress
import os
from pathlib import Path
import time

from budgets import AWAIT_S

_PERIOD_S = 0.01
# So many looks find it asleep, which is 0.2 s.
_N_LOOKS = 20


def handles(pid, number):
    """Return whether a process handles a signal."""
    status = Path(f'/proc/{pid}/status').read_text()
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith('SigCgt'))
    return bool(int(caught, 16) >> (number - 1) & 1)


def has_ended(pid):
    """Return whether a process has ended; nobody need have waited for it."""
    try:
        return 'State:\tZ' in Path(f'/proc/{pid}/status').read_text()
    except OSError:
        return True


def children(pid, name=b''):
    """Yield the numbers of the children of a process whose command line has a name, as bytes."""
    for _, numbers in read_threads(pid, 'children'):
        for child in map(int, numbers.split()):
            # It may have ended since.
            with suppress(OSError):
                if name in Path(f'/proc/{child}/cmdline').read_bytes():
                    yield child


def read_threads(pid, name):
    """
    Yield the number, as text, and the content of a file of each thread of a process, as bytes.

    In calls of the system: loops of tests read these files of all threads many times.
    """
    try:
        threads = os.listdir(f'/proc/{pid}/task')
    except OSError:
        return
    for thread in threads:
        with suppress(OSError):
            file = os.open(f'/proc/{pid}/task/{thread}/{name}', os.O_RDONLY)
            try:
                content = os.read(file, 4096)
            finally:
                os.close(file)
            yield thread, content


def wait_until_asleep(process):
    """
    Wait until all threads of a process have been waiting for something, not a core, for a while.

    :param process: :class:`subprocess.Popen`, which may not end meanwhile, or a number.
    """
    pid = getattr(process, 'pid', process)
    deadline_s = time.monotonic() + AWAIT_S
    seen, n_same = None, 0
    while n_same < _N_LOOKS:
        assert time.monotonic() < deadline_s
        assert pid is process or process.poll() is None
        states, used = set(), {}
        for thread, content in read_threads(pid, 'stat'):
            fields = _fields(content)
            states.add(fields[0])
            used[thread] = fields[11:13]
        n_same = n_same + 1 if used == seen and states <= {b'S'} else 0
        seen = used
        time.sleep(_PERIOD_S)


def _fields(stat):
    """Return what follows the name in the content of a file `stat`."""
    return stat.rpartition(b')')[2].split()
