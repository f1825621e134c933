# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The command render, on files."""

from contextlib import suppress
import io
import json
import os
import re
import subprocess
import sys
import zlib

from budgets import AWAIT_S, first_of, one_of
from paths import SAMPLE
from PIL import Image
import pytest
from real_recordings import FILES, path_of

from state_sensor_ros.commands.cli import main

# Of pictures whose contents are not the point: drawn in a fraction of the time.
SMALL = ['--no-names', '--size', '3x3', '--dpi', '50', '--end', '0.6']


def picture_of(path):
    with Image.open(path) as picture:
        picture.load()
        return picture.format, picture.size


@pytest.mark.parametrize('options', one_of([['--color', 'actor'], [], ['--at', '2.5']]))
def test_render_draws_the_sample_as_png(tmp_path, options):
    out = tmp_path / 'out.png'
    assert main(['render', str(SAMPLE), str(out), '--end', '3', *options]) == 0
    file_format, (width, height) = picture_of(out)
    assert file_format == 'PNG'
    assert width == 1650
    assert 800 < height < 2500
    assert sorted(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(('name', 'begin'), first_of(n_always=2, cases=[
    ('out.svg', b'<?xml'), ('out.GIF', b'GIF89a'), ('out.pdf', b'%PDF'), ('out.mp4', b'')]))
def test_render_writes_vectors_and_films(tmp_path, name, begin):
    if name.endswith('mp4'):
        pytest.importorskip('av')
    out = tmp_path / name
    assert main(['render', str(SAMPLE), str(out), '--size', '4x3', '--no-names', '--start', '0.2',
                 '--end', '0.6']) == 0
    assert out.read_bytes().startswith(begin)
    assert out.stat().st_size > 4000


def test_render_takes_size_resolution_and_part_of_the_recording(tmp_path):
    out = tmp_path / 'out.png'
    assert main(['render', str(SAMPLE), str(out), '--end', '0', '--size', '5x4', '--dpi',
                 '80']) == 0
    assert picture_of(out) == ('PNG', (400, 320))
    whole, part = (tmp_path / name for name in ('whole.html', 'part.html'))
    assert main(['render', str(SAMPLE), str(whole)]) == 0
    assert main(['render', str(SAMPLE), str(part), '--start', '1', '--end', '2', '--actors',
                 'Misc_TrafficCone_0', '--no-names']) == 0
    texts = [path.read_text('utf-8') for path in (whole, part)]
    assert ['"names": true' in text for text in texts] == [True, False]
    assert '<p>v2  ·  21 frames  ·  1 s  ·  1 object</p>' in texts[1]


@pytest.mark.parametrize(('words', 'error'), [
    (['out.png', '--size', '4x'], "argument --size: '4x' is not W or WxH, such as 3.5x3"),
    (['out.png', '--size', 'nanx3'], 'argument --size: nanx3 is not between 2.8x2 and 200x200'),
    (['out.png', '--dpi', '5'], 'argument --dpi: found 5; expected a number from 10 to 1200'),
    (['out.bmp'], 'OUT out.bmp: .bmp is not the suffix of a format')])
def test_render_refuses_wrong_options(tmp_path, monkeypatch, capsys, words, error):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(['render', str(SAMPLE), *words])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('name', ['-', '/dev/full'])
@pytest.mark.parametrize('words', [['render', str(SAMPLE)], ['view', str(SAMPLE), '--save']],
                         ids=lambda words: words[0])
def test_picture_has_a_suffix(refusal, words, name):
    """Standard output and devices were taken for trajectories, with a traceback at the end."""
    assert f'OUT {name}: no suffix; expected one of .' in refusal(*words, name, code=2)


def test_picture_is_written_to_a_pipe(tmp_path):
    pipe, copy = tmp_path / 'pipe.png', tmp_path / 'copy.png'
    os.mkfifo(pipe)
    with copy.open('wb') as file, subprocess.Popen(['cat', pipe], stdout=file) as reader:
        assert main(['render', str(SAMPLE), str(pipe), '-q', *SMALL]) == 0
        assert reader.wait(AWAIT_S) == 0
    assert picture_of(copy)[0] == 'PNG'
    assert pipe.is_fifo()


@pytest.mark.parametrize(('words', 'width'), first_of([
    (['--size', '3x4', '--color', 'actor'], 3.0), ([], 3.5), (['--size', '7.16'], 7.16)]))
def test_render_writes_a_figure_of_a_paper(tmp_path, words, width):
    """Its fonts are embedded as TrueType, at the size of captions, Greek letters as well."""
    out = tmp_path / 'out.pdf'
    assert main(['render', str(SAMPLE), str(out), '--style', 'paper', '--title', 'Ω drive',
                 '--legend', '--end', '1', *words, '-q']) == 0
    written = out.read_bytes()
    fonts = re.findall(rb'/Type /Font\s(.*?)\nendobj', written, re.DOTALL)
    kinds = set(re.findall(rb'/Subtype /(\w+)', b' '.join(fonts)))
    assert kinds
    assert kinds <= {b'Type0', b'TrueType', b'CIDFontType2'}
    assert b'/Type3' not in written
    assert written.count(b'/FontFile2') >= 1
    [box] = re.findall(rb'/MediaBox \[([^]]*)\]', written)
    assert float(box.split()[2]) == pytest.approx(72.0 * width)
    pieces = re.findall(rb'stream\r?\n(.*?)\r?\nendstream', written, re.DOTALL)
    sizes = set()
    for piece in pieces:
        with suppress(zlib.error):
            sizes |= set(map(float, re.findall(rb'/F\d+ ([\d.]+) Tf', zlib.decompress(piece))))
    # Of the title, and of all other texts.
    assert {round(size, 1) for size in sizes} == {12.2, 8.0}


def test_render_animates_the_sample(tmp_path):
    out = tmp_path / 'out.HTML'
    assert main(['render', str(SAMPLE), str(out), '--title', 'My & drive']) == 0
    text = out.read_text('utf-8')
    assert text.startswith('<!DOCTYPE html>')
    assert '<h1>My &amp; drive</h1>' in text
    assert text.rstrip().endswith('</html>')


@pytest.mark.parametrize('name', one_of(FILES))
def test_render_draws_real_recordings(tmp_path, name):
    for suffix, words in (('png', SMALL), ('html', [])):
        out = tmp_path / f'out.{suffix}'
        assert main(['render', str(path_of(name)), str(out), *words]) == 0
        assert out.stat().st_size > 5000


def test_render_on_a_full_disk(tmp_path, capsys):
    out = tmp_path / 'out.png'
    out.symlink_to('/dev/full')
    assert main(['render', str(SAMPLE), str(out), *SMALL]) == 1
    assert capsys.readouterr().err == (
        f'error: {out}: no space left on device\n')


@pytest.mark.parametrize('out', one_of(['out.html', 'out.png']))
def test_render_refuses_a_time_outside_of_the_recording(tmp_path, capsys, out):
    source = tmp_path / 'drive.json'
    assert main(['synth', '-q', str(source), '--frames', '11']) == 0
    assert main(['render', str(source), str(tmp_path / out), '--at', '0.6']) == 1
    assert capsys.readouterr() == (
        '', ('error: --at: found 0.6 s; expected 0 to 0.5 s after the first drawn frame of '
             f'{source}\n'))
    assert list(tmp_path.iterdir()) == [source]
    assert main(['render', str(source), str(tmp_path / out), '--no-names', '--at', '0.5',
                 *(SMALL if out == 'out.png' else [])]) == 0


def test_render_draws_the_rest_of_a_recording_with_a_bad_frame(tmp_path, monkeypatch, capsys):
    """Also: it reads standard input."""
    frames = json.loads(SAMPLE.read_text())[:3]
    frames[1] = {'frame': 3}
    out = tmp_path / 'out.png'
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(frames).encode()))
    monkeypatch.setattr(sys, 'stdin', stdin)
    assert main(['render', '-', str(out), *SMALL]) == 0
    assert capsys.readouterr().err.startswith('warning: -: payload dropped: line 1')
    assert picture_of(out)[0] == 'PNG'
