# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Compressed and cut trajectories: written, and read by every command up to the last frame."""

import gzip
import json
import re

from budgets import one_of
from mock_simulator import served
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.input import zstd

N_FRAMES = 12
DECOMPRESS = {'.json.gz': gzip.decompress, '.json.zst': zstd.decompress}
COMPRESS = {'.json.gz': gzip.compress, '.json.zst': zstd.compress}
SUFFIXES = sorted(DECOMPRESS)


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / 'drive.json'
    assert main(['synth', str(path), '--frames', str(N_FRAMES), '--vehicles', '3']) == 0
    return path


@pytest.fixture(params=SUFFIXES)
def drive(request, plain):
    """Compress a trajectory by another library; return its path."""
    path = plain.with_suffix(request.param)
    path.write_bytes(COMPRESS[request.param](plain.read_bytes()))
    return path


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_compressed_trajectories_are_written(plain, suffix, tmp_path):
    out = tmp_path / f'out{suffix}'
    assert main(['convert', str(plain), str(out)]) == 0
    assert main(['convert', str(plain), str(tmp_path / 'out.json')]) == 0
    text = DECOMPRESS[suffix](out.read_bytes())
    assert text == (tmp_path / 'out.json').read_bytes()
    assert out.stat().st_size < len(text) / 3
    assert main(['synth', str(tmp_path / f'synth{suffix}'), '--frames', str(N_FRAMES),
                 '--vehicles', '3']) == 0
    assert DECOMPRESS[suffix]((tmp_path / f'synth{suffix}').read_bytes()) == plain.read_bytes()


def test_compressed_trajectories_are_read(drive, plain, tmp_path, capsys):
    assert main(['inspect', str(plain), '--json']) == 0
    expected = json.loads(capsys.readouterr().out)
    assert main(['inspect', str(drive), '--json']) == 0
    assert json.loads(capsys.readouterr().out) == {**expected, 'file': str(drive)}
    assert main(['convert', str(drive), str(tmp_path / 'back.json')]) == 0
    assert main(['convert', str(plain), str(tmp_path / 'same.json')]) == 0
    assert (tmp_path / 'back.json').read_bytes() == (tmp_path / 'same.json').read_bytes()
    assert main(['convert', str(drive), str(tmp_path / 'bag')]) == 0
    with sensor.open_recording(drive) as recording:
        assert [len(list(recording)), len(list(recording))] == [N_FRAMES, N_FRAMES]
    with served(None, port=0, control_port=0, on_sample=True) as simulator:
        assert main(['replay', str(drive), '--control-port', str(simulator.control_port),
                     '--port', str(simulator.port), '--rate', '0']) == 0
    assert capsys.readouterr().err == ''


@pytest.fixture(params=one_of(['.json', *SUFFIXES], n_always=2))
def cut(request, plain):
    """Write a trajectory, compressed in blocks or not, and cut it inside the last frame."""
    path, data = plain.with_suffix(request.param), plain.read_bytes()
    with {'.json': open, '.json.gz': gzip.open, '.json.zst': zstd.open}[request.param](
            path, 'wb') as file:
        file.write(data[:-1000])
        file.flush()
        file.write(data[-1000:])
    path.write_bytes(path.read_bytes()[:-120])
    return path


def test_cut_trajectories_are_read_with_one_warning(cut, tmp_path, capsys):
    def checked(words, out=''):
        assert main([*map(str, words)]) == 0
        printed = capsys.readouterr()
        [line] = printed.err.splitlines()
        assert line.startswith(f'warning: {cut}: ')
        assert f'{N_FRAMES - 1} whole frames; lost: ' in line
        assert out in printed.out
        return printed.out

    for words in (['convert', 'bag'], ['convert', 'out.json'], ['render', 'a.html']):
        checked([words[0], cut, tmp_path / words[1]])
    checked(['inspect', cut], 'ends inside the array: 1, first at line')
    found = json.loads(checked(['inspect', cut, '--json']))
    assert (found['frames'], found['refusal'], found['replayable']) == (N_FRAMES - 1, None, True)
    [anomaly] = found['anomalies']
    assert (anomaly['kind'], anomaly['count']) == ('ends inside the array', 1)
    assert re.fullmatch(r'line \d+ column \d+', anomaly['place'])
    assert main(['repair', str(cut), str(tmp_path / 'whole.json.gz')]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f'{tmp_path}/whole.json.gz: {N_FRAMES - 1} frames; lost: ')
    frames = json.loads(gzip.decompress((tmp_path / 'whole.json.gz').read_bytes()))
    assert len(frames) == N_FRAMES - 1


@pytest.mark.parametrize('command', ['inspect', 'simulate', 'convert'])
def test_damaged_compressed_trajectories_are_an_error(drive, tmp_path, refusal, command):
    data = bytearray(drive.read_bytes())
    middle = len(data) // 2
    data[middle:middle + 40] = b'x' * 40
    drive.write_bytes(data)
    out = [str(tmp_path / 'bag')] if command == 'convert' else []
    line = refusal(command, drive, *out)
    assert line.startswith(f'error: {drive}: ')
    assert '; expected ' in line
