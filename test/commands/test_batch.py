# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Many recordings: layout, resumption, failures, and a cluster that loses a worker."""

from argparse import Namespace
import contextlib
import json
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import time

from budgets import AWAIT_S
from paths import CARLA, SAMPLE
from process_state import children
from programs import ENVIRONMENT
import pytest
from stopwatch import until

import state_sensor_ros as sensor  # noqa: I100
from state_sensor_ros.commands import batch, parameters
from state_sensor_ros.commands.cli import main
from state_sensor_ros.files.output import WholeFile

FAILED = 'bad.json', 'day1/empty.json', 'fcd.xml', 'x.osi.xz'


@pytest.fixture(scope='module')
def made(tmp_path_factory):
    """Make a folder of recordings of several formats, with one that is damaged."""
    folder = tmp_path_factory.mktemp('made') / 'drives'
    (folder / 'day1').mkdir(parents=True)
    (folder / '.hidden').mkdir()
    for i, place in enumerate(('a.json', 'day1/b.json.gz', 'day1/c.json')):
        assert main(['synth', str(folder / place), '--frames', '5', '--vehicles', '2',
                     '--seed', str(i + 1)]) == 0
    assert main(['convert', str(folder / 'a.json'), str(folder / 'day1' / 'bag'), '--quiet']) == 0
    shutil.copytree(CARLA / 'episode_00000', folder / 'town')
    (folder / '.hidden' / 'x.json').write_text('[]')
    (folder / 'notes.txt').write_text('no recording')
    return folder


@pytest.fixture
def drives(made, tmp_path):
    """Return a copy of the recordings."""
    return shutil.copytree(made, tmp_path / 'drives')


def tree(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob('*')
                  if path.is_file())


@pytest.mark.thorough
def test_many_recordings_keep_their_layout(drives, tmp_path, capsys):
    out = tmp_path / 'out'
    capsys.readouterr()
    assert main(['convert', str(drives), str(out), '--to', 'parquet', '--jobs', '2']) == 0
    assert tree(out) == ['a.parquet', 'day1/b.parquet', 'day1/bag.parquet', 'day1/c.parquet',
                         'town.parquet']
    assert capsys.readouterr().out.startswith(
        f'{out}: 5 recordings converted, 0 already up to date')
    table = sensor.read_table(out / 'day1' / 'b.parquet')
    assert table.num_rows == sensor.read_table(drives / 'day1' / 'b.json.gz').num_rows


@pytest.mark.thorough
def test_many_recordings_are_resumed(drives, tmp_path, capsys):
    out = tmp_path / 'out'
    words = ['convert', str(drives / 'day1' / '*.json*'), str(drives / 'a.json'), str(out), '--to',
             'json']
    capsys.readouterr()
    assert main(words) == 0
    assert tree(out) == ['a.json', 'b.json', 'c.json']
    assert '3 recordings converted, 0 already up to date' in capsys.readouterr().out
    before = (out / 'a.json').stat().st_mtime_ns
    assert main(words) == 0
    assert '0 recordings converted, 3 already up to date' in capsys.readouterr().out
    (out / 'b.json').unlink()
    os.utime(drives / 'day1' / 'c.json')
    assert main(words) == 0
    assert '2 recordings converted, 1 already up to date' \
        in capsys.readouterr().out
    assert (out / 'a.json').stat().st_mtime_ns == before
    assert tree(out) == ['a.json', 'b.json', 'c.json']


def test_many_recordings_go_on_after_a_failure(drives, tmp_path, capsys):
    pytest.importorskip('google.protobuf')
    (drives / 'bad.json').write_text('[{"frame": x}]')
    (drives / 'day1' / 'empty.json').write_text('[]')
    # What SUMO leaves that could not start, and a trace in a compression that is not read.
    (drives / 'fcd.xml').touch()
    (drives / 'x.osi.xz').write_bytes(b'\xfd7zXZ\0')
    (drives / 'stdout.log').touch()
    out = tmp_path / 'out'
    capsys.readouterr()
    assert main(['convert', str(drives), str(out), '--to', 'mcap', '--jobs', '2']) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == (f'warning: {out}: ignored, because they are bags: '
                        f'{drives / "day1" / "bag"}')
    assert lines[-1] == (f'error: {out}: 4 of 8 converted; 4 failed: ' + ', '.join(
        str(drives / name) for name in FAILED))
    table = lines[lines.index(next(line for line in lines if line.startswith('failed '))) + 1:-1]
    assert [line.split('  ')[0] for line in table] == [
        str(drives / name) for name in FAILED]
    assert all('; expected ' in line for line in table)
    assert {name.partition('/')[0] for name in tree(out)} == {'a', 'day1', 'town'}
    assert not [name for name in tree(out) if '.part' in name]
    for bag in ('a', 'day1/b', 'day1/c', 'town'):
        with sensor.open_recording(out / bag) as recording:
            assert list(recording)


@contextlib.contextmanager
def running(*words, environment=ENVIRONMENT):
    """Run a command as a process, whose errors can be read."""
    with subprocess.Popen([sys.executable, '-m', 'state_sensor_ros', *map(str, words)],
                          env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


def await_that(is_true, process):
    """Wait until a function returns something true, and return that."""
    def step():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.01)
    return until(is_true, step=step)


def jobs_of(process):
    """Return the numbers of the processes of the jobs of a command."""
    return list(children(process.pid, b'spawn_main'))


def with_site(folder, text):
    """Return a PYTHONPATH with which programs run a text at their start."""
    (folder / 'sitecustomize.py').write_text(text)
    return os.pathsep.join((str(folder), ENVIRONMENT['PYTHONPATH']))


# A job that does not end by itself: a signal finds it begun, however late it comes.
HELD = """
import time
from state_sensor_ros.commands import cli
run = cli.run_command
def held(name, parsed):
    if parsed().output.endswith('held.json'):
        time.sleep(3600)
    return run(name, parsed)
cli.run_command = held
"""

# A job that ends without a result, under a condition.
KILLED = """
import os
from state_sensor_ros.commands import cli
run = cli.run_command
def killed(name, parsed):
    if parsed().output.endswith('c.json') and {}:
        os.kill(os.getpid(), 9)
    return run(name, parsed)
cli.run_command = killed
"""


def test_many_recordings_are_interrupted_and_resumed(drives, tmp_path, capsys):
    shutil.rmtree(drives / 'town')
    out = tmp_path / 'out'
    # The smallest one comes last.
    assert main(['synth', str(drives / 'held.json'), '--frames', '1', '--vehicles', '1',
                 '-q']) == 0
    expected = ['a.json', 'day1/b.json', 'day1/bag.json', 'day1/c.json', 'held.json']
    words = 'convert', drives, out, '--to', 'json', '--jobs', '1'
    environment = {**ENVIRONMENT, 'PYTHONPATH': with_site(tmp_path, HELD)}
    with running(*words, environment=environment) as process:
        await_that(lambda: [name for name in tree(out) if '.part' not in name], process)
        # As by a service manager: each process gets it.
        os.killpg(process.pid, signal.SIGTERM)
        printed, errors = process.communicate(timeout=AWAIT_S)
        assert (process.returncode, printed) == (143, '')
    first, last = errors.splitlines()
    assert first.endswith(' of 5 recordings converted; the same command continues with the others')
    assert last == 'interrupted: the work is not done'
    done = tree(out)
    assert not [name for name in done if '.part' in name]
    assert done
    assert set(done) < set(expected)
    before = (out / done[0]).stat().st_mtime_ns
    capsys.readouterr()
    assert main([*map(str, words)]) == 0
    assert f' converted, {len(done)} already up to date' in capsys.readouterr().out
    assert tree(out) == expected
    assert (out / done[0]).stat().st_mtime_ns == before


def test_interrupted_job_leaves_nothing(tmp_path, monkeypatch):
    out = tmp_path / 'out.json'

    def interrupted(*_):
        made.append(WholeFile(str(out)))
        raise KeyboardInterrupt

    made = []
    monkeypatch.setattr(parameters, 'take_parameters', interrupted)
    job = batch.job_of('convert', Namespace(dask='', output=str(out)), 'in.json')
    with pytest.raises(KeyboardInterrupt):
        batch.run_job(job)
    assert made[0].part is not None
    assert tree(tmp_path) == []


def test_many_recordings_lose_a_process_and_no_recording(drives, tmp_path):
    """Killed for the first time, a job runs again."""
    for name in ('town', 'day1/bag'):
        shutil.rmtree(drives / name)
    out, mark = tmp_path / 'out', repr(str(tmp_path / 'killed'))
    once = f'not os.path.exists({mark}) and not os.mkdir({mark})'
    site = with_site(tmp_path, KILLED.format(once))
    with running('convert', drives, out, '--to', 'json', '--jobs', '2',
                 environment={**ENVIRONMENT, 'PYTHONPATH': site}) as process:
        printed, errors = process.communicate(timeout=2 * AWAIT_S)
    assert (process.returncode, errors) == (0, '')
    assert printed == f'{out}: 3 recordings converted, 0 already up to date\n'
    assert tree(out) == ['a.json', 'day1/b.json', 'day1/c.json']
    assert (tmp_path / 'killed').is_dir()


def test_a_recording_that_ends_its_process_fails_alone(drives, tmp_path, monkeypatch, capsys):
    """As one that lacks memory does, wherever it runs."""
    # Imported by the processes, too.
    monkeypatch.setenv('PYTHONPATH', with_site(tmp_path, KILLED.format(True)))
    out = tmp_path / 'out'
    capsys.readouterr()
    assert main(['convert', str(drives / 'day1' / '*.json*'), str(drives / 'a.json'), str(out),
                 '--to', 'json', '--jobs', '2']) == 1
    heading, reason, error = capsys.readouterr().err.splitlines()
    assert heading.startswith('failed ')
    assert reason.split('  ') == [str(drives / 'day1' / 'c.json'), (
        'the process ended without a result, twice; it may lack memory')]
    assert error == (f'error: {out}: 2 of 3 converted; 1 failed: '
                     f'{drives / "day1" / "c.json"}')
    assert tree(out) == ['a.json', 'b.json']


def test_processes_end_with_a_batch_that_is_killed(drives, tmp_path):
    with running('convert', drives, tmp_path / 'out', '--to', 'json', '--jobs', '2') as process:
        jobs = await_that(lambda: jobs_of(process), process)
    until(lambda: not any(Path(f'/proc/{job}').exists() for job in jobs))


def test_a_process_of_a_batch_ends_even_where_no_thread_can_begin():
    """As while its threads are shut down, where the end of a batch may find it."""
    program = ('import os, signal, threading, time\n'
               'from state_sensor_ros.commands import batch\n'
               'batch._begin_worker()\n'
               'threading.Thread.start = lambda _: time.sleep(3600)\n'
               'os.kill(os.getpid(), signal.SIGTERM)\n'
               'time.sleep(3600)\n')
    ended = subprocess.run([sys.executable, '-c', program], env=ENVIRONMENT, timeout=AWAIT_S)
    assert ended.returncode == -signal.SIGALRM


def test_many_recordings_need_a_place_each(drives, tmp_path, capsys, refusal):
    (tmp_path / 'other').mkdir()
    other = shutil.copy(drives / 'a.json', tmp_path / 'other')
    for words in (['convert', str(drives / 'a.json'), other, str(tmp_path / 'out'), '--to',
                   'json'],
                  ['convert', str(tmp_path / 'none'), str(tmp_path / 'out'), '--to', 'json'],
                  ['convert', str(tmp_path / '*.json'), str(tmp_path / 'out'), '--to', 'json'],
                  ['convert', str(drives / 'a.json'), str(drives), '--to', 'json']):
        capsys.readouterr()
        line = refusal(*words)
        assert line.startswith('error: ')
        assert '; expected ' in line or line.endswith(': no such file or directory')
        assert not (tmp_path / 'out').exists()
    assert main(['convert', *[str(drives / 'a.json')] * 2, str(tmp_path / 'out')]) == 2


@pytest.mark.thorough
def test_recordings_of_one_name_have_outputs_with_their_formats(drives, tmp_path, capsys):
    shutil.rmtree(drives / 'town')
    shutil.copytree(drives / 'day1' / 'bag', drives / 'a')
    shutil.copy(drives / 'day1' / 'b.json.gz', drives / 'a.json.gz')
    (drives / 'day1' / 'c.mcap').write_bytes(b'cut')
    out = tmp_path / 'out'
    words = ['convert', str(drives), str(out), '--to', 'json', '--jobs', '1']
    assert main(words) == 1
    assert '6 of 7 converted; 1 failed: ' in capsys.readouterr().err
    assert tree(out) == ['a_bag.json', 'a_json.json', 'a_json_gz.json', 'day1/b.json',
                         'day1/bag.json', 'day1/c_json.json']
    # Their traffic differs: each is the output of its own source.
    for name, source in (('a_bag', 'a'), ('a_json_gz', 'a.json.gz'), ('a_json', 'a.json')):
        with sensor.open_recording(out / f'{name}.json') as got, \
                sensor.open_recording(drives / source) as expected:
            assert got[-1].position_xyz.tolist() == expected[-1].position_xyz.tolist()
    before = (out / 'a_json.json').stat().st_mtime_ns
    assert main(words) == 1
    assert (out / 'a_json.json').stat().st_mtime_ns == before


@pytest.mark.thorough
def test_many_recordings_are_inspected(drives, tmp_path, capsys):
    pq, one = pytest.importorskip('pyarrow.parquet'), ('--jobs', '1')
    (drives / 'bad.json').write_text('[{"frame": x}]')
    capsys.readouterr()
    assert main(['inspect', str(drives), '--json', '--parquet',
                 str(tmp_path / 'all.parquet')]) == 1
    printed = capsys.readouterr()
    records = [json.loads(line) for line in printed.out.splitlines()]
    files = [str(drives / name) for name in (
        'a.json', 'bad.json', 'day1/b.json.gz', 'day1/bag', 'day1/c.json', 'town')]
    assert [record['file'] for record in records] == files
    assert [record.get('frames') for record in records][:3] == [5, 0, 5]
    # Without the file, which is a member of its own.
    assert records[1]['error'].startswith('line 1 column 12: found ')
    assert printed.err.splitlines()[-1].startswith('error: inspect: 1 of 6 recordings ')
    rows = pq.read_table(tmp_path / 'all.parquet').to_pylist()
    assert [row['file'] for row in rows] == files
    assert rows[0]['rate_hz'] == pytest.approx(20.0, rel=1e-3)
    assert main(['inspect', str(drives / 'a.json'), str(drives / 'day1' / 'bag'), *one]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert lines[0].split() == ['recording', 'frames', 'duration_s', 'rate_hz', 'n_actors',
                                'n_anomalies']
    assert re.fullmatch(r'\S+/a\.json +\d+ +[\d.]+ +20 +\d+ +\d+', lines[1])
    # A table of safety: the worst numbers of each recording, and how many events it has.
    assert main(['inspect', str(drives / 'a.json'), str(drives / 'day1'), '--safety', '--json',
                 '--parquet', str(tmp_path / 'safe.parquet'), *one]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    rows = pq.read_table(tmp_path / 'safe.parquet').to_pylist()
    assert len(rows) == len(records) == 4
    for row, record in zip(rows, records, strict=True):
        safety = record['safety']
        assert row['ego'] == safety['actor']
        assert row['closest_distance'] == safety['worst']['closest_distance']['value'] > 0.0
        assert row['near_misses'] == sum(
            event['kind'] == 'near_miss' for event in safety['events'])
    assert 'ego' not in pq.read_table(tmp_path / 'all.parquet').column_names
    # What has no results needs no place of its own.
    same = [str(shutil.copytree(drives / 'day1' / 'bag', drives / 'day1' / 'c')),
            str(drives / 'day1' / 'c.json')]
    assert main(['inspect', *same, '--json', *one]) == 0
    assert [json.loads(line)['file'] for line in capsys.readouterr().out.splitlines()] == same


@pytest.mark.parametrize(('words', 'text'), [
    (['convert', 'IN', 'out.json', '--to', 'json'], 'OUT out.json is the name of a trajectory'),
    (['convert', 'IN', 'out', '--to', 'json', '--jobs', '-3'],
     '--jobs: found -3; expected a whole number of at least 1'),
    (['convert', 'IN', 'IN', 'out'], 'several inputs need --to FORMAT; OUT is then a folder'),
    (['inspect', '*.none'], 'error: *.none: found no recording; expected at least one'),
    (['inspect', 'none', 'IN'], 'error: none: no such file or directory')])
def test_wrong_batch_is_refused_before_it_writes(tmp_path, monkeypatch, capsys, words, text):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        assert main([word.replace('IN', str(SAMPLE)) for word in words]) in (1, 2)
    assert text in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_scheduler_that_is_not_there_is_one_line(drives, tmp_path, capsys):
    pytest.importorskip('distributed')
    capsys.readouterr()
    for address in ('nowhere', 'tcp://127.0.0.1:1'):
        assert main(['convert', str(drives), str(tmp_path / 'out'), '--to', 'json', '--dask',
                     address]) == 1
        line = capsys.readouterr().err.splitlines()[-1]
        assert line.startswith(f'error: cannot connect to the scheduler {address}: ')


@pytest.mark.thorough
def test_a_cluster_converts_with_the_paths_of_the_client(drives, tmp_path, monkeypatch, capsys):
    distributed = pytest.importorskip('distributed')
    monkeypatch.chdir(tmp_path)
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None,
                                  processes=False) as cluster:
        words = '--dask', cluster.scheduler_address
        assert main(['convert', 'drives', 'out', '--to', 'json', *words]) == 0
        assert tree(tmp_path / 'out') == [
            'a.json', 'day1/b.json', 'day1/bag.json', 'day1/c.json', 'town.json']
        capsys.readouterr()
        assert main(['inspect', 'drives/a.json', 'drives/day1/bag', '--json', *words]) == 0
    assert [json.loads(line)['frames'] for line in capsys.readouterr().out.splitlines()] == [5, 5]
