# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trajectory that was cut: each command uses the whole frames and prints one warning."""

import itertools
import json
import re

import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import generate

N_FRAMES = 6


def traffic():
    frames = json.loads(json.dumps(list(itertools.islice(
        generate(3, 2, 20.0, 3, 'v2'), N_FRAMES))))
    for frame in frames:
        frame['frame']['objects'][0]['name'] = 'Kegel "A" \\ 車'
    return frames


LINES = b'[\n' + b',\n'.join(json.dumps(frame, ensure_ascii=False).encode()
                             for frame in traffic()) + b'\n]\n'
INDENTED = json.dumps(traffic(), indent=4, ensure_ascii=False).encode() + b'\n'
BOM = b'\xef\xbb\xbf'


def cut_in(text, what, shift=0):
    """Cut inside the last ``what``, so that the last frame is not whole."""
    return text[:text.rindex(what) + shift]


CUTS = {
    'in a character': cut_in(LINES, '車'.encode(), 1),
    'in an escape': cut_in(INDENTED, b'\\"', 1),
    'in a name': cut_in(INDENTED, b'tags', 2),
    'in a number': cut_in(LINES, b'game_time', 13),
    'after a byte order mark': BOM + cut_in(LINES, b'orientation'),
    'before a comma': LINES[:LINES.rindex(b',\n{')],
    'after a comma': LINES[:LINES.rindex(b',\n{') + 2],
    'between frames': INDENTED[:INDENTED.rindex(b'    {\n        "') + 2],
    'before the bracket': LINES[:-2]}


@pytest.fixture(params=CUTS)
def cut(request, tmp_path):
    """Write a file that was cut; return its path and the number of its whole frames."""
    path = tmp_path / 'cut.json'
    path.write_bytes(CUTS[request.param])
    return path, N_FRAMES if request.param == 'before the bracket' else N_FRAMES - 1


def check_warning(errors, name, n_frames):
    """One warning names the end of the file, its whole frames and what is lost."""
    [line] = errors.splitlines()
    assert re.fullmatch(
        rf'warning: {re.escape(str(name))}: line \d+ column \d+: found the end of the file inside '
        rf'the array; {n_frames} whole frames; lost: (nothing but the end of the array|\d+ bytes '
        rf'of frame {n_frames}, begun at line \d+ column \d+); `state_sensor repair` .*', line)


def test_cut_trajectory_is_converted(cut, tmp_path, capsys):
    path, n_frames = cut
    for out in ('bag', 'out.json'):
        assert main(['convert', str(path), str(tmp_path / out)]) == 0
        check_warning(capsys.readouterr().err, path, n_frames)
    assert main(['convert', str(tmp_path / 'bag'), str(tmp_path / 'back.json')]) == 0
    assert capsys.readouterr().err == ''
    frames = json.loads((tmp_path / 'out.json').read_text())
    assert json.loads((tmp_path / 'back.json').read_text()) == frames
    assert [frame['game_time'] for frame in frames] == [
        frame['game_time'] for frame in traffic()[:n_frames]]


def test_cut_trajectory_is_inspected(cut, capsys):
    path, n_frames = cut
    assert main(['inspect', str(path)]) == 0
    printed = capsys.readouterr()
    check_warning(printed.err, path, n_frames)
    assert f'frames      {n_frames}, ' in printed.out
    assert 'ends inside the array: 1, first at line' in printed.out
    assert main(['inspect', str(path), '--json']) == 0
    printed = capsys.readouterr()
    check_warning(printed.err, path, n_frames)
    found = json.loads(printed.out)
    assert (found['frames'], found['refusal'], found['replayable']) == (n_frames, None, True)
    [anomaly] = [each for each in found['anomalies'] if each['kind'] == 'ends inside the array']
    assert anomaly['count'] == 1
    assert re.fullmatch(r'line \d+ column \d+', anomaly['place'])
    assert anomaly['text'].startswith(f'{n_frames} whole frames; lost: ')


@pytest.mark.parametrize('text', [
    b'', BOM, b'[', b'[\n  ', b'[{"game_time": 1.0', b'{"frame": [', b'{"vehicles": [{"a'])
@pytest.mark.parametrize('words', [['inspect'], ['convert', 'bag'], ['render', 'out.png'],
                                   ['simulate'], ['replay']], ids=lambda words: words[0])
def test_cut_trajectory_without_a_whole_frame_is_an_error(text, words, tmp_path, refusal):
    path = tmp_path / 'cut.json'
    path.write_bytes(text)
    command, *out = words
    line = refusal(command, path, *(tmp_path / name for name in out))
    assert line.startswith(f'error: {path}: ')
    assert [entry.name for entry in tmp_path.iterdir()] == ['cut.json']
