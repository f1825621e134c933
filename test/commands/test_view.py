# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor view`: where the frames go, wrong options, signals, full disks, hostile input."""

from contextlib import suppress
from importlib.util import find_spec
from itertools import count
import json
import os
from pathlib import Path
import re
import select
import signal
import socket
import subprocess
from urllib.error import HTTPError
from urllib.request import urlopen

from blocked_modules import environment_without
from budgets import AWAIT_S, one_of
from paths import CARLA, SAMPLE
from ports import free_port
from programs import lines_of, run_cut_short, run_python, start
import pytest
from rrd_scene import read_scene
from scripted_simulator import frame, InBackground, ScriptedSimulator

from state_sensor_ros.commands.cli import main

# Without it, the command ends, and the simulator of a test waits for it. Not imported by each
# process that collects the tests.
pytestmark = pytest.mark.skipif(find_spec('rerun') is None, reason='needs rerun')


def code_of(*words):
    try:
        return main(['view', *map(str, words)])
    except SystemExit as end:
        return end.code


@pytest.mark.thorough
def test_view_writes_a_file_as_a_whole(tmp_path, capsys):
    out = tmp_path / 'drive.rrd'
    assert code_of(SAMPLE, '--save', out) == 0
    assert re.fullmatch(rf'{out}: 160 frames, 7.95 s, 22 actors, [0-9.]+ [kM]B\n',
                        capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == [out]
    before = out.read_bytes()
    assert code_of(SAMPLE, '--save', out) == 1
    assert 'a file of that name exists' in capsys.readouterr().err
    assert out.read_bytes() == before
    assert code_of(SAMPLE, '--save', out, '--force', '--end', '1', '--desired-tags', 'ego') == 0
    scene = read_scene(out)
    assert sorted(scene['/world/ego'].rows) == list(range(21))
    assert '/world/vehicles' not in {path for path, entity in scene.items() if entity.rows}


@pytest.mark.parametrize(('words', 'error'), [
    ((SAMPLE, '--save', 'out.png'), '`state_sensor render` makes a picture'),
    ((SAMPLE, '--save', 'out.rdr'), ".rdr is not the suffix of a format; did you mean '.rrd'?"),
    ((SAMPLE, '--save', 'a.rrd', '--web'), 'not allowed with argument')])
def test_view_refuses_wrong_and_unused_options(tmp_path, monkeypatch, capsys, words, error):
    monkeypatch.chdir(tmp_path)
    assert code_of(*words) == 2
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_view_notes_what_is_dropped(tmp_path, capsys):
    source, out = tmp_path / 'in.json', tmp_path / 'out.rrd'
    frames = json.loads(SAMPLE.read_text('utf-8'))[:6]
    vehicle = frames[3]['frame']['vehicles'][2]['state']
    vehicle['odometry']['pose']['position'] = 'nowhere'
    source.write_text(json.dumps(frames), 'utf-8')
    assert code_of(source, '--save', out) == 0
    assert 'dropped' in capsys.readouterr().err
    notes = read_scene(out)['/notes'].rows
    assert any('dropped' in row['TextLog:text'][0] for row in notes.values())


def test_view_without_its_library_is_one_line(tmp_path):
    done = run_python('-m', 'state_sensor_ros', 'view', SAMPLE,
                      env=environment_without('rerun', tmp_path))
    assert (done.returncode, done.stdout) == (1, '')
    [line] = done.stderr.splitlines()
    assert line.startswith('error: state_sensor view: found no module rerun; expected ')


def test_view_on_a_full_disk_is_one_line_and_leaves_nothing(tmp_path):
    ended = run_cut_short('view', SAMPLE, '--save', tmp_path / 'out.rrd', folder=tmp_path,
                          limit=20_000)
    assert ended.code == 1, ended.errors
    assert ended.errors == f'error: {tmp_path}/out.rrd: file too large\n'
    assert list(tmp_path.iterdir()) == []


def test_view_without_a_viewer_is_one_line_at_once(capsys):
    port = free_port()
    assert code_of(SAMPLE, '--no-spawn', '--viewer-port', port) == 1
    assert capsys.readouterr().err == (
        f'error: 127.0.0.1:{port}: no viewer is open; without '
        '--no-spawn the command opens one\n')


def test_view_connects_to_viewers_only(capsys):
    with socket.create_server(('127.0.0.1', 0)) as server:
        port = server.getsockname()[1]

        def refuse():
            with suppress(OSError):
                while True:
                    server.accept()[0].close()

        with InBackground(refuse):
            assert code_of(SAMPLE, '--no-spawn', '--viewer-port', port) == 1
            server.shutdown(socket.SHUT_RDWR)
    assert capsys.readouterr().err == (f'error: 127.0.0.1:{port}: the program on this port '
                                       'is not a viewer; choose another --viewer-port\n')


def test_view_without_a_display_names_the_ways_without_one():
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('DISPLAY', 'WAYLAND_DISPLAY', 'WAYLAND_SOCKET')}
    done = run_python('-m', 'state_sensor_ros', 'view', SAMPLE, '--viewer-port', free_port(),
                      env=environment)
    assert (done.returncode, done.stdout) == (1, '')
    [line] = done.stderr.splitlines()
    assert line.startswith('error: viewer: cannot start: ')
    assert line.endswith('use --web for a browser or --save OUT.rrd for a file')


class Served:
    """A run of `view --web`."""

    def __init__(self, *words):
        self.process = start('view', *words, '--web', is_new=True)
        line = self.line()
        self.address = re.fullmatch('the page of the viewer: (http://127.0.0.1:.*)\n', line)[1]

    def line(self):
        return self.process.stdout.readline()

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        errors = self.process.communicate(timeout=AWAIT_S)[1]
        return self.process.returncode, errors


def children_of(process):
    return Path(f'/proc/{process.pid}/task/{process.pid}/children').read_text().split()


def listeners(process):
    """Return the addresses that the children of a process listen on."""
    children = children_of(process)
    assert children
    shown = subprocess.run(['ss', '-Hltnp'], text=True, capture_output=True, check=True).stdout
    return [line.split()[3] for line in shown.splitlines()
            if any(f'pid={child},' in line for child in children)]


@pytest.mark.parametrize('number', one_of([signal.SIGINT, signal.SIGTERM]))
def test_view_serves_a_page_to_this_machine_only_until_a_signal(number):
    served = Served(CARLA)
    try:
        assert served.line() == 'carla: 12 frames, 1.1 s, 11 actors, in the viewer\n'
        with urlopen(served.address, timeout=AWAIT_S) as reply:
            text, headers = reply.read(), reply.headers
        assert b'rerun' in text.lower()
        # A browser then sends no reports to other machines.
        connect = re.search('connect-src ([^;]*)', headers['Content-Security-Policy'])[1]
        assert re.fullmatch(r"'self' data: blob: http://127\.0\.0\.1:\d+", connect)
        with pytest.raises(HTTPError, match='404'):
            urlopen(served.address.replace('/?', '/none?'), timeout=AWAIT_S)
        found = listeners(served.process)
        assert found
        assert all(address.startswith('127.0.0.1:') for address in found)
        [child] = children_of(served.process)
    finally:
        code, errors = served.stop(number)
    assert (code, errors) == (0, '')
    assert not Path(f'/proc/{child}').exists()
    with pytest.raises(OSError, match='refused'):
        urlopen(served.address, timeout=AWAIT_S)


@pytest.mark.thorough
def test_view_shows_frames_in_a_viewer_that_is_open(capsys):
    served = Served(SAMPLE)
    try:
        served.line()
        port = re.search(r'%3A(\d+)%2F', served.address)[1]
        assert code_of(CARLA, '--no-spawn', '--viewer-port', port) == 0
        assert capsys.readouterr().out == 'carla: 12 frames, 1.1 s, 11 actors, in the viewer\n'
    finally:
        served.stop()


def sending(peer, n_frames):
    def work():
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        for i in range(n_frames):
            peer.emit(frame(i))

    return InBackground(work)


def test_view_saves_a_live_stream_until_its_end(tmp_path, capsys):
    out = tmp_path / 'live.rrd'
    with ScriptedSimulator() as peer, sending(peer, 20):
        assert code_of('--port', peer.port, '--save', out, '--frames', 15) == 0
    assert '15 frames' in capsys.readouterr().out
    scene = read_scene(out)
    assert max(number for entity in scene.values() for number in entity.rows) == 14


def test_view_keeps_the_frames_of_a_live_stream_at_a_signal(tmp_path):
    out = tmp_path / 'live.rrd'
    with ScriptedSimulator() as peer:
        process = start('view', '--port', peer.port, '--save', out, is_new=True)
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        part = wait_for_part(tmp_path, process, peer)
        assert part.name.endswith('.part')
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=AWAIT_S)
    assert (process.returncode, lines_of(errors)) == (0, [])
    assert 'frames' in output
    assert read_scene(out)


def wait_for_part(folder, process, peer):
    """Send frames; return the part once it grows: its beginning is there before the first one."""
    begun, numbers = {}, count()
    while True:
        assert process.poll() is None
        peer.emit(frame(next(numbers)))
        for path in folder.iterdir():
            n_bytes = path.stat().st_size
            if n_bytes > 5000 and n_bytes > begun.setdefault(path, n_bytes):
                return path
        select.select([], [], [], 0.01)


@pytest.mark.thorough
def test_view_ends_when_its_viewer_is_closed():
    with ScriptedSimulator() as peer:
        served = Served('--port', str(peer.port))
        peer.wait_for(lambda p: 'sensor opened' in p.events)
        [child] = children_of(served.process)
        os.kill(int(child), signal.SIGKILL)
        i = 0
        while served.process.poll() is None:
            peer.emit(frame(i))
            i += 1
            select.select([], [], [], 0.05)
        assert lines_of(served.process.communicate()[1]) == ['the viewer was closed']
        assert served.process.returncode == 0
