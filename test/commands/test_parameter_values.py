# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Parameters of commands: -p and --params-file."""

from functools import cache
import json

from paths import DATA, ROOT, SAMPLE
import pytest

from state_sensor_ros.commands.cli import COMMANDS, main
from state_sensor_ros.files import formats

SUFFIXES = {row.name: row.suffixes[0] for row in formats() if row.suffixes}
SIZES = f'{[float(n) for n in range(1, 22)]}'
# By format and parameter: a value that changes OUT.
EFFECTS = {
    'json': {'obb_extents': 'half', 'road_s_unit': 'm'},
    'csv': {'ego_tag': 'vehicle', 'default_sizes': SIZES},
    'osi': {'ego_tag': 'object', 'default_sizes': SIZES},
    'mcap': {
        'global_frame': 'world', 'frame_prefix': 'a_', 'parent_frame': 'earth',
        'odom_frame': 'odom', 'odom_frame_pose': '[1, 1, 1, 1, 1, 1]',
        'global_frame_pose': '[1, 1, 1, 1, 1, 1]', 'ego_tag': 'vehicle', 'ego_frame': 'base',
        'include_obb': 'false', 'debug_drawing': 'true', 'labels': 'false', 'tf': 'none',
        'wheel_tf': 'true', 'joint_states': 'true', 'odometry': 'false', 'frame': 'false',
        'max_actor_topics': '1', 'twist_frame': 'global',
        'pose_covariance_diagonal': '[1, 1, 1, 1, 1, 1]',
        'twist_covariance_diagonal': '[1, 1, 1, 1, 1, 1]', 'publish_clock': 'true',
        'stamp_source': 'utc', 'outputs': '[vision]', 'autoware_objects': '[tracking]',
        'object_classes': '[truck]', 'object_range': '5', 'base_link_xyz': '[1, 1, 1]',
        'default_sizes': SIZES, 'map_file': str(DATA / 'sumo' / 'hill.net.xml'),
        'perception.range': '9', 'perception.missing': '0.5', 'perception.position_std': '1'}}
BESIDE = {'global_frame_pose': ['-p', 'parent_frame:=earth'],
          'odom_frame_pose': ['-p', 'odom_frame:=odom'],
          'labels': ['-p', 'debug_drawing:=true'],
          **dict.fromkeys(('autoware_objects', 'object_classes', 'object_range', 'default_sizes',
                           'base_link_xyz', 'perception.range', 'perception.missing',
                           'perception.position_std'), ('--outputs', 'autoware'))}
# What is written without a parameter, by format, source and the options beside it.
WITHOUT = {}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'in.json').write_text(beginning())
    return tmp_path


@cache
def beginning():
    """Return 6 frames with a vehicle without boxes and an object that is absent once."""
    frames = json.loads(SAMPLE.read_text())[:6]
    for frame in frames:
        frame['frame']['vehicles'][1]['state']['oriented_bounding_box'] = []
    del frames[3]['frame']['objects'][0]
    return json.dumps(frames)


@pytest.mark.parametrize(('written', 'name'), [
    (written, name) for written, names in EFFECTS.items() for name in names])
def test_parameter_has_an_effect(folder, capsys, written, name):
    if written in ('csv', 'osi'):
        pytest.importorskip({'csv': 'pyarrow', 'osi': 'osi3'}[written])
    source, out = 'in.json', folder / f'out{SUFFIXES[written]}'
    if written == 'json':
        assert main(['convert', 'in.json', 'in', '-q']) == 0
        source = 'in'
    beside = BESIDE.get(name, []) if written == 'mcap' else []
    words = ['-p', f'{name}:={EFFECTS[written][name]}']
    assert main(['convert', source, *beside, *words, str(out), '-q']) == 0
    case = (written, source, *beside)
    if case not in WITHOUT:
        without = out.with_name(f'without{SUFFIXES[written]}')
        assert main(['convert', source, *beside, str(without), '-q']) == 0
        WITHOUT[case] = without.read_bytes()
    assert out.read_bytes() != WITHOUT[case]


FILE = """
/**:
  ros__parameters:
    ego_tag: vehicle
    labels: true
    stamp_source: utc
    sumo: {ego: a}
    qos_overrides: {/tf: {publisher: {depth: 1}}}
"""


def test_file_gives_parameters(folder, capsys):
    (folder / 'p.yaml').write_text(FILE)
    for place, words in (('a', ['--params-file', 'p.yaml']),
                         ('b', ['-p', 'ego_tag:=vehicle', '-p', 'stamp_source:=utc'])):
        (folder / place).mkdir()
        assert main(['convert', 'in.json', f'{place}/drive.mcap', *words, '-q']) == 0
    assert (folder / 'a/drive.mcap').read_bytes() == (folder / 'b/drive.mcap').read_bytes()
    assert main(['convert', 'in.json', 'c.csv', '--params-file',
                 str(ROOT / 'config' / 'state_sensor.yaml'), '-q']) == 0
    # The command line counts.
    for place, words in (('a', ['--params-file', 'p.yaml', '-p', 'stamp_source:=game_time']),
                         ('b', [])):
        assert main(['convert', 'in.json', f'{place}/drive.mcap', *words, '-q', '--force',
                     '--ego-tag', 'object']) == 0
    assert (folder / 'a/drive.mcap').read_bytes() == (folder / 'b/drive.mcap').read_bytes()


@pytest.mark.parametrize(('text', 'code', 'words'), [
    ('/**:\n  ros__parameters:\n\ttf: ego\n', 1, 'line 3, column 1'),
    ('/**:\n  ros__parameters:\n    tff: ego\n', 1, "tff: unknown parameter; did you mean 'tf'?"),
    ('/**:\n  ros__parameters:\n    tf: some\n', 1, "tf: found 'some'; expected one of all"),
    ('/other:\n  ros__parameters:\n    tf: ego\n', 0,
     'the node is /state_sensor, the file has /other'),
    ('/**:\n  ros__parameters: &a\n    sumo: *a\n', 1, 'the alias *a'),
    (f'/**:\n  ros__parameters:\n    rate: {"9" * 400}\n', 1, 'rate: found an integer beyond'),
    ('/**:\n  ros__parameters: !!set {tf}\n', 1, "ros__parameters: found {'tf'}"),
    (None, 1, 'there is no file p.yaml')])
def test_file_with_a_fault_is_named(folder, capsys, text, code, words):
    if text is not None:
        (folder / 'p.yaml').write_text(text)
    assert main(['convert', 'in.json', 'out', '--params-file', 'p.yaml', '-q']) == code
    [line] = capsys.readouterr().err.splitlines()
    assert words in line


@pytest.mark.parametrize('command', COMMANDS)
def test_parameter_is_checked_in_each_command(folder, capsys, command):
    out = {'convert': ['in.json', 'out.json'], 'render': ['in.json', 'out.png'],
           'record': ['out.json'], 'inspect': ['in.json'], 'replay': ['in.json'],
           'synth': ['out.json'], 'repair': ['in.json', 'out.json'],
           'evaluate': ['in.json', 'in.json'], 'view': ['in.json', '--save', 'out.rrd']}
    for text, code, words in (
            ('labls:=true', 1, "labls: unknown parameter; did you mean 'labels'?"),
            ('tf:=some', 1, "tf: found 'some'; expected one of all, ego, none"),
            ('labels', 2, 'found labels; expected NAME:=VALUE')):
        try:
            found = main([command, *out.get(command, []), '-p', text])
        except SystemExit as end:
            found = end.code
        assert words in capsys.readouterr().err
        assert found == code
    assert sorted(path.name for path in folder.iterdir()) == ['in.json']


@pytest.mark.parametrize('words', [
    ['convert', 'in.json', 'out.json'], ['convert', 'in.json', 'out.csv'],
    ['convert', 'in.json', 'out.mcap'], ['convert', 'in.json', 'out', '--to', 'json'],
    ['inspect', 'in.json', '--json'], ['render', 'in.json', 'out.html']],
    ids=lambda words: ' '.join(word for word in words if word != 'in.json'))
def test_parameters_of_tags_select_as_the_options_do(folder, capsys, words):
    """``-p desired_tags:=[ego]`` was taken by all of them, and selected in bags only."""
    if 'out.csv' in words:
        pytest.importorskip('pyarrow')
    results = {}
    for name, tags in {'option': ['--desired-tags', 'ego'], 'all': [],
                       'parameter': ['-p', 'desired_tags:=[ego]']}.items():
        if words[0] != 'inspect':
            tags = ['--force', '--quiet', *tags]
        tags += ['--end', '0.2']
        assert main([*words, *tags]) in (0, 1)
        outs = sorted(path for path in folder.rglob('out*') if path.is_file())
        outs += sorted((folder / 'out').glob('*.json'))
        results[name] = capsys.readouterr().out, [path.read_bytes() for path in outs]
    assert any(results['parameter'][0] or results['parameter'][1])
    assert results['parameter'] == results['option'] != results['all']


def test_parameter_beside_its_option_is_refused(folder, refusal):
    for words in (['render', str(SAMPLE), 'out.png', '-p', 'ego_tag:=a', '--ego-tag', 'b'],
                  ['inspect', str(SAMPLE), '-p', 'desired_tags:=[a]', '--desired-tags', 'b'],
                  ['record', 'out.json', '-p', 'port:=1', '--port', '2'],
                  ['record', 'out.json', '--source', 'carla', '-p', 'source:=carla'],
                  ['evaluate', str(SAMPLE), 'bag', '-p', 'ego_tag:=a', '--ego-tag', 'b']):
        assert ' are both given; leave' in refusal(*words, code=2)
    assert [path.name for path in folder.iterdir()] == ['in.json']
