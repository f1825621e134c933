# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The simulators by name, each in a folder of its own, and what the package needs of one.

A simulator is a row of :data:`SIMULATORS` and a folder; nothing of it is loaded before it is used.
Another package adds one as a plug-in: :mod:`state_sensor_ros.plug_ins`, doc/design/extending.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from types import MappingProxyType
from typing import cast, ClassVar, NamedTuple, TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from state_sensor_ros.errors import ConfigError, importing
from state_sensor_ros.frame import Frame
from state_sensor_ros.parameters import did_you_mean, parameters_in
from state_sensor_ros.plug_ins import imported, plug_ins
from state_sensor_ros.settings import CORE, DEFAULTS, FILE, NAMES, ParameterTable, Settings
from state_sensor_ros.source import Report, Source

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.files import Format
    from state_sensor_ros.files.recording import RecordingReader
    from state_sensor_ros.topics.encoding import NewTopicEncoder
    from state_sensor_ros.topics.transforms import StaticTransform

# Prefix of the parameters of commands to the ego.
CONTROL = 'control'
# Parameters that mean one of the source's own, if it declares such.
_GENERAL = ('host', 'host'), ('host', 'bind'), ('port', 'port')
Pixels: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.float32]


class SimulatorTopics(NamedTuple):
    """The topics that only one simulator has."""

    # Subclasses of :class:`TopicEncoder`, or what makes one; one whose topics have the names of
    # topics of the package takes their place.
    encoders: tuple[NewTopicEncoder, ...] = ()
    transforms: tuple[StaticTransform, ...] = ()  # for /tf_static


class SensorImage(NamedTuple):
    """An image of a camera on the ego, to look at."""

    name: str  # such as ``central/rgb``
    # (H, W, 3) uint8 red, green, blue, or (H, W) float32 depth, m; None if ``png`` has a PNG file
    # in their place.
    pixels: Pixels | None = None
    png: bytes = b''


SensorReader: TypeAlias = Callable[[Frame], Iterable[SensorImage]]


class Simulator:
    """
    One simulator.

    :cvar name: value of the parameter ``source``, and name of the entry point.
    :cvar parameters: class of the parameters that only this simulator needs: a frozen dataclass
        of :func:`parameter`, whose field ``speed`` is the parameter ``toy.speed`` of the
        simulator ``toy``. ``settings.of(parameters)`` returns their values. Its own ``host`` and
        ``port`` take the place of those of the driver.
    :cvar default_port: port of its live frames, None if it has none.
    :cvar is_paced: whether the parameter ``rate`` is the pace of its live source.
    :cvar has_wall_time: whether its frames have a ``time``.
    :cvar takes_commands: whether it has :meth:`open_commands`.
    :cvar formats: formats that only its recordings have; one without suffixes is a folder, the
        format in which its frames are recorded.
    :cvar map_files: function ``module:function`` that reads its maps, by the suffix of the file,
        such as ``.net.xml``: it takes the path and returns a sequence of :class:`MapLine`.
    """

    name: ClassVar[str]
    parameters: ClassVar[type | None] = None
    default_port: ClassVar[int | None] = None
    is_paced: ClassVar[bool] = False
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
        # Those of a child, unless a simulator has another way.
        from state_sensor_ros.simulators.child_process import ChildCommands, ChildSource
        assert isinstance(source, ChildSource)
        return ChildCommands(source)

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


# In the order of the parameter ``source``; the first one is its default.
SIMULATORS = {
    'monodrive': '.simulators.monodrive.simulator:MonodriveSimulator',
    'carla': '.simulators.carla:CarlaSimulator',
    'carla9': '.simulators.carla9:Carla9Simulator',
    'sumo': '.simulators.sumo:SumoSimulator',
    'osi': '.simulators.osi.simulator:OsiSimulator'}


def simulator_names() -> list[str]:
    """Return the names of all simulators."""
    return [*SIMULATORS, *sorted(name for name, each in plug_ins().items()
                                 if isinstance(each, Simulator))]


@cache
def find_simulator(name: str) -> Simulator:
    """Return the simulator whose frames a source receives; of ``file`` or none, the default."""
    if name in ('', FILE):
        name = next(iter(SIMULATORS))
    if name in SIMULATORS:
        return cast(Simulator, imported(SIMULATORS[name])())
    found = plug_ins().get(name)
    if not isinstance(found, Simulator):
        known = [*simulator_names(), FILE]
        raise ConfigError('source', repr(name), f'one of {", ".join(sorted(known))}'
                          + did_you_mean([name], known))
    return found


def simulators() -> dict[str, Simulator]:
    """Return all simulators by name."""
    return {name: find_simulator(name) for name in simulator_names()}


def schema_of(source: str = DEFAULTS.source, *, with_added: bool = False) -> ParameterTable:
    """Return the parameters that there are."""
    # source: the selected simulator, whose own host and port the general ones mean.
    # with_added: whether those of plug-ins are included, not only of this package and ``source``.
    names = simulator_names() if with_added else [*SIMULATORS]
    if source not in ('', FILE, *names):
        names.append(find_simulator(source).name)
    own = {name: kind for name in names if (kind := find_simulator(name).parameters)}
    general = {field.name for field in fields(own[source])} if source in own else set()
    return ParameterTable({
        CONTROL: cast(type, imported('.control.ego_commands:ControlParameters')), **own}, {
        name: f'{source}.{each}' for name, each in _GENERAL if each in general})


def schema_for(names: Iterable[str], source: str = DEFAULTS.source) -> ParameterTable:
    """Return a table with at least the parameters ``names``, for which little is loaded."""
    others = set(names).difference(NAMES)
    # The default has no parameters of its own.
    if not others and source in (FILE, DEFAULTS.source):
        return CORE
    known = schema_of(source)
    return known if others.issubset(known.names) else schema_of(source, with_added=True)


def checked_settings(values: Mapping[str, object], base: Settings = DEFAULTS, *,
                     is_live: bool = True) -> Settings:
    """Check parameters one by one, against each other and, of a live source, the simulator."""
    source = values.get('source', base.source)
    if not isinstance(source, str):
        # Refused with a reason by the parameter itself.
        source = base.source
    if 'source' in values and source != FILE:
        # A changed source has its usual port.
        port = find_simulator(source).default_port
        if port and base.port == find_simulator(base.source).default_port:
            values = {'port': port, **values}
    settings = schema_for(values, source).parse(values, base)
    if not is_live:
        return settings
    simulator = find_simulator(settings.source)
    if settings.stamp_source == 'utc' and settings.source != FILE \
            and not simulator.has_wall_time:
        raise ConfigError('stamp_source', 'utc', f'game_time or ros if source is '
                          f'{settings.source}: its frames carry no date')
    if settings.control_input and (settings.source == FILE or not simulator.takes_commands):
        raise ConfigError('control_input', settings.control_input,
                          f"'' if source is {settings.source}: it takes no commands")
    if settings.source != FILE:
        _check_libraries(simulator, settings)
    simulator.check(settings)
    return settings


def _check_libraries(simulator: Simulator, settings: Settings) -> None:
    """Check that the libraries are installed that the parameters of a live source need."""
    if simulator.parameters is None:
        return
    own: object = settings.of(simulator.parameters)
    for declared in parameters_in(simulator.parameters).values():
        for _, library in declared.packages(getattr(own, declared.attribute)):
            with importing(f'source {simulator.name}'):
                # Found but not imported: libraries of simulators take a second, disturb others.
                if find_spec(library) is None:
                    raise ModuleNotFoundError(f'No module named {library!r}', name=library)


def live_settings(given: Mapping[str, object]) -> Settings:
    """Check parameters of a live stream; the file in ``config_file`` sets those that are None."""
    values = {name: value for name, value in given.items() if value is not None}
    path, source = values.get('config_file'), values.get('source', DEFAULTS.source)
    if isinstance(path, str) and path and isinstance(source, str):
        values = {**find_simulator(source).parameters_of_config(path), **values}
    return checked_settings(values)
