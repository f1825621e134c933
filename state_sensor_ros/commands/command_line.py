# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The command ``state_sensor``: run a sub-command, turn its errors into an exit code.

doc/interface.md#exit-codes lists the exit codes.
"""

from __future__ import annotations

import argparse
import atexit
from collections.abc import Callable, Sequence
from contextlib import suppress
import errno
import gc
from importlib import import_module
import io
import os
import sys
from types import ModuleType
import warnings

from state_sensor_ros.commands.arguments.shared import add_parameters
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.parser import Parser, Version, WRONG_USAGE
from state_sensor_ros.commands.printing import discard_output, print_line
from state_sensor_ros.errors import importing, reason_of, StateSensorError, UsageError
from state_sensor_ros.files.whole.output import reserve, standard_output
from state_sensor_ros.version import __version__

# Modules are imported by name: only those of the sub-command that runs, for its help only one that
# is quick to import.
_COMMANDS = 'state_sensor_ros.commands'
COMMANDS = {
    'simulate': 'act as a simulator: serve a recording or synthetic traffic',
    'inspect': 'list what a recording contains',
    'convert': 'convert between trajectories, bags, tables and ASAM OSI traces',
    'synth': 'generate synthetic traffic as a trajectory',
    'record': 'record a live stream to a file of any format',
    'replay': "play a recording in a running simulator's Replay Mode",
    'repair': 'recover a truncated trajectory, bag or recorder log',
    'render': 'draw a recording as a picture or an animation',
    'view': 'show a recording or a live stream in a 3D viewer',
    'evaluate': 'evaluate an autonomy stack against ground truth',
    'parameters': 'list the parameters: type, default, unit, text',
}
FAILED = 1

# Errors of a write, which has no name of a file.
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EBADF, errno.EIO, errno.EFBIG, errno.EINVAL)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``state_sensor``."""
    # argv: arguments; None for those of the process, which ends afterward.
    # Returns 0 done, 1 bad input or a failed run, 2 wrong usage, 128 plus the number of a signal
    # that was received before the work was done.
    _open_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may have characters that the encoding of the terminal lacks.
        sys.stdout.reconfigure(errors='backslashreplace')
    words = list(sys.argv[1:] if argv is None else argv)
    interruption = Interruption(is_program=argv is None)
    if argv is None:
        warnings.showwarning = _show_warning
    # Set here as well, because a signal may arrive before its module is imported.
    interruption.is_endless = _named(words) == ['simulate']
    return interruption.run(lambda: _code(
        _named(words), lambda: _run(words, interruption, is_program=argv is None),
        interruption))


def run_parsed(name: str, args: argparse.Namespace) -> int:
    """Run a sub-command with options that are parsed, as a job of a batch."""
    interruption = Interruption(is_program=False)
    return interruption.run(lambda: _code(
        [name], lambda: _run_parsed(name, args, interruption), interruption))


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as other lines are, without the place in the code."""
    print_line(f'warning: {message}')


def _open_standard_streams() -> None:
    """Replace streams that were closed at start: otherwise another file would get their number."""
    for number, (name, mode) in enumerate((('stdin', 'r'), ('stdout', 'w'), ('stderr', 'w'))):
        if getattr(sys, name) is None:
            # The lowest free number. Output to a file for reading is an error, not lost data;
            # an error that cannot be printed does not change the exit code.
            os.open(os.devnull, os.O_WRONLY if name == 'stderr' else os.O_RDONLY)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _code(named: list[str], work: Callable[[], None], interruption: Interruption) -> int:
    """Run ``work`` of the sub-command that is named, if any; return the exit code."""
    try:
        with importing(' '.join(['state_sensor', *named])):
            work()
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        discard_output()
        return FAILED
    except (StateSensorError, OSError) as error:
        code = WRONG_USAGE if isinstance(error, UsageError) else FAILED
        interruption.conclude(code)
        usage = f'{" ".join(["state_sensor", *named])}: ' if code == WRONG_USAGE else ''
        text = error if isinstance(error, StateSensorError) else _in_words(error)
        print_line(f'error: {usage}{text}')
        try:
            standard_output().flush()
        except OSError:
            discard_output()
        return code
    return 0


def _in_words(error: OSError) -> str:
    """Return an error of the operating system in one line, with what it is of if that is known."""
    where = error.filename or ('standard output' if error.errno in _OF_OUTPUT else '')
    return f'{where}: {reason_of(error)}' if where else reason_of(error)


def _named(words: list[str]) -> list[str]:
    """Return the first word that is a sub-command, as a list; an empty list without one."""
    return [word for word in words if word in COMMANDS][:1]


def _run(words: list[str], interruption: Interruption, *, is_program: bool) -> None:
    """Run the sub-command that ``words`` name with the rest of them."""
    parser = Parser(
        prog='state_sensor', description='Record, convert, draw and evaluate ground truth from '
        'driving simulators, without ROS.',
        epilog='`state_sensor COMMAND --help` describes a command.')
    parser.add_argument('--version', action=Version, nargs=0, const=f'state_sensor {__version__}',
                        help='print the version and exit')
    subparsers = parser.add_subparsers(dest='command', metavar='COMMAND', required=True,
                                       title='commands')
    completed = os.environ['COMP_LINE'].split() if '_ARGCOMPLETE' in os.environ else []
    named = _named(completed or words)
    commands = {name: subparsers.add_parser(
        name, help=help_, description=f'{help_[0].upper()}{help_[1:]}.')
        for name, help_ in COMMANDS.items()}
    for name in named:
        import_module(f'{_COMMANDS}.arguments.{name}').add_arguments(commands[name])
        add_parameters(commands[name])
    if completed:
        _complete(parser)
    if words[:1] != named:
        parser.parse_program(words)
    [name] = named
    commands[name].explain = lambda *found: import_module(
        f'{_COMMANDS}.parameter_values').present_spelling(*found)
    args = commands[name].parse(words[1:])
    if is_program:
        reserve()
    _run_parsed(name, args, interruption)
    standard_output().flush()


def _run_parsed(name: str, args: argparse.Namespace, interruption: Interruption) -> None:
    """Run a sub-command, and name the parameters that it has not used."""
    command, parameters = _load(name), import_module(f'{_COMMANDS}.parameter_values')
    if hasattr(args, 'given'):
        parameters.take_parameters(args)
    command.run(args, interruption)
    parameters.warn_of_unused(args)


def _complete(parser: argparse.ArgumentParser) -> None:
    """Print the completions for a shell, and end; without argcomplete, do nothing."""
    with suppress(ImportError):
        from argcomplete import autocomplete
        autocomplete(parser)


def _load(name: str) -> ModuleType:
    """Import the module of a sub-command, with ``run``, quickly."""
    # Saves 0.05 s: NumPy would start threads for large matrices, which do not occur here.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    # Modules stay in memory: they are excluded from collections, now and at exit.
    gc.disable()
    try:
        return import_module(f'{_COMMANDS}.{name}')
    finally:
        gc.freeze()
        gc.enable()
        atexit.register(gc.freeze)
