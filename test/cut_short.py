# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Run `state_sensor`, cut short at the point in the first argument (see ``programs.run_cut_short``).

Each of its calls that change a folder or sync is reported by a byte to standard input.
"""

import atexit
from contextlib import suppress
import faulthandler
import json
import os
import pathlib
from pathlib import Path
import resource
import signal
import sys
import tempfile

from state_sensor_ros.commands.cli import main

# Functions that change a folder or sync, by the module in which they are found.
CALLS = (('os', 'fsync'), ('os', 'open'), ('os', 'rename'), ('os', 'replace'), ('os', 'unlink'),
         ('os', 'rmdir'), ('os', 'mkdir'), ('pathlib.Path', 'open'))


def send(number):
    """Send a signal to this process, in the main thread: its handler runs at once."""
    os.kill(os.getpid(), number)


def watch_calls(report, at_call, number):
    """Report each call by a byte; send the signal at one of them."""
    n_calls = 0

    def watched(function):
        def call(*args, **options):
            nonlocal n_calls
            os.write(report, b'.')
            n_calls += 1
            if n_calls - 1 == at_call:
                send(number)
            result = function(*args, **options)
            if n_calls == at_call:
                send(number)
            return result
        return call

    owners = {'os': os, 'pathlib.Path': pathlib.Path}
    for owner, name in CALLS:
        where = owners.get(owner) or sys.modules[owner]
        setattr(where, name, watched(getattr(where, name)))


def watch_events(at_event, number):
    """Send a signal at an event of the main thread."""
    n_events = 0

    def count(*_):
        nonlocal n_events
        n_events += 1
        if n_events == at_event:
            sys.setprofile(None)
            send(number)

    sys.setprofile(count)


def run(await_s, memory, limit, is_killed, at_call, at_event, number):
    """Run the program; return its exit code."""
    # A run that does not end prints where it waits.
    faulthandler.dump_traceback_later(await_s, exit=True)
    if memory is not None:
        # A fork has the memory of its server from the beginning.
        mapped = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + memory, mapped + memory))
    if limit is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if is_killed else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    tempfile.tempdir = str(Path('tmp').resolve()) if Path('tmp').is_dir() else None
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    report = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    watch_calls(report, at_call, number)
    if at_event is not None:
        watch_events(at_event, number)
    with suppress(SystemExit):
        return main()
    return 1


if __name__ == '__main__':
    code = run(**json.loads(sys.argv.pop(1)))
    with suppress(OSError):
        sys.stdout.flush()
    # What the end of a process does, without the objects that the server has loaded.
    atexit._run_exitfuncs()
    os._exit(code)
