# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The documents agree with the code."""

import re
import shlex
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT

from state_sensor_ros.commands.cli import command_parser, COMMANDS
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.simulators import checked_settings
from state_sensor_ros.topics.encoder import TOPICS

DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in (
    ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', ROOT / 'bench' / 'README.md',
    *(ROOT / 'doc').rglob('*.md')))


def text_of(name):
    return (ROOT / name).read_text(encoding='utf-8')


def table_rows(name):
    """Return the cells of all tables of a page."""
    return [[cell.strip().replace('\\|', '|') for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
            for line in text_of(name).splitlines() if line.startswith('| ')]


def test_readme_renders_elsewhere():
    # The package index shows it alone, without the files beside it: setup.py makes links absolute.
    program = ('import setuptools; setuptools.setup = lambda **options: '
               'print(options["long_description"])\n' + text_of('setup.py'))
    done = subprocess.run([sys.executable, '-c', program], cwd=ROOT, capture_output=True,
                          text=True, timeout=AWAIT_S, check=True)
    links = re.findall(r'\]\(([^)\s]+)\)', done.stdout)
    assert len(links) == len(re.findall(r'\]\(([^)\s]+)\)', text_of('README.md')))
    assert [link for link in links if not link.startswith(('https://', '#'))] == []
    assert any('/raw/main/doc/' in link for link in links)
    assert any('/blob/main/doc/' in link for link in links)


def test_topics_page_names_every_topic():
    named = {name for row in table_rows('doc/reference/topics.md')
             for name in re.findall(r'`([~/][^`]*)`', row[0])}
    listed = {topic.name for each in TOPICS for topic in each.topics} | {
        f'~/actors/<actor>/{each.kind}' for each in TOPICS if each.kind}
    assert listed <= named
    assert {'/tf_static', '/diagnostics'} <= named


def commands(program):
    """Return the lines of all documents' shell blocks that start ``program``."""
    blocks = [block for name in DOCUMENTS
              for block in re.findall(r'```sh\n(.*?)```', text_of(name), re.DOTALL)]
    lines = [line.strip().removesuffix('&') for block in blocks for line in block.splitlines()]
    words = [shlex.split(re.sub(r' &(?= |$)| > \S+', '', line), comments=True)
             for line in lines if line]
    return [line for line in words if program in line]


def test_documents_show_commands_that_exist():
    wrong = []
    for line in commands('state_sensor'):
        name, *arguments = line[line.index('state_sensor') + 1:]
        if name != '--version':
            assert name in COMMANDS
            try:
                command_parser(name).parse_intermixed_args(arguments)
            except SystemExit as error:
                wrong.append(f'{" ".join(line)}: {error}')
    assert not wrong, '\n'.join(wrong)


def value_of(text):
    if text.startswith('['):
        return [item.strip() for item in text[1:-1].split(',')]
    for type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            continue
    return {'true': True, 'false': False}.get(text, text)


def test_documents_show_parameters_that_are_accepted():
    wrong = []
    for line in commands('state_sensor_node'):
        # Variables are the shell's.
        given = dict(word.split(':=', 1) for word in line
                     if ':=' in word and word[0] != '_' and '$' not in word)
        try:
            checked_settings({name: value_of(text) for name, text in given.items()})
        except ConfigError as error:
            wrong.append(f'{" ".join(line)}: {error}')
    assert not wrong, '\n'.join(wrong)


def test_documents_show_launch_arguments_that_are_declared():
    launched = [line for line in commands('ros2') if line[1] == 'launch']
    assert {line[3] for line in launched} == {'demo.launch.py', 'state_sensor.launch.py'}
    # demo.launch.py passes on those of the other file.
    for _, _, package, file, *words in launched:
        texts = text_of(f'launch/{file}') + text_of('launch/state_sensor.launch.py')
        assert package == 'state_sensor_ros'
        assert [word for word in words if f"'{word.partition(':=')[0]}'" not in texts] == []


def test_architecture_names_files_that_exist():
    names = re.findall(r'`([a-z_/0-9]+(?:/|\.py))`', text_of('doc/design/architecture.md'))
    assert len(names) > 50
    assert [name for name in names if not (ROOT / 'state_sensor_ros' / name).exists()
            and not (ROOT / name).exists()] == []
