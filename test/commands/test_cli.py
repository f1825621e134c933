# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What all commands have in common: exit codes, one line of an error, what they print."""

from contextlib import suppress
import fcntl
import io
import os
import pty
import signal
import struct
import sys
import termios

from budgets import AWAIT_S, each_once
from paths import SAMPLE
from ports import free_port
from process_state import handles
from programs import lines_of, start
import pytest
from stopwatch import until

from state_sensor_ros.commands.cli import COMMANDS, main  # noqa: I100
from state_sensor_ros.commands.terminal import print_line

# Words that make each command fail on what it reads or connects to.
FAILING = {
    'simulate': ['nothing.json'], 'inspect': ['nothing.json'],
    'convert': ['nothing.json', 'out.json'], 'synth': ['nowhere/out.json'],
    'record': ['out.json', '--port', '{port}', '--seconds', '0.2'],
    'replay': [str(SAMPLE), '--control-port', '{port}'], 'repair': ['nothing.json', 'out.json'],
    'render': ['nothing.json', 'out.png'], 'evaluate': ['nothing.json', 'nothing'],
    'view': ['nothing.json'],
    'parameters': ['nothing']}
# Words of work that ends by itself and writes OUT.
WORKING = {'convert': [str(SAMPLE), 'out.json'],
           'synth': ['out.json', '--frames', '300', '--vehicles', '1'],
           'render': [str(SAMPLE), 'out.html'], 'repair': ['{cut}', 'out.json'],
           'convert to a table': [str(SAMPLE), 'out.csv']}
# Words of work that only a signal ends, and the exit codes for SIGINT and SIGTERM.
ENDLESS = {
    'convert': (['-', 'out.json'], 130, 143), 'inspect': (['-'], 130, 143),
    'render': (['-', 'out.html'], 130, 143),
    'record': (['out.json', '--port', '{port}'], 130, 143),
    'simulate': (['--port', '{port}'], 0, 0)}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command to its end in an empty folder."""
    (tmp_path / 'work').mkdir()
    return lambda name, words, **options: start(
        name, *[word.format(port=free_port()) for word in words], cwd=tmp_path / 'work', **options)


@pytest.fixture
def run_here(tmp_path, monkeypatch, capfd):
    """Return a function that runs a command in this process, in an empty folder."""
    monkeypatch.setenv('COLUMNS', '80')
    (tmp_path / 'work').mkdir()
    monkeypatch.chdir(tmp_path / 'work')
    cut = tmp_path / 'cut.json'
    cut.write_bytes(SAMPLE.read_bytes()[:-300])

    def run_(name, words):
        capfd.readouterr()
        try:
            code = main([name.split()[0], *[
                word.format(port=free_port(), cut=cut) for word in words]])
        except SystemExit as end:
            code = end.code
        return code, *capfd.readouterr()

    return run_


def ended(process):
    with process:
        output, errors = process.communicate(timeout=AWAIT_S)
    return process.returncode, output, errors


def test_every_command_is_in_this_file():
    assert FAILING.keys() == COMMANDS.keys()


@pytest.mark.parametrize('name', COMMANDS)
def test_command_refuses_wrong_usage(run_here, name):
    code, output, errors = run_here(name, [*FAILING[name], '--no-such-option'])
    assert (code, output) == (2, '')
    assert errors.startswith(f'error: state_sensor {name}: ')
    assert errors.count('\n') == 1


@pytest.mark.parametrize('name', COMMANDS)
def test_command_fails_in_one_line(run_here, name, tmp_path):
    code, output, errors = run_here(name, FAILING[name])
    assert (code, output) == (1, '')
    [error] = lines_of(errors)
    assert error.startswith('error: ')
    assert errors.endswith(f'{error}\n')
    assert os.listdir(tmp_path / 'work') == []


# Words of commands that read a recording, and need a frame of it.
READING = {'convert': ['out.mcap'], 'inspect': [], 'render': ['out.png'], 'replay': [],
           'simulate': ['--port', '0'], 'view': ['--save', 'out.rrd']}


@pytest.mark.parametrize(('text', 'name'), each_once([
    b'', b'\xef\xbb\xbf', b'[', b'[\n  ', b'[{"game_time": 1.0', b'{"frame": [', b'5',
    b'[' * 100_000], list(READING)), ids=lambda word: repr(word[:20]))
def test_command_names_a_recording_that_is_none(run_here, name, text, tmp_path):
    if name == 'view':
        pytest.importorskip('rerun')
    (tmp_path / 'none.json').write_bytes(text)
    code, output, errors = run_here(name, [str(tmp_path / 'none.json'), *READING[name]])
    assert (code, output, errors.count('\n')) == (1, '', 1)
    assert errors.startswith(f'error: {tmp_path / "none.json"}: ')
    assert os.listdir(tmp_path / 'work') == []


@pytest.mark.parametrize('is_part', [False, True])
@pytest.mark.parametrize('name', READING)
def test_command_names_a_recording_without_frames(run_here, name, is_part, tmp_path):
    if name == 'view':
        pytest.importorskip('rerun')
    if is_part and name in ('replay', 'simulate'):
        pytest.skip('it plays all frames')
    source = SAMPLE if is_part else tmp_path / 'none.json'
    if not is_part:
        source.write_text('[]')
    words = [str(source), *READING[name], *(['--start', '1000'] if is_part else [])]
    code, output, errors = run_here(name, words)
    assert (code, output) == (1, '')
    part = ' in the selected time' if is_part else ''
    assert errors.startswith(f'error: {source}: found no frames{part};')
    assert errors.endswith('; expected at least one frame\n')
    assert errors.count('\n') == 1
    assert os.listdir(tmp_path / 'work') == []


@pytest.mark.parametrize('name', WORKING)
def test_command_prints_one_line_and_no_progress_into_a_pipe(run_here, name):
    code, output, errors = run_here(name, WORKING[name])
    assert code == 0
    assert '\r' not in output + errors
    assert output.startswith('out.')
    assert output.count('\n') == 1
    assert all(line.startswith('warning: ') for line in errors.splitlines())


def test_command_shows_its_progress_on_a_terminal(run):
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 100, 0, 0))
    process = run('convert', [str(SAMPLE), 'bag'], stderr=secondary)
    os.close(secondary)
    shown = b''
    # Its other end is closed, as Linux reports it.
    with suppress(OSError):
        while part := os.read(primary, 65536):
            shown += part
    os.close(primary)
    assert ended(process)[0] == 0
    assert b'convert:   0%' in shown


@pytest.mark.parametrize(('no_color', 'shown'), [
    ('', '\x1b[31merror:\x1b[0m no\n'), ('1', 'error: no\n')])
def test_errors_have_a_color_on_a_terminal(monkeypatch, no_color, shown):
    stream = io.StringIO()
    monkeypatch.setattr(stream, 'isatty', lambda: True)
    monkeypatch.setattr(sys, 'stderr', stream)
    monkeypatch.setenv('NO_COLOR', no_color)
    print_line('error: no')
    assert stream.getvalue() == shown


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
@pytest.mark.parametrize('name', ENDLESS)
def test_command_ended_by_a_signal_has_its_exit_code(run, name, number, tmp_path):
    words, *codes = ENDLESS[name]
    reader, writer = os.pipe()
    process = run(name, words, stdin=reader)
    os.close(reader)
    with open(writer, 'wb') as stdin:
        # Some frames of a recording that does not end.
        stdin.write(SAMPLE.read_bytes()[:5000])
        stdin.flush()
        if name == 'simulate':
            assert process.stdout.readline().startswith('listening on ')
        elif name == 'record':
            assert process.stderr.readline().startswith('waiting for a frame from ')
        else:
            until(lambda: handles(process.pid, signal.SIGTERM))
        process.send_signal(number)
        code, _, errors = ended(process)
    assert code == codes[number is signal.SIGTERM], errors
    assert 'Traceback' not in errors
    assert os.listdir(tmp_path / 'work') == []


@pytest.mark.parametrize(('words', 'text'), [
    (['convert', '--desird-tags', 'a', 'in', 'out'], "did you mean '--desired-tags'?"),
    (['convert', '--workers', '2', 'in', 'out'], 'arguments: --workers (see'),
    (['convert', '--sumo.ego', 'a', 'in', 'out'], 'unrecognized arguments: --sumo.ego'),
    (['inspect', 'in', '--rate', '0'], 'argument --rate: found 0; expected a number above 0'),
    (['inspect', 'in', '--start', 'x'], 'argument --start: found x; expected a number of at'),
    (['record', 'out', '--port', '70000'], 'expected a whole number from 1 to 65535'),
    (['convrt'], "did you mean 'convert'?")])
def test_wrong_word_is_answered_with_the_nearest(capsys, words, text):
    with pytest.raises(SystemExit, match='2'):
        main(words)
    assert text in capsys.readouterr().err


def test_no_command_prints_the_help(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(f'\n    {name}' in text for name in COMMANDS)
    assert text.count('\n  state_sensor ') == 3


@pytest.mark.parametrize('command', COMMANDS)
def test_help_is_a_page_with_examples_and_names_what_sets_parameters(capsys, command):
    with pytest.raises(SystemExit, match='0'):
        main([command, '--help'])
    text = capsys.readouterr().out
    examples = text.partition('\nexamples:\n')[2].strip().splitlines()
    assert 2 <= len(examples) <= 3
    assert all(line.strip().startswith(f'state_sensor {command}') for line in examples)
    lines = text.splitlines()
    assert len(lines) <= 70
    assert max(map(len, lines)) <= 80
    assert any(line.startswith('  -p NAME:=VALUE ') for line in lines)
    assert any(line.startswith('  --params-file FILE ') for line in lines)


@pytest.mark.parametrize('words', [
    ['--desired-tags', 'vehicle,ego', '{in}', 'out.json'],
    ['{in}', '--actors', 'truck_monoDrive_01_1', '--actors', 'b', 'out.json'],
    ['--desired-tags', 'vehicle', '{in}', '--outputs', 'vision,autoware', 'out.mcap']])
def test_option_with_several_values_leaves_in_and_out(run_here, words, tmp_path):
    code, _, errors = run_here('convert', [word.replace('{in}', str(SAMPLE)) for word in words]
                               + ['--end', '0'])
    assert code == 0, errors
    assert os.listdir(tmp_path / 'work') == words[-1:]
