# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The StateFrames of a rosbag2 bag, under any node name, and other messages of the same node.

A bag is a folder with metadata.yaml, or a single storage file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, ExitStack
from itertools import islice
from pathlib import Path

from rosbags.typesys import get_types_from_msg, TypesysError

from state_sensor_ros.errors import reason_of, TrajectoryFormatError
from state_sensor_ros.files.bags.bag_form import METADATA, STORAGE_OF_SUFFIX
from state_sensor_ros.files.bags.bag_metadata import BagMetadata, read_metadata
from state_sensor_ros.files.bags.bag_types import (
    definition,
    MAX_DEFINITION_BYTES,
    type_hash,
    typestore,
)
from state_sensor_ros.files.bags.state_frames import STATE_FRAME
from state_sensor_ros.files.storage.bag_limits import (
    BagError,
    BagLimits,
    damaged,
    DEFAULT_LIMITS,
)
from state_sensor_ros.files.storage.decompression import decompress_file, decompress_message
from state_sensor_ros.files.storage.mcap_reader import McapReader
from state_sensor_ros.files.storage.sqlite_reader import SqliteReader
from state_sensor_ros.files.storage.storage_file import CDR, ROS2MSG, Storage, StoredTopic
from state_sensor_ros.files.whole.regular_files import check_regular
from state_sensor_ros.files.whole.temporary import temporary_folder

_READERS: dict[str, type[McapReader | SqliteReader]] = {
    'mcap': McapReader, 'sqlite3': SqliteReader}
_MAX_SHOWN = 200


class Bag:
    """
    A bag with StateFrames; it is open until :meth:`close`.

    :param path: folder with metadata.yaml, or a .mcap or .db3 file.
    :param topic: of the StateFrames; ``''`` for the only one of that type.
    :param limits: sizes above which it is refused.
    :ivar topic: of the StateFrames.
    :ivar n_messages: number of StateFrames.
    :raises TrajectoryFormatError: where it cannot be read or has no such topic.
    """

    def __init__(self, path: Path, topic: str = '', limits: BagLimits = DEFAULT_LIMITS) -> None:
        self.name = str(path)
        self._limits = limits
        self._stack = ExitStack()
        self._storages: list[Storage] = []
        self._metadata: BagMetadata | None = None
        for file in path.iterdir() if path.is_dir() else [path]:
            check_regular(file)
        try:
            with self._reading():
                self._open(path)
                self._topics = {(topic.name, topic.type_name): topic
                                for storage in self._storages
                                for topic in storage.topics.values()}
                self._frames = self._chosen(topic)
        except BaseException:
            self.close()
            raise
        self.topic = self._frames[0]
        self._node = self.topic.rpartition('/')[0]
        self.n_messages = sum(
            storage.counts[number] for storage in self._storages
            for number, one in storage.topics.items() if (one.name, one.type_name) == self._frames)

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """
        Yield log time, ns, and serialised StateFrame of each message, in the order of log times.

        :raises TrajectoryFormatError: where the bag is damaged.
        """
        for _, log_ns, data in self._messages({self._frames}):
            yield log_ns, data

    def has(self, name: str, type_name: str) -> bool:
        """
        Return whether the bag has a topic of the node that published the StateFrames.

        :param name: of the topic, without the node's, such as ``frame``.
        :param type_name: ``package/msg/Name``.
        """
        return (f'{self._node}/{name}', type_name) in self._topics

    def counts_of_node(self) -> dict[tuple[str, str], int]:
        """
        Return the number of messages of each topic of the node that published the StateFrames.

        :returns: by name, without the node's, and type.
        """
        prefix = f'{self._node}/'
        counts: dict[tuple[str, str], int] = {}
        for storage in self._storages:
            for number, topic in storage.topics.items():
                if topic.name.startswith(prefix):
                    key = topic.name.removeprefix(prefix), topic.type_name
                    counts[key] = counts.get(key, 0) + storage.counts[number]
        return counts

    def messages_of_node(self, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """
        Yield messages of the node that published the StateFrames, in the order of log times.

        :param names: of topics, without the node's, such as ``frame``.
        :returns: the name and the serialised message of each.
        :raises TrajectoryFormatError: where the bag is damaged.
        """
        short_names = {f'{self._node}/{name}': name for name in names}
        selected = {one for one in self._topics if one[0] in short_names}
        for topic, _, data in self._messages(selected):
            yield short_names[topic], data

    def messages_of(self, name: str, type_name: str) -> Iterator[bytes]:
        """
        Yield the messages of any topic in the order of log times.

        :param name: of the topic.
        :param type_name: ``package/msg/Name``.
        :raises TrajectoryFormatError: where the bag is damaged.
        """
        n_messages = sum(
            storage.counts[number] for storage in self._storages
            for number, topic in storage.topics.items()
            if (topic.name, topic.type_name) == (name, type_name))
        # Those of a latched topic are at the start: the rest of the bag is not read.
        for _, _, data in islice(self._messages({(name, type_name)}), n_messages):
            yield data

    def close(self) -> None:
        """Close the bag; a second call has no effect."""
        self._stack.close()

    def _open(self, path: Path) -> None:
        """Open all storage files."""
        if not path.is_dir():
            self._add(path, STORAGE_OF_SUFFIX[path.suffix], str(path))
            return
        self._metadata = metadata = read_metadata(path, self._limits)
        if metadata.storage not in _READERS:
            raise BagError(str(path / METADATA), f'the storage {metadata.storage!r}',
                           f'one of {", ".join(_READERS)}')
        for name in metadata.files:
            file = path / name
            if not file.is_file():
                raise damaged(str(path), f'no {name}, which metadata.yaml names')
            plain = self._decompressed(file) if metadata.compression == 'file' else file
            self._add(plain, metadata.storage, str(file))
        for storage in self._storages:
            self._check_topics(storage, metadata)

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
        """Check that metadata.yaml has each topic of a storage file that has messages."""
        for number, topic in storage.topics.items():
            if (topic.name, topic.type_name) not in metadata.topics and storage.counts[number]:
                raise damaged(f'{self.name}/{METADATA}', f'no topic {topic.name} of the type '
                              f'{topic.type_name}, which has messages')

    def _messages(self, selected: set[tuple[str, str]]) -> Iterator[tuple[str, int, bytes]]:
        """Yield name of the topic, log time, ns, and message of topics, file after file."""
        is_compressed = self._metadata is not None and self._metadata.compression == 'message'
        with self._reading():
            for storage in self._storages:
                names = {number: topic.name for number, topic in storage.topics.items()
                         if (topic.name, topic.type_name) in selected}
                for number, log_ns, data in storage.messages(names) if names else ():
                    yield names[number], log_ns, data if not is_compressed else (
                        decompress_message(data, f'{self.name}: a message of {names[number]}',
                                           self._limits.n_bytes))

    def _chosen(self, topic: str) -> tuple[str, str]:
        """Return name and type of the topic of the StateFrames."""
        frames = sorted(one for one in self._topics if one[1] == STATE_FRAME)
        names = [name for name, _ in frames]
        if not frames:
            raise TrajectoryFormatError(self.name, 'no topic of the type StateFrame',
                                        f'a bag with {STATE_FRAME}, such as ~/frame')
        if not topic and len(frames) > 1:
            raise TrajectoryFormatError(self.name, f'the topics {", ".join(names)}',
                                        'one of them to be named by --topic')
        if topic and topic not in names:
            raise TrajectoryFormatError(self.name, f'no topic {topic} of the type StateFrame',
                                        f'one of {", ".join(names)}')
        chosen = (topic or names[0], STATE_FRAME)
        self._check_definition(self._topics[chosen])
        return chosen

    def _check_definition(self, topic: StoredTopic) -> None:
        """Check that the definition of StateFrame is that of this version."""
        hashes = {topic.type_hash}
        if self._metadata is not None:
            hashes.add(self._metadata.topics[topic.name, topic.type_name].type_hash)
        if wrong := hashes - {'', type_hash(STATE_FRAME)}:
            self._refuse_definition(min(wrong))
        if topic.serialization != CDR:
            raise TrajectoryFormatError(f'{self.name}: {topic.name}',
                                        f'the serialization {topic.serialization!r}',
                                        CDR)
        if topic.encoding != ROS2MSG or topic.definition == definition(STATE_FRAME):
            return
        if len(topic.definition) > MAX_DEFINITION_BYTES:
            self._refuse_definition(f'a definition of more than {MAX_DEFINITION_BYTES} bytes')
        ours = typestore().fielddefs
        for name, found in get_types_from_msg(topic.definition, STATE_FRAME).items():
            if ours.get(name) != found:
                self._refuse_definition(f'another {name}')

    def _refuse_definition(self, found: str) -> None:
        raise TrajectoryFormatError(f'{self.name}: {STATE_FRAME}', found,
                                    f'{type_hash(STATE_FRAME)}, the definition of this version')

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn errors of files and definitions into TrajectoryFormatError."""
        try:
            yield
        except TrajectoryFormatError:
            raise
        except OSError as error:
            raise TrajectoryFormatError(self.name, reason_of(error), 'a bag') from error
        except (TypesysError, ValueError, RecursionError) as error:
            text = ' '.join(str(error)[:_MAX_SHOWN].split()) or type(error).__name__
            raise damaged(self.name, f'an invalid definition, {text}') from error
