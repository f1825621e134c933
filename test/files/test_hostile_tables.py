# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tables that are damaged, hostile or too large, and names of files that are not UTF-8."""

import random

from budgets import tries
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main

N_FLIPS = tries(100)


@pytest.fixture(scope='module')
def table(tmp_path_factory):
    """Make a table of ten frames; return its path."""
    folder = tmp_path_factory.mktemp('table')
    assert main(['synth', str(folder / 'a.json'), '--frames', '10', '--vehicles', '3', '-q']) == 0
    assert main(['convert', str(folder / 'a.json'), str(folder / 'a.parquet'), '-q']) == 0
    return folder / 'a.parquet'


def numbers_of(path):
    """Return all numbers and names of a recording, as one comparable text."""
    with sensor.open_recording(path) as recording:
        frames = [(frame.game_time, frame.names, frame.tags, frame.kinematics.tolist())
                  for frame in recording]
        return '' if recording.faults or recording.cut else repr(frames)


@pytest.mark.parametrize('file_format', ['a.parquet', 'a.json.zst', 'a.json.gz'])
def test_a_flipped_bit_changes_no_number_in_silence(file_format, table, tmp_path):
    path = tmp_path / file_format
    assert main(['convert', str(table.with_suffix('.json')), str(path), '-q']) == 0
    data = path.read_bytes()
    expected = numbers_of(path)
    flips, damaged = random.Random(24), tmp_path / f'b{file_format[1:]}'
    n_found = 0
    for _ in range(N_FLIPS):
        flipped = bytearray(data)
        flipped[flips.randrange(len(data))] ^= 1 << flips.randrange(8)
        damaged.write_bytes(flipped)
        try:
            numbers = numbers_of(damaged)
        except sensor.StateSensorError:
            numbers = ''
        assert numbers in ('', expected)
        n_found += not numbers
    assert n_found > N_FLIPS // 2


def with_column(table, name, array):
    return table.set_column(table.schema.get_field_index(name), name, array)


def invalid_utf8(n_rows):
    return pa.Array.from_buffers(
        pa.string(), n_rows, [None, pa.py_buffer(np.arange(n_rows + 1, dtype=np.int32)),
                              pa.py_buffer(b'\xff' * n_rows)])


# By name of a column: values of which no row is one of a frame.
WRONG = [
    ('name', lambda n: pa.array([None] * n, pa.string())), ('name', invalid_utf8),
    ('kind', lambda n: pa.array([None] * n, pa.string())), ('tags', lambda n: pa.array(['a'] * n)),
    ('tags', lambda n: pa.array([['a', None]] * n)), ('x', lambda n: pa.array(['a'] * n)),
    ('x', lambda n: pa.array([1] * n, pa.timestamp('ns'))), ('x', lambda n: pa.array([[1.0]] * n)),
    ('frame', lambda n: pa.array([None] * n, pa.int64())),
    ('frame', lambda n: pa.array([2 ** 64 - 1] * n, pa.uint64())),
    ('actor_id', lambda n: pa.array([2 ** 32] * n)),
    ('road_id', lambda n: pa.array([2 ** 40] * n)),
    ('lane_change_left', lambda n: pa.array(['yes'] * n))]


def error_of(path, tmp_path, capsys):
    """Return the error of a conversion that fails."""
    assert main(['convert', str(path), str(tmp_path / 'out.json'), '-q']) == 1
    assert not (tmp_path / 'out.json').exists()
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if not line.startswith('warning: ')] == lines[-1:]
    assert lines[-1].startswith(f'error: {path}: ')
    assert '; expected ' in lines[-1]
    return lines[-1]


@pytest.mark.parametrize(('name', 'made'), WRONG)
def test_a_column_of_another_type_is_one_line(name, made, table, tmp_path, capsys):
    rows = pq.read_table(table)
    path = tmp_path / 'a.parquet'
    pq.write_table(with_column(rows, name, made(rows.num_rows)), path)
    error_of(path, tmp_path, capsys)


@pytest.mark.parametrize('change', [
    lambda rows: rows.slice(0, 0), lambda rows: rows.select(['x']), lambda _: pa.table({}),
    lambda rows: rows.append_column('x', rows.column('x')),
    lambda rows: rows.replace_schema_metadata({'default_sizes': '[' * 100_000}),
    lambda rows: rows.replace_schema_metadata({'default_sizes': '5'}),
    lambda rows: rows.replace_schema_metadata({'default_sizes': '{"a": {}}'})])
def test_a_table_of_another_kind_is_one_line(change, table, tmp_path, capsys):
    path = tmp_path / 'a.parquet'
    pq.write_table(change(pq.read_table(table)), path)
    error_of(path, tmp_path, capsys)


@pytest.mark.parametrize('kind', ['large_string', 'large_list', 'float32', 'small groups',
                                  'pandas', 'delta'])
def test_tables_of_other_programs_are_read(kind, table, tmp_path):
    rows, options = pq.read_table(table), {}
    if kind == 'large_string':
        rows = with_column(rows, 'name', rows.column('name').cast(pa.large_string()))
    elif kind == 'large_list':
        rows = with_column(rows, 'tags', rows.column('tags').cast(
            pa.large_list(pa.large_string())))
    elif kind == 'float32':
        rows = with_column(rows, 'length', rows.column('length').cast(pa.float32()))
    elif kind == 'pandas':
        # Integers with missing values are float64 there.
        frames = rows.to_pandas()
        assert frames['road_id'].dtype == float
        rows = pa.Table.from_pandas(frames).replace_schema_metadata(rows.schema.metadata)
    elif kind == 'delta':
        # As Spark and DuckDB write texts in version 2.
        rows = with_column(rows, 'name', rows.column('name').cast(pa.string()))
        options = {'use_dictionary': False, 'column_encoding': {
            'name': 'DELTA_BYTE_ARRAY', 'kind': 'DELTA_LENGTH_BYTE_ARRAY'}}
    else:
        options = {'row_group_size': 3, 'data_page_version': '2.0', 'use_dictionary': False}
    pq.write_table(rows, tmp_path / 'a.parquet', **options)
    assert numbers_of(tmp_path / 'a.parquet') == numbers_of(table)


def test_rows_that_are_not_in_the_order_of_the_frames_are_refused(table, tmp_path, capsys):
    path = tmp_path / 'a.parquet'
    rows = pq.read_table(table)
    pq.write_table(rows.take(np.argsort(rows['name'].to_pylist(), kind='stable')), path)
    assert 'expected rows in the order of the frames' in error_of(path, tmp_path, capsys)
