# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor inspect`: figures known beforehand, anomalies, and what Replay Mode refuses."""

from functools import cache
import itertools
import json
from pathlib import Path
import subprocess

from budgets import AWAIT_S, first_of
from paths import SAMPLE
from programs import ENVIRONMENT, STATE_SENSOR
import pytest
from real_recordings import path_of

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

# Frames, actors in each, median step, samples missed: doc/protocol/units.md#recordings.
KNOWN = [('left_turn_cross_walk.v0', 'v0', 90, 7, 0.2, 0),
         ('car_to_car_rear_stationary.v2', 'v2', 210, 2, 0.0333, 9),
         ('scenario.v1', 'v1', 70, 8, 0.2, 0),
         ('ncap_noncollision.v1', 'v1', 563, 2, 0.0333, 0)]


@pytest.fixture
def inspect(tmp_path, capsys):
    """Inspect frames, or a path; return exit code, findings and the error."""
    def run(frames, *words):
        path = frames
        if not isinstance(frames, (str, Path)):
            path = tmp_path / 'in.json'
            path.write_bytes(frames if isinstance(frames, bytes) else json.dumps(frames).encode())
        code = main(['inspect', str(path), '--json', *words])
        printed = capsys.readouterr()
        return code, json.loads(printed.out), printed.err
    return run


@cache
def traffic_text(n_frames, generation, rate_hz):
    frames = TrafficFrames(4, 2, rate_hz, 3, generation)
    return json.dumps(list(itertools.islice(frames, n_frames)))


def traffic(n_frames=40, *, generation='v2', rate_hz=20.0):
    """Make synthetic traffic."""
    return json.loads(traffic_text(n_frames, generation, rate_hz))


def vehicle(frame, i):
    """Return the state of a vehicle that is not the ego."""
    states = [each['state'] for each in frame['frame']['vehicles']]
    return [state for state in states if 'ego' not in state['tags']][i]


def anomalies(found):
    return {each['kind']: each['count'] for each in found['anomalies']}


@pytest.mark.parametrize(('name', 'generation', 'n_frames', 'n_actors', 'step', 'n_repeats'),
                         first_of(KNOWN, n_always=2))
def test_inspect_finds_what_is_known_of_a_recording(inspect, name, generation, n_frames, n_actors,
                                                    step, n_repeats):
    code, found, error = inspect(path_of(f'{name}.json'))
    assert (code, error) == (0, '')
    assert found['generations'] == {generation: n_frames}
    assert found['actors_per_frame'] == {'least': n_actors, 'most': n_actors}
    assert found['step_s']['median'] == pytest.approx(step, abs=6e-5)
    assert anomalies(found) == ({'repeated frames': n_repeats} if n_repeats else {})
    # Over all frames, those of braking included.
    assert found['truth']['linear_slope'] == pytest.approx(1.0, abs=0.02)
    assert found['truth']['complaints'] == []
    assert len(found['egos']) == 1
    assert found['replayable'] is True


@pytest.mark.parametrize('generation', ['v1', 'v2'])
def test_inspect_describes_synthetic_traffic(inspect, generation):
    code, found, _ = inspect(traffic(generation=generation))
    assert code == 0
    assert found['frames'] == 40
    assert found['duration_s'] == pytest.approx(39 * 0.05)
    assert found['rate_hz'] == pytest.approx(20.0, rel=1e-3)
    assert [actor['kind'] for actor in found['actors']].count('vehicle') == 4
    assert len(found['actors']) == 6
    assert {actor['frames'] for actor in found['actors']} == {40}
    [ego] = found['egos']
    assert 'ego' in next(actor['tags'] for actor in found['actors'] if actor['name'] == ego)
    expected = {'v1': {'wheels', 'boxes', 'inputs'},
                'v2': {'wheels', 'boxes', 'lanes', 'wheel positions', 'sample counts'}}
    assert found['present'].keys() >= expected[generation]
    assert found['truth']['complaints'] == []
    assert found['anomalies'] == []


def test_inspect_a_bag_finds_the_same_as_in_its_trajectory(inspect, tmp_path):
    assert main(['convert', '-q', str(SAMPLE), str(tmp_path / 'bag')]) == 0
    _, before, _ = inspect(SAMPLE)
    code, after, _ = inspect(tmp_path / 'bag')
    assert code == 0
    assert after.pop('form') == 'bag, topic /state_sensor/frame'
    assert before.pop('form') == 'trajectory'
    for found in (before, after):
        del found['file'], found['bytes']
        for anomaly in found['anomalies']:
            del anomaly['place']
    # Seven digits: the bag holds the very float64 that the trajectory was decoded to.
    assert after == before


def test_inspect_counts_every_anomaly(inspect):
    frames = traffic(60)
    frames.insert(10, {**frames[9], 'sample_count': frames[9]['sample_count']})
    del frames[20:23]
    vehicle(frames[25], 0)['odometry']['pose']['orientation']['w'] = 4.0
    vehicle(frames[26], 1)['odometry']['pose']['position']['x'] = None
    vehicle(frames[27], 1)['odometry']['linear_velocity']['x'] = None
    frames[28]['frame']['vehicles'].append(frames[28]['frame']['vehicles'][0])
    vehicle(frames[29], 2)['odometry']['pose'] = 'nowhere'
    frames[30]['game_time'] = None
    vehicle(frames[31], 0)['tags'] += ['EGO']
    for frame in frames[40:]:
        frame['game_time'] += 60.0
    frames += traffic(5)
    code, found, _ = inspect(frames)
    assert code == 0
    assert anomalies(found) == {
        'repeated frames': 1, 'gaps in sample_count': 1, 'quaternions that are not rotations': 1,
        'poses with unknown numbers': 1, 'velocities with unknown numbers': 1,
        'duplicate names': 1, 'actors dropped': 1, 'frames without a usable time': 1,
        'frames with several egos': 1, 'steps of the clock': 1, 'restarts': 1}
    places = {each['kind']: (each['place'], each['text']) for each in found['anomalies']}
    assert places['repeated frames'][0].endswith(': frame 10')
    assert places['gaps in sample_count'] == (
        places['gaps in sample_count'][0], '3 samples missing before it')
    assert places['steps of the clock'][0].endswith(': frame 40')
    assert '60.05 s after the previous frame' in places['steps of the clock'][1]
    assert 'pose' in places['actors dropped'][1]


@pytest.mark.parametrize('factor', [1.0, 100.0])
def test_inspect_prints_inconsistent_units(inspect, factor, tmp_path, capsys):
    frames = traffic(60, rate_hz=10.0)
    for frame in frames:
        for each in frame['frame']['vehicles']:
            velocity = each['state']['odometry']['linear_velocity']
            velocity.update({axis: value * factor for axis, value in velocity.items()})
    _, found, _ = inspect(frames)
    texts = [complaint['text'] for complaint in found['truth']['complaints']]
    of_units = [text for text in texts if 'velocities are not in the same units' in text]
    assert len(of_units) == (factor != 1.0)
    assert bool(texts) == bool(of_units)
    assert main(['inspect', str(tmp_path / 'in.json')]) == 0
    assert ('velocities are not in the same units' in capsys.readouterr().out) == (factor != 1.0)


def test_inspect_names_what_later_frames_have_and_no_format_knows(inspect):
    frames = traffic(4)
    frames[1]['weather'] = 'rain'
    frames[2]['frame']['pedestrians'] = frames[3]['frame']['pedestrians'] = []
    frames[3]['time'] = 1600000000123
    _, found, _ = inspect(frames)
    anomalies = {each['kind']: each for each in found['anomalies']}
    unknown = anomalies['unknown members']
    assert unknown['count'] == 2
    assert 'frame 1' in unknown['place']
    assert unknown['text'].startswith('weather: ')
    assert '2020-09-13 12:26:40' in anomalies['members ignored']['text']


def test_inspect_compares_the_actors_that_two_frames_share(inspect):
    frames = traffic()
    _, whole, _ = inspect(frames)
    for i, frame in enumerate(frames):
        states = frame['frame']['vehicles']
        # Another vehicle is missing in each frame, and the order changes.
        states.remove([each for each in states if 'ego' not in each['state']['tags']][i % 3])
        states.reverse()
    _, found, _ = inspect(frames)
    truth = found['truth']
    assert truth['pairs'] == whole['truth']['pairs'] == 39
    assert truth['linear_slope'] == pytest.approx(1.0, abs=1e-3)
    assert truth['not_compared']['in one of two frames only'] == 2 * 39
    assert truth['compared'] + sum(truth['not_compared'].values()) - 2 * 39 == 39 * (6 - 2)


def without_ego(begin):
    frames = traffic(3)
    for frame in frames[begin:]:
        for each in frame['frame']['vehicles']:
            each['state']['tags'] = [tag for tag in each['state']['tags'] if tag != 'ego']
    return json.dumps(frames, indent=1).encode()


@pytest.mark.parametrize(('text', 'where', 'expected'), [
    (lambda: without_ego(0), 'line 2 column 2: frame 0', 'found no actor tagged ego'),
    (lambda: without_ego(2), ': frame 2', 'found no actor tagged ego'),
    (b'', 'in.json', 'found an empty file'),
    (b'[]', '', 'found no frames; expected at least one frame'),
    (b'[\n{"frame": [],\n  "time": }]', 'line 3 column 11', "found '}'; expected JSON"),
    (b'{"vehicles": [], "tagged_actors": []}', 'line 1 column 1', 'expected a frame'),
    (b'[{"nothing": 1}]', 'line 1 column 2: frame 0', 'expected a frame'),
    (lambda: json.dumps(traffic(3)).encode().replace(b'0.0', b'NaN', 1), 'frame 0',
     'expected strict JSON'),
    (lambda: json.dumps(traffic(1)).encode()[:-20], 'line 1 column',
     'found the end of the file')])
def test_inspect_refuses_what_replay_mode_would(inspect, tmp_path, text, where, expected):
    code, found, error = inspect(text() if callable(text) else text)
    assert code == 1
    [line] = error.splitlines()
    assert line.startswith(f'error: {tmp_path / "in.json"}')
    assert where in line
    assert expected in line
    assert found['replayable'] is False
    assert found['refusal']['found'] in line


@pytest.mark.parametrize(('path', 'expected'), [
    ('nothere.json', 'no such file or directory'), ('.', 'found a folder without')])
def test_inspect_refuses_what_is_no_recording(path, expected, tmp_path, capsys):
    assert main(['inspect', str(tmp_path / path)]) == 1
    printed = capsys.readouterr()
    assert expected in printed.err
    assert printed.out == ''


def test_inspect_shows_one_screen(tmp_path, capsys):
    frames = traffic(30)
    frames.insert(4, frames[3])
    (tmp_path / 'in.json').write_text(json.dumps(frames))
    assert main(['inspect', str(tmp_path / 'in.json')]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert printed.err == ''
    assert len(lines) < 25
    headings = {line[:12].strip(): line[12:] for line in lines if line[0] != ' '}
    assert headings['generation'] == 'v2'
    assert headings['frames'].startswith('31, ')
    assert headings['rate'].startswith('20 Hz (step 50 ms')
    assert headings['actors'] == '6: 4 vehicles, 2 objects; 6 per frame'
    assert headings['replayable'] == 'yes'
    assert any('repeated frames: 1, first at line 1 column' in line for line in lines)


@pytest.mark.parametrize(('actor', 'text'), [
    ('Misc_TrafficCone_0', 'does not apply: no actor tagged ego is selected'),
    ('sedan_monoDrive_03_6', 'yes')])
def test_replayable_has_one_reason(capsys, actor, text):
    assert main(['inspect', str(SAMPLE), '--actors', actor]) == 0
    assert capsys.readouterr().out.endswith(f'\nreplayable  {text}\n')


def strange(tmp_path):
    """Write a v0 frame whose actors have names that command a terminal, one without a place."""
    actor = {'position': [1, 2, 3], 'orientation': [0, 0, 0, 1], 'velocity': [0, 0, 0],
             'tags': ['ego', 't\x07']}
    path = tmp_path / 'in.json'
    path.write_text(json.dumps([{'a\nfound: all is well\x1b[31m': actor, 'ä車': actor,
                                 'b\n': {**actor, 'position': [1, 2, 'x']}, 'game_time': 0.0}]))
    return str(path)


def test_inspect_lets_no_name_command_the_terminal(tmp_path, capsys):
    main(['inspect', strange(tmp_path)])
    main(['convert', strange(tmp_path), str(tmp_path / 'bag')])
    printed = capsys.readouterr()
    assert r'a\nfound: all is well\x1b[31m, ä車' in printed.out
    assert r'b\n.position[2]' in printed.out
    assert r't\x07 2' in printed.out
    assert r'b\n.position[2]' in printed.err
    assert not any(line.startswith('found:') for line in (printed.out + printed.err).splitlines())
    assert (printed.out + printed.err).replace('\n', '').isprintable()


def test_inspect_shows_on_a_plain_terminal_what_it_can(tmp_path):
    done = subprocess.run([*STATE_SENSOR, 'inspect', strange(tmp_path)], check=True,
                          capture_output=True, timeout=AWAIT_S,
                          env={**ENVIRONMENT, 'PYTHONIOENCODING': 'ascii'})
    assert rb', \xe4\u8eca' in done.stdout


def test_inspect_without_time(tmp_path, capsys):
    frames = traffic(5)
    for frame in frames:
        del frame['game_time']
    (tmp_path / 'in.json').write_text(json.dumps(frames))
    assert main(['inspect', str(tmp_path / 'in.json')]) == 0
    assert 'no frame has a time' in capsys.readouterr().out


def test_safety_of_what_cannot_be_read_names_the_reason(tmp_path, capsys):
    (tmp_path / 'cut.json').write_text('[{"frame": [}]')
    assert main(['inspect', str(tmp_path / 'cut.json'), '--safety']) == 1
    error = capsys.readouterr().err
    assert 'line 1 column 13' in error
    assert 'ego' not in error


def test_safety_is_that_of_the_actor_that_ego_tag_marks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(['synth', '-q', 'a.json', '--vehicles', '3', '--frames', '10']) == 0
    assert main(['inspect', 'a.json', '--safety', '--json', '-p', 'ego_tag:=vehicle']) == 0
    with sensor.open_recording('a.json') as recording:
        first = next(iter(recording))
    measured = json.loads(capsys.readouterr().out)['safety']['actor']
    vehicles = [name for name, tags in zip(first.names, first.tags, strict=True)
                if 'vehicle' in tags]
    assert measured == vehicles[0]
    assert main(['inspect', 'a.json', '--safety', '-p', 'ego_tag:=nope']) == 1
    shown = capsys.readouterr()
    assert shown.err.endswith('error: a.json: found no actor tagged nope; expected an ego; '
                              '--ego-tag TAG selects an actor by its tag\n')
    assert 'ego         none; --ego-tag TAG selects' in shown.out
