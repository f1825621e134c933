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
from collections.abc import Callable, Sequence
from contextlib import suppress
import errno
from functools import partial
from importlib import import_module
import io
import os
import re
import signal
import sys
from typing import Any, cast, NoReturn
import warnings

from state_sensor_ros import __version__, ends, errors, parameters
from state_sensor_ros.commands.terminal import discard_output, print_line, print_output
from state_sensor_ros.texts import shortened

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
# Commands in the module of another one. Each module has add_NAME() and run_NAME().
_MODULES = {'record': 'convert', 'synth': 'simulate'}
_EPILOG = """`state_sensor COMMAND --help` describes a command.

examples:
  state_sensor synth drive.json
  state_sensor inspect drive.json
  state_sensor render drive.json drive.png"""
FAILED, WRONG_USAGE = 1, 2
# Columns, and those of the options; characters of a message: a word may be of any length.
_HELP_WIDTH, _OPTION_WIDTH, _MAX_MESSAGE = 80, 26, 1000
_CHOICE = re.compile(r".*: invalid choice: '(?P<word>.*?)' \(choose from (?P<known>.*)\)")
_OPTION = re.compile(r'\[-(?:[^][]|\[[^]]*\])*\] ?')
_UNKNOWN = 'unrecognized arguments: '
# Errors of a write, which has no name of a file.
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EBADF, errno.EIO, errno.EFBIG, errno.EINVAL)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, with the nearest name."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        super().__init__(formatter_class=partial(
            argparse.RawDescriptionHelpFormatter, max_help_position=_OPTION_WIDTH,
            width=_HELP_WIDTH), allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Print an error of the command line and end with the exit code of wrong usage."""
        known, word = list[str](), ''
        if match := _CHOICE.fullmatch(message):
            word, known = match['word'], re.findall(r"[^\s',]+", match['known'])
        elif message.startswith(f'{_UNKNOWN}-'):
            word = message.removeprefix(_UNKNOWN).split()[0].partition('=')[0]
            known = re.findall(r'--\w[\w-]*', self.format_help())
        message = shortened(message, _MAX_MESSAGE) + parameters.did_you_mean([word], known, 0.75)
        print_line(f'error: {self.prog}: {message} (see {self.prog} --help)')
        self.exit(WRONG_USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``state_sensor``."""
    # argv: arguments; None for those of the process.
    # Returns 0 done, 1 bad input or a failed run, 2 wrong usage, 128 plus the number of a signal
    # that was received before the work was done.
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names may have characters that the encoding of the terminal lacks.
        sys.stdout.reconfigure(errors='backslashreplace')
    # Saves 0.05 s: NumPy would start threads for large matrices, which do not occur here.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    words = list(sys.argv[1:] if argv is None else argv)
    name = words[0] if words and words[0] in COMMANDS else ''
    try:
        with ends.raising_at_signals(), warnings.catch_warnings():
            if argv is None:
                warnings.showwarning = _show_warning
            return run_command(name, partial(_parsed, name, words)) if name else _explain(words)
    except KeyboardInterrupt as interrupt:
        if argv is None:
            # At its end Python would wait for a reader of a pipe that reads no more.
            discard_output()
        print_line('interrupted: the work is not done')
        return 128 + cast(int, interrupt.args[0] if interrupt.args else signal.SIGINT)


def run_command(name: str, parsed: Callable[[], argparse.Namespace]) -> int:
    """Run a sub-command with its options; print its error, and return the exit code."""
    program = f'state_sensor {name}'
    try:
        with errors.importing(program):
            args = parsed()
            _module('parameters').take_parameters(args)
            getattr(_module(name), f'run_{name}')(args)
            print(end='', flush=True)
    except KeyboardInterrupt:
        import_module('state_sensor_ros.files.output').remove_parts()
        raise
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does.
        discard_output()
        return FAILED
    except errors.UsageError as error:
        print_line(f'error: {program}: {error}')
        return WRONG_USAGE
    except (errors.StateSensorError, OSError) as error:
        print_line(f'error: {_in_words(error)}')
        try:
            print(end='', flush=True)
        except OSError:
            # Otherwise Python tries again at its end, which would set the exit code.
            discard_output()
        return FAILED
    return 0


def command_parser(name: str) -> Parser:
    """Return the parser of a sub-command."""
    text = COMMANDS[name]
    parser = Parser(prog=f'state_sensor {name}', description=f'{text[0].upper()}{text[1:]}.')
    _add_options(name, parser)
    # The options are listed below it.
    _, usage = ' '.join(parser.format_usage().split()).split(f'{parser.prog} ', 1)
    parser.usage = f'%(prog)s [options] {_OPTION.sub("", usage)}'
    return parser


def _module(name: str) -> Any:  # noqa: ANN401
    # By name: only the modules of the sub-command that runs are imported.
    return import_module(f'state_sensor_ros.commands.{_MODULES.get(name, name)}')


def _add_options(name: str, parser: argparse.ArgumentParser) -> None:
    getattr(_module(name), f'add_{name}')(parser)
    _module('parameters').add_assignments(parser)


def _parsed(name: str, words: Sequence[str]) -> argparse.Namespace:
    if 'COMP_LINE' in os.environ:
        _explain(words)
    # argparse cannot be interrupted: it restores its actions from what it has saved in them.
    with ends.signals_held():
        return command_parser(name).parse_intermixed_args(words[1:])


def _explain(words: Sequence[str]) -> int:
    """Print the help or the version, complete a line of a shell, or refuse a wrong command."""
    parser = Parser(prog='state_sensor', description='Record, convert, draw and evaluate ground '
                    'truth from driving simulators, without ROS.', epilog=_EPILOG)
    parser.add_argument('--version', action='version', version=f'state_sensor {__version__}')
    commands = parser.add_subparsers(metavar='COMMAND', title='commands')
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(name, help=help_)
        if name in os.environ.get('COMP_LINE', '').split():
            _add_options(name, command)
    with suppress(ImportError):
        from argcomplete import autocomplete
        autocomplete(parser)
    parser.parse_args(words)
    print_output(parser.format_help(), end='')
    return 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as other lines are, without the place in the code."""
    print_line(f'warning: {message}')


def _in_words(error: errors.StateSensorError | OSError) -> str:
    """Return an error in one line; one of the operating system with what it is of, if known."""
    if isinstance(error, errors.StateSensorError):
        return str(error)
    where = error.filename or ('standard output' if error.errno in _OF_OUTPUT else '')
    return f'{where}: {errors.reason_of(error)}' if where else errors.reason_of(error)
