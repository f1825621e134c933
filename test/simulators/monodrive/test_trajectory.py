# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Trajectory files split and written: whatever the file is cut into, and wherever it is broken."""

from __future__ import annotations

from contextlib import closing
import io
import itertools
import json

from paths import GOOD
import pytest

from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.simulators.json_text import is_strict
from state_sensor_ros.simulators.monodrive import trajectory
from state_sensor_ros.simulators.monodrive.trajectory import (
    read_elements,
    TrajectoryRecording,
)
from state_sensor_ros.source import LOST
from state_sensor_ros.texts import counted

BOM = b'\xef\xbb\xbf'
FRAMES = [path.read_bytes().strip() for path in sorted(GOOD.glob('*.json'))]


class Dripping(io.RawIOBase):
    """A stream that cannot seek and gives a few bytes at a time."""

    def __init__(self, data, sizes):
        self._data = io.BytesIO(data)
        self._sizes = sizes

    def read(self, _=-1):
        return self._data.read(next(self._sizes))

    def seekable(self):
        return False


def strict(text):
    return is_strict(text) or None


def elements(text):
    return list(read_elements(io.BytesIO(text), 'x.json', strict))


def failure(text):
    """Return how many frames came before the error, and the error."""
    n_frames, reader = 0, read_elements(io.BytesIO(text), 'x.json', strict)
    while True:
        try:
            next(reader)
        except TrajectoryFormatError as error:
            return n_frames, error
        n_frames += 1


@pytest.mark.parametrize('separator', [b',', b',\n', b' , ', b'\r\n\t,\r\n\t'])
@pytest.mark.parametrize(('begin', 'end'), [(b'[', b']'), (b'[\n', b'\n]\n'), (b' [ ', b' ] \n'),
                                            (b'\xef\xbb\xbf[', b']')])
def test_elements_come_out_byte_for_byte(begin, end, separator):
    text = begin + separator.join(FRAMES) + end
    found = elements(text)
    assert [element.text for element in found] == FRAMES
    assert [element.begin.number for element in found] == list(range(len(FRAMES)))
    for element in found:
        assert text[element.begin.offset:element.begin.offset + len(element.text)] == element.text
        before = text[:element.begin.offset].removeprefix(b'\xef\xbb\xbf')
        assert element.begin.line == before.count(b'\n') + 1
        assert element.begin.column == len(before) - (before.rfind(b'\n') + 1) + 1


@pytest.mark.parametrize('text', [b'[]', b' [ ]\n', b'[\n]'])
def test_an_empty_array_is_an_empty_trajectory(text):
    assert elements(text) == []


@pytest.mark.parametrize('frame', FRAMES)
def test_a_single_frame_is_a_trajectory_of_one(frame):
    [element] = elements(b'\n ' + frame + b'\n')
    assert (element.text, element.begin.line, element.begin.column) == (frame, 2, 2)


TRICKY = [rb'{"name": "[{\"]}", "a": ["]", {"}": "\\"}]}',
          b'{"u": "\xc3\xa9\xf0\x9f\x9a\x97 \\u00e9"}',
          rb'{"\\": "\\\\\"", "b": [[[]]], "c": {}}', b'{"n": [NaN, -Infinity, 1e999]}', b'{}']


@pytest.mark.parametrize('n_bytes', [1, 2, 3, 7, 64])
def test_cuts_anywhere_change_nothing(n_bytes):
    text = b' \n\t [' + b',\n'.join(TRICKY + FRAMES[:2]) + b'] \n\t '
    handle = Dripping(text, iter(lambda: n_bytes, None))
    assert [element.text for element in read_elements(handle, 'x', strict)] == TRICKY + FRAMES[:2]


@pytest.mark.parametrize('text', [b'', b'  \n ', b'\xef\xbb\xbf'])
def test_empty_file_is_named(text):
    with pytest.raises(TrajectoryFormatError) as caught:
        list(read_elements(io.BytesIO(text), 'x', strict))
    assert str(caught.value) == 'x: found an empty file; expected a JSON array of frames'


@pytest.mark.parametrize(('text', 'n_before', 'where', 'found', 'expected'), [
    (b'hello', 0, 'line 1 column 1', "'hello'", 'a JSON array of frames'),
    (b'\n 42', 0, 'line 2 column 2', "'42'", 'a JSON array of frames'),
    (b'[1, 2]', 0, 'line 1 column 2', "'1, 2]'", "'{' or ']'"),
    (b'[[], {}]', 0, 'line 1 column 2', "'[], {}]'", "'{', a frame"),
    (b'[{}, "x", {}]', 1, 'line 1 column 6', '\'"x", {}]\'', "'{', a frame"),
    (b'[{} {}]', 1, 'line 1 column 5', "'{}]'", "',' or ']'"),
    (b'[{},]', 1, 'line 1 column 4', "',]'", "'{' or ']'"),
    (b'[{}\n,\n,{}]', 1, 'line 3 column 1', "',{}]'", "'{', a frame"),
    (b'[{}] x', 1, 'line 1 column 6', "'x'", 'the end of the file'),
    (b'[{}]\n[{}]', 1, 'line 2 column 1', "'[{}]'", 'the end of the file'),
    (b'{"frame": []}\n{"frame": []}\n', 1, 'line 2 column 1', "'{\"frame\"",
     'the end of the file'),
    (b'[{"a": 1},\n {"b": }]', 1, 'line 2 column 8', "'}'", 'JSON (Expecting value)'),
    (b'[{"a": 1},\n {\n"b" 1}]', 1, 'line 3 column 5', "'1}'", "JSON (Expecting ':' delimiter)"),
    (b'[{"a": [1}, {"b": 2}]', 0, 'line 1 column 10', "'}", 'JSON'),
    (b'[{"a": 1}, {"b": 2}', 2, 'line 1 column 20', 'the end of the file in frame 2', "']'"),
    (b'[{"a": 1}, {"b": 2}, ', 2, 'line 1 column 22', 'the end of the file in frame 2', "']'"),
    (b'[{"a": 1},\n{"b": [2', 1, 'line 2 column 9',
     'the end of the file in frame 1, begun at line 2 column 1', "']'"),
    (b'[{"a": 1},\n{"b": "2', 1, 'line 2 column 9', 'the end of the file in frame 1', "']'"),
    (b'[{"a": 1},\n{"b\n": 2}, {"c": 3}]', 1, 'line 2 column 4', "'\\n", 'JSON (Invalid control'),
    (b'[{"a": 1}, {"b": nothing, "c": [2', 1, 'line 1 column 18', "'nothing", 'JSON')])
def test_errors_name_the_place(text, n_before, where, found, expected):
    n_frames, error = failure(text)
    assert n_frames == n_before
    assert error.where == f'x.json: {where}'
    assert error.found.startswith(found)
    assert error.expected.startswith(expected)


FORMATS = {
    'compact': lambda frames: b'[' + b', '.join(frames) + b']',
    'a frame per line': lambda frames: b'[\n' + b',\n'.join(frames) + b'\n]\n',
    'commas first': lambda frames: b'[\r\n' + b'\r\n, '.join(frames) + b'\r\n]\r\n',
    'byte order mark': lambda frames: BOM + b'[\n' + b',\n'.join(frames) + b'\n]\n',
    'indented': lambda frames: indented(frames, 2),
    'indented far': lambda frames: indented(frames, 20)}


def indented(frames, n_blanks):
    values = [json.loads(frame, parse_float=str) for frame in frames]
    return json.dumps(values, indent=n_blanks, ensure_ascii=False).encode() + b'\n'


@pytest.mark.parametrize('file_format', FORMATS)
def test_a_cut_at_any_byte_leaves_the_whole_frames(file_format):
    text = FORMATS[file_format](TRICKY)
    whole = elements(text)
    ends = [element.begin.offset + len(element.text) for element in whole]
    for n_bytes in range(text.index(b'[') + 1, text.rindex(b']') + 1):
        cut = text[:n_bytes]
        found, error = [], None
        try:
            found.extend(read_elements(io.BytesIO(cut), 'x.json', strict))
        except trajectory.TruncatedError as caught:
            error = caught
        assert error is not None
        n_frames = sum(end <= n_bytes for end in ends)
        assert found == whole[:n_frames]
        assert (error.n_frames, error.end) == (n_frames, ([0] + ends)[n_frames])
        assert error.where == f'x.json: {place(cut, n_bytes)}'
        begin = cut.find(b'{', error.end)
        assert error.lost == ('nothing but the end of the array' if begin < 0 else
                              f'{counted(n_bytes - begin, "byte")} of frame {n_frames}, begun at '
                              f'{place(cut, begin)}')


def place(text, offset):
    before = text[:offset].removeprefix(BOM)
    line, column = before.count(b'\n') + 1, len(before) - before.rfind(b'\n')
    return f'line {line} column {column}'


@pytest.mark.parametrize('text', [
    b'[{"a": 1},\n{"b": "\xff", "c": [2', b'[{"a": 1},\n{"b": nothing, "c": [2',
    b'[{"a": 1},\n{"b": 1 "c": 3456789, "d": [', b'[{"a": 1},\n7, {"b": [', b'[{"a": 1} x',
    b'[{"a": 1}, {"b": ' + b'[' * 100_000])
def test_a_fault_before_the_end_is_no_cut(text):
    n_frames, error = failure(text)
    assert n_frames == 1
    assert not isinstance(error, trajectory.TruncatedError)


def test_recording_gives_frames_faults_and_the_places_of_both(tmp_path):
    path = tmp_path / 'drive.json'
    good = [json.dumps(frame) for frame in itertools.islice(TrafficFrames(2, 1, 20.0, 1, 'v2'), 3)]
    path.write_text('[\n' + ',\n'.join([good[0], '{"frame": 3}', *good[1:]]) + '\n]\n')
    with closing(TrajectoryRecording(str(path))) as recording:
        found = [(frame.game_time, recording.faults.place, recording.faults.take(),
                  recording.mark()) for frame in recording.frames()]
        assert recording.cut is None
        times = [time for time, *_ in found]
        assert times == pytest.approx([8.0, 8.05, 8.1], abs=1e-6)
        assert [place for _, place, *_ in found] == [f'line {i} column 1' for i in (2, 4, 5)]
        assert [[fault.kind for fault in faults] for *_, faults, _ in found] == [[], [LOST], []]
        for i, (*_, mark) in enumerate(found):
            assert [frame.game_time for frame in recording.frames(mark)] == times[i + 1:]
