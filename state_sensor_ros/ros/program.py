# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The program ``state_sensor_node``: arguments, its end by a signal, exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
import gc
from itertools import pairwise
import os
import sys
import textwrap
import threading
from types import FrameType
from typing import NoReturn

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from state_sensor_ros.ends import EndingSignals
from state_sensor_ros.errors import ConfigError, importing, StateSensorError
from state_sensor_ros.ros.log_folder import choose_log_folder
from state_sensor_ros.ros.node import StateSensorNode
from state_sensor_ros.ros.parameter_file import (
    names_in,
    parameters_of,
    read_parameter_file,
)
from state_sensor_ros.simulators.simulator_list import schema_of, simulator_names
from state_sensor_ros.standard_streams import StandardStreams
from state_sensor_ros.texts import one_line
from state_sensor_ros.version import __version__

# Every program ends within 2 s of a signal; the system needs the rest to remove the process.
END_S = 1.3
_STANDARD_ERROR = 2
PROGRAM = 'state_sensor_node'
_HELP_WIDTH = 98
_SUCCESS = TransitionCallbackReturn.SUCCESS


class Ending:
    """
    Whether a signal has been received; made in the main thread, once in a process.

    A thread waits for the signals, because the main thread may be in a call that does not return.
    :data:`END_S` after the first signal it ends the process with the exit code 0 unless
    :meth:`leave` was called before.
    """

    def __init__(self, streams: StandardStreams) -> None:
        self._streams = streams
        self.on_signal: Callable[[], None] = lambda: None
        self._is_wanted = threading.Event()
        self._is_over = threading.Event()
        self._signals = EndingSignals(self._end, self._on_signal)

    def is_wanted(self) -> bool:
        """Return whether a signal has been received."""
        return self._is_wanted.is_set()

    def leave(self, code: int) -> int:
        """
        Return ``code``; end the process with it if threads of the program still run.

        The interpreter must not be finalized while a thread is inside a library.
        """
        self._is_over.set()
        known = (threading.main_thread(), self._signals.thread, *self._streams.threads)
        if any(thread not in known for thread in threading.enumerate()):
            sys.stdout.flush()
            self._streams.close()
            os._exit(code)
        return code

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._is_wanted.set()

    def _end(self, number: int) -> None:
        self._is_wanted.set()
        # With the objects of a large frame, a collection would stop all threads for a second.
        gc.disable()
        try:
            self.on_signal()
        finally:
            if not self._is_over.wait(END_S):
                self._leave_unfinished()

    def _leave_unfinished(self) -> NoReturn:
        # Without sys.stderr, whose lock the main thread may hold.
        with suppress(OSError):
            os.write(_STANDARD_ERROR, b'warning: some work did not finish within '
                     + f'{END_S:g} s of the signal and was abandoned\n'.encode())
        self._streams.close()
        os._exit(0)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the driver until SIGINT, SIGTERM or SIGHUP."""
    # argv: the program and its arguments; None for those of the process.
    # Returns 0 when ended by a signal, 1 when a parameter is wrong or a thread failed, 2 on wrong
    # usage.
    words = list(sys.argv if argv is None else argv)
    # A reader that stops would hold up commands, frames and the end.
    streams = StandardStreams(1, 2)
    if any(map(os.isatty, (streams.kept(1), streams.kept(2)))):
        # rcutils would take the pipe for a file.
        os.environ.setdefault('RCUTILS_COLORIZED_OUTPUT', '1')
        os.environ.setdefault('RCUTILS_LOGGING_BUFFERED_STREAM', '1')
    ending = Ending(streams)
    return ending.leave(_main(words, ending, streams))


def _main(words: Sequence[str], ending: Ending, streams: StandardStreams) -> int:
    try:
        files = {file: read_parameter_file(file, '--params-file')
                 for option, file in pairwise(words) if option == '--params-file'}
        others = _enter_ros(words)
        if others:
            return _explain(others[0])
        return _run(ending, streams, files)
    except StateSensorError as error:
        sys.stderr.write(f'error: {error}\n')
        return 1
    except ExternalShutdownException:
        return 0
    finally:
        rclpy.try_shutdown()


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


def _run(ending: Ending, streams: StandardStreams, files: Mapping[str, object]) -> int:
    with importing(PROGRAM):
        node = StateSensorNode()
    name = node.get_fully_qualified_name()
    for file, content in files.items():
        if parameters_of(content, name) is None:
            node.get_logger().warning(one_line(
                f'--params-file {file}: its parameters are not used: this node is {name}, the '
                f'file has {", ".join(names_in(content))}'))
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        node.is_ending = ending.is_wanted
        node.n_log_lines_dropped = lambda: streams.n_dropped
        ending.on_signal = node.end_soon
        node.is_starting = True
        if node.settings.autostart and node.trigger_configure() == _SUCCESS:
            node.trigger_activate()
        if node.settings.autostart and node.refusal is not None:
            raise node.refusal
        node.is_starting = False
        while not ending.is_wanted() and node.failure is None:
            # A signal and a failure wake the node: a check at intervals takes 0.7 ms of CPU each.
            executor.spin_once()
        if node.failure is not None and not ending.is_wanted():
            raise node.failure
        return 0
    finally:
        node.shut_down()
        executor.shutdown(0.0)
        node.destroy_node()
