# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Runs of `state_sensor` in forks of one process that has all modules loaded, cut short on request.

A run may be limited in the size of its files, or get a signal at the n-th of its calls that change
a folder or sync, or at the n-th event of Python's profiler.
"""

import atexit
from contextlib import suppress
from dataclasses import dataclass
import faulthandler
import json
import os
import pathlib
from pathlib import Path
import resource
import signal
import subprocess
import sys
import tempfile
import threading

from budgets import AWAIT_S
from paths import CARLA, ROOT

# Functions that change a folder or sync, by the module in which they are found.
CALLS = (('os', 'fsync'), ('os', 'open'), ('os', 'rename'), ('os', 'replace'), ('os', 'unlink'),
         ('os', 'rmdir'), ('os', 'mkdir'), ('pathlib.Path', 'open'),
         ('state_sensor_ros.recordings.files.renaming', '_renameat2'))
MODULES = ('commands.command_line', 'commands.convert', 'commands.inspect',
           'commands.record', 'commands.render', 'commands.synth', 'carla.recording',
           'carla.writer', 'drawing.picture', 'drawing.animation')


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit code, negative for a signal; its output; the number of calls."""

    code: int
    output: str
    errors: str
    n_calls: int


def unmeasured():
    """
    Return the environment of a process whose coverage is not measured.

    What coverage writes at the end of a run would count as a call, and meet the limit of sizes.
    """
    return {
        name: value for name, value in os.environ.items() if not name.startswith('COVERAGE_')
        } | {'PYTHONPATH': str(ROOT)}


class ForkServer:
    """A process that forks for each run; a context manager."""

    def __enter__(self):
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=unmeasured())
        return self

    def __exit__(self, *unused):
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(AWAIT_S)

    def run(self, *words, folder, limit=None, is_killed=False, at_call=None, at_event=None,
            number=None):
        """
        Run `state_sensor`.

        :param folder: to run in; of one named tmp in it, temporary files are made there.
        :param limit: of the size of each file, bytes.
        :param is_killed: whether to write beyond it kills, instead of failing.
        :param at_call: before which of its calls to send a signal, or as many as there are: after
            the last.
        :param at_event: at which event of Python's profiler to send a signal.
        :param number: of the signal.
        """
        request = {'words': [str(word) for word in words], 'folder': str(folder), 'limit': limit,
                   'is_killed': is_killed, 'at_call': at_call, 'at_event': at_event,
                   'number': number}
        self._process.stdin.write(f'{json.dumps(request)}\n')
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


def _serve():
    """Fork for each line of standard input."""
    for name in MODULES:
        __import__(f'state_sensor_ros.{name}')
    _warm_up()
    for line in sys.stdin:
        request = json.loads(line)
        pipes = [os.pipe() for _ in range(3)]
        pid = os.fork()
        if not pid:
            _work(request, *(writer for _, writer in pipes))
        texts = [''] * 3
        threads = [threading.Thread(target=_read, args=(i, *pipe, texts))
                   for i, pipe in enumerate(pipes)]
        for thread in threads:
            thread.start()
        _, status = os.waitpid(pid, 0)
        for thread in threads:
            thread.join()
        answer = {'code': os.waitstatus_to_exitcode(status), 'output': texts[0],
                  'errors': texts[1], 'n_calls': len(texts[2])}
        sys.stdout.write(f'{json.dumps(answer)}\n')
        sys.stdout.flush()


def _warm_up():
    """Load everything that is loaded once: message definitions, fonts."""
    from state_sensor_ros.commands.command_line import main
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for words in (('synth', path / 'a.json', '--frames', '2'),
                      ('convert', path / 'a.json', path / 'bag'),
                      ('render', path / 'bag', path / 'a.png'),
                      ('convert', CARLA, path / 'carla'),
                      ('convert', path / 'carla', path / 'dataset')):
            assert main([str(word) for word in words]) == 0


def _read(i, reader, writer, texts):
    os.close(writer)
    with os.fdopen(reader, errors='backslashreplace') as stream:
        texts[i] = stream.read()


def _work(request, output, errors, calls):
    """Run the program."""
    os.chdir(request['folder'])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    # A run that does not end prints where it waits.
    faulthandler.dump_traceback_later(AWAIT_S, exit=True, file=errors)
    if request['limit'] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if request['is_killed'] else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (request['limit'],) * 2)
    tempfile.tempdir = str(Path('tmp').resolve()) if Path('tmp').is_dir() else None
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A program started by a shell with & ignores SIGINT.
        signal.signal(signum, signal.SIG_DFL)
    _watch_calls(calls, request['at_call'], request['number'])
    if request['at_event'] is not None:
        _watch_events(request['at_event'], request['number'])
    sys.argv[1:] = request['words']
    from state_sensor_ros.commands.command_line import main
    code = 1
    with suppress(SystemExit):
        code = main()
    with suppress(OSError):
        sys.stdout.flush()
    # What the end of a process does, except for threads of the parent.
    atexit._run_exitfuncs()
    os._exit(code)


def _watch_calls(report, at_call, number):
    """Report each call by a byte; send the signal at one of them."""
    n_calls = 0

    def watched(function):
        def call(*args, **options):
            nonlocal n_calls
            os.write(report, b'.')
            n_calls += 1
            if n_calls - 1 == at_call:
                os.kill(os.getpid(), number)
            result = function(*args, **options)
            if n_calls == at_call:
                os.kill(os.getpid(), number)
            return result
        return call

    owners = {'os': os, 'pathlib.Path': pathlib.Path}
    for owner, name in CALLS:
        where = owners.get(owner) or sys.modules[owner]
        setattr(where, name, watched(getattr(where, name)))


def _watch_events(at_event, number):
    """Send a signal at an event of the main thread."""
    n_events = 0

    def count(*_):
        nonlocal n_events
        n_events += 1
        if n_events == at_event:
            sys.setprofile(None)
            os.kill(os.getpid(), number)

    sys.setprofile(count)


if __name__ == '__main__':
    _serve()
