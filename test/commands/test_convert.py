# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor convert`: nothing is lost on the way there and back, and files appear whole."""

import io
import itertools
import json
from pathlib import Path
import shutil

from message_store import read
import numpy as np
from paths import DATA, GOOD, SAMPLE
import pytest
from real_recordings import RECORDINGS
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames
from state_sensor_ros.files.bag import definition, type_hash
from state_sensor_ros.files.input import zstd

STATE_FRAME = 'state_sensor_ros/msg/StateFrame'
N_FRAMES = 30


def loaded(path):
    content = json.loads(Path(path).read_text())
    return content if isinstance(content, list) else [content]


def differences(before, after, where=''):
    """Yield where two JSON values are not the same: numbers as float32, the brake's size."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            if key not in before or key not in after:
                yield f'{where}.{key}', before.get(key, 'nothing'), after.get(key, 'nothing')
            else:
                yield from differences(before[key], after[key], f'{where}.{key}')
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(one, other, f'{where}[{i}]')
    elif is_number(before) and is_number(after):
        if where.endswith('brake_input'):
            before = abs(before)
        if np.float32(before) != np.float32(after):
            yield where, before, after
    elif before != after or type(before) is not type(after):
        yield where, before, after


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def synthetic(generation, n_frames=N_FRAMES):
    """Make traffic of a generation, with an actor from a later frame on and one that leaves."""
    frames = json.loads(json.dumps(list(itertools.islice(
        TrafficFrames(6, 4, 20.0, 7, generation), n_frames))))
    if generation == 'v2':
        del frames[10]['frame']['vehicles'][3], frames[12]['frame']['objects'][1]
        frames[15]['frame']['vehicles'][2]['state']['odometry']['linear_velocity']['y'] = None
        frames[16]['frame']['vehicles'][2]['state']['odometry']['pose']['position']['z'] = None
        frames[20]['frame'] = {'objects': [], 'vehicles': []}
    return frames


def v1t():
    head = {'game_time': 1.0, 'time': 1550000000}
    actor = {'name': 'demo', 'position': [1.0, 2.0, 3.0], 'orientation': [0.0, 0.0, 0.0, 1.0],
             'velocity': [4.0, 5.0, 6.0], 'tags': ['vehicle', 'ego']}
    return [{'frame': [{**actor, **head, 'game_time': 1.0 + i / 4}]} for i in range(5)]


def trajectories():
    for path in (*sorted(GOOD.glob('*.json')), *RECORDINGS[:1], SAMPLE, *RECORDINGS[1:]):
        is_large = path in RECORDINGS[1:] or path == SAMPLE
        yield pytest.param(lambda path=path: loaded(path), id=path.stem,
                           marks=pytest.mark.thorough if is_large else ())
    for generation in ('v1', 'v2'):
        yield pytest.param(lambda generation=generation: synthetic(generation),
                           id=f'synthetic_{generation}')
    yield pytest.param(v1t, id='v1t')


def as_written(frame):
    """Return a frame of v0 or v1t as v1, others as they are."""
    actors = frame.get('frame')
    if actors is None:
        head = {key: frame[key] for key in ('game_time', 'time', 'sample_count') if key in frame}
        return {'frame': [{**actor, 'name': name} for name, actor in frame.items()
                          if name not in head], **head}
    if 'game_time' in frame or not isinstance(actors, list):
        return frame
    head = {key: actors[0][key] for key in ('game_time', 'time')}
    return {'frame': [{key: value for key, value in actor.items() if key not in head}
                      for actor in actors], **head}


@pytest.mark.parametrize('frames', list(trajectories()))
def test_convert_there_and_back_loses_nothing(tmp_path, frames, capsys):
    source, bag, back = tmp_path / 'in.json', tmp_path / 'bag', tmp_path / 'out.json'
    before = frames()
    source.write_text(json.dumps(before))
    assert main(['convert', '--quiet', str(source), str(bag)]) == 0
    assert main(['convert', '--quiet', str(bag), str(back)]) == 0
    assert list(differences([*map(as_written, before)], loaded(back)))[:5] == []
    assert capsys.readouterr().out == ''


@pytest.fixture(scope='module')
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp('source') / 'synthetic.json'
    path.write_text(json.dumps(synthetic('v2')))
    return str(path)


def converted(source, tmp_path, *words):
    """Convert and return type and messages by topic, deserialized by an independent library."""
    bag = tmp_path / 'bag'
    assert main(['convert', source, str(bag), *words]) == 0
    found = {}
    with Reader(bag) as reader:
        for one in reader.connections:
            found[one.topic] = []
        for one, at_ns, data in reader.messages():
            found[one.topic].append((at_ns, read(bytes(data), one.msgtype)))
    return found


def test_convert_writes_the_topics_of_the_node(source, tmp_path):
    found = converted(source, tmp_path)
    names = {frame['name'] for frame in (
        vehicle['state'] for vehicle in synthetic('v2')[0]['frame']['vehicles'])}
    for name in names:
        assert len(found[f'/state_sensor/actors/{name}/odometry']) >= N_FRAMES - 4
    assert len(found['/state_sensor/frame']) == N_FRAMES
    # One of the frames is empty.
    assert len(found['/tf']) == N_FRAMES - 1
    assert len(found['/state_sensor/actors']) > 1
    assert '/clock' not in found
    assert '/tf_static' not in found


def test_convert_stamps_and_log_times_are_one(source, tmp_path):
    found = converted(source, tmp_path, '--clock')
    assert [at_ns for at_ns, _ in found['/clock']] == [
        at_ns for at_ns, _ in found['/state_sensor/frame']]
    for topic, messages in found.items():
        for at_ns, message in messages:
            if topic == '/tf':
                stamps = [transform.header.stamp for transform in message.transforms]
            else:
                stamps = [message.clock if topic == '/clock' else message.header.stamp]
            assert all(stamp.sec * 10**9 + stamp.nanosec == at_ns for stamp in stamps), topic


def test_convert_heeds_parameters(source, tmp_path):
    found = converted(
        source, tmp_path, '--name', '/car/front', '-p', 'global_frame:=world',
        '-p', 'ego_frame:=base_link', '-p', 'parent_frame:=earth', '-p',
        'global_frame_pose:=[1.0, -2.0, 3.0, 0.0, 0.0, 0.0]', '-p', 'debug_drawing:=true', '-p',
        'joint_states:=true', '--desired-tags', 'ego,cone',
        '-p', 'stamp_source:=utc')
    assert {topic for topic in found if not topic.startswith('/car/front/')} == {
        '/tf', '/tf_static'}
    [(first_ns, static)] = found['/tf_static']
    [transform] = static.transforms
    assert (transform.header.frame_id, transform.child_frame_id) == ('earth', 'world')
    assert (transform.transform.translation.x, transform.transform.translation.y) == (1.0, -2.0)
    assert transform.transform.rotation.w == 1.0
    assert first_ns == found['/tf'][0][0] > 1_600_000_000 * 10**9
    assert found['/car/front/markers']
    [ego_joints] = [topic for topic in found if topic.endswith('/joint_states')]
    assert found[ego_joints]
    assert {transform.child_frame_id for transform in found['/tf'][0][1].transforms} >= {
        'base_link'}


def live_bag(path, frames_bag, node='/front/sensor', extra=()):
    """Write what `ros2 bag record` would: other names, receipt times, only some topics."""
    with Reader(frames_bag) as reader, Writer(
            path, version=8, storage_plugin=StoragePlugin.SQLITE3) as writer:
        topics = {topic: writer.add_connection(
            topic, STATE_FRAME, msgdef=definition(STATE_FRAME), rihs01=type_hash(STATE_FRAME))
            for topic in (f'{node}/frame', *extra)}
        [connection] = [one for one in reader.connections if one.msgtype == STATE_FRAME]
        for i, (_, _, data) in enumerate(reader.messages([connection])):
            for topic in topics.values():
                writer.write(topic, 1_700_000_000_000_000_000 + i * 51_000_000, bytes(data))
    return str(path)


@pytest.fixture
def bag(source, tmp_path):
    assert main(['convert', source, str(tmp_path / 'made')]) == 0
    return tmp_path / 'made'


def recorded_by_rosbag2(frames):
    """Return what was served while `ros2 bag record` wrote test/data/rosbag2_record_*."""
    names = {'Misc_TrafficCone_0', 'sedan_monoDrive_03_6'}
    for frame in frames[:9]:
        actors = frame['frame']
        actors['objects'] = [one for one in actors['objects'] if one['name'] in names]
        actors['vehicles'] = [one for one in actors['vehicles'] if one['state']['name'] in names]
        yield frame


@pytest.mark.parametrize('name', ['rosbag2_record_mcap', 'rosbag2_record_sqlite3'])
def test_convert_reads_what_rosbag2_recorded(tmp_path, name):
    out = tmp_path / 'out.json'
    assert main(['convert', str(DATA / name), str(out)]) == 0
    assert list(differences(list(recorded_by_rosbag2(loaded(SAMPLE))), loaded(out)))[:5] == []


def test_convert_names_the_repair_of_what_rosbag2_left(tmp_path, refusal):
    data, out = DATA, str(tmp_path / 'out.json')
    [whole] = (data / 'rosbag2_record_mcap').glob('*.mcap')
    without, cut = tmp_path / 'without', tmp_path / 'cut.mcap'
    without.mkdir()
    shutil.copy(whole, without)
    cut.write_bytes(whole.read_bytes()[:-100])
    logged = tmp_path / 'logged'
    assert main(['convert', str(SAMPLE), str(logged), '--storage', 'sqlite3']) == 0
    (logged / 'logged_0.db3-wal').write_bytes(b'what SQLite has not yet moved')
    for path in (without, cut, logged):
        line = refusal('convert', path, out)
        assert line.startswith(f'error: {path}')
        assert '`state_sensor repair`' in line


@pytest.mark.parametrize('name', ['made/made_0.mcap', 'live', 'live/live.db3',
                                  'made/made_0.mcap.zstd', 'live/live.db3.zstd'])
def test_convert_reads_a_bag_and_its_file(bag, tmp_path, source, name):
    live_bag(tmp_path / 'live', bag)
    if name.endswith('.zstd'):
        plain = tmp_path / name.removesuffix('.zstd')
        (tmp_path / name).write_bytes(zstd.compress(plain.read_bytes()))
    assert main(['convert', str(tmp_path / name), str(tmp_path / 'out.json')]) == 0
    assert list(differences(loaded(source), loaded(tmp_path / 'out.json')))[:5] == []


def test_convert_refuses_several_topics_without_a_choice(bag, tmp_path, source, capsys, refusal):
    live = live_bag(tmp_path / 'live', bag, extra=['/rear/frame'])
    out = tmp_path / 'out.json'
    assert main(['convert', live, str(out)]) == 1
    error = capsys.readouterr().err
    assert 'found the topics /front/sensor/frame, /rear/frame; expected one of them to' in error
    assert '--topic' in error
    assert main(['convert', live, str(out), '--topic', '/rear/frame']) == 0
    assert list(differences(loaded(source), loaded(out)))[:5] == []
    assert 'found no topic /other/frame' in refusal('convert', live, out, '--topic',
                                                    '/other/frame', '--force')


def test_convert_warns_of_what_a_generation_cannot_carry(source, bag, tmp_path, capsys):
    out = tmp_path / 'flat.json'
    assert main(['convert', str(bag), str(out), '--generation', 'v1']) == 0
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f'warning: {out}: v1 does not carry: ')
    assert 'lane states' in line
    assert [actor['name'] for actor in loaded(out)[0]['frame']] == [
        state['name'] for state in (*loaded(source)[0]['frame']['objects'], *(
            vehicle['state'] for vehicle in loaded(source)[0]['frame']['vehicles']))]


def test_convert_standard_input_and_output(source, monkeypatch, tmp_path, capsysbinary):
    with open(source, 'rb') as stream:
        monkeypatch.setattr('sys.stdin', io.TextIOWrapper(stream))
        assert main(['convert', '-', str(tmp_path / 'bag')]) == 0
    capsysbinary.readouterr()
    assert main(['convert', str(tmp_path / 'bag'), '-']) == 0
    printed = capsysbinary.readouterr()
    assert list(differences(loaded(source), json.loads(printed.out)))[:5] == []
    assert printed.err.startswith(b'standard output: ')
    assert printed.err.count(b'\n') == 1


def broken(tmp_path, text):
    path = tmp_path / 'broken.json'
    path.write_bytes(text)
    return str(path)


@pytest.mark.parametrize(('text', 'expected'), [
    (b'', 'found an empty file'), (b'[]', 'found no frames'),
    (b'[{}]', 'found no frames'), (b'[{"frame": [}]', 'line 1 column 13: found'),
    (b'{"vehicles": [], "trigger_boxes": []}', 'found no frames'),
    (b'nonsense', 'expected a JSON array of frames')])
@pytest.mark.parametrize('out', ['bag', 'out.json'])
def test_convert_leaves_nothing_of_what_failed(tmp_path, text, expected, out, capsys):
    path = broken(tmp_path, text)
    assert main(['convert', path, str(tmp_path / out)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith(f'error: {path}')
    assert expected in lines[-1]
    assert [entry.name for entry in tmp_path.iterdir()] == ['broken.json']


def test_convert_continues_after_a_bad_frame_with_a_warning(tmp_path, capsys):
    frames = synthetic('v1', 5)
    frames[2]['frame'][1]['position'] = 'here'
    frames[3]['frame'].append(frames[3]['frame'][0])
    frames.insert(2, {'no': 'frame'})
    (tmp_path / 'in.json').write_text(json.dumps(frames))
    assert main(['convert', str(tmp_path / 'in.json'), str(tmp_path / 'bag')]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f'warning: {tmp_path / "in.json"}: ') for line in lines)
    assert any('payload dropped: line 1 column' in line for line in lines)
    assert any('dropped' in line and 'position' in line for line in lines)
    with Reader(tmp_path / 'bag') as reader:
        assert sum(one.msgcount for one in reader.connections if one.msgtype == STATE_FRAME) == 5


@pytest.mark.parametrize('output', ['out.json', 'out.parquet', 'bag'])
def test_convert_warns_of_velocities_of_0_and_of_a_clock_that_goes_back(tmp_path, capsys, output):
    frames = synthetic('v1', 80)
    for frame in frames:
        for actor in frame['frame']:
            actor['velocity'] = [0.0, 0.0, 0.0]
    (tmp_path / 'in.json').write_text(json.dumps([*frames, *synthetic('v1', 5)]))
    assert main(['convert', str(tmp_path / 'in.json'), str(tmp_path / output)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any('are 0 while they move' in line for line in lines)
    assert any('restart' in line if output == 'bag' else 'the clock goes back 1 time' in line
               for line in lines)


@pytest.mark.parametrize(('words', 'expected'), [
    (['-p', 'stamp_source:=ros'], 'expected game_time or utc'),
    (['-p', 'parent_frame:=map'], 'parent_frame: found'),
    (['-p', 'max_actor_topics:=-1'], 'max_actor_topics: found -1')])
def test_convert_refuses_options_that_make_no_sense(source, tmp_path, words, expected, refusal):
    assert expected in refusal('convert', source, tmp_path / 'bag', *words)
    assert list(tmp_path.iterdir()) == []


def test_convert_refuses_another_definition_of_the_message(bag, tmp_path, refusal):
    other = definition(STATE_FRAME).replace('float64 game_time', 'float32 game_time')
    with Reader(bag) as reader, Writer(tmp_path / 'other', version=8,
                                       storage_plugin=StoragePlugin.MCAP) as writer:
        [connection] = [one for one in reader.connections if one.msgtype == STATE_FRAME]
        topic = writer.add_connection('/x', STATE_FRAME, msgdef=other, rihs01='-')
        for _, at_ns, data in reader.messages([connection]):
            writer.write(topic, at_ns, bytes(data))
    line = refusal('convert', tmp_path / 'other' / 'other.mcap', '-')
    assert 'expected RIHS01_' in line
    assert 'the definition of this version' in line


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_convert_reads_bags_of_version_0_2(source, tmp_path, storage):
    """Nothing is lost; and their storage file has the name of the bag, without a number."""
    bag = tmp_path / 'bag'
    assert main(['convert', source, str(bag), '--storage', storage]) == 0
    assert main(['convert', str(bag), str(tmp_path / 'new.json')]) == 0
    assert list(differences(loaded(source), loaded(tmp_path / 'new.json')))[:5] == []
    [file] = bag.glob('bag_0.mcap' if storage == 'mcap' else 'bag_0.db3')
    old = file.rename(bag / f'bag{file.suffix}')
    metadata = bag / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace(file.name, old.name))
    assert main(['convert', str(bag), str(tmp_path / 'old.json')]) == 0
    assert (tmp_path / 'old.json').read_bytes() == (tmp_path / 'new.json').read_bytes()


def test_convert_says_why_no_frame_could_be_written(tmp_path, capsys):
    drive, out = tmp_path / 'drive.json', tmp_path / 'out.mcap'
    assert main(['synth', str(drive), '--frames', '3', '-q']) == 0
    frames = json.loads(drive.read_text())
    drive.write_text(json.dumps([{**frame, 'game_time': 1e300} for frame in frames]))
    assert main(['convert', str(drive), str(out), '-q']) == 1
    *warnings, error = capsys.readouterr().err.splitlines()
    assert any('1e+300' in line for line in warnings)
    assert error == f'error: {drive}: found no frames; expected at least one frame'
    assert not out.exists()
