# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Everything that can still be read of a bag: its topics, and its messages one after the other.

May know: forms of storage files, compression of files and of messages, which topic is the same in
several files. Must not know: what is in a storage file, how a bag is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rosbags.interfaces import Qos
from ruamel.yaml.error import YAMLError

from state_sensor_ros.recordings.bags.bag_qos import parse_profiles
from state_sensor_ros.recordings.bags.bag_search import BagPart, form_of
from state_sensor_ros.recordings.bags.bag_types import hash_of_definition
from state_sensor_ros.recordings.storage.bag_limits import (
    BagError,
    BagLimits,
    decompress,
    decompress_file,
)
from state_sensor_ros.recordings.storage.mcap_salvage import McapSalvage
from state_sensor_ros.recordings.storage.sqlite_salvage import SqliteSalvage
from state_sensor_ros.recordings.storage.storage_file import Recovered, Salvage, StoredTopic

_SALVAGES: dict[str, type[McapSalvage | SqliteSalvage]] = {
    'mcap': McapSalvage, 'sqlite3': SqliteSalvage}
_ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


class BagRepair:
    """
    Read what is left of a bag.

    :param part: its files.
    :param limits: what may be read at once.
    :ivar topics: that were found so far.
    :ivar losses: what could not be read, in words, complete behind the last message.
    :ivar defects: what else was wrong, likewise.
    :ivar n_lost: how many messages were lost, None where that is not known.
    """

    def __init__(self, part: BagPart, limits: BagLimits) -> None:
        self.losses = list(part.losses)
        self.defects = list(part.defects)
        self.n_lost: int | None = None if part.losses else 0
        self._part = part
        self._limits = limits
        # By name and type: that of the first file that has it.
        self._topics: dict[tuple[str, str], StoredTopic] = {}
        self._definitions: dict[str, str] = {}

    @property
    def topics(self) -> list[StoredTopic]:
        """Topics that were found so far, and those that metadata.yaml names besides."""
        named = {} if self._part.metadata is None else self._part.metadata.topics
        return [*self._topics.values(),
                *(topic for key, topic in named.items() if key not in self._topics)]

    def storage(self) -> str:
        """
        Return the form of the files, MCAP where they have several.

        :raises OSError: where one cannot be read.
        """
        forms = {_form(file) for file in self._part.files}
        return 'sqlite3' if forms == {'sqlite3'} else 'mcap'

    def messages(self) -> Iterator[Recovered]:
        """
        Yield all messages that can be read, file after file.

        :raises OSError: where a file cannot be read.
        """
        for file in self._part.files:
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

    def _opened(self, file: Path, stack: ExitStack) -> Salvage:
        """Open a storage file until the end of ``stack``."""
        path, form = file, form_of(file)
        if form == 'zstd':
            path = Path(stack.enter_context(TemporaryDirectory())) / file.name
            if fault := decompress_file(file, path, self._limits.n_file_bytes):
                self._lose(file, f'what cannot be decompressed, {fault}')
            form = form_of(path)
        if form not in _SALVAGES:
            raise BagError(str(file), 'no storage file of a bag', 'MCAP or SQLite')
        salvage = _SALVAGES[form](path, str(file), self._limits)
        stack.callback(salvage.close)
        return salvage

    def _merged(self, topic: StoredTopic) -> StoredTopic:
        """Return the topic as the first file has it, with the hash that metadata.yaml has."""
        key = topic.name, topic.type_name
        known = self._topics.get(key)
        if known is None:
            named = None if self._part.metadata is None else self._part.metadata.topics.get(key)
            type_hash = topic.type_hash or (named.type_hash if named else '') \
                or hash_of_definition(topic.type_name, topic.definition, topic.encoding)
            known = self._topics[key] = replace(topic, type_hash=type_hash)
            # A bag has one definition of a type.
            if self._definitions.setdefault(topic.type_name, topic.definition) != topic.definition:
                self.losses.append(f'another definition of {topic.type_name}, that of '
                                   f'{topic.name}')
        return known

    def _plain(self, data: bytes, file: Path) -> bytes | None:
        """Return a message, decompressed where each is compressed; None where that fails."""
        # No serialised message begins so.
        if not data.startswith(_ZSTD_MAGIC):
            return data
        plain, fault = decompress(data, 'zstd', self._limits.n_bytes)
        if fault or len(plain) > self._limits.n_bytes:
            self._lose(file, f'a message that cannot be decompressed, {fault or "too large"}')
            return None
        return plain

    def _lose(self, file: Path, what: str) -> None:
        self.n_lost = None
        self.losses.append(self._named(file, what))

    def _note(self, file: Path, salvage: Salvage) -> None:
        """Add what was wrong with a file."""
        self.losses += [self._named(file, loss) for loss in salvage.losses]
        self.defects += [self._named(file, defect) for defect in salvage.defects]
        n_lost = salvage.n_lost
        self.n_lost = None if self.n_lost is None or n_lost is None else self.n_lost + n_lost

    def _named(self, file: Path, what: str) -> str:
        return f'{file.name}: {what}' if len(self._part.files) > 1 else what


def profiles_of(topic: StoredTopic) -> list[Qos] | None:
    """Return the profiles of a topic, None where they cannot be read."""
    try:
        return parse_profiles(topic.qos)
    except (ValueError, KeyError, YAMLError):
        return None


def _form(file: Path) -> str:
    """Return the form of a file; one that is compressed has it in its name."""
    form = form_of(file)
    return form if form != 'zstd' else 'sqlite3' if '.db3' in file.suffixes else 'mcap'
