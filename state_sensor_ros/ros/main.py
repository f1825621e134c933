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

from collections.abc import Sequence
from contextlib import suppress
import os
from pathlib import Path
import signal
import stat
import sys
import tempfile
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
from state_sensor_ros.ros.sink import given_parameters
from state_sensor_ros.simulators import simulator_names

PROGRAM = 'state_sensor_node'
_HELP = f"""usage: {PROGRAM} [--version] [--ros-args -p NAME:=VALUE ... --params-file FILE]

Ground truth of a driving simulator on ROS 2 topics.

parameters: `state_sensor parameters [NAME or GROUP]` lists and describes them
simulators: {{}}

examples:
  {PROGRAM} --ros-args -p host:=192.168.1.20 -p labels:=false
  {PROGRAM} --ros-args -p source:=sumo
"""
_SUCCESS = TransitionCallbackReturn.SUCCESS
# Longest wait for what the node's thread does when the program ends, s.
_JOIN_S = 0.5


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
    unblock_errors()
    try:
        with raising_at_signals():
            others = _enter_ros(words)
            code = _explain(others[0]) if others else _run(words)
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


def unblock_errors() -> None:
    """
    Let lines be lost that do not fit into a pipe or terminal that nothing reads.

    rclpy holds the interpreter's lock while it logs, and with it the thread that drives the ego.
    """
    with suppress(OSError):
        mode = os.fstat(2).st_mode
        if stat.S_ISSOCK(mode):
            os.set_blocking(2, False)
        elif not stat.S_ISREG(mode):
            # Opened again: otherwise other programs on the same terminal would not block, too.
            own = os.open('/proc/self/fd/2', os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
            os.dup2(own, 2)
            os.close(own)


def _explain(option: str) -> int:
    """Print help or an error for an option that is not one of ROS; return the exit code."""
    if option == '--version':
        sys.stdout.write(f'{PROGRAM} {__version__}\n')
    elif option in ('-h', '--help'):
        sys.stdout.write(_HELP.format(', '.join(simulator_names())))
    else:
        sys.stderr.write(f'error: unknown argument {option}; parameters follow --ros-args (see '
                         f'{PROGRAM} --help)\n')
        return 2
    return 0


def _enter_ros(words: Sequence[str]) -> list[str]:
    choose_log_folder()
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
    executor = NodeExecutor(node)
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
        ended.wait()
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


class NodeExecutor(SingleThreadedExecutor):  # type: ignore[misc]
    """Runs the callbacks of a node, those of its services in threads: a command is not delayed."""

    def __init__(self, node: StateSensorNode) -> None:
        super().__init__(context=node.context)
        self._node = node
        self.add_node(node)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Run the next callback, or start the thread of a service."""
        handler, entity, _ = self.wait_for_ready_callbacks(timeout_sec)
        # A guard condition of the executor itself has no group.
        if getattr(entity, 'callback_group', None) is self._node.service_group:
            threading.Thread(target=handler, daemon=True).start()
        else:
            handler()
            handler.result()


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


def choose_log_folder() -> None:
    """Select a temporary folder if that of ROS cannot be written: rcl would not start."""
    above = os.environ.get('ROS_HOME') or f'{os.environ.get("HOME", os.devnull)}/.ros'
    folder, reason = Path(os.environ.get('ROS_LOG_DIR') or f'{above}/log'), 'permission denied'
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = reason_of(error)
    if not os.access(folder, os.W_OK | os.X_OK):
        os.environ['ROS_LOG_DIR'] = tempfile.mkdtemp(prefix='ros_log_')
        sys.stderr.write(f'warning: {folder}: {reason}: the log is in '
                         f'{os.environ["ROS_LOG_DIR"]}; ROS_LOG_DIR selects another folder\n')
