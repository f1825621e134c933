# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The documents agree with the code."""

import argparse
import configparser
from importlib import import_module
import re
import shlex
import subprocess
import sys

from budgets import AWAIT_S
from paths import ROOT
import pytest

from state_sensor_ros.commands.command_line import COMMANDS
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.bags.bag_topics import MAX_DEFINITION_BYTES
from state_sensor_ros.files.storage import mcap_reader
from state_sensor_ros.files.storage.sqlite_reader import MAX_TOPICS
from state_sensor_ros.files.storage.storage_file import DEFAULT_LIMITS
from state_sensor_ros.pipeline import published_actors
from state_sensor_ros.pipeline.consistency import ConsistencyCheck
from state_sensor_ros.pipeline.source import Counters, Health
from state_sensor_ros.ros.diagnostics import consistency_status, StreamDiagnosis, StreamReading
from state_sensor_ros.ros.entity_filter import MAX_CHARACTERS
from state_sensor_ros.settings import DEFAULTS, OUTPUTS
from state_sensor_ros.simulators.carla import commands as carla_commands
from state_sensor_ros.simulators.carla import dataset, images
from state_sensor_ros.simulators.carla.sensors import POINTS, Sensor
from state_sensor_ros.simulators.carla.topic_names import ENCODINGS, sensor_topics
from state_sensor_ros.simulators.carla.topics import CARLA_TOPICS
from state_sensor_ros.simulators.monodrive import sensor_config
from state_sensor_ros.simulators.monodrive.control_session import MAX_REPLY_BYTES
from state_sensor_ros.simulators.monodrive.trajectory import MAX_ELEMENT_BYTES
from state_sensor_ros.simulators.simulator_list import checked_settings
from state_sensor_ros.topics.topic_list import fixed_topics, output_encoders, TOPICS

DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in (
    ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', ROOT / 'bench' / 'README.md',
    *(ROOT / 'doc').rglob('*.md')))
# Folders of the files that a page may name, and files that programs make.
FOLDERS = ('state_sensor_ros', 'config', 'test')
# Files that programs write, and one of datasets.
MADE = ('demo/', 'bench/results.json', 'metadata.json')


def text_of(name):
    return (ROOT / name).read_text(encoding='utf-8')


def anchors(path):
    """Return the anchors of a page, as GitHub and the site make them of its headings."""
    headings = re.findall(r'^#+ (.*)$', path.read_text(encoding='utf-8'), re.MULTILINE)
    return {re.sub(r'[^\w -]', '', heading.lower()).replace(' ', '-') for heading in headings}


def table_rows(name):
    """Return the cells of all tables of a page."""
    return [[cell.strip().replace('\\|', '|') for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
            for line in text_of(name).splitlines() if line.startswith('| ')]


def test_readme_takes_five_minutes():
    assert len(text_of('README.md').splitlines()) <= 130


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


def test_readme_names_the_licence_of_each_optional_library():
    config = configparser.ConfigParser()
    config.read(ROOT / 'setup.cfg', encoding='utf-8')
    extras = dict(config['options.extras_require'])
    rows = {cells[0].strip('`'): cells for cells in table_rows('README.md')
            if len(cells) == 3 and cells[0].strip('`') in {*extras, 'all'}}
    assert rows.keys() == extras.keys()
    in_all = re.search(r'\[(.*)\]', extras.pop('all'))[1].split(',')
    for name, libraries in extras.items():
        text = rows[name][2].lower()
        for library in re.findall(r'^[\w-]+', libraries, re.MULTILINE):
            assert {'av': 'pyav', 'distributed': 'dask'}.get(library, library) in text, name
        assert name not in in_all or 'gpl' not in text
        assert re.search(r'\d MB$', rows[name][2]), name


def rooms(text):
    """Return the folders of the package that the first cells or the second of a table name."""
    return set(re.findall(r'`([a-z_]+)/', '\n'.join(
        line for line in text.splitlines() if line.startswith('|'))))


@pytest.mark.parametrize('name', ['CONTRIBUTING.md', 'doc/design/architecture.md'])
def test_map_of_rooms_has_each_folder_of_the_package(name):
    package = {path.parent.name for path in (ROOT / 'state_sensor_ros').glob('*/__init__.py')}
    named = rooms(text_of(name))
    assert package <= named
    assert all((ROOT / 'state_sensor_ros' / each).is_dir() or (ROOT / each).is_dir()
               or list((ROOT / 'state_sensor_ros').glob(f'*/{each}')) for each in named)


def test_changelog_has_short_lines_in_groups():
    versions = re.split(r'^\S.*\n-+\n', text_of('CHANGELOG.rst'), flags=re.MULTILINE)[1:]
    for version in versions:
        blocks = version.strip().split('\n\n')
        assert blocks[::2] == [group for group in ('Added:', 'Changed:', 'Fixed:', 'Removed:')
                               if group in blocks]
        entries = re.split(r'^\* ', '\n'.join(blocks[1::2]), flags=re.MULTILINE)[1:]
        assert [entry for entry in entries if len(entry.splitlines()) > 2] == []
        assert sorted(entries) == sorted(set(entries))


def test_topics_page_names_every_topic():
    named = {name for row in table_rows('doc/reference/topics.md')
             for name in re.findall(r'`([~/][^`]*)`', row[0])}
    listed = {topic.name for each in TOPICS for topic in each.topics} | {
        f'~/actors/<actor>/{each.kind}' for each in TOPICS if each.kind}
    assert listed <= named
    assert {'/tf_static', '/diagnostics'} <= named


@pytest.mark.parametrize('output', OUTPUTS)
def test_outputs_page_has_every_topic_and_type(output):
    rows = table_rows('doc/reference/outputs.md')
    for topic in (topic for each in output_encoders(output) for topic in each.topics):
        assert any(row[1:3] == [f'`{topic.name}`', f'`{topic.type_name.replace("/msg/", "/")}`']
                   for row in rows), topic.name


def test_topics_page_has_their_types():
    types = {topic.name: topic.type_name.replace('/msg/', '/')
             for topic in fixed_topics(DEFAULTS)}
    for names, type_, *_ in table_rows('doc/reference/topics.md'):
        for name in re.findall(r'`([^`]*)`', names):
            if name in types and 'as above' not in type_:
                assert f'`{types[name]}`' == type_


def test_diagnostics_page_names_every_value():
    reading = StreamReading(0.0, 0.0, Health(), Counters(), 0, 0)
    # Several keys that begin alike share a row: "a (ms), b (ms)".
    page = ' '.join(row[0] for row in table_rows('doc/reference/diagnostics.md'))
    for status in (StreamDiagnosis(1.0, 1).status(reading, ()),
                   consistency_status(ConsistencyCheck().result())):
        for key, _ in status.values:
            assert key.removeprefix('stream-to-publish latency ') in page


def test_readme_names_topics_that_exist():
    page = text_of('doc/reference/topics.md') + text_of('doc/reference/outputs.md')
    named = re.findall(r'`([~/][a-z<][^` ]*)`', text_of('README.md'))
    assert named
    for name in named:
        assert f'`{name}`' in page


def test_carla_page_names_every_topic_of_carla():
    text = text_of('doc/guide/carla.md')
    sensors = [Sensor('<camera>', kind) for kind in ENCODINGS] + [Sensor('<lidar>', POINTS)]
    for topic in (*(topic for each in CARLA_TOPICS for topic in each.topics),
                  *sensor_topics(sensors)):
        assert f'`{topic.name}`' in text


def is_there(name, link):
    """Return whether a link of a page leads somewhere; `make docs` has generated headings."""
    path, _, anchor = link.partition('#')
    target = (ROOT / name).parent / path if path else ROOT / name
    return target.exists() and (
        not anchor or anchor in anchors(target) or '{generated}' in target.read_text())


def test_documents_link_to_what_is_there():
    links = [(name, link) for name in DOCUMENTS
             for link in re.findall(r'\]\(([^)\s]+)\)', text_of(name))]
    assert len(links) > 200
    wrong = [f'{name}: {link}' for name, link in links
             if not link.startswith('http') and not is_there(name, link)]
    assert not wrong, '\n'.join(wrong)


def test_documents_name_files_that_exist():
    names = re.compile(r'`((?:[a-z_0-9]+/)+|[a-z_0-9/]+\.(?:py|md|yaml|rviz|sh|json))`')
    wrong = [f'{name}: {path}' for name in DOCUMENTS for path in names.findall(text_of(name))
             if path not in MADE and not (ROOT / path).exists() and not any(
                 any((ROOT / folder).rglob(path)) for folder in FOLDERS)]
    assert not wrong, '\n'.join(wrong)


def test_documents_name_targets_that_exist():
    targets = set(re.search(r'^\.PHONY: (.*)$', text_of('Makefile'), re.MULTILINE)[1].split())
    named = {name: set(re.findall(r'\bmake ([a-z]+(?:-[a-z]+)*)\b(?= *[`#;,]| [A-Z]+=|$)',
                                  text_of(name), re.MULTILINE)) for name in DOCUMENTS}
    assert {'demo', 'test', 'setup'} <= named['README.md']
    assert not set().union(*named.values()) - targets


def test_dead_links_of_the_site_are_found(tmp_path):
    (tmp_path / 'index.html').write_text(
        '<h1 id="top"></h1><a href="#top">1</a><a href="sub/">2</a><a href="https://x.org">3</a>'
        '<a href="#none">4</a><a href="sub/index.html#top">5</a><img src="none.png">')
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'sub' / 'index.html').write_text('<a href="../index.html#top">6</a>')
    done = subprocess.run([sys.executable, str(ROOT / 'doc' / 'check_links.py'), str(tmp_path)],
                          capture_output=True, text=True, timeout=AWAIT_S, check=False)
    assert done.returncode == 1
    assert re.findall('found no (.*);', done.stderr) == [
        '#none', 'sub/index.html#top', 'none.png']


def commands(program):
    """Return the lines of all documents' shell blocks that start ``program``."""
    blocks = [block for name in DOCUMENTS
              for block in re.findall(r'```sh\n(.*?)```', text_of(name), re.DOTALL)]
    lines = [line.strip().removesuffix('&') for block in blocks for line in block.splitlines()]
    words = [shlex.split(re.sub(' &(?= |$)', '', line), comments=True) for line in lines if line]
    return [line for line in words if program in line]


def test_documents_show_commands_that_exist():
    wrong = []
    for line in commands('state_sensor'):
        name, *arguments = line[line.index('state_sensor') + 1:]
        if name != '--version':
            assert name in COMMANDS
            parser = argparse.ArgumentParser(exit_on_error=False)
            import_module(f'state_sensor_ros.commands.{name}').add_arguments(parser)
            try:
                parser.parse_args(arguments)
            except (argparse.ArgumentError, SystemExit) as error:
                wrong.append(f'{" ".join(line)}: {error}')
    assert not wrong, '\n'.join(wrong)


def test_reliability_page_has_the_limits_of_the_code():
    section = text_of('doc/reliability.md').partition('## Limits')[2].partition('\n## ')[0]
    numbers = set(re.findall(r'\d+', section))
    limits = DEFAULT_LIMITS
    for limit in (DEFAULTS.max_frame_bytes, DEFAULTS.max_actor_topics, DEFAULTS.queue_size,
                  MAX_ELEMENT_BYTES, MAX_REPLY_BYTES, MAX_TOPICS, MAX_CHARACTERS, limits.n_bytes,
                  limits.n_metadata_bytes, limits.n_file_bytes, published_actors._MAX_ABSENT,
                  MAX_DEFINITION_BYTES, dataset._MAX_FILE_BYTES, images._MAX_PIXELS,
                  carla_commands._MAX_REPLY_BYTES, mcap_reader._MAX_CHUNKS,
                  sensor_config._MAX_BYTES):
        assert str(limit) in numbers, limit


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
        given = dict(word.split(':=', 1) for word in line if ':=' in word and word[0] != '_')
        try:
            checked_settings({name: value_of(text) for name, text in given.items()})
        except ConfigError as error:
            wrong.append(f'{" ".join(line)}: {error}')
    assert not wrong, '\n'.join(wrong)


def test_documents_were_searched_for_commands():
    assert len(commands('state_sensor')) > 8
    assert len(commands('state_sensor_node')) > 4
