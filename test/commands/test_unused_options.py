# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Every option of a command either is used by a run or is refused, whatever its value."""

import argparse
from functools import cache
from importlib import import_module
import json
import shutil

from budgets import each_once, one_of
from paths import CARLA, DATA, SAMPLE
from ports import free_port
import pytest

from state_sensor_ros.commands.command_line import COMMANDS, main
from state_sensor_ros.commands.format_options import SELECTION, written_with
from state_sensor_ros.commands.live import LIVE_OPTIONS
from state_sensor_ros.commands.parser import Parser
from state_sensor_ros.simulators.opening import formats

# What -p names is checked by itself.
OF_ALL = {'force', 'quiet', 'help', 'parameter'}
ROWS = {each.name: each for each in formats()}
READ = {'json': str(SAMPLE), 'bag': 'bag', 'dataset': str(CARLA)}


def options_of(command):
    parser = Parser(command)
    import_module(f'state_sensor_ros.commands.{command}').add_arguments(parser)
    return {action.dest: action for action in parser._actions
            if action.option_strings and action.dest != 'help'}


def words_of(action):
    """Return an option with its default, or with another value that it may have."""
    option = action.option_strings[-1]
    if isinstance(action, argparse.BooleanOptionalAction) or action.nargs == 0:
        return [action.option_strings[0]]
    n_values = action.nargs if isinstance(action.nargs, int) else 1
    value = action.choices and sorted(action.choices)[0]
    value = {'to': 'json', 'size': '8x6', 'dpi': '100'}.get(action.dest, value)
    return [option, *[str(value or 1)] * n_values]


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    bag = tmp_path_factory.mktemp('made') / 'bag'
    assert main(['convert', str(SAMPLE), str(bag), '--end', '0', '-q']) == 0
    return bag


@pytest.fixture
def folder(bag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(bag, 'bag')
    return tmp_path


def check(command, words, used, capsys):
    """Run a command with each option that it does not use."""
    for name, action in options_of(command).items():
        if name in used | OF_ALL:
            continue
        capsys.readouterr()
        assert main([command, *words_of(action), *words]) == 2, name
        [line] = capsys.readouterr().err.splitlines()
        assert f'--{name.replace("_", "-")}' in line
        assert ' is for ' in line or ' are for ' in line or name == 'storage'


@pytest.mark.parametrize(('read', 'written'), each_once(list(READ), [
    name for name, row in ROWS.items() if row.is_written and name != 'dataset']))
def test_convert_refuses_what_it_does_not_use(folder, capsys, read, written):
    row = ROWS[written]
    out = f'out{row.suffixes[0]}' if row.suffixes else 'out'
    check('convert', [READ[read], out],
          SELECTION | ROWS[read].reads | written_with(row) | {'to'}, capsys)
    assert not (folder / out).exists()


@pytest.mark.parametrize('written', one_of(
    ['mcap', 'csv', 'json', 'parquet', 'osi', 'sqlite3'], n_always=2))
def test_convert_of_many_refuses_what_it_does_not_use(folder, capsys, written):
    used = SELECTION.union(written_with(ROWS[written]), ('to', 'jobs', 'dask'),
                           *(row.reads for row in ROWS.values()))
    check('convert', [str(SAMPLE), 'outs', '--to', written], used, capsys)


@pytest.mark.parametrize('read', one_of(READ))
def test_inspect_of_a_file_refuses_what_it_does_not_use(folder, capsys, read):
    check('inspect', [READ[read]],
          SELECTION.union(ROWS[read].reads, ('json', 'ego_tag', 'live', 'parquet', 'jobs', 'dask',
                                             'safety')), capsys)
    assert main(['inspect', '--force', READ[read]]) == 2


def test_inspect_of_many_refuses_what_it_does_not_use(folder, capsys):
    used = SELECTION.union(('json', 'ego_tag', 'live', 'parquet', 'jobs', 'dask'),
                           *(row.reads for row in ROWS.values()))
    check('inspect', [str(SAMPLE), 'bag'], used, capsys)


def test_inspect_of_a_stream_refuses_what_it_does_not_use(folder, capsys):
    used = (SELECTION | LIVE_OPTIONS | {'obb_extents', 'live', 'json', 'ego_tag', 'safety'}) - {
        'start', 'end'}
    check('inspect', ['--live', '--seconds', '0.01'], used, capsys)


@pytest.mark.parametrize(('words', 'text'), [
    (('convert', SAMPLE, 'out.csv', '-p', 'tf:=ego'), '-p tf is for writing a bag'),
    (('convert', SAMPLE, 'out.csv', '-p', 'rate:=2.0'), '-p rate is for another use'),
    (('inspect', SAMPLE, '-p', 'tf:=ego'), '-p tf is for writing a bag'),
    (('render', SAMPLE, 'out.png', '-p', 'odometry:=false'), '-p odometry is for'),
    (('record', 'out.json', '-p', 'rate:=2.0'), '-p rate is for another --source'),
    (('record', 'out.json', '-p', 'carla.start_spot:=2'), 'is for another --source'),
    (('record', 'out.json', '-p', 'control.kp:=2'), '-p control.kp is for the node only'),
    (('record', 'out.json', '--relay-port', '3000'), '--carla.relay-port is for another'),
    (('inspect', '--live', '--source', 'carla', '-p', 'obb_extents:=half'), '-p obb_extents'),
    (('record', 'bag2', '--camera-fov', '90'), '--carla.camera-fov is for another --source'),
    (('convert', SAMPLE, 'bag2', '-p', 'carla.camera_tf:=true'), '-p carla.camera_tf is for'),
    (('convert', SAMPLE, 'bag2', '--carla.camera-tf'), '--carla.camera-tf is for a recording of'),
    (('inspect', SAMPLE, '--sumo.ego', 'a'), '--sumo.ego is for a recording of sumo'),
    (('inspect', SAMPLE, '--carla.start-spot', '1'), '--carla.start-spot is for --live'),
    (('inspect', SAMPLE, '-p', 'carla.camera_tf:=true'), '-p carla.camera_tf is for'),
])
def test_parameters_are_refused_where_they_are_not_used(folder, capsys, words, text):
    assert main(list(map(str, words))) == 2
    assert text in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ['bag']


@pytest.mark.parametrize(('parameter', 'text'), [
    ('carla.start_spot:=2',
     'carla.start_spot: found 2; expected its default without control_port'),
    ('carla.relay_bind:=0.0.0.0',
     'carla.relay_bind: found 0.0.0.0; expected its default without carla.relay_port')])
@pytest.mark.parametrize('words', [('record', 'out.json'), ('inspect', '--live')])
def test_parameters_of_ports_that_are_not_given_are_refused(
        folder, refusal, words, parameter, text):
    assert text in refusal(*words, '--source', 'carla', '-p', parameter)
    assert sorted(path.name for path in folder.iterdir()) == ['bag']


@pytest.mark.parametrize('words', [
    ['convert', str(SAMPLE), 'out.json'], ['convert', str(SAMPLE), 'out.csv'],
    ['convert', str(SAMPLE), 'out.mcap'], ['convert', str(SAMPLE), 'out', '--to', 'json'],
    ['inspect', str(SAMPLE), '--json'], ['render', str(SAMPLE), 'out.html']],
    ids=lambda words: ' '.join(word for word in words if word != str(SAMPLE)))
def test_parameters_of_tags_select_as_the_options_do(folder, capsys, words):
    """``-p desired_tags:=[ego]`` was taken by all of them, and selected in bags only."""
    if 'out.csv' in words:
        pytest.importorskip('pyarrow')
    if 'out.html' in words:
        pytest.importorskip('plotly')
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
                  ['record', 'out.json', '--source', 'carla', '-p', 'relay_port:=3000',
                   '--relay-port', '4000'],
                  ['evaluate', str(SAMPLE), 'bag', '-p', 'ego_tag:=a', '--ego-tag', 'b'],
                  ['simulate', '--port', '0', '-p', 'port:=1']):
        line = refusal(*words, code=2)
        assert ' is given beside --' in line
    assert [path.name for path in folder.iterdir()] == ['bag']


def test_tags_of_the_selection_configure_the_simulator(folder, capsys):
    """With ``--control-port`` they were not used: the list of tags was called empty."""
    port = str(free_port())
    assert main(['record', 'out.json', '--port', port, '--control-port', port,
                 '--desired-tags', 'vehicle', '--once', '--seconds', '0.2']) == 1
    assert f'cannot connect to 127.0.0.1:{port}' in capsys.readouterr().err


@pytest.mark.parametrize('words', [
    ['inspect', '--live'], ['record', 'out.json'], ['view', '--save', 'out.rrd']],
    ids=lambda words: words[0])
def test_parameter_source_is_refused(folder, refusal, words):
    """Parameters and formats are those of ``--source``."""
    assert '--source selects the simulator' in refusal(*words, '--seconds', '0.01', '-p',
                                                       'source:=carla', code=2)


WITH_PARAMETER = {
    'convert': ('convert', SAMPLE, 'out.csv'), 'inspect': ('inspect', SAMPLE),
    'render': ('render', SAMPLE, 'out.png'), 'record': ('record', 'out.json', '--once'),
    'inspect --live': ('inspect', '--live', '--seconds', '0.1'), 'replay': ('replay', SAMPLE),
    'replay a bag': ('replay', 'bag'), 'simulate': ('simulate', '--port', '0'),
    'simulate a bag': ('simulate', 'bag', '--port', '0'), 'synth': ('synth', 'out.json')}


@pytest.mark.parametrize(('run', 'case'), each_once(list(WITH_PARAMETER), [
    ('rate:=2.0', '-p rate is for', 2),
    ('loop:=true', '-p loop is for', 2),
    ('carla.start_spot:=2', '-p carla.start_spot is for', 2),
    ('carla.start_spt:=2', 'carla.start_spt: unknown parameter; did you mean carla.', 1)]))
def test_parameter_is_refused_by_name_in_each_command(folder, capsys, run, case):
    parameter, text, code = case
    assert main([*map(str, WITH_PARAMETER[run]), '-p', parameter]) in (code, 2)
    assert text in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ['bag']


@pytest.mark.parametrize('run', WITH_PARAMETER)
def test_parameter_without_value_is_wrong_usage(folder, capsys, run):
    with pytest.raises(SystemExit, match='2'):
        main([*map(str, WITH_PARAMETER[run]), '-p', 'rate'])
    assert 'found rate; expected NAME:=VALUE' in capsys.readouterr().err


@pytest.mark.parametrize(('read', 'written'), each_once(list(READ), ['picture', 'animation']))
def test_render_refuses_what_it_does_not_use(folder, capsys, read, written):
    check('render', [READ[read], f'out{ROWS[written].suffixes[0]}'],
          SELECTION | ROWS[read].reads | ROWS[written].writes, capsys)


@pytest.mark.parametrize('read', one_of(READ))
def test_view_of_a_file_refuses_what_it_does_not_use(folder, capsys, read):
    check('view', [READ[read], '--save', 'out.rrd'], SELECTION | ROWS[read].reads | {
        'names', 'map', 'ego_tag', 'save', 'parameter',
        # They exclude each other and --save.
        'web', 'no_spawn'}, capsys)


def test_view_of_a_stream_refuses_what_it_does_not_use(folder, capsys):
    used = SELECTION | LIVE_OPTIONS | {
        'names', 'map', 'ego_tag', 'obb_extents', 'save', 'web', 'no_spawn'}
    check('view', ['--save', 'out.rrd', '--seconds', '0.01'], used - {'start', 'end'}, capsys)


@pytest.mark.parametrize('words', [
    ['inspect', '--live'], ['record', 'out.json'], ['view', '--save', 'out.rrd']],
    ids=lambda words: words[0])
def test_parameter_of_live_streams_is_taken_by_every_reader_of_one(folder, capsys, words):
    """``view`` refused those that are not its options, such as ``-p rate:=0``."""
    if words[0] == 'view':
        pytest.importorskip('rerun')
    port = free_port()
    assert main([*words, '--port', str(port), '--seconds', '0.2',
                 '-p', 'reconnect_min:=0.05']) == 1
    assert f'127.0.0.1:{port}: ' in capsys.readouterr().err


@pytest.mark.parametrize('written', one_of(
    sorted(name for name, row in ROWS.items() if row.is_written), n_always=2))
def test_record_refuses_what_it_does_not_use(folder, capsys, written):
    row = ROWS[written]
    out = f'out{row.suffixes[0]}' if row.suffixes else 'out'
    words = ['--source', 'carla'] if written == 'dataset' else []
    check('record', [out, *words, '--seconds', '0.01'],
          SELECTION | LIVE_OPTIONS | written_with(row) | {'once', 'to'}
          | ({'storage'} if written == 'dataset' else set())
          | ({'topics'} if row.storage else set()), capsys)


# By format and option: a use that changes OUT, beside the words of both runs.
AUTOWARE = ['--outputs', 'autoware']
EFFECTS = {
    'json': {'generation': ['v1'], 'obb_extents': ['half'], 'road_s_unit': ['m']},
    'csv': {'columns': ['name,x'], 'ego_tag': ['vehicle'],
            'default_sizes': [str(n) for n in range(1, 22)]},
    'osi': {'resample': ['50'], 'default_class': ['truck'], 'ego_tag': ['object'],
            'gaps': ['fill'], 'default_sizes': [str(n) for n in range(1, 22)]},
    'mcap': {
        'compression': ['lz4'],
        'global_frame': ['world'], 'frame_prefix': ['a_'], 'parent_frame': ['earth'],
        'odom_frame': ['odom'], 'odom_frame_pose': ['1'] * 6,
        'global_frame_pose': ['1'] * 6, 'ego_tag': ['vehicle'], 'ego_frame': ['base'],
        'no-include-obb': [], 'debug_drawing': [], 'no-labels': [], 'tf': ['none'],
        'wheel_tf': [], 'joint_states': [], 'no-odometry': [], 'no-frame': [],
        'max_actor_topics': ['1'], 'twist_frame': ['global'],
        'pose_covariance_diagonal': ['1'] * 6, 'twist_covariance_diagonal': ['1'] * 6,
        'stamp_source': ['utc'], 'outputs': ['vision'], 'autoware_objects': ['tracking'],
        'object_classes': ['truck'], 'object_range': ['5'], 'base_link_xyz': ['1'] * 3,
        'default_sizes': [str(n) for n in range(1, 22)], 'clock': [], 'name': ['other'],
        'namespace': ['other'], 'map_file': [str(DATA / 'sumo' / 'hill.net.xml')]}}
BESIDE = {'global_frame_pose': ['--parent-frame', 'earth'],
          'odom_frame_pose': ['--odom-frame', 'odom'], 'labels': ['--debug-drawing'],
          **dict.fromkeys(('autoware_objects', 'object_classes', 'object_range',
                           'base_link_xyz', 'default_sizes'), AUTOWARE)}
# What is written without an option, by format, source and the options beside it.
WITHOUT = {}


def plain(option):
    return option.removeprefix('--').removeprefix('no-').replace('-', '_')


@pytest.mark.parametrize('written', EFFECTS)
def test_every_option_of_a_format_is_tried_below(written):
    """Except ``--storage`` of a folder, ``-p`` and the parameters of single simulators."""
    options = written_with(ROWS[written]) - {'storage', 'parameter'}
    assert {plain(option) for option in EFFECTS[written]} == {
        option for option in options if '.' not in option}


@cache
def beginning():
    """Return 6 frames with a vehicle without boxes and an object that is absent once."""
    frames = json.loads(SAMPLE.read_text())[:6]
    for frame in frames:
        frame['frame']['vehicles'][1]['state']['oriented_bounding_box'] = []
    del frames[3]['frame']['objects'][0]
    return json.dumps(frames)


@pytest.mark.parametrize(('written', 'option'), [
    (written, option) for written, options in EFFECTS.items() for option in options])
def test_option_of_a_format_has_an_effect(folder, written, option):
    if written in ('csv', 'osi'):
        pytest.importorskip({'csv': 'pyarrow', 'osi': 'osi3'}[written])
    (folder / 'in.json').write_text(beginning())
    source = 'bag' if option in ('obb_extents', 'road_s_unit') else 'in.json'
    beside = BESIDE.get(plain(option), []) if written == 'mcap' else []
    words = [f'--{option.replace("_", "-")}', *EFFECTS[written][option]]
    out = folder / f'out{ROWS[written].suffixes[0]}'
    assert main(['convert', source, *beside, *words, str(out), '-q']) == 0
    case = (written, source, *beside)
    if case not in WITHOUT:
        without = out.with_name(f'without{ROWS[written].suffixes[0]}')
        assert main(['convert', source, *beside, str(without), '-q']) == 0
        WITHOUT[case] = without.read_bytes()
    assert out.read_bytes() != WITHOUT[case]


@pytest.mark.parametrize(('command', 'words'), each_once([
    ['convert', str(SAMPLE), 'out'], ['record', 'out.mcap', '--seconds', '0.01'],
    ['convert', str(SAMPLE), 'out.db3'], ['convert', str(SAMPLE), 'out', '--to', 'mcap']], [
    ['--no-labels'], ['--labels'], ['--object-range', '0'], ['--object-range', '50'],
    ['-p', 'object_range:=50'], ['--object-classes', 'car'], ['--base-link-xyz', '1', '0', '0'],
    ['--autoware-objects', 'tracking'], ['--autoware-objects', 'tracking', '--outputs', 'vision'],
    ['--default-sizes', *['1'] * 21], ['--global-frame-pose', *['1'] * 6],
    ['--twist-frame', 'global', '--no-odometry'], ['--wheel-tf', '--tf', 'none'],
    ['-p', 'wheel_tf:=true', '-p', 'tf:=none'], ['--max-actor-topics', '5', '--no-odometry'],
    ['--debug-drawing', '--no-include-obb'], ['--no-include-obb', '--no-frame'],
    ['--pose-covariance-diagonal', *['1'] * 6, '--no-odometry'],
    ['--twist-covariance-diagonal', *['1'] * 6, '--no-odometry'],
    ['-p', 'perception.seed:=3', '--outputs', 'vision']]),
    ids=lambda words: ' '.join(word for word in words[:4] if word != str(SAMPLE)))
def test_option_that_is_for_another_one_is_refused_without_it(folder, refusal, command, words):
    line = refusal(command[0], *words, *command[1:], code=2)
    assert f'{words[1].partition(":=")[0] if words[0] == "-p" else plain(words[0])} is for' in \
        line.replace('--', '').replace('-', '_').replace('_p ', '')
    assert ' is for --' in line
    assert [path.name for path in folder.iterdir()] == ['bag']


# The runs of the commands that have no format to write: words, and the options that they use.
RUNS = {
    'synth': (['out.json'], {'frames', 'rate', 'vehicles', 'objects', 'seed', 'generation'}),
    'repair a trajectory': (['cut.json', 'out.json'], set()),
    'repair a bag': (['bag', 'out'], {'max_bag_bytes'}),
    'replay': ([str(SAMPLE)], {'host', 'port', 'control_port', 'rate', 'step', 'start', 'loop',
                               'backwards', 'no_sensor', 'simulator'}),
    'replay without a sensor': ([str(SAMPLE), '--no-sensor'], {
        'host', 'control_port', 'rate', 'step', 'start', 'loop', 'backwards', 'no_sensor',
        'simulator'}),
}
OF_EVALUATE = {'topic', 'at', 'range', 'classes', 'actors', 'start', 'end', 'rate', 'json',
               'fail_below', 'fail_above', 'jobs', 'dask', 'max_bag_bytes', 'stamp_source',
               'global_frame', 'ego_tag', 'base_link_xyz', 'default_sizes', 'desired_tags',
               'undesired_tags', 'definition', 'align'}
RUNS |= {
    'evaluate by a trajectory': ([str(SAMPLE), 'bag'], OF_EVALUATE | {
        'parquet', 'html', 'obb_extents', 'curves', 'against'}),
    'evaluate by a bag': (['bag', 'bag'], OF_EVALUATE | {
        'parquet', 'html', 'truth_topic', 'curves', 'against'}),
    'evaluate many': ([str(SAMPLE), 'bag', 'bag'], OF_EVALUATE | {
        'truth_topic', 'obb_extents', 'html', 'parquet', 'curves', 'against'})}
RUNS |= {
    'topics': ([], {'node', 'seconds', 'all'}),
    'echo a full name': (['/tf'], {'once', 'csv'})}
OF_STAND_INS = {'port', 'bind', 'rate', 'frames', 'vehicles', 'objects', 'seed', 'source'}
OF_CONTROL = {'on_sample', 'reply_magic', 'no_success'}
RUNS |= {
    'simulate': (['--source', 'monodrive'], OF_STAND_INS | {
        'control_port', 'header', 'generation', 'cycle'}),
    'simulate a recording': ([str(SAMPLE)], OF_STAND_INS - {
        'vehicles', 'objects', 'seed'} | {'control_port', 'header', 'loop'}),
    'simulate another one': (['--source', 'carla'], OF_STAND_INS | {
        'synchronous', 'episode', 'map'})}
VALUES = {'parquet': 'out.parquet', 'html': 'out.html', 'truth_topic': '/frame'}


@pytest.mark.parametrize('name', RUNS)
def test_command_without_formats_refuses_what_it_does_not_use(folder, capsys, name):
    (folder / 'cut.json').write_bytes(SAMPLE.read_bytes()[:-100])
    before = sorted(folder.iterdir())
    words, used = RUNS[name]
    command = name.split()[0]
    for option, action in options_of(command).items():
        if option in used | {'quiet', 'help'} or (option == 'force' and command in (
                'synth', 'repair')):
            continue
        given = words_of(action)
        if option in VALUES:
            given[1] = VALUES[option]
        capsys.readouterr()
        try:
            code = main([command, *given, *words])
        except SystemExit as end:
            code = end.code
        assert code == 2, option
        [line] = capsys.readouterr().err.splitlines()
        assert f'--{option.replace("_", "-")}' in line
    assert sorted(folder.iterdir()) == before


def test_every_command_is_in_this_file():
    """Those that read a stream or write any format are tried above."""
    tried = {'view', 'convert', 'inspect', 'render', 'record', 'parameters',
             *(name.split()[0] for name in RUNS)}
    assert tried == COMMANDS.keys()


@pytest.mark.parametrize(('words', 'text'), [
    (['convert', '--desird-tags', 'a', 'in', 'out'], 'did you mean --desired-tags?'),
    (['convrt'], 'did you mean convert?')])
def test_wrong_word_is_answered_with_the_nearest(capsys, words, text):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    assert text in capsys.readouterr().err


@pytest.mark.parametrize('command', COMMANDS)
def test_help_ends_with_examples(capsys, command):
    with pytest.raises(SystemExit, match='0'):
        main([command, '--help'])
    examples = capsys.readouterr().out.partition('\nexamples:\n')[2].strip().splitlines()
    assert 2 <= len(examples) <= 3
    assert all(line.strip().startswith(f'state_sensor {command}') for line in examples)


@pytest.mark.parametrize('words', [
    ['--desired-tags', 'vehicle', 'IN', 'OUT'], ['IN', '--actors', 'a', 'OUT'],
    ['IN', 'OUT', '--desired-tags', 'vehicle', 'ego'], ['--actors', 'a', 'b', '--', 'IN', 'OUT'],
    ['--desired-tags=vehicle', 'IN', '--force', 'OUT']])
def test_option_with_several_values_leaves_in_and_out(folder, words):
    (folder / 'in.json').write_text(beginning())
    files = {'IN': 'in.json', 'OUT': str(folder / 'out.json')}
    assert main(['convert', *[files.get(word, word) for word in words]]) == 0
    assert (folder / 'out.json').is_file()


def test_option_with_several_values_leaves_all_of_many_inputs(folder, capsys):
    assert main(['inspect', '--desired-tags', 'vehicle', str(SAMPLE), 'bag']) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
