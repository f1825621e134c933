# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The command ``state_sensor``: finds the sub-command, runs it, turns its errors into an exit code.

May know: argparse, exit codes (INTERFACE 2). Must not know: rclpy, what a sub-command does.
"""

from __future__ import annotations

import argparse
import atexit
from collections.abc import Sequence
import gc
from importlib import import_module
import io
import os
import sys
from typing import cast, Protocol

from state_sensor_ros import __version__
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.errors import StateSensorError

# Help is here as well, so that one sub-command does not pay for the imports of all.
COMMANDS = {
    'simulate': 'serve a recording or synthetic traffic as the simulator would',
    'inspect': 'say what is in a recording',
    'convert': 'trajectory JSON to rosbag2 bag, and back',
    'synth': 'make synthetic traffic as a trajectory',
    'record': 'write the live stream to a trajectory',
    'replay': "play a trajectory in a running simulator's Replay Mode",
    'repair': 'make a whole trajectory or bag out of one that was cut',
    'render': 'draw a recording as a picture or an animation',
}
FAILED = 1
WRONG_USAGE = 2


class Command(Protocol):
    """What each module of ``commands/`` offers."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the sub-command's options."""

    def run(self, args: argparse.Namespace, interruption: Interruption) -> None:
        """Do it; :class:`StateSensorError` or :class:`OSError` ends the program with 1."""


class _Parser(argparse.ArgumentParser):
    """Parse arguments; errors are one line that begins as all of ours do."""

    def error(self, message: str) -> None:  # type: ignore[override]
        self.exit(WRONG_USAGE, f'error: {self.prog}: {message} (see {self.prog} --help)\n')


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run ``state_sensor``.

    :param argv: arguments; None for those of the process, which ends afterwards.
    :returns: 0 done, 1 bad input or a failed run, 2 wrong usage, 128 and the number of a signal
        that came before the work was done.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Not every terminal can show every name.
        sys.stdout.reconfigure(errors='backslashreplace')
    words = list(sys.argv[1:] if argv is None else argv)
    interruption = Interruption(is_program=argv is None)
    return interruption.run(lambda: _code(words, interruption))


def _code(words: list[str], interruption: Interruption) -> int:
    """Run the sub-command that ``words`` name; return the exit code."""
    try:
        _run(words, interruption)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; Python would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (StateSensorError, OSError) as error:
        interruption.conclude(FAILED)
        sys.stderr.write(f'error: {error}\n')
        return FAILED
    return 0


def _run(words: list[str], interruption: Interruption) -> None:
    """Find the sub-command that ``words`` name and run it with the rest."""
    parser = _Parser(prog='state_sensor', description='Ground truth of a driving simulator: '
                     'simulate, record, convert, inspect, replay, draw. Needs no ROS.')
    parser.add_argument('--version', action='version', version=f'state_sensor {__version__}')
    subparsers = parser.add_subparsers(dest='command', metavar='COMMAND', required=True)
    asked = next((word for word in words if word in COMMANDS), '')
    for name, help_ in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=help_, description=help_.capitalize() + '.')
        if name == asked:
            command = _load(name)
            command.add_arguments(subparser)
    args = parser.parse_args(words)
    interruption.begin()
    command.run(args, interruption)
    sys.stdout.flush()


def _load(name: str) -> Command:
    """Import the module of a sub-command, without what makes that slow and is for nothing."""
    # Threads for large matrices, of which there are none here: 0.05 s for NumPy to start them.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    # Modules stay: the collector shall not look through them, neither now nor at the end.
    gc.disable()
    try:
        return cast(Command, import_module(f'state_sensor_ros.commands.{name}'))
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.freeze)
