# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""What the README and its companions say, against the code."""

import argparse
from importlib import import_module
import re
import shlex

from paths import ROOT
import pytest

from state_sensor_ros.carla import dataset, images
from state_sensor_ros.carla.topics import DATASET_TOPICS
from state_sensor_ros.commands.command_line import COMMANDS
from state_sensor_ros.encode import fixed_topics
from state_sensor_ros.monodrive.control_messages import MAX_REPLY_BYTES
from state_sensor_ros.monodrive.trajectory import MAX_ELEMENT_BYTES
from state_sensor_ros.recordings.bags import bag_reader
from state_sensor_ros.recordings.storage import mcap_reader
from state_sensor_ros.recordings.storage.bag_limits import DEFAULT_LIMITS
from state_sensor_ros.recordings.storage.sqlite_reader import MAX_TOPICS
from state_sensor_ros.settings import DEFAULTS, NAMES, parse_settings, rule_of

README = (ROOT / 'README.md').read_text()
DOCUMENTS = ['README.md', 'CONTRIBUTING.md', *(f'docs/{path.name}'
                                               for path in (ROOT / 'docs').glob('*.md'))]


def rows(heading):
    """Return the cells of the tables below a heading."""
    section = README.partition(f'\n## {heading}\n')[2].partition('\n## ')[0]
    return [[cell.strip().replace('\\|', '|') for cell in re.split(r'(?<!\\)\|', line)[1:-1]]
            for line in section.splitlines() if line.startswith('| ')]


def shown(value):
    if isinstance(value, bool):
        return f'`{str(value).lower()}`'
    if isinstance(value, tuple):
        return f'{len(value)} × `{value[0]:g}`' if value else '`[]`'
    return f'`{value}`' if value != '' else '`""`'


@pytest.mark.parametrize('name', NAMES)
def test_readme_parameter_is_that_of_the_code(name):
    rule = rule_of(name)
    [(cell, default, text)] = [row for row in rows('Parameters')
                               if row[0].startswith(f'`{name}`')]
    assert ('**D**' in cell) is rule.dynamic
    assert default == shown(getattr(DEFAULTS, name))
    assert text.startswith(rule.help)
    assert all(f'`{choice}`' in text for choice in rule.choices)


def test_readme_names_every_topic():
    named = {name for row in rows('Topics') for name in re.findall(r'`([~/][^`]*)`', row[0])}
    assert {topic.name for topic in fixed_topics(DEFAULTS)} <= named
    assert {'/tf_static', '/diagnostics'} <= named
    assert {f'~/actors/<actor>/{kind}' for kind in (
        'odometry', 'control_state', 'joint_states')} <= named


def test_readme_topics_have_their_types():
    types = {topic.name: topic.type_name.replace('/msg/', '/')
             for topic in fixed_topics(DEFAULTS)}
    for names, type_, _ in rows('Topics')[1:]:
        for name in re.findall(r'`([^`]*)`', names):
            if name in types and 'as above' not in type_:
                assert types[name].removeprefix('state_sensor_ros/') in type_


def test_documents_name_every_topic_of_carla():
    text = (ROOT / 'docs' / 'carla.md').read_text().replace('{central,left,right}', 'central')
    for topic in DATASET_TOPICS:
        assert f'`{topic.name.replace("left", "central").replace("right", "central")}`' in text


@pytest.mark.parametrize('name', DOCUMENTS)
def test_documents_link_to_what_is_there(name):
    text = (ROOT / name).read_text()
    for link in re.findall(r'\]\(([^)\s]+)\)', text):
        path, _, anchor = link.partition('#')
        if link.startswith('http'):
            continue
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        if anchor:
            headings = [re.sub(r'[^a-z0-9 -]', '', heading.lower()).replace(' ', '-')
                        for heading in re.findall(r'^#+ (.*)$', target.read_text(), re.MULTILINE)]
            assert anchor in headings, link


def commands(program):
    """Return the lines of all documents' shell blocks that start ``program``."""
    blocks = [block for name in DOCUMENTS
              for block in re.findall(r'```sh\n(.*?)```', (ROOT / name).read_text(), re.DOTALL)]
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines if line]
    return [line for line in words if program in line and '[--' not in ' '.join(line)]


@pytest.mark.parametrize('line', commands('state_sensor'), ids=' '.join)
def test_documents_show_commands_that_exist(line):
    name, *arguments = line[line.index('state_sensor') + 1:]
    assert name in COMMANDS
    parser = argparse.ArgumentParser(exit_on_error=False)
    import_module(f'state_sensor_ros.commands.{name}').add_arguments(parser)
    parser.parse_args(arguments)


def value_of(text):
    if text.startswith('['):
        return [item.strip() for item in text[1:-1].split(',')]
    for type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            continue
    return {'true': True, 'false': False}.get(text, text)


@pytest.mark.parametrize('line', commands('state_sensor_node'), ids=' '.join)
def test_documents_show_parameters_that_are_accepted(line):
    given = dict(word.split(':=', 1) for word in line if ':=' in word)
    parse_settings({name: value_of(text) for name, text in given.items()})


def test_security_page_names_the_limits_of_the_code():
    text = (ROOT / 'docs' / 'security.md').read_text()
    limits = DEFAULT_LIMITS
    for limit in (DEFAULTS.max_frame_bytes, MAX_ELEMENT_BYTES, limits.n_bytes, MAX_TOPICS,
                  limits.n_metadata_bytes, limits.n_file_bytes, dataset._MAX_FILE_BYTES,
                  images._MAX_PIXELS, MAX_REPLY_BYTES, bag_reader._MAX_DEFINITION_BYTES,
                  mcap_reader._MAX_CHUNKS, DEFAULTS.max_actor_topics, DEFAULTS.queue_size):
        assert f' {limit} ' in re.sub(r'[,():;|]', ' ', text), limit


def test_documents_were_searched_for_commands():
    assert len(commands('state_sensor')) > 8
    assert len(commands('state_sensor_node')) > 4
