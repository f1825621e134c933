# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""monoDrive as one of the simulators: its live source, and its own files of sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType
import numpy as np

from state_sensor_ros.connections.live_source import TcpSource
from state_sensor_ros.errors import ConfigError, RefusalError, restated
from state_sensor_ros.frame import Floats, Frame, NO_LANES
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import json_text, Simulator
from state_sensor_ros.simulators.monodrive import control, forms
from state_sensor_ros.simulators.monodrive.encoding import members_of
from state_sensor_ros.simulators.monodrive.frames import Decoder
from state_sensor_ros.simulators.monodrive.wire import Packet, PacketFramer
from state_sensor_ros.small_files import read_limited
from state_sensor_ros.source import EntityEdit, Report, SET

if TYPE_CHECKING:
    from state_sensor_ros.control.ego_commands import EgoCommands
    from state_sensor_ros.source import Source

# An object that has an array of sensors as a member.
_MAX_DEPTH = 2
# Longer than any configuration; of a recording that is given by mistake no more is read.
_MAX_BYTES = 16 * 1024 * 1024
# What to check if the port is open and sends nothing.
_SILENCE = ('check that the port is that of the sensor, that the sensor is configured (parameters '
            'control_port, config_file), and that the simulation is running')
# A frame shows a change within this game time, s, or it was not made.
_SHOWN_WITHIN_S = 1.0


class _Sensor(msgspec.Struct):
    """The keys of a sensor that set parameters."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | UnsetType = msgspec.field(
        default=UNSET, name='listen_port')
    desired_tags: tuple[str, ...] | UnsetType = UNSET
    undesired_tags: tuple[str, ...] | UnsetType = UNSET
    include_obb: bool | UnsetType = UNSET
    debug_drawing: bool | UnsetType = UNSET


class SensorPort(TcpSource):
    """Frames of ``settings.port``; it connects when they are iterated over."""

    def __init__(self, settings: Settings, *, reconnect: bool = True,
                 before_connect: Callable[[], None] | None = None,
                 after_connect: Callable[[], None] | None = None,
                 patience_s: float = 0.0) -> None:
        super().__init__(
            settings.host, settings.port,
            lambda where: PacketFramer(settings.max_frame_bytes, where), self._frames_of, settings,
            reconnect=reconnect, before_connect=before_connect, after_connect=after_connect,
            patience_s=patience_s)
        self._decoder = Decoder(settings, self.faults)
        self.health.silence = _SILENCE

    def _frames_of(self, packet: Packet) -> Iterator[Frame]:
        self._decoder.details = self.details
        return self._decoder.frames(packet.payload, packet[1:])


class ConfiguredSource(SensorPort):
    """
    Frames of ``settings.port``, with the sensor configured over ``settings.control_port``.

    It is an :class:`EditableSource`: no message removes an actor, and that which adds one has a
    content that is described nowhere.

    :param report: called with a kind, for throttling, and a line about a failure of the control
        port; a failure that prevents a connection to the sensor port is in ``health`` only.
    """

    edits: tuple[str, ...] = (SET,)

    def __init__(self, settings: Settings, report: Report, *, reconnect: bool = True) -> None:
        self.client = control.ControlClient(settings, report, self._note_silence)
        self._report = report
        self._last: Frame | None = None
        # The last change: name of the actor, its numbers in the frame that shows it, and the time
        # of the frame before, s.
        self._change: tuple[str, Floats, float] | None = None
        super().__init__(settings, reconnect=reconnect, before_connect=self.client.configure,
                         after_connect=self.client.connected, patience_s=control.LATE_PORT_S)

    def frames(self) -> Iterator[Frame]:
        """Yield frames; connect, wait and connect again until closed."""
        for frame in super().frames():
            self.client.packet_arrived()
            last, self._last = self._last, frame
            yield replace(frame, is_behind_gap=True) if self._may_show(frame, last) else frame

    def _may_show(self, frame: Frame, last: Frame | None) -> bool:
        """Return whether a change may be between two frames; that it is ends the search."""
        if last is None or (change := self._change) is None:
            return False
        name, wanted, before_s = change
        is_over = not 0.0 <= frame.game_time - before_s <= _SHOWN_WITHIN_S
        if name in frame and name in last:
            now, before = (each.kinematics[each.row(name)] for each in (frame, last))
            is_over |= bool(np.nansum((now - wanted) ** 2) < np.nansum((now - before) ** 2))
        if is_over:
            self._change = None
        return True

    def edit(self, edit: EntityEdit) -> float:
        """Request a change of pose or velocity; whether it was made, later frames show."""
        last = self._last
        assert last is not None
        actor = last.select([last.row(edit.name)])
        numbers = actor.kinematics[0].copy()
        if edit.pose is not None:
            numbers[:7] = np.where(np.isnan(edit.pose), numbers[:7], edit.pose)
        if edit.twist is not None:
            numbers[7:] = edit.twist
        self._change = edit.name, numbers, last.game_time
        try:
            # Without what belongs to the place and the motion of before.
            self.client.update(members_of(replace(
                actor, kinematics=numbers[None], boxes=None, wheels=None, lanes=NO_LANES)))
        except RefusalError:
            self._change = None
            raise
        return last.game_time

    def reconfigure(self, settings: Settings) -> None:
        """Have the simulator use the tags and box options of ``settings``, soon."""
        self.client.reconfigure(settings)

    def _note_silence(self, text: str) -> None:
        """Report that the control port has not replied for a while."""
        if self.health.state == 'connected':
            self._report('silence', text)
        else:
            self.health.last_error = text

    def close(self) -> None:
        """End :meth:`frames` soon: close the sensor port, then the control port."""
        super().close()
        self.client.close()


class MonodriveSimulator(Simulator):
    """The State sensor on a TCP port, and Replay Mode trajectories."""

    name = 'monodrive'
    default_port = 8700
    has_wall_time = takes_commands = True

    def check(self, settings: Settings) -> None:
        """Check that a configured sensor has a tag: the simulator sends nothing without."""
        if settings.control_input and not settings.control_port:
            raise ConfigError('control_port', '0', 'the port that takes commands, such as 8999, '
                              'if control_input is set')
        if settings.control_port and not any(settings.desired_tags):
            raise ConfigError('desired_tags', 'an empty list',
                              'at least one tag if control_port is set: the simulator sends '
                              'nothing for an empty list')

    def parameters_of_config(self, path: str) -> Mapping[str, object]:
        """Return what the State entry of the simulator's sensor JSON sets."""
        return read_sensor_config(path)

    def open_source(self, settings: Settings, report: Report, *, reconnect: bool = True) -> Source:
        """Make the source of the sensor port; with a control port, configure the sensor first."""
        if settings.control_port:
            return ConfiguredSource(settings, report, reconnect=reconnect)
        return SensorPort(settings, reconnect=reconnect)

    def open_commands(self, settings: Settings, source: Source, report: Report) -> EgoCommands:
        """Make what sends commands on the control port."""
        assert isinstance(source, ConfiguredSource)
        return control.MonodriveCommands(source.client)


def read_sensor_config(path: str | Path) -> dict[str, object]:
    """
    Read the State sensor from a file in the simulator's own format.

    The file has one sensor, an array of sensors, or an object whose members are either. Keys
    without a parameter are ignored.

    :returns: parameters by name: ``port``, ``desired_tags``, ``undesired_tags``, ``include_obb``
        and ``debug_drawing``, those that the file sets.
    """
    where = str(path)
    value = read_json(path)
    if not isinstance(value, list | dict):
        raise ConfigError(where, json_text.shown(value), 'an array of sensors')
    entries = [entry for entry in _sensors(value) if entry.get('type') == control.SENSOR_TYPE]
    if not entries:
        raise ConfigError(where, 'no State sensor', 'an entry with "type": "State"')
    if len(entries) > 1:
        ports = ', '.join(json_text.shown(entry.get('listen_port')) for entry in entries)
        raise ConfigError(where, f'State sensors on ports {ports}', 'one, as a node reads one')
    with restated(ConfigError, where):
        sensor = forms.converted(entries[0], _Sensor, control.SENSOR_TYPE)
    return {key: value for key, value in msgspec.structs.asdict(sensor).items()
            if value is not UNSET}


def read_json(path: str | Path) -> Any:  # noqa: ANN401
    """Read a configuration file of the simulator, of any content."""
    with restated(ConfigError, str(path)):
        return json_text.parse(read_limited(path, _MAX_BYTES, 'a sensor configuration'))


def _sensors(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401
    if isinstance(value, dict) and 'type' in value:
        yield value
    elif isinstance(value, list | dict) and depth < _MAX_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _sensors(item, depth + 1)
