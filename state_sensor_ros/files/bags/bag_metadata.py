# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The files of a bag by their names, and its metadata.yaml, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import io
import json
from pathlib import Path, PurePath
import re
import textwrap
from typing import TypeAlias, TypeVar, Union

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from state_sensor_ros.files.storage.storage_file import BagLimits, damaged, StoredTopic, too_large

METADATA = 'metadata.yaml'
STORAGE_OF_SUFFIX = {'.mcap': 'mcap', '.db3': 'sqlite3'}
COMPRESSED_SUFFIX = '.zstd'
STORAGE_SUFFIXES = tuple(STORAGE_OF_SUFFIX)
COMPRESSED_SUFFIXES = tuple(f'{suffix}{COMPRESSED_SUFFIX}' for suffix in STORAGE_SUFFIXES)
# Version of written files, and the newest that can be read: that of Jazzy and later.
METADATA_VERSION = 9
_INFORMATION = 'rosbag2_bagfile_information'
_MAX_DEPTH = 16
# Names of topics and types and hashes that are valid YAML without quotes.
_PLAIN = re.compile(r'cdr|/[A-Za-z0-9_/]*|[A-Za-z][A-Za-z0-9]*[_/][A-Za-z0-9_/]*')
_PLAIN_FILE = re.compile(r'[A-Za-z0-9_][A-Za-z0-9_.-]*\.(mcap|db3)')

Value: TypeAlias = Union[str, 'list[Value]', 'dict[str, Value]']
Kind = TypeVar('Kind', str, 'list[Value]', 'dict[str, Value]')


def is_bag(path: Path) -> bool:
    """Return whether ``path`` is a bag's folder or a single storage file of one."""
    return (path / METADATA).is_file() or is_compressed_storage(path) or (
        path.suffix in STORAGE_OF_SUFFIX and path.is_file())


def is_compressed_storage(path: Path) -> bool:
    """Return whether ``path`` is a storage file that was compressed as a whole."""
    return path.name.endswith(COMPRESSED_SUFFIXES) and path.is_file()


@dataclass(frozen=True, slots=True)
class BagMetadata:
    """The description of a bag's folder."""

    files: tuple[str, ...]  # names in the folder, in the order of time
    storage: str  # identifier of the storage, such as ``mcap``
    compression: str  # mode, ``''``, ``file`` or ``message``, always of zstd
    topics: dict[tuple[str, str], StoredTopic]  # by name and type, without their definitions


def read_metadata(folder: Path, limits: BagLimits) -> BagMetadata:
    path = folder / METADATA
    with path.open('rb') as file:
        text = file.read(limits.n_metadata_bytes + 1)
    if len(text) > limits.n_metadata_bytes:
        raise too_large(str(path), 'metadata', limits.n_metadata_bytes)
    try:
        return _metadata(parse_yaml(text.decode('utf-8-sig')))
    except ValueError as error:
        raise damaged(str(path), ' '.join(str(error).split())) from error


def parse_yaml(text: str) -> Value:
    """Parse YAML; all scalars stay text."""
    try:
        return _parsed(text)
    except YAMLError as error:
        raise ValueError(str(error)) from error


def _parsed(text: str) -> Value:
    open_values: list[list[Value]] = [[]]
    for event in YAML(typ='safe').parse(text):
        if isinstance(event, ScalarEvent):
            open_values[-1].append(str(event.value))
        elif isinstance(event, SequenceStartEvent | MappingStartEvent):
            if len(open_values) > _MAX_DEPTH:
                raise ValueError('values nested too deep')
            open_values.append([])
        elif isinstance(event, SequenceEndEvent):
            done = open_values.pop()
            open_values[-1].append(done)
        elif isinstance(event, MappingEndEvent):
            done = open_values.pop()
            open_values[-1].append(_mapping(done[::2], done[1::2]))
        elif isinstance(event, AliasEvent):
            raise ValueError('an alias')
    if len(open_values[0]) != 1:
        raise ValueError(f'{len(open_values[0])} documents')
    return open_values[0][0]


def _mapping(keys: list[Value], values: list[Value]) -> dict[str, Value]:
    names = [key for key in keys if isinstance(key, str)]
    if len(set(names)) < len(keys):
        raise ValueError('a key that is repeated, or not text')
    return dict(zip(names, values, strict=True))


def _metadata(value: Value) -> BagMetadata:
    bag = _member(_checked(value, dict, 'the file'), _INFORMATION, dict)
    version = int(_member(bag, 'version', str))
    if version > METADATA_VERSION:
        raise ValueError(f'the unknown version {version}')
    files = [PurePath(_checked(file, str, 'relative_file_paths')).name
             for file in _member(bag, 'relative_file_paths', list)]
    if len(set(files)) < len(files):
        raise ValueError('a file that is listed twice')
    # Version 5 and later name them twice, in files sometimes without the suffix of a compression.
    again = [PurePath(_member(_checked(file, dict, 'files'), 'path', str)).name
             for file in _member({'files': [], **bag}, 'files', list)]
    if again and [name.removesuffix('.zstd') for name in files] != [
            name.removesuffix('.zstd') for name in again]:
        raise ValueError('other names in files than in relative_file_paths')
    # Reindexed bags have none: the content of the files decides.
    storage = _checked(bag.get('storage_identifier') or '', str, 'storage_identifier')
    return BagMetadata(tuple(files), storage, _compression(bag),
                       {(topic.name, topic.type_name): topic for topic in map(_topic, _member(
                           bag, 'topics_with_message_count', list))})


def _compression(bag: dict[str, Value]) -> str:
    mode = _member({'compression_mode': '', **bag}, 'compression_mode', str).lower()
    mode = '' if mode in ('none', '~', 'null') else mode
    if mode not in ('', 'file', 'message'):
        raise ValueError(f'compression_mode {mode!r}')
    if mode and (compression := _member(bag, 'compression_format', str)) != 'zstd':
        raise ValueError(f'compression_format {compression!r}')
    return mode


def _topic(value: Value) -> StoredTopic:
    topic = {'type_description_hash': '', 'offered_qos_profiles': '', **_member(
        _checked(value, dict, 'topics_with_message_count'), 'topic_metadata', dict)}
    profiles = topic['offered_qos_profiles']
    return StoredTopic(
        _member(topic, 'name', str), _member(topic, 'type', str),
        type_hash=_member(topic, 'type_description_hash', str),
        serialization=_member(topic, 'serialization_format', str),
        # JSON is YAML.
        qos=profiles if isinstance(profiles, str) else json.dumps(profiles))


def metadata_text(storage: str, file: str, first_ns: int, last_ns: int,
                  topics: Sequence[tuple[StoredTopic, int]]) -> str:
    """Format the description of a bag with one storage file."""
    # first_ns: first log time, ns.
    # last_ns: last log time, ns.
    # Returns value of the only key of metadata.yaml, which storage files contain as well.
    name = _file_scalar(file)
    n_messages = sum(n_messages for _, n_messages in topics)
    duration_ns = max(0, last_ns - first_ns)
    return '\n'.join((f"""\
compression_format: ''
compression_mode: ''
custom_data: null
duration:
  nanoseconds: {duration_ns}
files:
- duration:
    nanoseconds: {duration_ns}
  message_count: {n_messages}
  path: {name}
  starting_time:
    nanoseconds_since_epoch: {first_ns}
message_count: {n_messages}
relative_file_paths:
- {name}
ros_distro: rosbags
starting_time:
  nanoseconds_since_epoch: {first_ns}
storage_identifier: {storage}
version: {METADATA_VERSION}
topics_with_message_count:""", *([_topic_text(*topic) for topic in topics] or ['  []'])))


def write_metadata(folder: Path, text: str) -> None:
    (folder / METADATA).write_text(f'{_INFORMATION}:\n{textwrap.indent(text, "  ")}\n', 'utf-8')


def _topic_text(topic: StoredTopic, n_messages: int) -> str:
    return (f'- message_count: {n_messages}\n'
            '  topic_metadata:\n'
            f'    name: {_scalar(topic.name)}\n'
            f'    type: {_scalar(topic.type_name)}\n'
            f'    serialization_format: {_scalar(topic.serialization)}\n'
            f'    type_description_hash: {_scalar(topic.type_hash)}\n'
            '    offered_qos_profiles:\n'
            # Deeper than the key: an empty list is not part of it otherwise.
            f'{textwrap.indent(topic.qos, "      ")}')


def _scalar(text: str) -> str:
    """Format text as YAML: unchanged if that is valid, else as JSON."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _file_scalar(name: str) -> str:
    if _PLAIN_FILE.fullmatch(name):
        return name
    yaml, text = YAML(typ='safe'), io.StringIO()
    yaml.width = 65_536
    yaml.dump([name], text)
    return text.getvalue().strip().removeprefix('[').removesuffix(']')


def _member(owner: dict[str, Value], key: str, kind: type[Kind]) -> Kind:
    if key not in owner:
        raise ValueError(f'no {key}')
    return _checked(owner[key], kind, key)


def _checked(value: Value, kind: type[Kind], where: str) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f'{where} that is not a {kind.__name__}')
    return value
