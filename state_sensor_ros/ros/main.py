# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The program ``state_sensor_node``: arguments, its end by a signal, exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
import os
from pathlib import Path
import signal
import stat
import sys
import tempfile
import textwrap
import threading

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from state_sensor_ros import __version__
from state_sensor_ros.ends import ending_signals, raising_at_signals
from state_sensor_ros.errors import ConfigError, importing, reason_of, StateSensorError
from state_sensor_ros.ros.node import StateSensorNode
from state_sensor_ros.ros.rclpy_inside import given_parameters
from state_sensor_ros.simulators import schema_of, simulator_names

PROGRAM = 'state_sensor_node'
_HELP_WIDTH = 98
_SUCCESS = TransitionCallbackReturn.SUCCESS
_STANDARD_ERROR, _FLUSH_S, _PIPE_BYTES = 2, 0.3, 65536
# Longest wait for what the node's thread does when the program ends, s.
_JOIN_S = 0.5
# Longest time until a signal is noticed that the system has given to another thread, s.
_LOOK_S = 0.1
_SELECTED = 'ROS_LOG_DIR'


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run the driver until SIGINT, SIGTERM or SIGHUP.

    :param argv: the program and its arguments; None for those of the process.
    :returns: 0 when ended by a signal, 1 when a parameter is wrong or a thread failed, 2 on wrong
        usage.
    """
    words = list(sys.argv if argv is None else argv)
    for number in ending_signals():
        # After the first signal: another one must not cut the last brake.
        signal.signal(number, lambda *_: None)
    with unblocked_errors():
        try:
            with raising_at_signals():
                code = _main(words)
        except (KeyboardInterrupt, ExternalShutdownException):
            code = 0
        except StateSensorError as error:
            sys.stderr.write(f'error: {error}\n')
            code = 1
        finally:
            rclpy.try_shutdown()
    if threading.active_count() > 1:
        # The interpreter must not be finalized while a thread is inside a library.
        sys.stdout.flush()
        os._exit(code)
    return code


@contextmanager
def unblocked_errors() -> Iterator[None]:
    """
    Let a thread write what is written to standard error, whose reader may have stopped.

    rclpy holds the interpreter's lock while it logs, and with it the thread that drives the ego.
    Lines that do not fit into a pipe are dropped.
    """
    if stat.S_ISREG(os.fstat(_STANDARD_ERROR).st_mode):
        yield
        return
    if os.isatty(_STANDARD_ERROR):
        # rcutils would take the pipe for a file.
        os.environ.setdefault('RCUTILS_COLORIZED_OUTPUT', '1')
    kept, (reader, writer) = os.dup(_STANDARD_ERROR), os.pipe()
    os.set_blocking(writer, False)
    os.dup2(writer, _STANDARD_ERROR)
    os.close(writer)

    def write() -> None:
        with suppress(OSError):
            while data := os.read(reader, _PIPE_BYTES):
                while data:
                    data = data[os.write(kept, data):]

    thread = threading.Thread(target=write, daemon=True, name='log')
    thread.start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, _STANDARD_ERROR)
        thread.join(_FLUSH_S)


def _main(words: Sequence[str]) -> int:
    others = _enter_ros(words)
    return _explain(others[0]) if others else _run(words)


def _explain(option: str) -> int:
    """Print help or an error for an option that is not one of ROS; return the exit code."""
    if option == '--version':
        sys.stdout.write(f'{PROGRAM} {__version__}\n')
        return 0
    if option in ('-h', '--help'):
        sys.stdout.write(_help())
        return 0
    sys.stderr.write(f'error: unknown argument {option}; parameters follow --ros-args (see '
                     f'{PROGRAM} --help)\n')
    return 2


def _help() -> str:
    """Return a page with the names of the parameters by subject."""
    lines = [f'usage: {PROGRAM} [--version] [--ros-args -p NAME:=VALUE … --params-file FILE]', '',
             'Ground truth of a driving simulator on ROS 2 topics.',
             '', 'parameters; `state_sensor parameters [NAME or GROUP]` describes them:']
    for subject, names in schema_of().by_subject().items():
        text, prefix = ', '.join(names), f'{subject}.'
        if prefix in text:
            text = f'{prefix}{{{text.replace(prefix, "")}}}'
        lines += textwrap.wrap(text if prefix in text else f'{subject}: {text}', _HELP_WIDTH,
                               initial_indent='  ', subsequent_indent='    ')
    return '\n'.join((*lines, '', f'simulators: {", ".join(simulator_names())}', '', 'examples:',
                      '  state_sensor_node --ros-args -p host:=192.168.1.20 -p labels:=false',
                      f'  state_sensor_node --ros-args -p source:={simulator_names()[-1]}', ''))


def _enter_ros(words: Sequence[str]) -> list[str]:
    elsewhere = choose_log_folder()
    if elsewhere:
        sys.stderr.write(f'warning: {elsewhere}\n')
    try:
        # The handlers of rclpy would end the context before the markers are deleted.
        rclpy.init(args=words, signal_handler_options=SignalHandlerOptions.NO)
        return list(remove_ros_args(words)[1:])
    except RuntimeError as error:
        # The rest of the text is a position in the source code of rcl.
        found = str(error).partition(', at /')[0].removeprefix('failed to initialize rcl: ')
        raise ConfigError('ROS arguments', found.strip(), '-p NAME:=VALUE') from error


def _run(words: Sequence[str]) -> int:
    with importing(PROGRAM):
        node = StateSensorNode()
    # The word after -p is NAME:=VALUE or NODE:NAME:=VALUE.
    single = {word.partition(':=')[0].rpartition(':')[2] for word in words}
    if '--params-file' in words and given_parameters(node).keys() <= single:
        node.get_logger().warning('--params-file has no parameter of this node, '
                                  f'{node.get_fully_qualified_name()}')
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    # The main thread only waits, so that a signal is raised in it at once.
    ended = threading.Event()
    spinning = threading.Thread(target=_spin, args=(executor, node, ended), daemon=True,
                                name='node')
    try:
        node.is_starting = True
        if node.settings.autostart and node.trigger_configure() == _SUCCESS:
            node.trigger_activate()
        if node.settings.autostart and node.refusal is not None:
            raise node.refusal
        node.is_starting = False
        spinning.start()
        while not ended.wait(_LOOK_S):
            # A signal that another thread takes, as after a stop, does not end the wait.
            pass
        if node.failure is not None:
            raise node.failure
        return 0
    finally:
        node.end_soon()
        ended.set()
        executor.shutdown(0.0)
        if spinning.ident is not None:
            spinning.join(_JOIN_S)
        node.shut_down()
        node.destroy_node()


def _spin(executor: SingleThreadedExecutor, node: StateSensorNode,
          ended: threading.Event) -> None:
    try:
        # A failure wakes the node: a check at intervals takes 0.7 ms of CPU each.
        while not ended.is_set() and node.failure is None:
            executor.spin_once()
    except BaseException as error:  # noqa: BLE001
        node.failure = node.failure or error
    finally:
        ended.set()


def choose_log_folder() -> str:
    """Select a temporary folder if that of ROS cannot be written: rcl would not start."""
    selected, home = os.environ.get(_SELECTED), os.environ.get('HOME')
    above = os.environ.get('ROS_HOME') or (home and f'{home}/.ros')
    wanted = selected or (above and f'{above}/log')
    reason = _refusal(Path(wanted)) if wanted else 'HOME is not set'
    if not reason:
        return ''
    if selected:
        raise ConfigError(_SELECTED, f'{reason} ({selected})', 'a folder that can be written')
    folder = tempfile.mkdtemp(prefix='ros_log_')
    os.environ[_SELECTED] = folder
    return f'{reason}: the log is in {folder}; {_SELECTED} selects another folder'


def _refusal(folder: Path) -> str:
    """Return why a folder cannot be made or written, empty if it can."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return f'{folder}: {reason_of(error)}'
    return '' if os.access(folder, os.W_OK | os.X_OK) else f'{folder}: permission denied'
