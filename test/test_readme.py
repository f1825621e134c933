# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The shell blocks of the README and of pages about conversions, run as written.

An HTML comment above a block names what it needs; without one it runs in an empty folder and ends
by itself. Where the system allows it a block has a network of its own, so that ports are free;
elsewhere one block runs at a time.
"""

from contextlib import contextmanager, nullcontext
import fcntl
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from budgets import AWAIT_S, one_of
from paths import ROOT
import pytest
from stopwatch import until

# `make dist` tries the installation.
BLOCKS = re.findall(r'(?:<!-- (.*?) -->\n)?```sh\n(?:pip install .*?\n)?(.*?)```',
                    (ROOT / 'README.md').read_text(encoding='utf-8'), re.DOTALL)
RUN_ALONE, UNTIL_CTRL_C = '', 'ends with Ctrl-C'
# Of other pages: the heading above a block, and the library that it needs besides. Such a block
# runs in a folder with recordings, or makes its own. Lines that need a package index, a simulator
# or an encoder of films are omitted; test_documents.py checks their options.
PAGES = (('guide/tables.md', 'Tables', 'pyarrow'), ('guide/osi.md', 'ASAM OSI', 'osi3'),
         ('guide/recordings.md', 'Make and inspect', 'pyarrow'),
         ('guide/recordings.md', 'Serve, record, replay', 'numpy'),
         ('guide/recordings.md', 'Many recordings', 'pyarrow'),
         ('guide/perception.md', 'Imperfect perception', 'trackeval'),
         ('guide/viewer.md', 'A file', 'rerun'), ('guide/sumo.md', 'SUMO', 'libsumo'),
         ('guide/evaluation.md', 'Evaluating a stack', 'trackeval'))
NOT_RUN = re.compile(r'pip install|state_sensor_node|\.mp4')
MADE = re.compile(r'^state_sensor (?:convert .*? (\S+?)(?: +--.*| +#.*)?$|record (\S+)|'
                  r'view .* --save (\S+)|synth (\S+))', re.MULTILINE)
RECORDINGS = ('state_sensor synth drive.json --frames 20 --vehicles 3\n'
              'mkdir drives more\n'
              'cp drive.json drives\n'
              'gzip -c drive.json > more/other.json.gz\n')
# Brings up the loopback of a new network namespace (SIOCSIFFLAGS, IFF_UP), then becomes bash.
ENTER = ('import fcntl, os, socket, struct, sys\n'
         'fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))\n'
         'os.execvp("bash", ["bash", "-ec", sys.argv[1]])')
SENSOR_PORT = 8700
ESTABLISHED = '01'


@contextmanager
def alone_on_the_ports():
    """Wait until no other process of the tests runs a block."""
    with (Path(tempfile.gettempdir()) / f'state_sensor_readme.{os.getuid()}').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def network_of(process):
    return os.readlink(f'/proc/{process}/ns/net')


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a script with ``state_sensor`` in its path."""
    own_network = ['unshare', '--user', '--map-root-user', '--net', sys.executable, '-c', ENTER]
    is_allowed = shutil.which('unshare') and not subprocess.run(
        [*own_network, 'true'], capture_output=True, check=False).returncode
    shell = own_network if is_allowed else ['bash', '-ec']
    program = tmp_path / 'bin' / 'state_sensor'
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m state_sensor_ros "$@"\n')
    program.chmod(0o755)
    started = []

    def run(script, folder):
        environment = os.environ | {
            'PATH': f'{program.parent}:{os.environ["PATH"]}',
            'PYTHONPATH': f'{ROOT}:{os.environ.get("PYTHONPATH", "")}'}
        with (tmp_path / 'output').open('w') as output:
            started.append(subprocess.Popen([*shell, script], cwd=folder, env=environment,
                                            stdout=output, stderr=output, start_new_session=True))
        # Until then its connections are those of the other programs of this machine.
        while is_allowed and started[-1].poll() is None and (
                network_of('self') == network_of(started[-1].pid)):
            time.sleep(0.01)
        return started[-1], tmp_path / 'output'

    with nullcontext() if is_allowed else alone_on_the_ports():
        yield run
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def block_of(page, heading, language):
    """Return the first block below a heading of a page in doc/."""
    text = (ROOT / 'doc' / page).read_text(encoding='utf-8')
    return re.search(rf'^#+ {heading}\n(?:(?!^#+ ).)*?```{language}\n(.*?)```', text,
                     re.MULTILINE | re.DOTALL)[1]


def connected_to(port, process):
    """Whether a connection to ``port`` exists in the network of ``process``."""
    lines = Path(f'/proc/{process.pid}/net/tcp').read_text().splitlines()[1:]
    return any(line.split()[2].endswith(f':{port:04X}') and line.split()[3] == ESTABLISHED
               for line in lines)


def wait_until_connected(port, process, output):
    def is_connected():
        assert process.poll() is None, output.read_text()
        return connected_to(port, process)

    until(is_connected, f'a connection to {port}')


@pytest.mark.parametrize('script', one_of([
    script for mark, script in BLOCKS if mark == RUN_ALONE]))
def test_readme_block_runs_as_written(script, start, tmp_path):
    folder = tmp_path / 'empty'
    folder.mkdir()
    process, output = start(script, folder)
    assert process.wait(timeout=300) == 0, output.read_text()
    assert 'error:' not in output.read_text()
    for name in re.findall(r'^state_sensor (?:synth|record) (\S+)', script, re.MULTILINE):
        assert (folder / name).stat().st_size > 2


@pytest.mark.thorough
@pytest.mark.parametrize(('page', 'heading', 'library'), PAGES)
def test_block_of_a_page_runs_as_written(page, heading, library, start, tmp_path):
    pytest.importorskip(library)
    script = '\n'.join(line for line in block_of(page, heading, 'sh').splitlines()
                       if not NOT_RUN.search(line))
    has_own = 'state_sensor synth drive.json' in script
    process, output = start(script if has_own else RECORDINGS + script, tmp_path)
    assert process.wait(timeout=300) == 0, output.read_text()
    assert 'error:' not in output.read_text()
    made = [''.join(names) for names in MADE.findall(script)]
    assert made
    for name in made:
        assert (tmp_path / name).exists(), name


def test_block_of_the_library_runs_as_written(start, tmp_path):
    (tmp_path / 'block.py').write_text(block_of('reference/python.md', 'Python library', 'python')
                                       + 'print(table.num_rows)\n')
    # The mock server ends the stream after the recording; it sends nothing before that.
    process, output = start(
        f'{RECORDINGS}state_sensor simulate drive.json --rate max > listening &\n'
        'until grep -q listening listening; do sleep 0.05; done\n'
        f'{sys.executable} block.py\n'
        'wait $!', tmp_path)
    assert process.wait(timeout=300) == 0, output.read_text()
    # Rows of 20 frames with 3 vehicles and 9 other objects.
    assert output.read_text().splitlines()[-1] == '240'


@pytest.mark.parametrize('script', [script for mark, script in BLOCKS if mark == UNTIL_CTRL_C])
def test_readme_block_connects_and_ends_with_ctrl_c(script, domain, start, monkeypatch):
    if not list(ROOT.glob('install/*/package.stamp')):
        pytest.skip('built in a workspace, not by `make setup`')
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    process, output = start(script, ROOT)
    wait_until_connected(SENSOR_PORT, process, output)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=AWAIT_S) == 0, output.read_text()
    assert 'error' not in output.read_text().lower()
