# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The exception tree.

A message about data reads ``where: found X; expected Y``, one about the world outside, such as a
disk, a host or a port, ``where: X``.

StateSensorError
 +- ConfigError            a parameter or option has a value it cannot have
 +- TransportError         a connection failed, or the peer broke the protocol
 |   +- RefusalError       the simulator replied that it refuses a command
 |   +- UnreachableError   nothing accepts connections there: the simulator may start later
 +- FramingError           a packet cannot have the length in its header
 +- DecodeError            a payload is not a frame
 +- StateError             arrays of a frame break an invariant
 +- EncodeError            a message definition is not the expected one: a defect of the package
 +- TrajectoryFormatError  a recording breaks a rule of its format
 |   +- MissingFileError   there is no such recording
 +- SinkError              an output cannot be written
 +- MissingLibraryError    a library is not installed, or too old
"""

from collections.abc import Iterator
from contextlib import contextmanager
import sys

from state_sensor_ros.texts import counted, MAX_FOUND, one_line, shortened

# Libraries whose distribution on PyPI has another name than their module.
_DISTRIBUTIONS = {
    'PIL': 'pillow', 'google': 'protobuf',
    '_ruamel_yaml': 'ruamel.yaml.clib', 'rerun': 'rerun-sdk', 'rerun_cli': 'rerun-sdk',
    'ruamel': 'ruamel.yaml', 'osi3': 'osi-python'}
# Oldest and newest minor version of Python that a library supports.
_PYTHONS = {'rerun': (11, 99), 'rerun_cli': (11, 99), 'carla': (10, 12)}
# Modules that come with ROS 2, besides message packages; pip cannot install them.
_OF_ROS = frozenset({
    'rclpy', '_rclpy_pybind11', 'rpyutils', 'tf2_ros', 'ament_index_python', 'launch',
    'launch_ros'})
_OWN_MESSAGES = 'state_sensor_ros.msg'


def line_of(error: BaseException) -> str:
    """Return the text of an error in one line, the name of its class if it has none."""
    return ' '.join(str(error).split()) or type(error).__name__


def reason_of(error: OSError) -> str:
    """
    Return the reason that the operating system gives, without its number.

    >>> reason_of(OSError(28, 'No space left on device'))
    'no space left on device'

    :param error: failure of a system call.
    :returns: lower case; the name of the class if the error has no text.
    """
    if isinstance(error, IsADirectoryError):
        return 'is a folder'
    return (error.strerror or str(error)).lower() or type(error).__name__


class StateSensorError(Exception):
    """
    Base of all errors of this package.

    :param where: the place: a file, a key path, ``host:port`` or a parameter.
    :param found: what was found there; without ``expected``, what has failed.
    :param expected: what was expected there, or the remedy; ``''`` for a failure of the world
        outside.
    """

    def __init__(self, where: str, found: str, expected: str = '') -> None:
        found = shortened(found, MAX_FOUND)
        super().__init__(one_line(f'{where}: found {found}; expected {expected}' if expected
                                  else f'{where}: {found}'))
        self.where, self.found, self.expected = where, found, expected


class ConfigError(StateSensorError, ValueError):
    """A parameter or option is out of its range; ``where`` names it."""


class TransportError(StateSensorError, OSError):
    """A connection failed, for example refused or closed inside a packet."""


class RefusalError(TransportError):
    """The reply to a command reports a failure; ``found`` has the text of the simulator."""


class UnreachableError(TransportError):
    """No connection can be made; a simulator that starts later can still be reached."""


_NO_CONNECTION = 'cannot connect to '


def cannot_connect(where: str, error: OSError,
                   remedy: str = 'is the simulator running?') -> UnreachableError:
    """
    Return the error for a connection that cannot be made.

    >>> str(cannot_connect('127.0.0.1:8700', ConnectionRefusedError(111, 'Connection refused')))
    'cannot connect to 127.0.0.1:8700: connection refused; is the simulator running?'

    :param where: ``host:port``.
    :param error: reason.
    :param remedy: what to check if the connection is refused.
    """
    refused = isinstance(error, ConnectionRefusedError) and remedy
    return UnreachableError(f'{_NO_CONNECTION}{where}',
                            f'{reason_of(error)}; {remedy}' if refused else reason_of(error))


def failed_stream(where: str, reason: str, missing: str) -> TransportError:
    """
    Return the error for a stream that brought nothing; its text names the place once.

    :param where: ``host:port``.
    :param reason: text of the last error, ``''`` for none; used alone if it begins with the place.
    :param missing: what is missing, such as ``no frame received``.
    """
    for place in (where, f'{_NO_CONNECTION}{where}'):
        if reason.startswith(f'{place}: '):
            return TransportError(place, reason.removeprefix(f'{place}: '))
    reason = reason.replace(f' at {where}', '').removeprefix(f'{where} ')
    return TransportError(where, f'{missing} ({reason})' if reason else missing)


class FramingError(StateSensorError):
    """The length of a packet is impossible; the rest of the stream cannot be read."""


def bad_length(where: str, data: bytes, found: str, expected: str) -> FramingError:
    """
    Return the error about an impossible length; it names the kind of server if data is text.

    :param where: ``host:port``.
    :param data: first bytes of the packet.
    :param found: description of the length.
    :param expected: allowed lengths.
    """
    text = data.decode('ascii', errors='replace').partition('\r')[0].partition('\n')[0]
    if len(text) < 4 or not (text.isascii() and text.isprintable()):
        return FramingError(where, found, expected)
    kind = 'a web server' if text.startswith(('HTTP/', '<htm', '<!DO')) else 'another server'
    return FramingError(where, f'text ({text!r}), as {kind} sends it', 'the packets of a '
                        'simulator: check that host and port are those of its sensor')


class DecodeError(StateSensorError, ValueError):
    """A payload, or one actor in it, does not match any generation of frames."""


class StateError(StateSensorError, ValueError):
    """Arrays of one frame have unequal lengths, or an object has a wrong state."""


class EncodeError(StateSensorError):
    """A message definition is not the one that the encoder was written for."""


class TrajectoryFormatError(StateSensorError, ValueError):
    """A recording cannot be read, or cannot be replayed by the simulator."""


def no_frames(where: str, *, is_part: bool = False,
              end_s: float = 0.0) -> TrajectoryFormatError:
    """
    Return the error for a recording without frames.

    :param where: the recording.
    :param is_part: whether only a span of time was read.
    :param end_s: end of the recording, s after its first frame; 0 if it is unknown.
    """
    return TrajectoryFormatError(
        where, f'no frames{" in the selected time" if is_part else ""}'
        + (f'; the recording ends {end_s:.6g} s after its first frame' if end_s else ''),
        'at least one frame')


class MissingFileError(TrajectoryFormatError, FileNotFoundError):
    """There is no such recording; a FileNotFoundError, too."""


class TruncatedError(TrajectoryFormatError):
    """
    A recording is truncated.

    :param where: the recording and the place in it.
    :param found: see :class:`StateSensorError`.
    :param expected: see :class:`StateSensorError`.
    :param n_frames: number of complete frames.
    :param end: offset after the last complete frame.
    :param lost: description of what is lost.
    :param container: what has no end, in words of the format.
    :param advice: what to do, empty if nothing helps.
    """

    def __init__(self, where: str, found: str, expected: str, *, n_frames: int, end: int,
                 lost: str, container: str = 'the array',
                 advice: str = '`state_sensor repair` writes a whole file') -> None:
        super().__init__(where, found, expected)
        self.container, self.advice = container, advice
        self.n_frames, self.end, self.lost = n_frames, end, lost

    @property
    def summary(self) -> str:
        """Return the number of whole frames, and what is lost."""
        return f'{counted(self.n_frames, "whole frame")}; lost: {self.lost}'

    @property
    def warning(self) -> str:
        """Warning in one line, for programs that use the whole frames."""
        return one_line(f'{self.where}: found the end of the file inside {self.container}; '
                        + '; '.join(filter(None, (self.summary, self.advice))))


class UsageError(StateSensorError, ValueError):
    """
    A command cannot be run as it is written: exit code 2.

    :param text: the option or name, and what it is for.
    """

    def __init__(self, text: str) -> None:
        text = shortened(text, 2 * MAX_FOUND)
        Exception.__init__(self, one_line(text))
        self.where, self.found, self.expected = text, '', ''


class SinkError(StateSensorError, OSError):
    """An output cannot be written; ``where`` is its path or topic."""


class MissingLibraryError(StateSensorError, ImportError):
    """A library that the work needs cannot be imported; ``expected`` says how to install it."""


@contextmanager
def reading(where: str) -> Iterator[None]:
    """
    Let an error of the system in the block be one of a recording.

    :param where: name of the recording.
    :raises TrajectoryFormatError: in place of an OSError that is not of this package.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, StateSensorError):
            raise
        raise TrajectoryFormatError(where, reason_of(error)) from error


@contextmanager
def restated(kind: type[StateSensorError], where: str) -> Iterator[None]:
    """
    Let a DecodeError in the block be an error of another class, with the place of the payload.

    :param kind: that class, such as :class:`TrajectoryFormatError`.
    :param where: place of the payload, such as the name of its file.
    """
    try:
        yield
    except DecodeError as error:
        raise kind(f'{where}: {error.where}', error.found, error.expected) from error


@contextmanager
def importing(where: str) -> Iterator[None]:
    """
    Replace an ImportError in the block by one line that names the library.

    :param where: what needs the library, such as ``state_sensor render``.
    :raises MissingLibraryError: if a library cannot be imported. An ImportError of a module of
        this package, or of no known module, is a defect and is raised unchanged.
    """
    try:
        yield
    except ImportError as error:
        # One that this function has raised before has no name.
        module = error.name or ''
        package = module.partition('.')[0]
        is_missing = isinstance(error, ModuleNotFoundError)
        found = f'no module {module}' if is_missing else str(error)
        if module == _OWN_MESSAGES or package in _OF_ROS \
                or package.endswith(('_msgs', '_interfaces')):
            expected = ('ROS 2 and this package, sourced: `. scripts/env.sh` in a clone after '
                        '`make setup`, `. install/setup.sh` in a workspace')
        elif package in ('', __package__):
            raise
        else:
            expected = _remedy(package, is_missing)
        raise MissingLibraryError(where, found, expected) from error


def _remedy(package: str, is_missing: bool) -> str:
    """Return how to install a library in the environment of this Python."""
    library = _DISTRIBUTIONS.get(package, package)
    (oldest, newest), minor = _PYTHONS.get(package, (10, 99)), sys.version_info[1]
    if is_missing and not oldest <= minor <= newest:
        pythons = f'3.{oldest} ' + ('or newer' if newest == 99 else f'to 3.{newest}')
        return f'Python {pythons} for the library {library}, which does not support 3.{minor}'
    return f'the library {library}: pip install {"" if is_missing else "--upgrade "}{library}'
