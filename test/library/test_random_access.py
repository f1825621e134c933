# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""``recording[i]`` is the frame of a loop, for every kind of recording, at the cost of few."""

from concurrent.futures import ThreadPoolExecutor
import gzip
from importlib.util import find_spec
from pathlib import Path
import random
import struct

from budgets import is_large, one_of, tries
import carla9_logs as logs
from equal_frames import assert_equal
from paths import CARLA, GOOD, SAMPLE
import pytest
from real_recordings import each_recording

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.library import index
from state_sensor_ros.simulators.carla9.log import LogDecoder
from state_sensor_ros.simulators.sumo.fcd import StepDecoder

N_DRAWS = tries(1)
TAGS = '--desired-tags', 'vehicle'


def check(path, *, n_frames=0, parameters=None, **selection):
    """Compare frames in a random order, of four threads, and a slice with those of a loop."""
    with sensor.open_recording(path, parameters=parameters or {}) as opened, \
            opened.select(**selection) as recording:
        expected = [*iter(recording)]
        assert len(recording) == len(expected) > n_frames
        dice = random.Random(str(path))
        for i in [-1, 0, *(dice.randrange(-len(expected), len(expected))
                           for _ in range(N_DRAWS))]:
            assert_equal(recording[i], expected[i])
        places = [dice.randrange(len(expected)) for _ in range(4 * N_DRAWS)]
        with ThreadPoolExecutor(4) as pool:
            tracks = [pool.submit(recording.track, expected[0].names[0]) for _ in range(2)
                      if expected[0].names]
            for i, found in zip(places, pool.map(recording.__getitem__, places), strict=True):
                assert_equal(found, expected[i])
        assert len({track.result().position_xyz.tobytes() for track in tracks}) <= 1
        for words in (slice(-1, None, -5 if is_large() else -25), slice(None, None, 7))[:N_DRAWS]:
            for pair in zip(recording[words], expected[words], strict=True):
                assert_equal(*pair)


@pytest.mark.parametrize('name', one_of([
    'drive.json.gz', 'drive_bag', 'drive.parquet', 'drive.osi', 'drive.db3', 'drive.osi.mcap'],
    n_always=4))
def test_frames_of_a_converted_sample(name, tmp_path):
    assert main(['convert', str(SAMPLE), str(tmp_path / name), '-q', '--end', '3', *TAGS]) == 0
    check(tmp_path / name, n_frames=50)


@pytest.mark.parametrize('name', ['drive.json', 'bag'])
def test_a_recording_that_changed_since_it_was_opened_is_named(name, tmp_path):
    path = tmp_path / name
    assert main(['convert', str(SAMPLE), str(path), '-q']) == 0
    with sensor.open_recording(path) as recording:
        assert len(recording) > 50
        assert main(['convert', str(SAMPLE), str(path), '-q', '--force', '--end', '1']) == 0
        for use in (lambda: recording[5], lambda: recording[-1], recording.ego_track):
            with pytest.raises(sensor.TrajectoryFormatError, match='another content than when'):
                use()


@pytest.mark.parametrize('path', [SAMPLE, *sorted(GOOD.glob('*.json')), CARLA,
                                  *sorted(CARLA.glob('episode_*'))], ids=lambda path: path.name)
def test_frames_of_a_sample(path, tmp_path):
    check(path)
    if path.parent == CARLA:
        assert main(['convert', str(path), str(tmp_path / 'bag.mcap'), '-q']) == 0
        check(tmp_path / 'bag.mcap')


@each_recording
def test_frames_of_a_real_recording(path):
    check(path, n_frames=50)


def write_log(path, *, has_more):
    """Write a log with actors that come and go, one id used again, and damaged frames."""
    head, *frames = logs.drive(90, has_more=has_more).split(logs.packet(0, b'')[:1] + struct.pack(
        '<I', 24))
    parts = [head]
    for i, frame in enumerate(frames):
        more = logs.counted(2, [logs.added(50, 'vehicle.audi.tt')]) if i % 7 == 3 else \
            logs.counted(3, [struct.pack('<I', 50)]) if i % 7 == 6 else b''
        more += logs.counted(6, [logs.vectors(50, 10.0 * i, 0, 0, 0, 0, 5.0 * i)])
        # A positions packet whose count is another, one outside of a frame, and a missing end.
        more += logs.packet(6, struct.pack('<H', 9)) if i % 20 == 17 else b''
        frame = struct.pack('<BI', 0, 24) + frame[:24] + more + frame[24:]
        parts.append(frame[:-5] if i % 30 == 29 else frame)
        parts.append(logs.packet(1) if i % 25 == 24 else b'')
    path.write_bytes(b''.join(parts))


@pytest.mark.parametrize('has_more', one_of([True, False], n_always=0))
def test_frames_of_a_recorder_log(has_more, tmp_path, monkeypatch):
    path = tmp_path / 'drive.log'
    write_log(path, has_more=has_more)
    check(path, n_frames=80)
    check(path, n_frames=10, start=1.0, rate=10.0, names=['hero'])
    check_cost(path, monkeypatch, LogDecoder, '_moment')


@pytest.fixture
def fcd(tmp_path, monkeypatch):
    """FCD output of a crowd by the real SUMO; some of its people have the ids of vehicles."""
    if find_spec('libsumo') is None:
        pytest.skip('libsumo is not installed')
    import libsumo
    from sumo_runs import write_crowd
    monkeypatch.chdir(tmp_path)

    def run(*options):
        libsumo.start(['sumo', '-c', str(write_crowd(tmp_path, 6)), '--fcd-output', 'fcd.xml',
                       '--no-step-log', '--step-length', '0.5', *options])
        for _ in range(70):
            libsumo.simulationStep()
        libsumo.close()
        for path in tmp_path.glob('*.xml'):
            path.write_text(path.read_text().replace('<person id="walker', '<person id="car'))
        return Path('fcd.xml')
    return run


@pytest.mark.parametrize('options', one_of([
    (), ('--fcd-output.attributes', 'x,y,speed,type'), ('--fcd-output.attributes', 'all')],
    n_always=0))
def test_frames_of_fcd_output(fcd, options, monkeypatch):
    path = fcd(*options)
    check(path, n_frames=60, parameters={'sumo.ego': 'first'})
    check(path, n_frames=10, start=10.0, rate=1.0)
    if is_large():
        Path('fcd.xml.gz').write_bytes(gzip.compress(path.read_bytes()))
        check('fcd.xml.gz', n_frames=60)
    check_cost(path, monkeypatch, StepDecoder, 'decode')


def check_cost(path, monkeypatch, decoder, method):
    """Check that an access reads few frames, whichever it is, and with little memory, too."""
    with sensor.open_recording(path) as recording:
        n_frames = len(recording)
        read, original = [], getattr(decoder, method)
        with monkeypatch.context() as patch:
            patch.setattr(decoder, method, lambda self, *words: (
                read.append(1), original(self, *words))[1])
            for i in (n_frames - 1, 0, n_frames // 2, 40):
                read.clear()
                recording[i]
                assert 0 < len(read) <= 66
            read.clear()
            assert len(recording[n_frames // 2:]) == n_frames - n_frames // 2
            assert len(read) <= n_frames // 2 + 66
    with monkeypatch.context() as patch:
        patch.setattr(index, '_MOST_BYTES', 9000)
        check(path)
