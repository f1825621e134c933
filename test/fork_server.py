# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Starts programs as forks of a process that has loaded their modules, which saves their imports.

The test process has a :class:`ForkServer` for each program. A server forks twice: the process in
between ends, and the program becomes a child of the test process, which is a subreaper meanwhile.
So the test awaits and measures the program as one that it has started itself::

    test process ── server ── (ended) ── program
         └──────────────────────────────────┘

A fork has the arguments, environment, folder, standard streams and signals of a new process. It
differs in its start: modules are loaded, and the environment has no influence on the interpreter
and the dynamic linker; and in its end: the modules are not destroyed. Tests of these start the
program with :mod:`subprocess`.
"""

import atexit
import ctypes
import gc
from importlib import import_module
import inspect
import io
import json
import os
from pathlib import Path
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings

from paths import CARLA

_MAX_BYTES = 2 ** 20
_COVERAGE = 'COVERAGE_'
_PR_SET_CHILD_SUBREAPER = 36
# Place of start_new_session among the last arguments of Popen._execute_child().
_NEW_SESSION = 5


class ForkServer:
    """
    A process that forks for each program, started when it is used first.

    :param loaded: what it loads, a key of ``LOADERS``.
    :param environment: variables of the server that differ from those of the test process.
    """

    def __init__(self, loaded, **environment):
        self._loaded, self._environment = loaded, environment
        self._connection = None
        self._lock = threading.Lock()

    def start(self, words, **options):
        """
        Start a Python script.

        :param words: its path and its arguments.
        :param options: those of :class:`subprocess.Popen`, without those that call or pass
            something in the new process.
        :returns: the process, as :class:`subprocess.Popen` has it.
        """
        return _Forked(self, words, **options)

    def fork(self, streams, **request):
        """
        Make the process of a program.

        :param streams: descriptors of its standard streams.
        :param request: as :func:`_become` has it.
        :returns: its number.
        """
        with self._lock:
            if self._connection is None:
                self._begin()
            _set_subreaper(True)
            try:
                socket.send_fds(self._connection, [json.dumps(request).encode()], streams)
                return int(self._connection.recv(_MAX_BYTES))
            finally:
                _set_subreaper(False)

    def _begin(self):
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            process = subprocess.Popen(
                [sys.executable, __file__, str(other.fileno()), self._loaded],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[other.fileno()],
                env={**_unmeasured(os.environ), **self._environment})
        atexit.register(process.wait)
        atexit.register(self._connection.close)


class _Forked(subprocess.Popen):

    def __init__(self, server, words, **options):
        self._server = server
        super().__init__(words, **options)

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env,
                       startupinfo, creationflags, shell, p2cread, p2cwrite, c2pread, c2pwrite,
                       errread, errwrite, *others):
        """Replace what starts the process; the streams are those that Popen has made."""
        assert not any((executable, preexec_fn, pass_fds, shell))
        streams = [given if given != -1 else own
                   for own, given in enumerate((p2cread, c2pwrite, errwrite))]
        self.pid = self._server.fork(
            streams, words=[os.fspath(word) for word in args],
            folder=os.path.abspath(cwd or '.'), environment=_unmeasured(
                os.environ if env is None else env), is_session=others[_NEW_SESSION])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def __exit__(self, kind, error, traceback):
        if kind is not None:
            # A program whose test has failed may not end by itself.
            self.kill()
        super().__exit__(kind, error, traceback)


def is_measured():
    """Return whether the coverage of the programs that tests start is measured."""
    return any(name.startswith(_COVERAGE) for name in os.environ)


def _unmeasured(environment):
    """
    Return the environment of a process whose coverage is not measured.

    What coverage writes at the end of a run is a file more than the program writes.
    """
    return {name: value for name, value in environment.items()
            if not name.startswith(_COVERAGE)}


def _set_subreaper(is_one):
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_one), 0, 0, 0)


def _load(*names):
    """Load modules, where the libraries that they need are installed."""
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if error.name.startswith('state_sensor_ros'):
                raise


def _load_node():
    """Load what the node does; nothing of it starts ROS."""
    from rclpy.type_support import check_for_type_support

    import state_sensor_ros.ros.main
    import state_sensor_ros.ros.node
    simulators = [f'state_sensor_ros.simulators.{name}' for name in (
        'monodrive.simulator', 'carla', 'carla9', 'osi.simulator', 'sumo')]
    _load('importlib.metadata', 'encodings.idna', *simulators,
          'state_sensor_ros.ros.services')
    # Most tests wait for reports: each waits 0.1 s on average in place of 0.5.
    state_sensor_ros.ros.node._DIAGNOSTICS_PERIOD_S = REPORT_S
    for name in MESSAGES:
        for message in vars(import_module(name)).values():
            if isinstance(message, type):
                check_for_type_support(message)
    # The search for added simulators reads the metadata of all installed distributions.
    from state_sensor_ros.simulators import schema_of
    schema_of(with_added=True)
    # What the first log line of a node does: it resolves the paths of all modules. Not of a
    # function, which names its module.
    inspect.getmodule(inspect.currentframe())


def _load_commands():
    """Load what the commands do, with what they load once: message definitions."""
    from state_sensor_ros.commands.cli import command_parser, COMMANDS, main
    for name in COMMANDS:
        command_parser(name)
    _load('encodings.idna', 'osi3', 'state_sensor_ros.simulators.monodrive.simulator',
          'state_sensor_ros.files.osi_writer', 'state_sensor_ros.evaluation.evaluator')
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for words in (('synth', path / 'a.json', '--frames', '2', '--vehicles', '2'),
                      ('convert', path / 'a.json', path / 'bag'),
                      ('convert', path / 'a.json', path / 'b.json'),
                      ('convert', path / 'a.json', path / 'bag.db3'),
                      ('render', path / 'bag', path / 'a.html'),
                      ('convert', CARLA, path / 'carla'),
                      ('convert', path / 'carla', path / 'dataset')):
            # Standard output is that of the answers.
            assert main([*map(str, words), '--quiet']) == 0


def _load_clients():
    """Load the libraries of simulators and the programs that use them."""
    processes = [f'state_sensor_ros.simulators.{name}' for name in (
        'carla9.carla_process', 'sumo.sumo_process')]
    _load('carla', 'libsumo', 'sumolib.net', *processes)


# Period of /diagnostics of a node that is a fork; of one that is a new process it is 1 s.
REPORT_S = 0.2
MESSAGES = ('builtin_interfaces.msg', 'diagnostic_msgs.msg', 'geometry_msgs.msg',
            'lifecycle_msgs.msg', 'lifecycle_msgs.srv', 'nav_msgs.msg', 'rcl_interfaces.msg',
            'rcl_interfaces.srv', 'rosgraph_msgs.msg', 'sensor_msgs.msg', 'state_sensor_ros.msg',
            'std_msgs.msg', 'tf2_msgs.msg', 'type_description_interfaces.msg',
            'visualization_msgs.msg')
LOADERS = {'nothing': lambda: None, 'node': _load_node, 'commands': _load_commands,
           'clients': _load_clients}


def _serve(connection):
    """Fork for each request; return in each of the forks, with the words of its program."""
    while True:
        data, streams, _, _ = socket.recv_fds(connection, _MAX_BYTES, 3)
        if not data:
            os._exit(0)
        reader, writer = os.pipe()
        between = _fork()
        if not between:
            own = os.getpid()
            pid = _fork()
            if pid:
                os.write(writer, str(pid).encode())
                os._exit(0)
            # The program has one parent for all of its run, as a new process does.
            while os.getppid() == own:
                time.sleep(0.001)
            return _become(streams, [connection.detach(), reader, writer], **json.loads(data))
        os.waitpid(between, 0)
        connection.send(os.read(reader, _MAX_BYTES))
        for each in (reader, writer, *streams):
            os.close(each)


def _fork():
    with warnings.catch_warnings():
        # The threads that the libraries of ROS start when they are loaded wait for a tracer.
        warnings.simplefilter('ignore', DeprecationWarning)
        return os.fork()


def _become(streams, others, words, folder, environment, is_session):
    """
    Make a process that a new one would be.

    :param streams: descriptors of the standard streams.
    :param others: descriptors to close.
    :param words: path and arguments of the program.
    :param folder: to run in.
    :param environment: all variables.
    :param is_session: whether it is the first process of a new session.
    :returns: ``words``.
    """
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for each in (*streams, *others):
        os.close(each)
    if is_session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    for name in ('stdin', 'stdout', 'stderr'):
        stream = _opened_again(getattr(sys, name))
        setattr(sys, name, stream)
        setattr(sys, f'__{name}__', stream)
    # A program started by a shell with & ignores SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Destructors of libraries would cancel threads that they have started before the fork.
    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)
    return words


def _opened_again(stream):
    """Return a standard stream as Python makes it of the file that its descriptor is now."""
    is_raw = stream.write_through
    binary = open(stream.fileno(), f'{stream.mode}b', 0 if is_raw else -1,  # noqa: SIM115
                  closefd=False)
    return io.TextIOWrapper(binary, stream.encoding, stream.errors, None if stream.mode == 'r'
                            else '\n', stream.line_buffering or binary.isatty(), is_raw)


def _run(path):
    """
    Run a script, end as Python does, but leave the modules.

    To destroy them writes to most of the memory that is shared with the server: 63 of the 73 ms of
    processor time of a fork that does nothing.
    """
    code = 0
    try:
        runpy.run_path(path, run_name='__main__')
    except SystemExit as error:
        if not isinstance(error.code, int | None):
            raise
        code = error.code or 0
    threading._shutdown()
    atexit._run_exitfuncs()
    # Not the oldest objects: a node that has ended its stream has unfrozen all, and to count what
    # is frozen takes two thirds of the processor time of a fork that does nothing.
    gc.collect(1)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        # Python reports it.
        sys.exit(code)
    os._exit(code)


if __name__ == '__main__':
    loaded = sys.argv[2]
    # Nothing of what is loaded is ever garbage: to look for it takes a quarter of the time.
    gc.disable()
    LOADERS[loaded]()
    # Else each fork prints what a library has printed: libsumo warns of the version of pyarrow.
    sys.stdout.flush()
    gc.collect()
    gc.freeze()
    gc.enable()
    _run(_serve(socket.socket(fileno=int(sys.argv[1])))[0])
