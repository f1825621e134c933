# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The Python that runs CARLA's client library, which may be another one than this.

The library has wheels for some versions of Python only. The other Python runs the package from
where it is installed here, with numpy and msgspec of its own.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
import json
from pathlib import Path
import shutil
import subprocess
import sys

from state_sensor_ros.simulators import ConfigError, importing

_LIBRARIES = ('carla', 'numpy', 'msgspec')
_OTHERS = ('python3.14', 'python3.13', 'python3.12', 'python3.11', 'python3.10', 'python3')
_PROBE_S = 20.0
_BROKEN = 'no Python that runs'
_PROBE = f"""
import json, sys
from importlib.util import find_spec
try:
    from importlib.metadata import version
    release = version('carla')
except ImportError:
    release = '?'
print(json.dumps([[name for name in {_LIBRARIES} if find_spec(name) is None], release,
                  sys.version_info >= (3, 10)]))
"""
# The folder of the package comes last: beside it may be libraries for this Python.
_RUN = """
import runpy, sys
module, folder = sys.argv[1:]
sys.path.append(folder)
runpy.run_module(module, run_name='__main__')
"""


def client_release(chosen: str) -> str:
    """
    Return the version of the client library, ``?`` if it is not known.

    :param chosen: parameter ``carla9.python``.
    :raises ConfigError: if that Python cannot be run, or lacks a library.
    :raises MissingLibraryError: if none is chosen, and none on the path has the library.
    """
    return _probed(_found(chosen))[0]


def client_command(chosen: str, module: str) -> list[str]:
    """
    Return the words that run a module of the package where the client library is.

    :param chosen: parameter ``carla9.python``.
    :param module: its full name.
    :raises StateSensorError: as :func:`client_release`.
    """
    path = _found(chosen)
    if path == sys.executable:
        return [path, '-m', module]
    return [path, '-c', _RUN, module, str(Path(__file__).parents[3])]


@cache
def _found(chosen: str) -> str:
    if chosen:
        _, problem = _probed(chosen)
        if problem:
            raise ConfigError('carla9.python', f'{chosen}, {problem}',
                              'a Python 3.10 or later with carla, numpy and msgspec')
        return shutil.which(chosen) or chosen
    # Not imported: the library takes a second, and disturbs others.
    if find_spec('carla') is not None:
        return sys.executable
    incomplete = ''
    for name in _OTHERS:
        if path := shutil.which(name):
            _, problem = _probed(path)
            if not problem:
                return path
            if problem != _BROKEN and 'carla' not in problem:
                incomplete = f'{name}, which has carla, but is {problem}'
    if incomplete:
        raise ConfigError('carla9.python', incomplete,
                          'a Python 3.10 or later with carla, numpy and msgspec')
    with importing('source carla9'):
        raise ModuleNotFoundError("No module named 'carla'", name='carla')
    return ''


def _probed(program: str) -> tuple[str, str]:
    """Return the release of the client library of a Python, and what prevents its use, or ''."""
    try:
        output = subprocess.run([program, '-c', _PROBE], stdout=subprocess.PIPE, check=True,
                                stderr=subprocess.DEVNULL, timeout=_PROBE_S).stdout
        absent, release, is_new = json.loads(output)
    except (OSError, subprocess.SubprocessError, ValueError):
        return '', _BROKEN
    if absent:
        return release, f'without {" and ".join(absent)}'
    return release, '' if is_new else 'older than 3.10'
