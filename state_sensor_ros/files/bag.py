# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The messages of any rosbag2 bag, whatever their types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, ExitStack
from dataclasses import dataclass
from functools import lru_cache
import json
import os
from pathlib import Path, PurePath
import re
import shutil
import struct
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, cast
from urllib.parse import quote
from zlib import crc32

from rosbags.serde import SerdeError
from rosbags.typesys import get_types_from_msg, get_typestore, Stores, TypesysError
from rosbags.typesys.store import Typestore

from state_sensor_ros import errors, small_files
from state_sensor_ros.cdr.definitions import parse_message, text_of
from state_sensor_ros.files import input as inputs

METADATA = 'metadata.yaml'
INFORMATION = 'rosbag2_bagfile_information'
STORAGE_OF_SUFFIX = {'.mcap': 'mcap', '.db3': 'sqlite3'}
COMPRESSED_SUFFIX = '.zstd'
STORAGE_SUFFIXES = tuple(STORAGE_OF_SUFFIX)
COMPRESSED_SUFFIXES = tuple(f'{suffix}{COMPRESSED_SUFFIX}' for suffix in STORAGE_SUFFIXES)
MCAP_MAGIC, SQLITE_MAGIC = b'\x89MCAP0\r\n', b'SQLite format 3\0'
PROFILE = 'ros2'
ROS2MSG, CDR = 'ros2msg', 'cdr'
# The newest version of metadata.yaml that can be read, and the one that is written.
METADATA_VERSION = 9
# At the end of an MCAP file: offsets of the summary and of its groups, CRC of both; magic number.
_FOOTER = struct.Struct('<BQQQI8s')
_OF_FOOTER_IN_CRC = 25

# Exceptions of rosbags' deserializer for bytes that do not match the definition.
NOT_SUCH = (SerdeError, struct.error, ValueError, IndexError, AssertionError, OverflowError,
            MemoryError)
# Separates the definition of a type from those of the types of its fields.
_SEPARATOR = '=' * 80 + '\nMSG: '

# Name and type of a topic.
TopicKey = tuple[str, str]
# Number of the storage file, and log time in ns, at which reading begins.
Position = tuple[int, int]
BEGIN: Position = (0, 0)


@dataclass(frozen=True, slots=True)
class StoredTopic:
    name: str
    type_name: str
    # Of its type, in the language ``encoding`` (``ros2msg``, ``ros2idl``, ``''``).
    definition: str = ''
    encoding: str = ''
    type_hash: str = ''  # RIHS01 or ``''``
    serialization: str = CDR
    qos: str = '[]'  # offered profiles as YAML


@lru_cache(maxsize=64)
def _described(type_name: str) -> Typestore:
    """
    Return a store with the fields of a type and of the types it contains, but no classes.

    As in :mod:`definitions`, the definitions of a sourced ROS precede those of rosbags.
    """
    store, pending = get_typestore(Stores.EMPTY), [type_name]
    while pending:
        name = pending.pop()
        text = text_of(name)
        if text is None:
            store.fielddefs = {**get_typestore(Stores.ROS2_JAZZY).fielddefs, **store.fielddefs}
        elif name not in store.fielddefs:
            store.fielddefs |= get_types_from_msg(text, name)
            pending += [field.type_name for field in parse_message(text, name)
                        if '/' in field.type_name]
    return store


@lru_cache(maxsize=64)
def definition(type_name: str) -> str:
    """
    Return the definition of a type followed by those of the types it contains.

    Definitions of this package are those of ``msg/``, with the units in their comments.
    """
    whole, _ = _described(type_name).generate_msgdef(type_name, ros_version=2)
    first, *others = whole.split(_SEPARATOR)
    sections = [_own_text(type_name) or first]
    for section in others:
        bare, _, text = section.partition('\n')
        sections.append(f'{bare}\n{_own_text(bare.replace("/", "/msg/")) or text}')
    return _SEPARATOR.join(text if text.endswith('\n') else f'{text}\n' for text in sections)


def _own_text(type_name: str) -> str | None:
    return text_of(type_name) if type_name.startswith(f'{small_files.PACKAGE}/') else None


@lru_cache(maxsize=64)
def type_hash(type_name: str) -> str:
    """Return the hash of a type, ``RIHS01_`` and 64 digits, as every ROS 2 computes it."""
    return _described(type_name).hash_rihs01(type_name)


@lru_cache(maxsize=64)
def hash_of_definition(type_name: str, text: str) -> str:
    """Compute the hash of a type from its definition in a bag, ``''`` if that is damaged."""
    store = get_typestore(Stores.EMPTY)
    try:
        store.fielddefs |= get_types_from_msg(text, type_name)
        return store.hash_rihs01(type_name)
    except (TypesysError, ValueError, KeyError, RecursionError):
        return ''


class McapStorage:
    """
    An MCAP file, read by its index; an error of its library means damage.

    ``topics`` by number, ``counts`` of their messages by the same number.

    :param profile: required profile of the file; None for any.
    """

    def __init__(self, path: Path, profile: str | None = PROFILE) -> None:
        from mcap.reader import SeekingReader
        self._file = path.open('rb')
        with inputs.closed_on_failure(self):
            summary_offset(self._file, path.stat().st_size)
            self._reader = SeekingReader(self._file, validate_crcs=True,
                                         record_size_limit=path.stat().st_size)
            found = self._reader.get_header().profile
            if profile not in (None, found):
                raise errors.TrajectoryFormatError(
                    str(path), f'an MCAP file of the profile {found!r}' if found
                    else 'an MCAP file without a profile',
                    f'one of the profile {profile}, as a bag of ROS 2 is')
            summary = self._reader.get_summary()
            self.counts: Counter[int] = Counter()
            self.topics: dict[int, StoredTopic] = {}
            if summary is not None and summary.statistics is not None:
                self.counts.update(summary.statistics.channel_message_counts)
                self.topics = {number: topic_of(channel, summary.schemas.get(channel.schema_id))
                               for number, channel in summary.channels.items()}
            if len(self.topics) < len(self.counts) or not self.counts:
                # Without a summary, or with one that lacks the topics.
                for schema, channel, _ in self._reader.iter_messages(log_time_order=False):
                    self.topics[channel.id] = topic_of(channel, schema)
                    self.counts[channel.id] += 1

    def messages(self, numbers: Collection[int], begin_ns: int,
                 ) -> Iterator[tuple[int, int, bytes]]:
        """Yield number of the topic, log time and data from a log time on, in their order."""
        names = {self.topics[number].name for number in numbers}
        for _, _, message in self._reader.iter_messages(names, starting_at=begin_ns):
            if message.channel_id in numbers:
                yield message.channel_id, message.log_time, message.data

    def close(self) -> None:
        self._file.close()


def summary_offset(file: BinaryIO, n_bytes: int) -> int:
    """Return the offset of the summary of an MCAP file; ValueError if it or the end is damaged."""
    at = n_bytes - _FOOTER.size
    file.seek(max(at, 0))
    footer = file.read()
    if not footer.endswith(MCAP_MAGIC) or at < 0:
        raise ValueError('its end is missing' if n_bytes else 'an empty file')
    _, _, begin, _, crc, _ = _FOOTER.unpack(footer)
    begin = begin or at
    file.seek(begin)
    summary = file.read(at - file.tell()) + footer[:_OF_FOOTER_IN_CRC]
    if crc and crc != crc32(summary):
        raise ValueError('a wrong CRC of the summary')
    file.seek(0)
    return int(begin)


# The records of mcap.
def topic_of(channel: Any, schema: Any) -> StoredTopic:  # noqa: ANN401
    """Return the topic of a channel of MCAP, with the metadata of rosbag2."""
    type_name = '' if schema is None else schema.name
    # The schemas of protobuf are binary.
    text, encoding = (schema.data.decode(errors='replace'), schema.encoding) \
        if type_name and schema.encoding.startswith('ros2') else ('', '')
    return StoredTopic(
        channel.topic, type_name, text, encoding,
        channel.metadata.get('topic_type_hash', ''), channel.message_encoding,
        channel.metadata.get('offered_qos_profiles') or '[]')


class SqliteStorage:
    """A database of rosbag2 of any version, read by rosbags, as an :class:`McapStorage`."""

    def __init__(self, path: Path) -> None:
        from rosbags.interfaces import ConnectionExtRosbag2
        from rosbags.rosbag2.storage_sqlite3 import Sqlite3Reader
        log = Path(f'{path}-wal')
        if log.is_file() and log.stat().st_size:
            # SQLite reads it only if it may write.
            raise ValueError(f'messages are still in {log.name}')
        # It makes a URI of the path.
        self._reader = Sqlite3Reader(Path(quote(os.fsencode(path.absolute()))))
        self._reader.open()
        self.counts: dict[int, int] = {}
        self.topics: dict[int, StoredTopic] = {}
        for each in self._reader.connections:
            self.counts[each.id] = each.msgcount
            self.topics[each.id] = StoredTopic(
                each.topic, each.msgtype, each.msgdef.data, ROS2MSG if each.msgdef.data else '',
                each.digest, cast(ConnectionExtRosbag2, each.ext).serialization_format)

    def messages(self, numbers: Collection[int], begin_ns: int,
                 ) -> Iterator[tuple[int, int, bytes]]:
        selected = [each for each in self._reader.connections if each.id in numbers]
        for connection, log_ns, data in self._reader.messages(selected, begin_ns):
            if not isinstance(data, bytes):
                raise ValueError('a message that is not data')
            yield connection.id, log_ns, data

    def close(self) -> None:
        if self._reader.dbconn is not None:
            self._reader.close()


Storage = McapStorage | SqliteStorage


def is_bag(path: Path) -> bool:
    """Return whether ``path`` is a bag's folder or a single storage file of one."""
    if path.is_dir():
        # As rosbag2 names the files of a folder: with its name and a number.
        return (path / METADATA).is_file() or any(
            path.absolute().name in file.name for file in storage_files(path))
    return path.is_file() and path.name.endswith(STORAGE_SUFFIXES + COMPRESSED_SUFFIXES)


def storage_files(folder: Path) -> list[Path]:
    """Return the storage files in a folder in the order of their numbers, each once."""
    names = {file.name for file in folder.iterdir() if file.is_file()
             and file.name.endswith(STORAGE_SUFFIXES + COMPRESSED_SUFFIXES)}
    return [folder / name for name in sorted(names, key=_numbers)
            if not name.endswith(COMPRESSED_SUFFIX)
            or name.removesuffix(COMPRESSED_SUFFIX) not in names]


def _numbers(name: str) -> list[str | int]:
    return [int(part) if part.isdecimal() else part for part in re.split(r'(\d+)', name)]


@contextmanager
def plain_file(file: Path) -> Iterator[tuple[Path, str]]:
    """Yield a storage file that may be compressed as a whole, decompressed up to a fault."""
    with ExitStack() as stack:
        with file.open('rb') as opened:
            source, compressed = inputs.decompressed(opened)
            if compressed is not None:
                folder = stack.enter_context(TemporaryDirectory(prefix='state_sensor_'))
                file = Path(folder, file.name)
                with file.open('wb') as target:
                    shutil.copyfileobj(source, target)
        yield file, '' if compressed is None else compressed.fault


def _reading(where: str) -> AbstractContextManager[None]:
    return inputs.decoding(
        where, 'a damaged bag ({})',
        'a whole bag; `state_sensor repair` recovers the messages of an MCAP file')


class Bag:
    """
    A bag; it is open until :meth:`close`.

    :param path: folder, or a .mcap or .db3 file, also compressed as a whole. A folder without
        metadata.yaml, as a killed recorder leaves it, has the files that are in it.
    :ivar topics: by name and type.
    :raises TrajectoryFormatError: if it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.topics: dict[TopicKey, StoredTopic] = {}
        self._hashes: dict[TopicKey, str] = {}
        self._storages: list[Storage] = []
        self._stack = ExitStack()
        with inputs.closed_on_failure(self):
            with _reading(self.name):
                files = self._files(path) if path.is_dir() else [path]
            for file in files:
                with _reading(str(file)):
                    self._add(file)

    def _files(self, folder: Path) -> list[Path]:
        """Return the storage files; note what metadata.yaml says of the types."""
        if not (folder / METADATA).is_file():
            return storage_files(folder)
        metadata = read_metadata(folder)
        if metadata['version'] > METADATA_VERSION:
            raise ValueError(f'the unknown version {metadata["version"]} of {METADATA}')
        for each in metadata['topics_with_message_count']:
            topic = each['topic_metadata']
            self._hashes[topic['name'], topic['type']] = topic.get('type_description_hash', '')
        files = [folder / PurePath(name).name for name in metadata['relative_file_paths']]
        if missing := [file.name for file in files if not file.exists()]:
            raise ValueError(f'no {missing[0]}, which {METADATA} names')
        return files

    def _add(self, file: Path) -> None:
        inputs.check_regular(file)
        file, fault = self._stack.enter_context(plain_file(file))
        if fault:
            raise ValueError(fault)
        with file.open('rb') as opened:
            is_sqlite = opened.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC
        storage: Storage = SqliteStorage(file) if is_sqlite else McapStorage(file)
        self._stack.callback(storage.close)
        self._storages.append(storage)
        for topic in storage.topics.values():
            self.topics.setdefault((topic.name, topic.type_name), topic)

    def count(self, key: TopicKey) -> int:
        """Return the number of messages of a topic."""
        return sum(storage.counts[number] for storage in self._storages
                   for number in _numbers_of(storage, {key}))

    def with_messages(self) -> list[TopicKey]:
        """Return names and types of the topics that have messages, in the order of names."""
        return sorted(key for key in self.topics if self.count(key))

    def messages(self, selected: Collection[TopicKey]) -> Iterator[tuple[str, int, bytes]]:
        """Yield name of the topic, log time in ns, and serialized message, file after file."""
        return ((name, log_ns, data) for name, (_, log_ns), data in self.messages_from(selected))

    def messages_from(self, selected: Collection[TopicKey], begin: Position = BEGIN,
                      ) -> Iterator[tuple[str, Position, bytes]]:
        """
        Yield name of the topic, position, and serialized message of each message.

        :param begin: position of the first message.
        :raises TrajectoryFormatError: if the bag is damaged.
        """
        first, begin_ns = begin
        for i, storage in enumerate(self._storages[first:], first):
            numbers = _numbers_of(storage, selected)
            n_messages = 0
            with _reading(self.name):
                for number, log_ns, data in storage.messages(numbers, begin_ns) if numbers else ():
                    # A storage file alone does not say that its messages are compressed; no
                    # serialized message begins so.
                    if data.startswith(inputs.ZSTD_MAGIC):
                        data = inputs.zstd.decompress(data)
                    n_messages += 1
                    yield storage.topics[number].name, (i, log_ns), data
                expected = sum(storage.counts[number] for number in numbers)
                if not begin_ns and n_messages != expected:
                    raise ValueError(f'{n_messages} of {expected} messages in its index')
            begin_ns = 0

    def check_definition(self, key: TopicKey) -> None:
        """
        Check that the definition of a topic's type is that of this package.

        :raises TrajectoryFormatError: if it is another, or the messages are not CDR.
        """
        topic = self.topics[key]
        ours, found = type_hash(topic.type_name), {topic.type_hash, self._hashes.get(key, '')}
        if topic.encoding == ROS2MSG and topic.definition != definition(topic.type_name):
            found.add(hash_of_definition(topic.type_name, topic.definition))
        if wrong := found - {'', ours}:
            raise errors.TrajectoryFormatError(f'{self.name}: {topic.type_name}', min(wrong),
                                               f'{ours}, the definition of this version')
        if topic.serialization != CDR:
            raise errors.TrajectoryFormatError(f'{self.name}: {topic.name}',
                                               f'the serialization {topic.serialization!r}', CDR)

    def close(self) -> None:
        """Close the bag; a second call has no effect."""
        self._stack.close()


def _numbers_of(storage: Storage, selected: Collection[TopicKey]) -> frozenset[int]:
    return frozenset(number for number, topic in storage.topics.items()
                     if (topic.name, topic.type_name) in selected)


def read_metadata(folder: Path) -> Any:  # noqa: ANN401
    """Read metadata.yaml; that of this package is JSON, which is YAML and read in no time."""
    text = (folder / METADATA).read_text('utf-8-sig')
    try:
        value = json.loads(text)
    except ValueError:
        from ruamel.yaml import YAML
        value = YAML(typ='safe').load(text)
    return value[INFORMATION]
