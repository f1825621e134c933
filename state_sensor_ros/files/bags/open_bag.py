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

from collections.abc import Collection, Iterator
from contextlib import contextmanager, ExitStack
from itertools import islice
from pathlib import Path

from rosbags.typesys import get_types_from_msg, TypesysError

from state_sensor_ros.errors import reason_of, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_metadata import (
    BagMetadata,
    is_compressed_storage,
    METADATA,
    read_metadata,
    STORAGE_OF_SUFFIX,
)
from state_sensor_ros.files.bags.bag_repair import can_repair
from state_sensor_ros.files.bags.bag_topics import definition, MAX_DEFINITION_BYTES, type_hash
from state_sensor_ros.files.storage.input_file import (
    check_regular,
    decompress_file,
    decompress_message,
    ZSTD_MAGIC,
)
from state_sensor_ros.files.storage.mcap_file import MAGIC
from state_sensor_ros.files.storage.mcap_reader import McapReader
from state_sensor_ros.files.storage.sqlite_reader import SqliteReader
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    CDR,
    damaged,
    DEFAULT_LIMITS,
    REPAIRABLE,
    ROS2MSG,
    StoredTopic,
)
from state_sensor_ros.files.whole.output import temporary_folder

# Name and type of a topic.
TopicKey = tuple[str, str]
# Log time, ns, and number of the message among those of one topic, storage file and log time.
MessagePlace = tuple[int, int]

# With the same attributes and methods.
Storage = McapReader | SqliteReader
_READERS: dict[str, type[Storage]] = {'mcap': McapReader, 'sqlite3': SqliteReader}
_MAGIC = {MAGIC: 'mcap', b'SQLite format 3\0': 'sqlite3'}
_MAX_SHOWN = 200
_MAX_EQUAL = 2**32


class OpenBag:
    """A bag; it is open until :meth:`close`."""

    # path: folder with metadata.yaml, or a .mcap or .db3 file, also compressed as a whole.

    def __init__(self, path: Path, limits: BagLimits = DEFAULT_LIMITS) -> None:
        self.name = str(path)
        self._limits = limits
        self._stack = ExitStack()
        self._storages: list[Storage] = []
        self._metadata: BagMetadata | None = None
        files = [*path.iterdir()] if path.is_dir() else [path]
        for file in files:
            check_regular(file)
        try:
            with self._reading():
                self._open(path)
        except BagError as error:
            self.close()
            if error.expected == REPAIRABLE and not can_repair(path, limits):
                raise BagError(error.where, error.found, 'a whole bag; no repair is possible',
                               error.fault) from error
            raise
        except BaseException:
            self.close()
            raise
        self.topics: dict[TopicKey, StoredTopic] = {
            (topic.name, topic.type_name): topic
            for storage in self._storages for topic in storage.topics.values()}

    def count(self, key: TopicKey) -> int:
        return sum(storage.counts[number] for storage in self._storages
                   for number, topic in storage.topics.items()
                   if (topic.name, topic.type_name) == key)

    def with_messages(self) -> list[TopicKey]:
        """Return names and types of the topics that have messages, in the order of names."""
        return sorted(key for key in self.topics if self.count(key))

    def messages(self, selected: Collection[TopicKey],
                 at_ns: int | None = None) -> Iterator[tuple[str, int, bytes]]:
        """Yield messages, file after file; those of one log time if there is ``at_ns``."""
        # Returns name of the topic, log time, ns, and serialized message.
        for storage in self._storages:
            yield from self._messages(storage, selected, at_ns)

    def placed_messages(self, key: TopicKey) -> Iterator[tuple[MessagePlace, bytes]]:
        for i, storage in enumerate(self._storages):
            before_ns, n_equal = None, 0
            for _, log_ns, data in self._messages(storage, {key}):
                n_equal = n_equal + 1 if log_ns == before_ns else 0
                before_ns = log_ns
                yield (log_ns, i * _MAX_EQUAL + n_equal), data

    def message_at(self, key: TopicKey, place: MessagePlace) -> bytes:
        """Return a message by the index of its storage file."""
        log_ns, number = place
        i, n_before = divmod(number, _MAX_EQUAL)
        for _, _, data in islice(self._messages(self._storages[i], {key}, log_ns), n_before, None):
            return data
        raise TrajectoryFormatError(self.name, f'no message of {key[0]} at {log_ns} ns',
                                    'the same bag as before')

    def _messages(self, storage: Storage, selected: Collection[TopicKey],
                  at_ns: int | None = None) -> Iterator[tuple[str, int, bytes]]:
        names = {number: topic.name for number, topic in storage.topics.items()
                 if (topic.name, topic.type_name) in selected}
        if not names:
            return
        with self._reading():
            for number, log_ns, data in storage.messages(names) if at_ns is None \
                    else storage.messages_at(names, at_ns):
                # A storage file alone does not say that its messages are compressed; no serialized
                # message begins so.
                if data.startswith(ZSTD_MAGIC):
                    data = decompress_message(data, f'{self.name}: a message of {names[number]}',
                                              self._limits.n_bytes)
                yield names[number], log_ns, data

    def check_definition(self, key: TopicKey) -> None:
        """Check that the definition of a topic's type is that of this package."""
        with self._reading():
            self._check_definition(self.topics[key], key)

    def close(self) -> None:
        """Close the bag; a second call has no effect."""
        self._stack.close()

    def _open(self, path: Path) -> None:
        if not path.is_dir():
            plain = self._decompressed(path) if is_compressed_storage(path) else path
            self._add(plain, self._storage_of(plain, ''), str(path))
            return
        self._metadata = metadata = read_metadata(path, self._limits)
        for name in metadata.files:
            file = path / name
            if not file.is_file():
                raise damaged(str(path), f'no {name}, which metadata.yaml names')
            plain = self._decompressed(file) if metadata.compression == 'file' else file
            # Tools that reindex or rename a bag leave another storage_identifier, or none.
            self._add(plain, self._storage_of(plain, metadata.storage), str(file))
        for storage in self._storages:
            self._check_topics(storage, metadata)

    @staticmethod
    def _storage_of(file: Path, named: str) -> str:
        """Return the storage of a file by its content, else as named, else by its suffix."""
        with file.open('rb') as opened:
            begin = opened.read(max(map(len, _MAGIC)))
        if named not in _READERS:
            named = STORAGE_OF_SUFFIX.get(file.suffix, 'mcap')
        return next((storage for magic, storage in _MAGIC.items() if begin.startswith(magic)),
                    named)

    def _add(self, path: Path, storage: str, name: str) -> None:
        self._storages.append(_READERS[storage](path, name, self._limits))
        self._stack.callback(self._storages[-1].close)

    def _decompressed(self, file: Path) -> Path:
        """Decompress a storage file to a temporary folder that :meth:`close` removes."""
        folder = self._stack.enter_context(temporary_folder())
        plain = folder / file.name
        if fault := decompress_file(file, plain, self._limits.n_file_bytes):
            raise damaged(str(file), fault)
        return plain

    def _check_topics(self, storage: Storage, metadata: BagMetadata) -> None:
        for number, topic in storage.topics.items():
            if (topic.name, topic.type_name) not in metadata.topics and storage.counts[number]:
                raise damaged(f'{self.name}/{METADATA}', f'no topic {topic.name} of the type '
                              f'{topic.type_name}, which has messages')

    def _check_definition(self, topic: StoredTopic, key: TopicKey) -> None:
        type_name = topic.type_name
        hashes = {topic.type_hash}
        if self._metadata is not None and key in self._metadata.topics:
            hashes.add(self._metadata.topics[key].type_hash)
        if wrong := hashes - {'', type_hash(type_name)}:
            self._refuse_definition(type_name, min(wrong))
        if topic.serialization != CDR:
            raise TrajectoryFormatError(f'{self.name}: {topic.name}',
                                        f'the serialization {topic.serialization!r}',
                                        CDR)
        # Recorded on Windows.
        text = topic.definition.replace('\r\n', '\n')
        if topic.encoding != ROS2MSG or text == definition(type_name):
            return
        if len(text) > MAX_DEFINITION_BYTES:
            self._refuse_definition(
                type_name, f'a definition of more than {MAX_DEFINITION_BYTES} bytes')
        ours = get_types_from_msg(definition(type_name), type_name)
        for name, found in get_types_from_msg(text, type_name).items():
            if ours.get(name) != found:
                self._refuse_definition(type_name, f'another {name}')

    def _refuse_definition(self, type_name: str, found: str) -> None:
        raise TrajectoryFormatError(f'{self.name}: {type_name}', found,
                                    f'{type_hash(type_name)}, the definition of this version')

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of files and definitions into TrajectoryFormatError."""
        try:
            yield
        except TrajectoryFormatError:
            raise
        except OSError as error:
            raise TrajectoryFormatError(self.name, reason_of(error)) from error
        except (TypesysError, ValueError, RecursionError) as error:
            text = ' '.join(str(error)[:_MAX_SHOWN].split()) or type(error).__name__
            raise damaged(self.name, f'an invalid definition, {text}') from error
