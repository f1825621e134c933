# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part without ROS needs nothing of POSIX: as on Windows, in a Python without it."""

import importlib.util
import os

from paths import ROOT
from programs import run_python
import pytest

# What Windows does not have, and what it refuses.
HIDDEN = """
import os
import select
import signal
import stat
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in ('fcntl', 'termios', 'pwd', 'grp', 'tty', 'pty'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

sys.meta_path.insert(0, Blocker())
for name in ('fcntl', 'termios', 'pwd', 'grp'):
    sys.modules.pop(name, None)
for module, names in (
        (os, 'fork killpg getuid geteuid getpgid setsid sched_getaffinity mkfifo '
         'O_NOFOLLOW O_NONBLOCK O_CLOEXEC O_DIRECTORY fchmod pread preadv pwrite'),
        (signal, 'SIGHUP SIGKILL SIGSTOP SIGPIPE pthread_kill pthread_sigmask setitimer'),
        (select, 'poll epoll')):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
os_open, os_select = os.open, select.select

def open_file(path, flags, mode=0o777, *, dir_fd=None):
    assert dir_fd is None and not str(path).startswith('/proc')
    if os.path.isdir(path):
        raise PermissionError(13, 'Permission denied', str(path))
    return os_open(path, flags, mode)

def select_sockets(*lists):
    for item in (*lists[0], *lists[1], *lists[2]):
        number = item if isinstance(item, int) else item.fileno()
        if not stat.S_ISSOCK(os.fstat(number).st_mode):
            raise OSError(10038, 'not a socket')
    return os_select(*lists)

os.open, select.select = open_file, select_sockets
"""
LIBRARY = """
import state_sensor_ros as sensor
with sensor.open_recording('drive.json') as recording:
    assert len(list(recording)) == len(recording) == 8
    recording.safety(), recording.ego_track(), recording[-1]
    assert '<table>' in recording._repr_html_()
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a Python without POSIX, which must succeed."""
    (tmp_path / 'sitecustomize.py').write_text(HIDDEN)

    def started(*words):
        done = run_python(*words, cwd=tmp_path, timeout=540.0, env=os.environ | {
            'PYTHONPATH': f'{tmp_path}:{ROOT}:{os.environ.get("PYTHONPATH", "")}'})
        assert done.returncode == 0, done.stderr
        # What a table does not carry is named.
        assert not done.stderr or done.stderr.startswith('warning: drive.csv: ')
        return done.stdout
    return started


@pytest.mark.thorough
def test_part_without_ros_needs_no_posix(run, tmp_path):
    run('-m', 'state_sensor_ros', 'synth', 'drive.json', '--frames', '8')
    commands = [['inspect', 'drive.json']]
    for out in ('bag', 'bag.mcap', 'bag.db3', 'drive.json.gz', 'drive.csv'):
        # Replaced, as a user does it.
        commands += [['convert', 'drive.json', out], ['convert', '--force', 'drive.json', out],
                     ['inspect', out]]
    # A table in CSV is only written.
    del commands[-1]
    if importlib.util.find_spec('matplotlib'):
        commands.append(['render', 'drive.json', 'drive.png'])
    if importlib.util.find_spec('rerun'):
        commands.append(['view', 'drive.json', '--save', 'drive.rrd'])
    printed = run('-c', f'from state_sensor_ros.commands.cli import main\n'
                  f'assert not any([main(words) for words in {commands}])\n{LIBRARY}')
    assert printed.count('8 frames') >= 5
    for words in commands:
        assert (tmp_path / words[-1]).exists()
