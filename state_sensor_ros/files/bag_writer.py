# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The files of a bag that is written: a storage file and metadata.yaml.

MCAP is written by mcap, SQLite by rosbags; both would be slow with hundreds of topics in the
Writer of rosbags, which compares each message with all of them and formats 1 ms of YAML for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
import json
import os
from pathlib import Path
import sqlite3
import struct
from typing import Any, cast

from state_sensor_ros.errors import importing, SinkError
from state_sensor_ros.files import bag, bag_frames, output
from state_sensor_ros.topics.topic import EVERYTHING, Qos, Subscriptions, Topic

_CHUNK_BYTES = 4 * 1024 * 1024
# Size of the messages in a commit of SQLite; a killed program loses those after the last one.
_COMMIT_BYTES = 4 * 1024 * 1024
_MAX_TIME_NS = 2**63 - 1
# Step of the log times across a restart: the period of frames without their own times, 20 Hz.
_PERIOD_NS = 50_000_000
# The duration that rmw reports for a profile without deadline, lifespan or lease.
_INFINITE = {'sec': 9223372036, 'nsec': 854775807}


class _McapStorage:
    """An MCAP file; as in :class:`_SqliteStorage`, one closed without metadata is not complete."""

    def __init__(self, path: Path, compression: str) -> None:
        from mcap.writer import CompressionType, Writer
        self._file = path.open('xb')
        self._writer: Any = Writer(
            self._file, _CHUNK_BYTES, CompressionType[compression.upper()], enable_data_crcs=True)
        self._writer.start(bag.PROFILE, 'state_sensor_ros')
        self._schemas: dict[str, int] = {}

    def add(self, topic: bag.StoredTopic) -> int:
        """Add a topic; return its number."""
        schema = self._schemas.get(topic.type_name)
        if schema is None:
            schema = self._schemas[topic.type_name] = self._writer.register_schema(
                topic.type_name, topic.encoding, topic.definition.encode())
        return cast(int, self._writer.register_channel(
            topic.name, topic.serialization, schema,
            {'offered_qos_profiles': topic.qos, 'topic_type_hash': topic.type_hash}))

    def write(self, number: int, log_ns: int, data: bytes, publish_ns: int, sequence: int) -> None:
        self._writer.add_message(number, log_ns, data, publish_ns, sequence)

    def flush(self) -> None:
        self._writer.flush()

    def close(self, metadata: str | None) -> None:
        try:
            self._writer.flush()
            if metadata is not None:
                self._writer.add_metadata('rosbag2', {'serialized_metadata': metadata})
                self._writer.finish()
        finally:
            self._file.close()


class _SqliteStorage:

    def __init__(self, path: Path) -> None:
        from rosbags.rosbag2.storage_sqlite3 import Sqlite3Writer
        # A recorder may open, write and complete the file in several threads, one after another.
        self._database = sqlite3.connect(path, check_same_thread=False)
        self._database.executescript(Sqlite3Writer.SQLITE_SCHEMA)
        # As with MCAP, nothing is synced before it is complete.
        self._database.execute('PRAGMA synchronous = OFF')
        self._types: set[str] = set()
        self._n_bytes = 0

    def add(self, topic: bag.StoredTopic) -> int:
        if topic.definition and topic.type_name not in self._types:
            self._types.add(topic.type_name)
            self._insert('message_definitions (topic_type, encoding, encoded_message_definition, '
                         'type_description_hash)', topic.type_name, topic.encoding,
                         topic.definition, topic.type_hash)
        return self._insert('topics', None, topic.name, topic.type_name, topic.serialization,
                            topic.qos, topic.type_hash)

    def write(self, number: int, log_ns: int, data: bytes, publish_ns: int, sequence: int) -> None:
        self._database.execute('INSERT INTO messages (topic_id, timestamp, data) VALUES (?, ?, ?)',
                               (number, log_ns, data))
        self._n_bytes += len(data)
        if self._n_bytes > _COMMIT_BYTES:
            self.flush()

    def _insert(self, table: str, *values: str | int | None) -> int:
        """Insert a row; return its number, which SQLite sets in a column of its own."""
        return cast(int, self._database.execute(
            f'INSERT INTO {table} VALUES ({", ".join("?" * len(values))})', values).lastrowid)

    def flush(self) -> None:
        self._n_bytes = 0
        self._database.commit()

    def close(self, metadata: str | None) -> None:
        if metadata is not None:
            self._insert('metadata (metadata_version, metadata)', bag.METADATA_VERSION, metadata)
        self.flush()
        self._database.close()


_Storage = _McapStorage | _SqliteStorage


class BagSink(output.Output):
    """
    A new bag, ended by :meth:`finish`, :meth:`abort` or a ``with``.

    Log times are the stamps. If the stamps decrease, after a restart of the simulator, log times
    still increase, because players sort by them.

    :param path: path of the bag: a folder, or a single file with a suffix of ``storage``, which
        then has no metadata.yaml.
    :param storage: ``mcap`` or ``sqlite3``.
    :param compression: of the chunks of MCAP, ``zstd`` or ``none``.
    :param node_name: fully qualified; ``~`` in a topic stands for it.
    :param read: part of a killed program from which the bag is made, without links.
    """

    survives_cut = True

    def __init__(self, path: str | Path, *, storage: str = 'mcap',
                 compression: str = 'zstd', node_name: str = '/state_sensor',
                 overwrite: bool = False, read: Path | None = None) -> None:
        self._storage_name, self._node_name = storage, node_name
        self._topics: dict[int, bag.StoredTopic] = {}
        self._counts = Counter[int]()
        self._first_ns, self._last_ns = _MAX_TIME_NS, 0
        # Numbers of topics by the name that this package has for a topic; of those of another
        # bag, by name and type.
        self._numbers: dict[str | tuple[str, str], int] = {}
        # Written before the first other message.
        self._latched: list[tuple[Topic, bytes]] = []
        self._offset_ns = 0
        self.name, self.path = str(path), Path(os.path.realpath(path))
        self.is_file = self.name.endswith(bag.STORAGE_SUFFIXES)
        # The storage file has the name of the bag, which is UTF-8 in metadata.yaml, and the number
        # that `ros2 bag reindex` expects.
        name = os.fsencode(self.path.stem if self.is_file else self.path.name).decode(
            errors='replace')
        folder = output.part_of(path, read)
        self._bag = folder / name
        self._file = self._bag / f'{name}_0.{"mcap" if storage == "mcap" else "db3"}'
        with output.failing(self.name):
            self._refuse_others(overwrite=overwrite)
            output.remove(folder)
            self.part = folder
            folder.mkdir()
        try:
            with self._failing(), importing('a bag'):
                self._bag.mkdir()
                self._storage: _Storage = _McapStorage(self._file, compression) \
                    if storage == 'mcap' else _SqliteStorage(self._file)
        except BaseException:
            super().abort()
            raise
        self._is_open = True

    def _refuse_others(self, *, overwrite: bool) -> None:
        """Refuse to replace what is there, except, to ``overwrite``, nothing but a bag."""
        if not os.path.lexists(self.path):
            return
        is_folder = self.path.is_dir()
        if not overwrite:
            raise SinkError(self.name, f'a {"folder" if is_folder else "file"} of that name '
                            'exists; --force replaces it')
        if is_folder and not self.is_file:
            own = _own_files(self.path)
            wrong = next((f'{entry.name} in it, which is not part of a bag'
                          for entry in sorted(self.path.iterdir()) if entry.name not in own
                          or entry.is_symlink() or not entry.is_file()), '')
        else:
            wrong = '' if self.is_file and self.path.is_file() else 'something that is no bag'
        if wrong:
            raise SinkError(self.name, wrong, 'nothing but a bag to overwrite')

    def subscriptions(self) -> Subscriptions:
        return EVERYTHING

    def open(self, topics: Iterable[Topic]) -> None:  # noqa: A003
        """Add topics to the bag, except those that it has already."""
        # topics: topics, whose names may have ``~`` for the node's.
        with self._failing():
            for topic in topics:
                self._number(topic)

    def shut(self, topics: Iterable[Topic]) -> None:
        """Ignore ``topics``: a bag keeps its topics."""

    def latch(self, topic: Topic, data: bytes) -> None:
        """Write a message before the first of the next :meth:`publish`, at its log time."""
        self._latched.append((topic, data))

    def publish(self, messages: Sequence[tuple[Topic, bytes]], stamp_ns: int) -> None:
        """Write messages; ``stamp_ns``: stamp of their frame, ns."""
        log_ns = self._log_time(stamp_ns)
        if self._latched:
            messages = [*self._latched, *messages]
        known, write = self._numbers, self._write
        with self._failing():
            for topic, data in messages:
                write(known.get(topic.name) or self._number(topic), log_ns, data, log_ns, 0)
        self._latched.clear()

    def copy_topic(self, topic: bag.StoredTopic) -> int:
        """Add a topic of another bag under its name there, unless it is there."""
        key = topic.name, topic.type_name
        with self._failing():
            return self._numbers.get(key) or self._add(key, topic)

    def copy(self, topic: bag.StoredTopic, log_ns: int, data: bytes, publish_ns: int,
             sequence: int) -> None:
        """Write a message of another bag with all of its stored values."""
        number = self.copy_topic(topic)
        with self._failing():
            self._write(number, log_ns, data, publish_ns, sequence)

    def _write(self, number: int, log_ns: int, data: bytes, publish_ns: int,
               sequence: int) -> None:
        self._storage.write(number, log_ns, data, publish_ns, sequence)
        self._counts[number] += 1
        self._first_ns = min(log_ns, self._first_ns)
        self._last_ns = max(log_ns, self._last_ns)

    def flush(self) -> None:
        """Write the messages so far."""
        with self._failing():
            self._storage.flush()

    def complete(self) -> None:
        """Complete the files."""
        if self._is_open:
            self._is_open = False
            with self._failing():
                # Indented, it would take 60 µs for each topic; no text in it has these quotes.
                text = json.dumps(self._metadata(), ensure_ascii=False).replace(
                    '{"topic_metadata"', '\n{"topic_metadata"')
                self._storage.close(text)
                if not self.is_file:
                    (self._bag / bag.METADATA).write_text(
                        f'{{"{bag.INFORMATION}": {text}}}\n', 'utf-8')
        super().complete()

    def _metadata(self) -> dict[str, Any]:
        """Return the members of metadata.yaml, which the storage file contains as well."""
        span: dict[str, Any] = {
            'starting_time': {'nanoseconds_since_epoch': self._first_ns},
            'duration': {'nanoseconds': max(0, self._last_ns - self._first_ns)},
            'message_count': self._counts.total()}
        return {
            'version': bag.METADATA_VERSION, 'storage_identifier': self._storage_name, **span,
            'topics_with_message_count': [
                {'topic_metadata': {
                    'name': topic.name, 'type': topic.type_name,
                    'serialization_format': topic.serialization,
                    'offered_qos_profiles': profiles_of(topic.qos),
                    'type_description_hash': topic.type_hash},
                 'message_count': self._counts[number]}
                for number, topic in self._topics.items()],
            'compression_format': '', 'compression_mode': '',
            'relative_file_paths': [self._file.name],
            'files': [{'path': self._file.name, **span}],
            'custom_data': None, 'ros_distro': 'rosbags'}

    def commit(self) -> None:
        """Give the complete bag its name, and remove the one that had it."""
        if self.part is not None:
            with output.failing(self.name):
                if self.path.is_dir():
                    self.path.rename(self.part / f'{self.path.name}.old')
                (self._file if self.is_file else self._bag).replace(self.path)
            self.abort()

    def abort(self) -> None:
        """Close and remove the bag."""
        if self._is_open:
            self._is_open = False
            # On a full disk, that fails as well.
            with suppress(OSError, sqlite3.Error):
                self._storage.close(None)
        super().abort()

    def _log_time(self, stamp_ns: int) -> int:
        if stamp_ns + self._offset_ns < self._last_ns:
            self._offset_ns = self._last_ns + _PERIOD_NS - stamp_ns
        return stamp_ns + self._offset_ns

    def _number(self, topic: Topic) -> int:
        """Return the number of a topic; add it to the bag if it is not there."""
        number = self._numbers.get(topic.name)
        if number is None:
            number = self._add(topic.name, bag.StoredTopic(
                bag_frames.full_name(topic.name, self._node_name), topic.type_name,
                bag.definition(topic.type_name), bag.ROS2MSG, bag.type_hash(topic.type_name),
                qos=_profiles_text(topic.qos)))
        return number

    def _add(self, key: str | tuple[str, str], topic: bag.StoredTopic) -> int:
        number = self._numbers[key] = self._storage.add(topic)
        self._topics[number] = topic
        return number

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Turn errors of the files into SinkError."""
        try:
            with output.failing(self.name):
                yield
        except sqlite3.Error as error:
            raise SinkError(self.name, str(error)) from error
        except struct.error as error:
            # MCAP numbers topics with 16 bits.
            raise SinkError(self.name, f'{len(self._numbers) + 1} topics',
                            'at most 65535 in a bag: a lower max_actor_topics') from error


@lru_cache(maxsize=16)
def _profiles_text(qos: Qos) -> str:
    """Format the profile that a node offers for a topic as YAML, of which JSON is a part."""
    return json.dumps([{
        'history': 'keep_last', 'depth': qos.depth,
        'reliability': 'reliable' if qos.reliable else 'best_effort',
        'durability': 'transient_local' if qos.latched else 'volatile',
        'deadline': _INFINITE, 'lifespan': _INFINITE, 'liveliness': 'automatic',
        'liveliness_lease_duration': _INFINITE, 'avoid_ros_namespace_conventions': False}])


@lru_cache(maxsize=16)
def profiles_of(text: str) -> list[dict[str, Any]]:
    """Return the profiles in the storage file of any rosbag2 as metadata.yaml has them."""
    with suppress(ValueError):
        return cast('list[dict[str, Any]]', json.loads(text))
    from rosbags.rosbag2.metadata import dump_qos_v9, parse_qos
    try:
        return [dict(each) for each in dump_qos_v9(parse_qos(text))]
    except Exception:  # noqa: BLE001 a damaged bag has any text here
        return []


def _own_files(folder: Path) -> set[str]:
    """Return the names of the files of a bag: metadata.yaml and the storage files in it."""
    try:
        return {bag.METADATA, *(name for name in bag.read_metadata(folder)['relative_file_paths']
                                if name.endswith(bag.STORAGE_SUFFIXES + bag.COMPRESSED_SUFFIXES))}
    except Exception:  # noqa: BLE001
        # Not a bag: no file in it may be removed.
        return set()
