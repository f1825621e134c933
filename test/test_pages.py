# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The blocks of the README and of all pages run as written, in the order of their page.

Those of a page run in one folder that is empty at first. A block that cannot run here has a
comment above it, which says what it needs; test_documents.py checks its names. Where the system
allows it a page has a network of its own, so that ports are free; elsewhere one page runs at a
time.
"""

from contextlib import contextmanager, nullcontext, suppress
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
import yaml

from state_sensor_ros.simulators import checked_settings  # noqa: I100

BLOCK = re.compile(r'(?:^<!-- (.*?) -->\n)?^```(\w+)\n(.*?)^```', re.MULTILINE | re.DOTALL)
UNTIL_CTRL_C = 'ends with Ctrl-C'
# What a block may need that this test has not.
ABSENT = {f'needs {what}' for what in (
    'a clone', 'a display', 'a map', 'a network', 'a simulator', 'a stack', 'CARLA', 'conda',
    'Docker', 'esmini', 'ROS 2')} | {UNTIL_CTRL_C}
# The tests are in an environment with all libraries.
INSTALLS = re.compile(r'^(pip install|python3 -m venv) .*\n', re.MULTILINE)
BLOCKS = {page.relative_to(ROOT).as_posix(): BLOCK.findall(page.read_text(encoding='utf-8'))
          for page in [ROOT / 'README.md', *sorted((ROOT / 'doc').rglob('*.md'))]}
# test_plug_in.py runs the blocks about plug-ins.
PAGES = [page for page, blocks in BLOCKS.items() if page != 'doc/design/extending.md'
         and any(language in ('sh', 'python') and mark not in ABSENT
                 for mark, language, _ in blocks)]
LIBRARIES = {'doc/guide/tables.md': 'duckdb', 'doc/guide/osi.md': 'osi3',
             'doc/guide/recordings.md': 'pyarrow', 'doc/guide/evaluation.md': 'trackeval',
             'doc/guide/perception.md': 'trackeval', 'doc/guide/viewer.md': 'rerun',
             'doc/guide/sumo.md': 'libsumo', 'doc/guide/safety.md': 'duckdb',
             'doc/reference/python.md': 'pyarrow'}
MADE = re.compile(r'^state_sensor (?:(?:convert|render|repair) .*? |record |synth |'
                  r'view .* --save )([\w/.]+)(?: +--?\w.*| +#.*| *&.*)?$', re.MULTILINE)
COMMANDS = f'#!/bin/sh\nexec "{sys.executable}" -m state_sensor_ros "$@"\n'
# The node as a user starts and ends it: Ctrl-C as soon as it looks for its source.
NODE = f"""#!{sys.executable}
import os, re, signal, subprocess, sys
node = subprocess.Popen([sys.executable, {str(ROOT / 'scripts' / 'state_sensor_node')!r},
                         *sys.argv[1:]], stderr=subprocess.PIPE, text=True,
                        start_new_session=True)
for line in node.stderr:
    sys.stderr.write(line)
    if re.search(r'\\]: (connect|play|listen|wait|start)', line):
        break
else:
    sys.exit(node.wait() or 1)
os.killpg(node.pid, signal.SIGINT)
sys.stderr.write(node.communicate()[1])
sys.exit(node.returncode)
"""
# Brings up the loopback of a new network namespace (SIOCSIFFLAGS, IFF_UP), then becomes bash.
ENTER = ('import fcntl, os, socket, struct, sys\n'
         'fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 1))\n'
         'os.execvp("bash", ["bash", "-exc", sys.argv[1]])')
SENSOR_PORT = 8700
ESTABLISHED = '01'


@contextmanager
def alone_on_the_ports():
    """Wait until no other process of the tests runs a page."""
    with (Path(tempfile.gettempdir()) / f'state_sensor_pages.{os.getuid()}').open('w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def network_of(process):
    return os.readlink(f'/proc/{process}/ns/net')


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a script with the programs in its path."""
    own_network = ['unshare', '--user', '--map-root-user', '--net', sys.executable, '-c', ENTER]
    is_allowed = shutil.which('unshare') and not subprocess.run(
        [*own_network, 'true'], capture_output=True, check=False).returncode
    shell = own_network if is_allowed else ['bash', '-exc']
    programs = tmp_path / 'bin'
    programs.mkdir()
    for name, text in (('state_sensor', COMMANDS), ('state_sensor_node', NODE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    started = []

    def run(script, folder):
        environment = os.environ | {
            'PATH': f'{programs}:{os.environ["PATH"]}',
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
            # Those in the background, too.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


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


def script_of(page):
    """Return the shell script of the blocks of a page that can run here."""
    parts = []
    for mark, language, text in BLOCKS[page]:
        assert mark in {'', *ABSENT}, f'{page}: {mark}'
        if language == 'yaml' and 'ros__parameters' in text:
            [parameters] = yaml.safe_load(text).values()
            checked_settings(parameters['ros__parameters'])
        if mark not in ABSENT:
            parts.append(INSTALLS.sub('', text) if language == 'sh' else
                         f"'{sys.executable}' - <<'END'\n{text}END\n"
                         if language == 'python' else '')
    return '\n'.join(parts)


def test_blocks_of_all_pages_run_or_say_what_they_need():
    for page in BLOCKS:
        commands = [line for line in script_of(page).splitlines() if line.startswith('ros2 ')]
        assert commands == [], f'{page}: needs ROS 2'


@pytest.mark.parametrize('page', one_of(PAGES, n_always=2))
def test_blocks_of_a_page_run_in_order_in_an_empty_folder(page, start, tmp_path, request,
                                                          monkeypatch):
    pytest.importorskip(LIBRARIES.get(page, 'numpy'))
    script = script_of(page)
    if 'state_sensor_node' in script:
        pytest.importorskip('rclpy')
        monkeypatch.setenv('ROS_DOMAIN_ID', str(request.getfixturevalue('domain')))
    folder = tmp_path / 'empty'
    folder.mkdir()
    process, output = start(script, folder)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=2 * AWAIT_S)
    assert process.poll() == 0, output.read_text()
    assert 'error:' not in output.read_text()
    for name in MADE.findall(script):
        assert (folder / name).exists(), f'{name}\n{output.read_text()}'


@pytest.mark.parametrize('script', [text for blocks in BLOCKS.values()
                                    for mark, _, text in blocks if mark == UNTIL_CTRL_C])
def test_block_connects_and_ends_with_ctrl_c(script, domain, start, monkeypatch):
    if not list(ROOT.glob('install/*/package.stamp')):
        pytest.skip('built in a workspace, not by `make setup`')
    monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
    process, output = start(script, ROOT)
    wait_until_connected(SENSOR_PORT, process, output)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(timeout=AWAIT_S) == 0, output.read_text()
    assert 'error' not in output.read_text().lower()
