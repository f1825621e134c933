# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Every option of a command is used by a run or refused, whatever its value; the help."""

import argparse
from importlib import import_module
import shutil
import subprocess
import sys

from budgets import each_once, one_of
from paths import CARLA, SAMPLE
import pytest

from state_sensor_ros.classes import DEFAULT_CLASSES
from state_sensor_ros.commands.arguments import shared
from state_sensor_ros.commands.command_line import COMMANDS, main
from state_sensor_ros.commands.format_options import SELECTION
from state_sensor_ros.commands.live import LIVE_OPTIONS
from state_sensor_ros.commands.parser import Parser
from state_sensor_ros.simulators.opening import formats, trajectory_format

# Prints the modules that the help need not import.
QUICK = """
import io, sys
from contextlib import redirect_stdout, suppress
from state_sensor_ros.commands.command_line import main
with redirect_stdout(io.StringIO()), suppress(SystemExit):
    main(['convert', '--help'])
print([name for name in ('numpy', 'msgspec', 'rclpy', 'state_sensor_ros.simulators')
       if name in sys.modules])
"""
OF_ALL = {'force', 'quiet', 'help'}
ROWS = {each.name: each for each in formats()}
READ = {'json': str(SAMPLE), 'bag': 'bag', 'dataset': str(CARLA)}


def options_of(command):
    parser = Parser(prog=command)
    import_module(f'state_sensor_ros.commands.arguments.{command}').add_arguments(parser)
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
          SELECTION | ROWS[read].reads | row.writes | {'to'}, capsys)
    assert not (folder / out).exists()


@pytest.mark.parametrize('written', one_of(
    ['mcap', 'csv', 'json', 'parquet', 'osi', 'sqlite3'], n_always=2))
def test_convert_of_many_refuses_what_it_does_not_use(folder, capsys, written):
    used = SELECTION.union(ROWS[written].writes, ('to', 'jobs', 'dask'),
                           *(row.reads for row in ROWS.values()))
    check('convert', [str(SAMPLE), 'outs', '--to', written], used, capsys)


@pytest.mark.parametrize('read', one_of(READ))
def test_inspect_of_a_file_refuses_what_it_does_not_use(folder, capsys, read):
    check('inspect', [READ[read]],
          SELECTION.union(ROWS[read].reads, ('json', 'ego_tag', 'live', 'parquet', 'jobs', 'dask',
                                             'safety')), capsys)
    assert main(['inspect', '--force', READ[read]]) == 2


def test_inspect_of_many_refuses_what_it_does_not_use(folder, capsys):
    used = SELECTION.union(('json', 'ego_tag', 'live', 'safety', 'parquet', 'jobs', 'dask'),
                           *(row.reads for row in ROWS.values()))
    check('inspect', [str(SAMPLE), 'bag'], used, capsys)


def test_inspect_of_a_stream_refuses_what_it_does_not_use(folder, capsys):
    used = (SELECTION | LIVE_OPTIONS | {'live', 'json', 'ego_tag', 'safety'}) - {
        'start', 'end'}
    check('inspect', ['--live', '--seconds', '0.01'], used, capsys)


@pytest.mark.parametrize(('read', 'written'), each_once(list(READ), ['picture', 'animation']))
def test_render_refuses_what_it_does_not_use(folder, capsys, read, written):
    check('render', [READ[read], f'out{ROWS[written].suffixes[0]}'],
          SELECTION | ROWS[read].reads | ROWS[written].writes, capsys)


@pytest.mark.parametrize('read', one_of(READ))
def test_view_of_a_file_refuses_what_it_does_not_use(folder, capsys, read):
    check('view', [READ[read], '--save', 'out.rrd'], SELECTION | ROWS[read].reads | {
        'names', 'map', 'ego_tag', 'save',
        # They exclude each other and --save.
        'web', 'no_spawn'}, capsys)


def test_view_of_a_stream_refuses_what_it_does_not_use(folder, capsys):
    used = SELECTION | LIVE_OPTIONS | {
        'names', 'map', 'ego_tag', 'save', 'web', 'no_spawn'}
    check('view', ['--save', 'out.rrd', '--seconds', '0.01'], used - {'start', 'end'}, capsys)


@pytest.mark.parametrize('written', one_of(
    sorted(name for name, row in ROWS.items() if row.is_written), n_always=2))
def test_record_refuses_what_it_does_not_use(folder, capsys, written):
    row = ROWS[written]
    out = f'out{row.suffixes[0]}' if row.suffixes else 'out'
    words = ['--source', 'carla'] if written == 'dataset' else []
    check('record', [out, *words, '--seconds', '0.01'],
          SELECTION | LIVE_OPTIONS | row.writes | {'once', 'to'}
          | ({'storage'} if written == 'dataset' else set()), capsys)


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
               'fail_below', 'fail_above', 'jobs', 'dask', 'max_bag_bytes', 'ego_tag',
               'desired_tags', 'undesired_tags', 'definition', 'align', 'horizons', 'k',
               'objects_topic', 'ego_tf', 'iou_bev', 'iou_3d', 'ignore_areas'}
RUNS |= {
    'evaluate by a trajectory': ([str(SAMPLE), 'bag'], OF_EVALUATE | {
        'parquet', 'html', 'curves', 'against'}),
    'evaluate by a bag': (['bag', 'bag'], OF_EVALUATE | {
        'parquet', 'html', 'truth_topic', 'curves', 'against'}),
    'evaluate many': ([str(SAMPLE), 'bag', 'bag'], OF_EVALUATE | {
        'truth_topic', 'html', 'parquet', 'curves', 'against', 'pool'})}
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
    tried = {'view', 'convert', 'inspect', 'render', 'record', 'parameters', 'simulate',
             *(name.split()[0] for name in RUNS)}
    assert tried == COMMANDS.keys()


@pytest.mark.parametrize(('words', 'text'), [
    (['convert', '--desird-tags', 'a', 'in', 'out'], 'did you mean --desired-tags?'),
    (['convert', '--workers', '2', 'in', 'out'], 'arguments: --workers (see'),
    (['convrt'], 'did you mean convert?')])
def test_wrong_word_is_answered_with_the_nearest(capsys, words, text):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    assert text in capsys.readouterr().err


@pytest.mark.parametrize('command', COMMANDS)
def test_help_is_a_page_with_examples_and_names_what_sets_parameters(monkeypatch, capsys, command):
    monkeypatch.setenv('COLUMNS', '100')
    with pytest.raises(SystemExit, match='0'):
        main([command, '--help'])
    text = capsys.readouterr().out
    examples = text.partition('\nexamples:\n')[2].strip().splitlines()
    assert 2 <= len(examples) <= 3
    assert all(line.strip().startswith(f'state_sensor {command}') for line in examples)
    lines = text.splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 100
    assert any(line.startswith('  -p NAME:=VALUE ') for line in lines)
    assert any(line.startswith('  --params-file FILE ') for line in lines)


def test_choices_are_those_of_the_formats():
    """Their modules take longer to import than the help may."""
    assert sorted(trajectory_format().generations) == sorted(shared.GENERATIONS)
    assert {row.storage for row in ROWS.values()} - {''} == {'mcap', 'sqlite3'}
    assert DEFAULT_CLASSES[-2:] == ('car', 'other')


def test_help_is_quick():
    """A user waits for it; what a conversion needs takes three times as long to import."""
    words = [sys.executable, '-c', QUICK]
    assert subprocess.run(words, capture_output=True, text=True, check=False).stdout == '[]\n'


@pytest.mark.parametrize('words', [
    ['--desired-tags', 'vehicle', 'IN', 'OUT'], ['IN', '--actors', 'truck_monoDrive_01_1', 'OUT'],
    ['IN', 'OUT', '--desired-tags', 'vehicle', 'ego'],
    ['--actors', 'truck_monoDrive_01_1', 'b', '--', 'IN', 'OUT'],
    ['--desired-tags=vehicle', 'IN', '--force', 'OUT'],
    ['--desired-tags', 'vehicle', 'IN', '--outputs', 'vision', 'BAG'],
    ['--outputs', 'vision', 'autoware', 'IN', 'BAG', '--force']])
def test_option_with_several_values_leaves_in_and_out(folder, words):
    files = {'IN': str(SAMPLE), 'OUT': 'out.json', 'BAG': 'out'}
    assert main(['convert', *[files.get(word, word) for word in words], '--end', '0']) == 0
    assert (folder / 'out.json').is_file() or (folder / 'out').is_dir()


def test_option_with_several_values_leaves_all_of_many_inputs(folder, capsys):
    assert main(['inspect', '--desired-tags', 'vehicle', str(SAMPLE), 'bag']) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
