# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The interface of a simulator: what the package needs of one, with a default for most of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files import Format
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import Frame
from state_sensor_ros.settings import NAMES, rule_of, Settings
from state_sensor_ros.source import Report

if TYPE_CHECKING:
    import argparse

    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.source import Source
    from state_sensor_ros.topics.topic_encoder import NewTopicEncoder
    from state_sensor_ros.topics.transforms import StaticTransform


# Parameters of the driver that a live source may use; those of connecting again are used by all.
SOURCE_PARAMETERS = frozenset(name for name in NAMES if rule_of(name).selected)


Pixels: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SimulatorTopics:
    """The topics that only one simulator has."""

    # Subclasses of :class:`TopicEncoder`, or what makes one; one whose topics have the names of
    # topics of the package takes their place.
    encoders: tuple[NewTopicEncoder, ...] = ()
    transforms: tuple[StaticTransform, ...] = ()  # for /tf_static


@dataclass(frozen=True, slots=True)
class SensorImage:
    """An image of a camera on the ego, to look at."""

    name: str  # such as ``central/rgb``
    # (H, W, 3) uint8 red, green, blue, or (H, W) float32 depth, m; None if ``png`` has a PNG file
    # in their place.
    pixels: Pixels | None = None
    png: bytes = b''


SensorReader: TypeAlias = Callable[[Frame], Iterable[SensorImage]]


# Shows the progress of a recording while its frames are read.
Reading: TypeAlias = Callable[[Any], AbstractContextManager[Iterator[Any]]]


class Replay(Protocol):
    """The replay of a recording in a running simulator; ``run`` is called in a thread."""

    @property
    def state(self) -> object:
        """Return what it does, whose text is shown."""

    @property
    def index(self) -> int:
        """Return the index of the frame that is shown."""

    @property
    def n_frames(self) -> int:
        """Return the number of frames."""

    @property
    def is_at_end(self) -> bool:
        """Return whether there is no further frame in its direction."""

    def run(self) -> None:
        """Replay to the end, or to :meth:`stop`; raise TransportError if that fails."""

    def pause_or_resume(self) -> None:
        """Pause before the next step, or resume."""

    def turn_round(self) -> None:
        """Reverse the direction from the next step on."""

    def stop(self) -> None:
        """End :meth:`run` after the outstanding reply."""

    def abort(self) -> None:
        """End :meth:`run` at once."""


class Simulator:
    """
    One simulator.

    :cvar name: value of the parameter ``source``, and name of the entry point.
    :cvar old_names: its earlier names.
    :cvar parameters: class of the parameters that only this simulator needs: a frozen dataclass
        of :func:`parameter`, whose field ``speed`` is the parameter ``toy.speed`` of the
        simulator ``toy``. ``settings.of(parameters)`` returns their values.
    :cvar aliases: other names of these parameters: names of earlier versions, and ``host`` and
        ``port`` if the simulator declares its own.
    :cvar default_port: port of its live frames, None if it has none.
    :cvar uses: those of ``SOURCE_PARAMETERS``, such as ``rate``, that its live source uses.
    :cvar has_wall_time: whether its frames have a ``time``.
    :cvar takes_commands: whether it has :meth:`open_commands`.
    :cvar formats: formats that only its recordings have; one without suffixes is a folder, the
        format in which its frames are recorded.
    :cvar map_files: function ``module:function`` that reads its maps, by the suffix of the file,
        such as ``.net.xml``: it takes the path and returns a sequence of :class:`MapLine`.
    """

    name: ClassVar[str]
    old_names: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[type | None] = None
    aliases: ClassVar[Mapping[str, str]] = MappingProxyType({})
    default_port: ClassVar[int | None] = None
    uses: ClassVar[frozenset[str]] = frozenset()
    has_wall_time: ClassVar[bool] = False
    takes_commands: ClassVar[bool] = False
    formats: ClassVar[tuple[Format, ...]] = ()
    map_files: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def check(self, settings: Settings) -> None:
        """
        Check the parameters that depend on the simulator.

        :param settings: each checked by itself and against the others.
        :raises ConfigError: naming the parameter, the value and what is allowed.
        """

    def address(self, settings: Settings) -> str:
        """
        Return what a source connects to, for the log and the diagnostics.

        :param settings: of the node.
        """
        return f'{settings.host}:{settings.port}' if self.default_port else self.name

    def parameters_of_config(self, path: str) -> Mapping[str, object]:
        """
        Return the parameters that the file of the parameter ``config_file`` sets.

        :param path: of the file, not empty.
        :returns: values by parameter; empty if the file sets none.
        :raises ConfigError: if the file cannot be read.
        """
        return {}

    def open_source(self, settings: Settings, report: Report, *,
                    reconnect: bool = True) -> Source:
        """
        Make the live source; it connects when its frames are iterated over.

        :param settings: of the node; :meth:`Source.reconfigure` replaces the dynamic ones.
        :param report: called with a kind and a line about what was found beside the frames.
        :param reconnect: whether it connects again if the connection ends or fails; otherwise
            it ends with the connection, and raises its failure.
        :raises StateSensorError: if it cannot be opened at all.
        """
        raise ConfigError('source', self.name, 'a simulator that sends frames')

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """
        Make what sends commands to the ego, for a simulator with :attr:`takes_commands`.

        :param settings: of the node.
        :param source: the live source, from :meth:`open_source` with the same settings.
        :param report: called with a kind and a line about a command that was lost.
        """
        raise NotImplementedError(self.name)

    def follows_speed(self, settings: Settings) -> bool:
        """
        Return whether a controller of the simulator follows a speed: :attr:`EgoCommand.speed`.

        :param settings: of the node.
        """
        return False

    def topics(self, settings: Settings, *, recording: RecordingReader | None) -> SimulatorTopics:
        """
        Return the topics that only this simulator has.

        :param settings: at the start.
        :param recording: that the frames come from, None for a live source.
        """
        return SimulatorTopics()

    def sensor_reader(self, settings: Settings, report: Report,
                      recording: RecordingReader | None = None) -> SensorReader | None:
        """
        Return what decodes the images in a frame, for a viewer.

        :param settings: of the command.
        :param report: called with a kind and a line about what cannot be decoded.
        :param recording: that the frames come from, None for a live source.
        :returns: None if the frames of the simulator have none.
        """
        return None

    def open_replay(self, options: argparse.Namespace, reading: Reading,
                    warn: Callable[[str], None]) -> Replay:
        """
        Prepare the replay of a recording in the running simulator.

        :param options: of the command `replay`; ``read_options`` are those of its recording.
        :param reading: shows the progress of a recording that is read.
        :param warn: called with a line about what is lost or late.
        :raises StateSensorError: if the recording or an option is not usable.
        """
        raise ConfigError('--source', self.name, 'a simulator that replays recordings')
