# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""One contract for every row of the table of formats."""

import csv
import json
import os
from pathlib import Path
import shutil
import signal
import subprocess

from budgets import AWAIT_S, one_of
import carla9_logs
from paths import CARLA, SAMPLE
from programs import start
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files import format_of, format_of_name, formats
from state_sensor_ros.files.search import find_recordings

READ = [each for each in formats() if each.reader]
WRITTEN = [each for each in formats() if each.writer]
N_FRAMES = 12
FCD_STEP = ('<timestep time="{0}"><vehicle id="a" x="{1}" y="0" angle="90" speed="20" type="t"/>'
            '<vehicle id="b" x="{1}" y="9" angle="90" speed="20" type="t"/></timestep>')

each_read = pytest.mark.parametrize('row', READ, ids=lambda row: row.name)
each_written = pytest.mark.parametrize('row', WRITTEN, ids=lambda row: row.name)
# What reads is the same for all of them.
some_written = pytest.mark.parametrize('row', one_of(WRITTEN, n_always=3),
                                       ids=lambda row: row.name)


@pytest.fixture(autouse=True)
def _libraries(row):
    for library in {'osi': ('osi3',), 'parquet': ('pyarrow',), 'csv': ('pyarrow',),
                    'picture': ('matplotlib',), 'animation': ('plotly',)}.get(row.name, ()):
        pytest.importorskip(library)


@pytest.fixture
def drive(row, tmp_path, monkeypatch):
    """Return a recording that can be written in a format, in the current folder."""
    monkeypatch.chdir(tmp_path)
    if row.name == 'dataset':
        assert main(['convert', str(CARLA), 'drive', '--quiet']) == 0
        return 'drive'
    assert main(['synth', 'drive.json', '--frames', str(N_FRAMES), '--quiet']) == 0
    return 'drive.json'


def name_of(row):
    return f'out{row.suffixes[0]}' if row.suffixes else 'out'


def ego_of(path):
    with sensor.open_recording(path) as recording:
        frame = next(iter(recording))
        return frame.names[frame.ego]


def names_in(path):
    """Return the names of the actors of each frame, None in the place of names in a trace."""
    found = format_of_name(path)
    if found is not None and found.name == 'csv':
        frames = {}
        with open(path, newline='') as file:
            for each in csv.DictReader(file):
                frames.setdefault(each['frame'], []).append(each['name'])
        return [set(names) for names in frames.values()]
    if found is not None and found.name == 'osi':
        from mcap.reader import make_reader
        with open(path, 'rb') as file:
            return [None for _ in make_reader(file).iter_messages()]
    with sensor.open_recording(path) as recording:
        return [set(frame.names) for frame in recording]


@each_written
def test_format_is_written_once_and_again_with_force(row, drive, capsys, refusal):
    out = name_of(row)
    assert main(['convert', drive, out]) == 0
    assert capsys.readouterr().out.startswith(f'{out}: ')
    before = len(names_in(out))
    assert before in (N_FRAMES, len(names_in(drive)))
    assert '--force replaces it' in refusal('convert', drive, out)
    assert len(names_in(out)) == before
    assert main(['convert', drive, out, '--force', '--quiet']) == 0
    output, _ = capsys.readouterr()
    assert output == ''
    assert len(names_in(out)) == before
    assert sorted(os.listdir()) == sorted([drive, out])


@each_written
def test_format_has_the_selected_frames_and_actors(row, drive, capsys):
    out, words = name_of(row), ['--start', '0.1', '--end', '0.4', '--rate', '10']
    if row.name != 'dataset':
        words += ['--actors', ego_of(drive), '--desired-tags', 'EGO']
    assert main(['convert', *words, drive, out]) == 0
    frames = names_in(out)
    with sensor.open_recording(drive) as recording:
        times = [frame.game_time for frame in recording]
    elapsed = [time - times[0] for time in times]
    within = [time for time in elapsed if 0.1 - 1e-4 <= time <= 0.4 + 1e-4]
    due = [time for i, time in enumerate(within)
           if not i or any(k * 0.1 - 1e-4 <= time - within[0] and within[i - 1] - within[0]
                           < k * 0.1 - 1e-4 for k in range(9))]
    assert len(frames) == len(due) < len(times)
    if row.name != 'dataset':
        assert all(names in (None, {ego_of(drive)}) for names in frames)


@some_written
def test_format_of_a_recording_that_was_cut(row, drive, capsys):
    if row.name == 'dataset':
        pytest.skip('a dataset is written from a bag')
    data = Path(drive).read_bytes()
    Path('cut.json').write_bytes(data[:-len(data) // 4])
    assert main(['convert', 'cut.json', name_of(row)]) == 0
    assert 'found the end of the file inside the array' in capsys.readouterr().err
    assert 6 <= len(names_in(name_of(row))) < N_FRAMES


@each_written
def test_format_that_is_interrupted_leaves_nothing(row, drive, tmp_path):
    if row.name == 'dataset':
        pytest.skip('a dataset is written from a bag')
    frames = json.dumps(json.loads(Path(drive).read_bytes()))[:-1].encode()
    folder = tmp_path / 'empty'
    folder.mkdir()
    with start('convert', '-', name_of(row), cwd=folder, stdin=subprocess.PIPE,
               text=False) as process:
        process.stdin.write(frames)
        process.stdin.flush()
        while not os.listdir(folder):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(AWAIT_S) == 130
    assert os.listdir(folder) == []


@pytest.fixture(scope='module')
def recordings(tmp_path_factory):
    """Return a function that makes a recording of a format, once, and returns its path."""
    folder = tmp_path_factory.mktemp('recordings')

    def made(row):
        out = folder / row.name / name_of(row)
        if out.parent.exists():
            return out
        out.parent.mkdir()
        if row.name == 'dataset':
            shutil.copytree(CARLA, out)
        elif row.name == 'fcd':
            steps = ''.join(FCD_STEP.format(i / 20, i) for i in range(8))
            out.write_text(f'<fcd-export>{steps}</fcd-export>')
        elif row.name == 'carla-log':
            out.write_bytes(carla9_logs.drive())
        else:
            assert main(['convert', str(SAMPLE), str(out), '--end', '1', '--quiet']) == 0
        return out

    return made


@pytest.fixture
def recording(row, recordings, tmp_path, monkeypatch):
    """Return the name of a recording of a format, alone in the current folder."""
    monkeypatch.chdir(tmp_path)
    made = recordings(row)
    shutil.copytree(made, made.name) if made.is_dir() else shutil.copy(made, made.name)
    return made.name


@each_read
def test_format_is_found_in_a_folder(row, recording):
    found = format_of(recording)
    assert found is row or {found.storage, row.storage} != {''}
    Path('none.xml').write_text('<package/>')
    Path('days').mkdir()
    for name in (recording, 'none.xml'):
        Path(name).rename(f'days/{name}')
    if row.name == 'parquet':
        # A table may be what a batch has written there.
        shutil.copy(SAMPLE, 'days/drive.json')
        recording = 'drive.json'
    [each] = find_recordings(['days'])
    assert (each.path, each.place) == (f'days/{recording}', recording.partition('.')[0])


@each_read
def test_format_is_read_as_selected(row, recording, capsys):
    with sensor.open_recording(recording) as opened:
        times, names = [frame.game_time for frame in opened], opened[0].names
    end = times[1] - times[0] + 1e-4
    # Without its ego it is not replayable.
    main(['inspect', recording, '--json', '--end', str(end), '--actors', names[0]])
    found = json.loads(capsys.readouterr().out)
    assert (found['frames'], [each['name'] for each in found['actors']]) == (2, [names[0]])


@each_read
def test_format_without_topics_refuses_one(row, recording, refusal):
    if row.storage or row.name.startswith('osi'):
        pytest.skip('a bag has topics')
    assert 'with the topic /x/frame' in refusal('inspect', recording, '--topic', '/x/frame')


@each_read
def test_format_that_is_another_one_is_refused(row, tmp_path, monkeypatch, refusal):
    monkeypatch.chdir(tmp_path)
    if not row.suffixes:
        Path('out').mkdir()
    for suffix in row.suffixes or ('',):
        for head, what in (('<html/>', ''), ('version https://git-lfs', 'git lfs pull'),
                           ('#ROSBAG V2.0', 'a bag of ROS 2')):
            if row.suffixes:
                Path(f'out{suffix}').write_text(f'{head}\n')
            error = refusal('inspect', f'out{suffix}')
            assert error.startswith(f'error: out{suffix}')
            assert 'expected' in error
            assert what in error or not row.suffixes


@pytest.mark.parametrize(('row', 'name', 'text'), [
    (WRITTEN[0], 'drive.parqet', "not the suffix of a format; did you mean '.parquet'?"),
    (WRITTEN[0], 'drive.jsn.gz', "not the suffix of a format; did you mean '.json.gz'?"),
    (WRITTEN[0], 'drive.CSVX', ".CSVX is not the suffix of a format; did you mean '.csv'?"),
    (WRITTEN[0], 'drive.xlsx', '.xlsx is not the suffix of a format; expected one of .json'),
    (WRITTEN[0], 'drive.xmm.gz', ".xmm.gz is not the suffix of a format; did you mean '.osi.gz'?"),
    (WRITTEN[0], 'drive.xml', "SUMO's FCD output can be read, but not written"),
    (WRITTEN[0], 'drive.png', '`state_sensor render` makes a picture')])
@pytest.mark.parametrize('command', ['convert', 'record', 'synth'])
def test_name_with_another_suffix_is_refused(tmp_path, refusal, command, row, name, text):
    words = [str(SAMPLE)] if command == 'convert' else []
    assert text in refusal(command, *words, tmp_path / name, code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize('row', [WRITTEN[0]])
@pytest.mark.parametrize('name', ['run', 'run.7', 'run.v1.5', 'run/', '.run'])
def test_name_without_suffix_is_that_of_a_bag(tmp_path, row, name):
    assert main(['convert', str(SAMPLE), f'{tmp_path}/{name}', '--end', '0']) == 0
    assert (tmp_path / name / 'metadata.yaml').is_file()


@pytest.mark.parametrize('row', [WRITTEN[0]])
@pytest.mark.parametrize('words', [
    ['convert', 'in.json', 'out.mcap', '--storage', 'sqlite3'],
    ['record', 'out', '--to', 'mcap', '--storage', 'sqlite3'],
    ['record', 'out.parquet', '--to', 'json'], ['record', 'out.db3', '--to', 'mcap']])
def test_contradiction_is_refused(tmp_path, monkeypatch, row, words):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert os.listdir() == []
