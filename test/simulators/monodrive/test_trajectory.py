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

import contextlib
from contextlib import closing
from dataclasses import replace
from functools import cache
import io
import itertools
import json
import random

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from paths import GOOD
import pytest

from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.errors import DecodeError, TrajectoryFormatError
from state_sensor_ros.simulators.monodrive import trajectory
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.recording import TrajectoryRecording
from state_sensor_ros.simulators.monodrive.trajectory import (
    complete_trajectory,
    Payload,
    read_payloads,
    TrajectoryWriter,
)
from state_sensor_ros.simulators.monodrive.wire import TypedReader
from state_sensor_ros.source import MEMBER
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


def payloads(text) -> list[Payload]:
    return list(read_payloads(io.BytesIO(text), 'x.json'))


def failure(text):
    """Return how many frames came before the error, and the error."""
    reader = read_payloads(io.BytesIO(text), 'x.json')
    n_frames = 0
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
    found = payloads(text)
    assert [payload.data for payload in found] == FRAMES
    assert [payload.index for payload in found] == list(range(len(FRAMES)))
    for payload in found:
        assert text[payload.offset:payload.offset + len(payload.data)] == payload.data
        before = text[:payload.offset].removeprefix(b'\xef\xbb\xbf')
        assert payload.line == before.count(b'\n') + 1
        assert payload.column == len(before) - (before.rfind(b'\n') + 1) + 1


@pytest.mark.parametrize('text', [b'[]', b' [ ]\n', b'[\n]'])
def test_an_empty_array_is_an_empty_trajectory(text):
    assert payloads(text) == []


@pytest.mark.parametrize('frame', FRAMES)
def test_a_single_frame_is_a_trajectory_of_one(frame):
    [payload] = payloads(b'\n ' + frame + b'\n')
    assert (payload.data, payload.line, payload.column) == (frame, 2, 2)


TRICKY = [rb'{"name": "[{\"]}", "a": ["]", {"}": "\\"}]}',
          b'{"u": "\xc3\xa9\xf0\x9f\x9a\x97 \\u00e9"}',
          rb'{"\\": "\\\\\"", "b": [[[]]], "c": {}}', b'{"n": [NaN, -Infinity, 1e999]}', b'{}']


@pytest.mark.parametrize('n_bytes', [1, 2, 3, 7, 64])
def test_cuts_anywhere_change_nothing(n_bytes):
    text = b' \n\t [' + b',\n'.join(TRICKY + FRAMES[:2]) + b'] \n\t '
    handle = Dripping(text, iter(lambda: n_bytes, None))
    assert [payload.data for payload in read_payloads(handle, 'x')] == TRICKY + FRAMES[:2]


@pytest.mark.parametrize('text', [b'', b'  \n ', b'\xef\xbb\xbf'])
def test_empty_file_is_named(text):
    with pytest.raises(TrajectoryFormatError) as caught:
        list(read_payloads(io.BytesIO(text), 'x'))
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
    (b'[{"a": 1}, {"b": nothing, "c": [2', 1, 'line 1 column 18', "'nothing", 'JSON'),
    (b'{"vehicles": [], "trigger_boxes": []}', 0, 'line 1 column 1',
     "a closed-loop scenario (member 'trigger_boxes')", 'a JSON array of frames')])
def test_errors_name_the_place(text, n_before, where, found, expected):
    n_frames, error = failure(text)
    assert n_frames == n_before
    assert error.where == f'x.json: {where}'
    assert error.found.startswith(found)
    assert error.expected.startswith(expected)


@pytest.mark.parametrize(('encoded', 'found'), [
    (lambda text: text.encode('utf-16'), 'UTF-16'),
    (lambda text: text.encode('utf-16-be'), 'UTF-16BE'),
    (lambda text: text.encode('utf-32'), 'UTF-32'),
    (lambda text: str(json.loads(text)).encode(), "'None")])
def test_other_encodings_and_the_words_of_python_are_named(encoded, found):
    _, error = failure(encoded('[{"frame": [], "x": [null, 1]}]'))
    assert error.where.startswith('x.json')
    assert error.found.startswith(found)
    assert ('iconv' in error.expected) == ('None' not in found)
    assert ("None is Python's" in error.expected) == ('None' in found)


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
    whole = payloads(text)
    ends = [payload.offset + len(payload.data) for payload in whole]
    for n_bytes in range(text.index(b'[') + 1, text.rindex(b']') + 1):
        cut = text[:n_bytes]
        found, error = [], None
        try:
            found.extend(read_payloads(io.BytesIO(cut), 'x.json'))
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


@pytest.mark.parametrize(('begin', 'again', 'message'), [
    (b'{"b": [', b'{"c": 1}, ', 'more than 1000000 bytes in frame 1, begun at line 2 column 1'),
    (b'{"b": "', b'cc', 'more than 1000000 bytes in frame 1, begun at line 2 column 1'),
    (b'{"b": "', b'{"c": 1}, ', 'line 2 column 10: .* expected JSON')])
def test_a_frame_without_end_does_not_fill_the_memory(monkeypatch, begin, again, message):
    monkeypatch.setattr(trajectory, 'MAX_ELEMENT_BYTES', 1_000_000)
    handle = io.BytesIO(b'[{"a": 1},\n' + begin + again * (3_000_000 // len(again)))
    reader = read_payloads(handle, 'x')
    assert next(reader).data == b'{"a": 1}'
    with pytest.raises(TrajectoryFormatError, match=message):
        next(reader)
    assert handle.tell() < 2_000_000


def test_errors_of_the_decoder_get_a_place():
    text = b'[{"frame": []},\n  {"frame": 7}]'
    payload = payloads(text)[1]
    with pytest.raises(DecodeError) as caught:
        Decoder().decode(payload.data)
    error = payload.error('x.json', caught.value)
    assert error.where == 'x.json: line 2 column 3: frame 1: frame'
    assert (error.found, error.expected) == (caught.value.found, caught.value.expected)


def written(*items):
    handle = io.BytesIO()
    writer = TrajectoryWriter(handle)
    for item in items:
        writer.write(item)
    writer.close()
    writer.close()
    assert writer.n_frames == len(payloads(handle.getvalue()))
    return handle.getvalue()


def test_written_frames_are_read_again_as_they_were():
    assert [payload.data for payload in payloads(written(*FRAMES))] == FRAMES
    assert written() == b'[]\n'


def test_arrays_add_each_frame_and_not_quite_json_becomes_json():
    text = written(b'[{"a": 1}, {"b": 2}]', b'[]', b'\xef\xbb\xbf{"c": [NaN, 1e999, 1.5]}',
                   b"{'d': 'e'}")
    assert json.loads(text) == [{'a': 1}, {'b': 2}, {'c': [None, None, 1.5]}, {'d': 'e'}]


@pytest.mark.parametrize('bad', [b'{', b'hello', b'', b'\xff', b'[' * 100_000, b'{} {}'])
def test_what_is_no_json_is_not_written(bad):
    handle = io.BytesIO()
    writer = TrajectoryWriter(handle)
    writer.write(FRAMES[0])
    with pytest.raises(DecodeError):
        writer.write(bad)
    writer.write(FRAMES[1])
    writer.close()
    assert [payload.data for payload in payloads(handle.getvalue())] == FRAMES[:2]


def test_mend_keeps_the_whole_frames():
    whole = written(*TRICKY[:3])
    for n_bytes in range(len(whole) + 1):
        handle = io.BytesIO(whole[:n_bytes])
        n_frames = complete_trajectory(handle)
        kept = [payload.data for payload in payloads(handle.getvalue())]
        assert kept == TRICKY[:n_frames]
        assert n_frames >= whole[:n_bytes].count(b'},\n')
    assert handle.getvalue() == whole


def test_mend_leaves_what_is_broken_otherwise():
    for text in (b'[{"a": }, {"b": 1}', b'hello', b'[{}] x'):
        handle = io.BytesIO(text)
        with pytest.raises(TrajectoryFormatError):
            complete_trajectory(handle)
        assert handle.getvalue() == text


BITS = [b'', b'"', b'\\', b'{', b'}', b'[', b']', b',', b'\xff', b'\n', b'1']


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(BITS)), min_size=1,
                max_size=3))
def test_damage_never_ends_in_another_error(damage):
    text = bytearray(b'[' + b',\n'.join(TRICKY + FRAMES[:1]) + b']')
    for place, n_bytes, bits in damage:
        at = int(place * len(text))
        text[at:at + n_bytes] = bits
    with contextlib.suppress(TrajectoryFormatError):
        for payload in read_payloads(io.BytesIO(bytes(text)), 'x'):
            assert bytes(text[payload.offset:payload.offset + len(payload.data)]) == payload.data




@cache
def traffic_texts(generation):
    return [json.dumps(frame) for frame in itertools.islice(
        generate(2, 1, 20.0, 1, generation), 4)]


def texts(seed):
    """Return frames of all generations, some of them unusual or no frames."""
    rng = random.Random(seed)
    frames = []
    for generation in rng.choices(('v2', 'v1', 'v0'), k=6):
        some = traffic_texts(generation)
        frames += some
        frames += rng.choice(([], [some[0].replace('"tags": [', '"tags": [1, ')], ['{"frame": 3}'],
                              [some[1].replace('"game_time"', '"gone"')],
                              ['{"game_time": 1.0}'], [some[2], some[2]]))
    return frames


@pytest.mark.parametrize('seed', range(8))
def test_recording_is_decoded_as_its_frames_one_by_one(seed, tmp_path):
    path = tmp_path / 'drive.json'
    frames = texts(seed)
    path.write_text('[\n' + ',\n'.join(frames) + '\n]\n')
    rng, alone = random.Random(seed), Decoder()
    expected, faults = [], []
    for text in frames:
        try:
            for one in alone.decode(text.encode()):
                expected.append(one.frame)
                faults += [str(fault.error) for fault in one.faults]
        except DecodeError as error:
            faults.append(str(error))
    with closing(TrajectoryRecording(str(path))) as recording, \
            np.printoptions(threshold=1_000_000, precision=17):
        recording.is_timed = False
        for frame, other in zip(recording.frames(), expected, strict=True):
            bare = {} if recording.details else {'boxes': None, 'wheels': None, 'inputs': None}
            assert repr(frame) == repr(replace(other, **bare))
            recording.details = rng.random() < 0.8
        assert [str(fault.error) for fault in recording.faults.take()
                if fault.kind != MEMBER] == faults


def test_frame_that_follows_a_decoded_one_is_parsed_once(tmp_path, monkeypatch):
    path = tmp_path / 'drive.json'
    texts = [json.dumps(frame) for frame in itertools.islice(
        generate(1, 0, 20.0, 1, 'v2'), 4)]
    path.write_text('[\n' + ',\n'.join(texts) + '\n]\n')
    read, parsed = TypedReader.read, []
    monkeypatch.setattr(TypedReader, 'read', lambda reader, kind, text:
                        parsed.append(text) or read(reader, kind, text))
    with closing(TrajectoryRecording(str(path))) as recording:
        assert len(list(recording.frames())) == 4
    # The others were read ahead.
    assert parsed == [texts[0].encode()]


def test_reading_goes_on_from_a_mark(tmp_path):
    path = tmp_path / 'drive.json'
    path.write_text(' [\n' + ',\n'.join(texts(3)) + '\n]\n')
    with closing(TrajectoryRecording(str(path))) as recording:
        recording.is_timed = False
        frames, marks = [], []
        for frame in recording.frames():
            frames.append(repr(frame))
            marks.append(recording.mark())
        for number, mark in enumerate(marks, 1):
            assert [repr(frame) for frame in recording.frames(mark)] == frames[number:]
