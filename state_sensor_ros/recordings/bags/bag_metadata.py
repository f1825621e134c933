# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
What metadata.yaml of a bag says about its files and topics.

May know: YAML, keys of rosbag2. Must not know: storage files. Values stay text, and aliases are
refused: with them, few bytes stand for values of any size.
"""

from __future__ import annotations

from dataclasses import dataclass
import json
from pathlib import Path, PurePath
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

from state_sensor_ros.recordings.storage.bag_limits import BagLimits, damaged, too_large
from state_sensor_ros.recordings.storage.storage_file import StoredTopic

METADATA = 'metadata.yaml'
# The newest version that is known, which is that of Jazzy and later.
_MAX_VERSION = 9
_MAX_DEPTH = 16

Value: TypeAlias = Union[str, 'list[Value]', 'dict[str, Value]']
Kind = TypeVar('Kind', str, 'list[Value]', 'dict[str, Value]')


@dataclass(frozen=True, slots=True)
class BagMetadata:
    """
    What a bag's folder is said to have.

    ``files`` names in the folder, in the order of time; ``storage`` identifier of their form;
    ``compression`` mode, ``''``, ``file`` or ``message``, always of zstd; ``topics`` by name and
    type, without their definitions.
    """

    files: tuple[str, ...]
    storage: str
    compression: str
    topics: dict[tuple[str, str], StoredTopic]


def read_metadata(folder: Path, limits: BagLimits) -> BagMetadata:
    """
    Read metadata.yaml.

    :param folder: of the bag.
    :raises BagError: where it is damaged, too large or of a version that is not known.
    :raises OSError: where it cannot be read.
    """
    path = folder / METADATA
    with path.open('rb') as file:
        text = file.read(limits.n_metadata_bytes + 1)
    if len(text) > limits.n_metadata_bytes:
        raise too_large(str(path), 'metadata', limits.n_metadata_bytes)
    try:
        return _metadata(parse_yaml(text.decode('utf-8-sig')))
    except (YAMLError, ValueError) as error:
        raise damaged(str(path), ' '.join(str(error).split())) from error


def parse_yaml(text: str) -> Value:
    """
    Parse YAML whose scalars stay text.

    :raises ValueError: where it has aliases, keys twice, or is nested deeply.
    :raises YAMLError: where it is no YAML.
    """
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
        raise ValueError('a key that is there twice, or no text')
    return dict(zip(names, values, strict=True))


def _metadata(value: Value) -> BagMetadata:
    bag = _member(_checked(value, dict, 'the file'), 'rosbag2_bagfile_information', dict)
    version = int(_member(bag, 'version', str))
    if version > _MAX_VERSION:
        raise ValueError(f'version {version}, which is not known')
    files = [PurePath(_checked(file, str, 'relative_file_paths')).name
             for file in _member(bag, 'relative_file_paths', list)]
    # Version 5 and later name them twice, the second time perhaps as they were not compressed.
    again = [PurePath(_member(_checked(file, dict, 'files'), 'path', str)).name
             for file in _member({'files': [], **bag}, 'files', list)]
    if again and [name.removesuffix('.zstd') for name in files] != [
            name.removesuffix('.zstd') for name in again]:
        raise ValueError('other names in files than in relative_file_paths')
    return BagMetadata(tuple(files), _member(bag, 'storage_identifier', str), _compression(bag),
                       {(topic.name, topic.type_name): topic for topic in map(_topic, _member(
                           bag, 'topics_with_message_count', list))})


def _compression(bag: dict[str, Value]) -> str:
    mode = _member({'compression_mode': '', **bag}, 'compression_mode', str).lower()
    mode = '' if mode in ('none', '~', 'null') else mode
    if mode not in ('', 'file', 'message'):
        raise ValueError(f'compression_mode {mode!r}')
    if mode and (form := _member(bag, 'compression_format', str)) != 'zstd':
        raise ValueError(f'compression_format {form!r}')
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


def _member(owner: dict[str, Value], key: str, kind: type[Kind]) -> Kind:
    if key not in owner:
        raise ValueError(f'no {key}')
    return _checked(owner[key], kind, key)


def _checked(value: Value, kind: type[Kind], where: str) -> Kind:
    if not isinstance(value, kind):
        raise ValueError(f'{where} that is no {kind.__name__}')
    return value
