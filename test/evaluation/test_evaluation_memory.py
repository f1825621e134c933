# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The memory of an evaluation: rows are in temporary files, not in memory."""

import tempfile

import numpy as np
from programs import peak_mb, run_python
import pytest
from stack_bags import PERCEPTION, TRACKING

from state_sensor_ros.commands.cli import main
from state_sensor_ros.errors import SinkError
from state_sensor_ros.evaluation.spooled_rows import SpooledRows

FULL = """
import resource, signal
from state_sensor_ros.errors import SinkError
from state_sensor_ros.evaluation.spooled_rows import SpooledRows
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
rows = SpooledRows('f8')
try:
    for _ in range(100):
        rows.add([0.0] * 1000)
except SinkError as error:
    print(error)
"""
N_OBJECTS, N_SHORT, N_LONG = 100, 300, 900
# Of an object and its ground truth, bytes: 107 measured, 260 to 500 with all in memory.
MOST_BYTES = 200.0
TOPICS = (TRACKING, f'{PERCEPTION}/detection/objects')


def peak_bytes(folder, n_frames):
    """Return the peak of resident memory of the evaluation of N_OBJECTS in some frames."""
    truth, bag = folder / f'{n_frames}.json', folder / f'{n_frames}'
    assert main(['synth', str(truth), '--vehicles', str(N_OBJECTS), '--objects', '0',
                 '--frames', str(n_frames), '--rate', '10', '-q']) == 0
    assert main(['convert', str(truth), str(bag), '--outputs', 'autoware', '-p',
                 'autoware_objects:=[tracking, detection]', '-p', 'frame:=false', '-p',
                 'odometry:=false', '-q']) == 0
    return 2 ** 20 * peak_mb('evaluate', truth, bag, *(
        word for topic in TOPICS for word in ('--topic', topic)), '-q')


@pytest.mark.thorough
def test_frames_are_not_kept(tmp_path):
    growth = peak_bytes(tmp_path, N_LONG) - peak_bytes(tmp_path, N_SHORT)
    assert growth / (N_OBJECTS * (N_LONG - N_SHORT)) < MOST_BYTES


ROW = np.dtype([('number', np.int32), ('pair', np.float64, 2)])


def numbered(first, end):
    rows = np.zeros(end - first, ROW)
    rows['number'] = np.arange(first, end)
    rows['pair'] = rows['number'][:, None] * (1.0, 0.5)
    return rows


@pytest.mark.parametrize('n_rows', [0, 3, 100_000])
def test_rows_come_back_from_a_file_without_a_name(n_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))
    spooled, rows = SpooledRows(ROW), numbered(0, n_rows)
    for first in range(0, n_rows, 999):
        spooled.add(rows[first:first + 999])
    assert list(tmp_path.iterdir()) == []
    assert len(spooled) == n_rows
    assert np.array_equal(spooled.read_all(), rows)
    for first, end in ((0, 1), (n_rows // 2, n_rows), (max(n_rows - 2, 0), n_rows - 1)):
        assert np.array_equal(spooled.read(first, end), rows[first:end])


def test_full_or_missing_temporary_folder_is_one_sentence(tmp_path, monkeypatch):
    """A limit of the size of files stands for a full disk."""
    done = run_python('-c', FULL)
    assert (done.returncode, done.stderr) == (0, '')
    assert done.stdout.startswith(f'temporary file in {tempfile.gettempdir()}: file too large; ')
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path / 'missing'))
    with pytest.raises(SinkError, match=r'missing: no such file or directory; .* TMPDIR'):
        SpooledRows(ROW).add(numbered(0, 10_000))
