# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Build wheel and source distribution, check them, and try each in empty environments.

The environments are those of the Pythons 3.10 and newer that are on this machine.
"""
from __future__ import annotations

from email import message_from_string
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from release_check import ROOT, VERSION

DIST = ROOT / 'dist'
TOOLS = ROOT / '.venv-release'
REQUIREMENTS = ROOT / 'requirements' / 'release.txt'
MINORS = range(10, 15)
# What a source distribution has beside the package.
IN_SOURCE = ('CHANGELOG.rst', 'LICENSE', 'README.md', 'doc/index.md', 'package.xml',
             'resource/sample.v2.json', 'test/conftest.py')
# Reads the sample that comes with the package.
TRIAL = """
from state_sensor_ros import open_recording
from state_sensor_ros.share import share_file
with open_recording(share_file('resource', 'sample.v2.json')) as recording:
    print(len(recording), 'frames')
"""


def main() -> int:
    """
    Build, check and try.

    :returns: exit code.
    """
    tool = _tools()
    shutil.rmtree(DIST, ignore_errors=True)
    _run([tool, '-m', 'build', '--outdir', DIST, ROOT])
    wheel = DIST / f'state_sensor_ros-{VERSION}-py3-none-any.whl'
    source = DIST / f'state_sensor_ros-{VERSION}.tar.gz'
    _run([tool, '-m', 'twine', 'check', '--strict', wheel, source])
    _check_contents(wheel, source)
    pythons = _pythons()
    for minor, python in pythons.items():
        for distribution in (wheel, source):
            _try(python, distribution)
            print(f'dist: {distribution.name} installed and tried with Python 3.{minor}',
                  flush=True)
    missing = [f'3.{minor}' for minor in MINORS if minor not in pythons]
    if missing:
        print(f'dist: not tried with Python {", ".join(missing)}: not on this machine')
    print(f'dist: {wheel.relative_to(ROOT)} ({wheel.stat().st_size / 1e6:.1f} MB), '
          f'{source.relative_to(ROOT)} ({source.stat().st_size / 1e6:.1f} MB)')
    return 0


def _tools() -> Path:
    python = TOOLS / 'bin' / 'python3'
    stamp = TOOLS / 'requirements.txt'
    if not stamp.is_file() or stamp.read_bytes() != REQUIREMENTS.read_bytes():
        print('dist: installing the release tools into .venv-release', flush=True)
        _run([sys.executable, '-m', 'venv', '--clear', TOOLS])
        _run([python, '-m', 'pip', 'install', '-q', '--disable-pip-version-check', '-r',
              REQUIREMENTS])
        shutil.copyfile(REQUIREMENTS, stamp)
    return python


def _check_contents(wheel: Path, source: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        samples = [name for name in names if name.endswith('sample.v2.json')]
        _expect(len(samples) == 1,
                f'{wheel.name}: found {len(samples)} copies of the sample; expected 1')
        metadata = next(name for name in names if name.endswith('.dist-info/METADATA'))
        message = message_from_string(archive.read(metadata).decode())
    text = message.get_payload()
    relative = re.findall(r'\]\((?!https?:|#)[^)]*\)', text)
    _expect(bool(text.strip()), f'{wheel.name}: found no description; expected the README')
    _expect(not relative, f'{wheel.name}: found the relative links {relative} in the description; '
                          'PyPI has no other files of this repository')
    with tarfile.open(source) as archive:
        held = {name.partition('/')[2] for name in archive.getnames()}
    missing = [name for name in IN_SOURCE if name not in held]
    _expect(not missing, f'{source.name}: found no {", ".join(missing)}')


def _pythons() -> dict[int, str]:
    found = {sys.version_info[1]: sys.executable}
    for minor in MINORS:
        python = shutil.which(f'python3.{minor}')
        # A shim of pyenv is there for versions that are not selected, too.
        if python and minor not in found:
            done = subprocess.run([python, '-c', 'import venv, ensurepip'], capture_output=True,
                                  check=False)
            if done.returncode == 0:
                found[minor] = python
    return dict(sorted(found.items()))


def _try(python: str, distribution: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _run([python, '-m', 'venv', folder])
        bin_folder = Path(folder) / 'bin'
        _run([bin_folder / 'python3', '-m', 'pip', 'install', '-q', '--disable-pip-version-check',
              distribution])
        shown = _run([bin_folder / 'state_sensor', '--version'], folder)
        _expect(shown == f'state_sensor {VERSION}\n',
                f'{distribution.name}: found {shown!r} for --version; expected {VERSION}')
        _run([bin_folder / 'python3', '-c', TRIAL], folder)


def _run(words: list[str | Path], folder: str | Path = ROOT) -> str:
    # Without the packages of a shell that has sourced scripts/env.sh.
    clean = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    done = subprocess.run([str(word) for word in words], cwd=folder, capture_output=True,
                          text=True, check=False, env=clean)
    _expect(done.returncode == 0, f'{" ".join(map(str, words))}: exit code {done.returncode}\n'
                                  f'{done.stdout}{done.stderr}')
    return done.stdout


def _expect(is_so: bool, text: str) -> None:
    if not is_so:
        print(f'dist: {text}', file=sys.stderr)
        sys.exit(1)


if __name__ == '__main__':
    sys.exit(main())
