# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""All readable parts of a damaged bag: its storage files, its topics, its messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
import os
from pathlib import Path
import re

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.bags.bag_metadata import (
    BagMetadata,
    COMPRESSED_SUFFIX,
    METADATA,
    read_metadata,
)
from state_sensor_ros.files.bags.bag_topics import hash_of_definition, parse_profiles
from state_sensor_ros.files.storage.input_file import (
    decompress_file,
    decompress_message,
    ZSTD_MAGIC,
)
from state_sensor_ros.files.storage.mcap_file import MAGIC as MCAP_MAGIC
from state_sensor_ros.files.storage.mcap_salvage import McapSalvage
from state_sensor_ros.files.storage.sqlite_reader import SqliteSalvage
from state_sensor_ros.files.storage.storage_file import (
    BagError,
    BagLimits,
    Recovered,
    StoredTopic,
)
from state_sensor_ros.files.whole.output import temporary_folder

_FORMATS = {MCAP_MAGIC: 'mcap', b'SQLite format 3\0': 'sqlite3', ZSTD_MAGIC: 'zstd'}
# Size of the smallest page of SQLite; a smaller file has no message.
_PAGE_BYTES = 512
# A bag that is being written is a folder in another one.
_MAX_DEPTH = 3
# With the same attributes and methods.
Salvage = McapSalvage | SqliteSalvage
_SALVAGES: dict[str, type[Salvage]] = {'mcap': McapSalvage, 'sqlite3': SqliteSalvage}


@dataclass(slots=True)
class FoundBag:
    files: list[Path]  # storage files in the order of time
    metadata: BagMetadata | None = None  # None if it cannot be read
    # defects, losses: descriptions of faults of the folder.
    defects: list[str] = field(default_factory=list)
    losses: list[str] = field(default_factory=list)


def format_of(path: Path) -> str:
    """Return the format of a file by its first bytes, of an MCAP file also by its last ones."""
    # Returns ``mcap``, ``sqlite3``, ``zstd``, or ``''`` for any other.
    with path.open('rb') as file:
        begin = file.read(_PAGE_BYTES)
        found = next((name for magic, name in _FORMATS.items() if begin.startswith(magic)), '')
        if not found and len(begin) == _PAGE_BYTES:
            file.seek(-len(MCAP_MAGIC), os.SEEK_END)
            return 'mcap' if file.read() == MCAP_MAGIC else ''
    return '' if found == 'sqlite3' and len(begin) < _PAGE_BYTES else found


def find_bag(path: Path, limits: BagLimits) -> FoundBag | None:
    """Search for the storage files of a bag."""
    if path.is_dir():
        return _in_folder(path, limits)
    return FoundBag([path]) if format_of(path) else None


def _in_folder(path: Path, limits: BagLimits) -> FoundBag:
    folders = {}
    for where, names, files in os.walk(path):
        here = Path(where)
        if len(here.relative_to(path).parts) >= _MAX_DEPTH:
            names.clear()
        storage_files = [here / name for name in files if is_storage(here / name)]
        if storage_files:
            folders[here] = storage_files
    if len(folders) != 1:
        what = f'storage files of bags in {len(folders)} folders' if folders \
            else 'no storage file of a bag (.mcap, .db3)'
        raise TrajectoryFormatError(str(path), what, 'the files of one bag')
    [(folder, storage_files)] = folders.items()
    try:
        metadata = read_metadata(folder, limits)
    except (BagError, OSError) as error:
        fault = error.fault if isinstance(error, BagError) else 'not there'
        return FoundBag(_in_order(storage_files), defects=[f'{METADATA} was {fault}'])
    named = [folder / name for name in metadata.files]
    missing = [file.name for file in named if file not in storage_files]
    others = _in_order([file for file in storage_files if file not in named]) if missing else []
    found = FoundBag([file for file in named if file in storage_files] + others, metadata)
    if others:
        found.defects.append(f'{METADATA} named {", ".join(missing)} instead of '
                             f'{", ".join(file.name for file in others)}')
    else:
        found.losses = [f'all of {name}, which is not there' for name in missing]
    return found


def is_storage(path: Path) -> bool:
    """Return whether a file may have messages that can be repaired."""
    name = format_of(path) if path.is_file() else ''
    return bool(name) and (name != 'zstd' or path.name.endswith(COMPRESSED_SUFFIX))


def _in_order(files: list[Path]) -> list[Path]:
    """Sort files by the numbers in their names; omit compressed copies of files in the list."""
    names = {file.name for file in files}
    return sorted((file for file in files if file.name.removesuffix(COMPRESSED_SUFFIX) == file.name
                   or file.name.removesuffix(COMPRESSED_SUFFIX) not in names),
                  key=lambda file: [int(part) if part.isdecimal() else part for part in
                                    re.split(r'(\d+)', file.name)])


class BagRepair:
    """A damaged or incomplete bag."""

    # losses: descriptions of what could not be read; complete after the last message.
    # n_lost: number of lost messages, None if it is unknown.

    def __init__(self, bag: FoundBag, limits: BagLimits) -> None:
        self.losses = list(bag.losses)
        self.defects = list(bag.defects)
        self.n_lost: int | None = None if bag.losses else 0
        self._files = bag.files
        self._named_topics = {} if bag.metadata is None else bag.metadata.topics
        self._limits = limits
        # By name and type, from the first file with the topic.
        self._topics: dict[tuple[str, str], StoredTopic] = {}
        self._definitions: dict[str, str] = {}

    @property
    def topics(self) -> list[StoredTopic]:
        """Topics of the files, then the others of metadata.yaml; after the last message."""
        return list(self._topics.values())

    def storage(self) -> str:
        """Return the storage of the files, MCAP if they differ, for the repaired bag."""
        return 'sqlite3' if self._files and all(map(_is_sqlite, self._files)) else 'mcap'

    def messages(self) -> Iterator[Recovered]:
        """Yield all readable messages, file after file."""
        for file in self._files:
            with ExitStack() as stack:
                try:
                    salvage = self._opened(file, stack)
                except BagError as error:
                    self._lose(file, f'all of it, {error.fault}')
                    continue
                for message in salvage.messages():
                    plain = self._plain(message.data, file)
                    if plain is not None:
                        yield message._replace(topic=self._merged(message.topic), data=plain)
                for topic in salvage.topics.values():
                    self._merged(topic)
                self._note(file, salvage)
        for key, topic in self._named_topics.items():
            if key not in self._topics:
                self._add(key, topic)

    def _opened(self, file: Path, stack: ExitStack) -> Salvage:
        """Open a storage file until the end of ``stack``."""
        path, storage = file, format_of(file)
        if storage == 'zstd':
            path = stack.enter_context(temporary_folder()) / file.name
            if fault := decompress_file(file, path, self._limits.n_file_bytes):
                self._lose(file, f'data that cannot be decompressed, {fault}')
            storage = format_of(path)
        if storage not in _SALVAGES:
            raise BagError(str(file), 'no storage file of a bag', 'MCAP or SQLite')
        salvage = _SALVAGES[storage](path, str(file), self._limits)
        stack.callback(salvage.close)
        return salvage

    def _merged(self, topic: StoredTopic) -> StoredTopic:
        """Return the topic of the first file that has it, with the type hash of metadata.yaml."""
        key = topic.name, topic.type_name
        known = self._topics.get(key)
        if known is None:
            named = self._named_topics.get(key)
            type_hash = topic.type_hash or (named.type_hash if named else '') \
                or hash_of_definition(topic.type_name, topic.definition, topic.encoding)
            known = self._add(key, replace(topic, type_hash=type_hash))
            # A bag has one definition of a type.
            if self._definitions.setdefault(topic.type_name, topic.definition) != topic.definition:
                self.losses.append(f'the definition of {topic.type_name} of {topic.name}, which '
                                   'differs from that of another topic')
        return known

    def _add(self, key: tuple[str, str], topic: StoredTopic) -> StoredTopic:
        self._topics[key] = topic
        if parse_profiles(topic.qos) is None:
            self.losses.append(f'the quality of service of {topic.name}')
        return topic

    def _plain(self, data: bytes, file: Path) -> bytes | None:
        """Return a message, decompressed if it is compressed; None if that fails."""
        # No serialized message begins with these bytes.
        if not data.startswith(ZSTD_MAGIC):
            return data
        try:
            return decompress_message(data, str(file), self._limits.n_bytes)
        except BagError as error:
            self._lose(file, f'a message that cannot be decompressed, {error.fault}')
            return None

    def _lose(self, file: Path, what: str) -> None:
        self.n_lost = None
        self.losses.append(self._named(file, what))

    def _note(self, file: Path, salvage: Salvage) -> None:
        """Add the losses and defects of a file."""
        self.losses += [self._named(file, loss) for loss in salvage.losses]
        self.defects += [self._named(file, defect) for defect in salvage.defects]
        n_lost = salvage.n_lost
        self.n_lost = None if self.n_lost is None or n_lost is None else self.n_lost + n_lost

    def _named(self, file: Path, what: str) -> str:
        return f'{file.name}: {what}' if len(self._files) > 1 else what


def can_repair(path: Path, limits: BagLimits) -> bool:
    """Return whether a bag that cannot be opened has a message that can be read."""
    with suppress(TrajectoryFormatError, OSError):
        bag = find_bag(path, limits)
        if bag is not None:
            repair = BagRepair(bag, limits)
            return any(True for _ in repair.messages()) \
                or bool(repair.topics and not repair.losses)
    return False


def _is_sqlite(file: Path) -> bool:
    name = format_of(file)
    return name == 'sqlite3' or (name == 'zstd' and '.db3' in file.suffixes)
