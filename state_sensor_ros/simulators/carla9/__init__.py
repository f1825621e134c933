# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
CARLA 0.9: its parameters, and the Python with its client library: doc/protocol/carla9.md.

The folder reads recorder logs, and live frames by that library in a child.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
import json
from pathlib import Path
import re
import shutil
import subprocess
import sys

from state_sensor_ros.errors import ConfigError, importing
from state_sensor_ros.parameters import parameter
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.source import Report, Source

_OTHERS = ('python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3')
_PROBE_S = 20.0
_PROBE = """
import json, sys
from importlib.util import find_spec
try:
    from importlib.metadata import version
    release = version('carla')
except ImportError:
    release = '?'
absent = [name for name in ('carla', 'numpy', 'msgspec') if find_spec(name) is None]
print(json.dumps([release, absent + ['the syntax of 3.10'] * (sys.version_info < (3, 10))]))
"""
# The folder of the package comes last: beside it may be libraries for this Python.
_RUN = """
import runpy, sys
module, folder = sys.argv[1:]
sys.path.append(folder)
runpy.run_module(module, run_name='__main__')
"""


@dataclass(frozen=True, slots=True)
class Carla9Parameters:
    """Parameters with the prefix ``carla9.``."""

    host: str = parameter('127.0.0.1', 'Host of the server.', pattern=re.compile(r'\S+'))
    port: int = parameter(2000, 'RPC port of the server; it streams on the next one.',
                          low=1, high=65533)
    timeout: float = parameter(5.0, 'Longest wait for a reply of the server, s.',
                               low=0.1, high=600.0)
    ego: str = parameter('', 'Role, id or name of the ego; empty: `hero`, else `ego_vehicle`.')
    tick: bool = parameter(False, 'Set synchronous mode and tick at `rate`; otherwise follow '
                           'the server or another client.')
    step: float = parameter(0.05, 'Simulated time of a step with `carla9.tick`, s.',
                            low=0.001, high=0.1)
    ackermann: bool = parameter(False, "Let the server's controller follow commanded speeds; "
                                'needs CARLA 0.9.14 or later.')
    min_throttle: float = parameter(0.0, 'Least throttle, in first gear, of an ego that is to '
                                    'move from rest, for heavy ones; 0 for none.',
                                    low=0.0, high=1.0)
    python: str = parameter('', "Python with CARLA's client library, a path or name; empty: the "
                            'current one, else the first on the path that has it.')
    static: bool = parameter(False, 'Add parked vehicles and other objects of the level.')

    @property
    def ego_role(self) -> str:
        """Return the role of the ego as a part of names of topics; empty if it is none."""
        return self.ego if re.fullmatch(r'[A-Za-z]\w*', self.ego, re.ASCII) else ''


# Releases from which a server follows speeds, and puts a body that stands to sleep.
FOLLOWING, SLEEPING = (0, 9, 14), (0, 10, 0)


def is_release(release: str, least: tuple[int, int, int]) -> bool:
    """Return whether a version of CARLA, such as ``0.9.16-dirty``, is another one or a later."""
    numbers = re.match(r'(\d+)\.(\d+)\.(\d+)', release)
    return numbers is None or tuple(map(int, numbers.groups())) >= least


def client_release(chosen: str) -> str:
    """
    Return the version of the client library, ``?`` if it is not known.

    :param chosen: parameter ``carla9.python``.
    :raises ConfigError: if that Python cannot be run, or lacks a library.
    :raises MissingLibraryError: if none is chosen, and none on the path has the libraries.
    """
    return _probed(_client_python(chosen))[0]


def client_command(chosen: str, module: str) -> list[str]:
    """
    Return the words that run a module of the package where the client library is.

    The library has wheels for some versions of Python only. Another Python runs the package from
    where it is installed here, with numpy and msgspec of its own.

    :param chosen: parameter ``carla9.python``.
    :param module: its full name.
    :raises StateSensorError: as :func:`client_release`.
    """
    path = _client_python(chosen)
    if path == sys.executable:
        return [path, '-m', module]
    return [path, '-c', _RUN, module, str(Path(__file__).parents[3])]


@cache
def _client_python(chosen: str) -> str:
    if chosen:
        if problem := _probed(chosen)[1]:
            raise ConfigError('carla9.python', f'{chosen}, {problem}',
                              'a Python 3.10 or later with carla, numpy and msgspec')
        return shutil.which(chosen) or chosen
    # Not imported: the library takes a second, and disturbs others.
    if find_spec('carla') is not None:
        return sys.executable
    for path in filter(None, map(shutil.which, _OTHERS)):
        if not _probed(path)[1]:
            return path
    with importing('source carla9'):
        raise ModuleNotFoundError("No module named 'carla'", name='carla')
    return ''


def _probed(program: str) -> tuple[str, str]:
    """Return the release of the client library of a Python, and what prevents its use, or ''."""
    try:
        output = subprocess.run([program, '-c', _PROBE], stdout=subprocess.PIPE, check=True,
                                stderr=subprocess.DEVNULL, timeout=_PROBE_S).stdout
        release, absent = json.loads(output)
    except (OSError, subprocess.SubprocessError, ValueError):
        return '', 'no Python that runs'
    return release, f'without {" and ".join(absent)}' if absent else ''


class Carla9Simulator(Simulator):
    """CARLA 0.9, through its client library, and its recorder logs."""

    name = 'carla9'
    parameters = Carla9Parameters
    is_paced = True
    takes_commands = True

    def address(self, settings: Settings) -> str:
        """Return host and port of the server."""
        own = settings.of(Carla9Parameters)
        return f'{own.host}:{own.port}'

    def check(self, settings: Settings) -> None:
        """Check that there is a client library, and what it can do."""
        own = settings.of(Carla9Parameters)
        client_command(own.python, '')
        if own.ackermann:
            if not is_release(release := client_release(own.python), FOLLOWING):
                raise ConfigError('carla9.ackermann', f"CARLA's client library {release}",
                                  'version 0.9.14 or later')
            if settings.control_input == 'vehicle_control':
                raise ConfigError('carla9.ackermann', 'true', 'a control_input with a speed: '
                                  'ackermann, autoware or twist')

    def follows_speed(self, settings: Settings) -> bool:
        """Return whether the controller of the server is used."""
        return settings.of(Carla9Parameters).ackermann

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """Make the source; it connects when its frames are iterated over."""
        from state_sensor_ros.simulators.carla9.source import Carla9Source, TickingSource
        kind = TickingSource if settings.of(Carla9Parameters).tick else Carla9Source
        return kind(settings, report, reconnect=reconnect)
