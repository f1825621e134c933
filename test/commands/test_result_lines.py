# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The one line about a result, on standard output, and what --quiet leaves of it."""

import errno
import json
import os
import re
import subprocess
import sys

from budgets import AWAIT_S, each_once
from paths import ROOT, SAMPLE
from programs import run_python, start
import pytest

from state_sensor_ros.commands.cli import main

FACTS = r'5 frames, 0.2 s, 4 actors, \d+(\.\d+)? (kB|MB)'


@pytest.fixture
def drive(tmp_path, capsys):
    path = tmp_path / 'drive.json'
    assert main(['synth', str(path), '--frames', '5', '--vehicles', '3', '--objects', '1']) == 0
    assert re.fullmatch(f'{re.escape(str(path))}: {FACTS}\n', capsys.readouterr().out)
    return path


@pytest.mark.parametrize(('command', 'name', 'facts'), [
    ('convert', 'bag', FACTS),
    ('convert', 'back.json', FACTS),
    ('render', 'drive.svg', FACTS),
    ('repair', 'whole.json', '5 frames; nothing was lost')])
def test_result_is_one_line(drive, tmp_path, capsys, command, name, facts):
    out = tmp_path / name
    words = ['--no-names', '--size', '3x3'] if command == 'render' else []
    assert main([command, str(drive), str(out), *words]) == 0
    found = capsys.readouterr()
    assert re.fullmatch(f'{re.escape(str(out))}: {facts}\n', found.out)
    assert found.err == ''
    assert main([command, '--quiet', '--force', str(drive), str(out), *words]) == 0
    assert capsys.readouterr() == ('', '')


def test_result_on_standard_output_leaves_it_to_the_data(drive):
    found = run_python('-m', 'state_sensor_ros', 'convert', drive, '-', '--generation', 'v2')
    assert (found.returncode, len(json.loads(found.stdout))) == (0, 5)
    assert found.stderr == 'standard output: 5 frames, 0.2 s, 4 actors\n'


def run_in_shell(words, folder, **variables):
    """Run `state_sensor` by a shell, which may close its standard streams."""
    return subprocess.run(
        ['sh', '-c', f'"$0" -m state_sensor_ros {words}', sys.executable], cwd=folder,
        env=os.environ | {'PYTHONPATH': str(ROOT), **variables}, timeout=AWAIT_S,
        capture_output=True, text=True, check=False)


def test_result_needs_no_room(tmp_path):
    found = run_in_shell('synth out.json --frames 2 >/dev/full', tmp_path)
    assert (found.returncode, found.stderr) == (0, '')
    assert len(json.loads((tmp_path / 'out.json').read_text())) == 2


def test_data_without_room_is_an_error(tmp_path):
    found = run_in_shell('synth - --frames 2 >/dev/full', tmp_path)
    assert (found.returncode, found.stderr) == (1, 'error: -: no space left on device\n')


def test_errors_without_a_file_are_not_those_of_standard_output(monkeypatch, capsys):
    def no_more(*_):
        raise OSError(errno.EMFILE, 'Too many open files')
    monkeypatch.setattr('state_sensor_ros.commands.inspect.run_inspect', no_more)
    assert main(['inspect', str(SAMPLE)]) == 1
    assert capsys.readouterr().err == 'error: too many open files\n'


@pytest.mark.parametrize(('command', 'case'), each_once(
    [['render', 'out.svg'], ['convert', 'out.json'], ['convert', 'out']], [
        (['--desired-tags', 'egoo'], 'an actor that passes desired_tags egoo'),
        (['--undesired-tags', 'vehicle,object,cone,traffic_sign'],
         'an actor that passes undesired_tags vehicle object cone traffic_sign'),
        (['--actors', 'Nobody', '--desired-tags', 'ego'], 'the actor Nobody')]))
def test_selection_without_actors_is_an_error(tmp_path, monkeypatch, capsys, command, case):
    """A misspelled tag gave an empty output."""
    words, text = case
    monkeypatch.chdir(tmp_path)
    assert main([command[0], str(SAMPLE), command[1], '--end', '0', *words]) == 1
    line, error = capsys.readouterr().err.splitlines()
    near = ("; did you mean 'ego'?" if 'egoo' in text else
            '; there are ' if 'Nobody' in text else '')
    assert line.startswith(f'warning: {SAMPLE}: no selected frame has {text}{near}')
    assert error == (f'error: {SAMPLE}: found no selected actor in any frame; '
                     'expected at least one actor')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(('line', 'case'), each_once(
    ['convert {} out', 'convert {} out.json', 'inspect {}', 'render {} out.html',
     'evaluate {} stack'], [
        (['--desired-tags', 'vehicle,conee'],
         "no selected frame has an actor with the tag conee; did you mean 'cone'"),
        (['--actors', 'SUV_monoDrive_03_11', '--actors', 'truck_monoDrive_01_1'],
         'no selected frame has the actor SUV_monoDrive_03_11; did you mean '
         + repr('SUV_monoDrive_03_10')),
        (['-p', 'ego_tag:=egoo'],
         "--ego-tag egoo: no selected frame has this ego; did you mean 'ego'?")]))
def test_names_that_match_nothing_are_named_with_the_nearest(
        tmp_path, monkeypatch, capsys, line, case):
    words, (options, text) = line.split(), case
    monkeypatch.chdir(tmp_path)
    if words[0] == 'evaluate':
        assert main(['convert', str(SAMPLE), 'stack', '--outputs', 'vision', '--end', '0',
                     '-q']) == 0
    capsys.readouterr()
    assert main([word.format(SAMPLE) for word in [*words, '--end', '1', *options]]) == 0
    assert f'warning: {SAMPLE}: {text}' in capsys.readouterr().err


def test_ego_of_a_simulator_that_no_frame_has_is_named_with_the_nearest(
        tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'fcd.xml').write_text(
        '<fcd-export><timestep time="0.00"><vehicle id="hero" x="1" y="2" angle="90" '
        'type="car" speed="1" pos="1" lane="a_0" slope="0"/></timestep></fcd-export>')
    for out in ('out', 'out.json'):
        assert main(['convert', 'fcd.xml', out, '-p', 'sumo.ego:=hreo', '-q']) == 0
        assert "-p sumo.ego:=hreo: no selected frame has this ego; did you mean 'hero'?" in \
            capsys.readouterr().err


@pytest.mark.parametrize('words', [('convert', 'a.json'), ('render', 'a.svg'), ('inspect',)])
def test_end_before_the_start_is_refused(refusal, words):
    command, *out = words
    assert refusal(command, SAMPLE, *out, '--start', '2', '--end', '1', code=2) == \
        f'error: state_sensor {command}: --end 1 is before --start 2'


def test_recorded_selection_without_actors_is_a_warning(tmp_path, capsys):
    out = tmp_path / 'out.json'
    with start('simulate', str(SAMPLE), '--port', '0', '--frames', '3') as process:
        port = process.stdout.readline().rpartition(':')[2].strip()
        assert main(['record', str(out), '--port', port, '--frames', '2',
                     '--desired-tags', 'egoo']) == 0
    assert ': no selected frame has an actor that passes desired_tags egoo' \
        in capsys.readouterr().err
