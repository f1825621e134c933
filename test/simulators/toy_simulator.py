# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A simulator in a package of its own: a ball that rolls on a lawn.

It sends a line `game_time x y` for each frame, over TCP, and takes lines `throttle brake`; its
recordings are files of the lines that it sends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
import socket

from state_sensor_ros.connections.live_source import LiveSource
from state_sensor_ros.control.ego_commands import EgoCommand
from state_sensor_ros.errors import DecodeError, TransportError
from state_sensor_ros.files import Format
from state_sensor_ros.files.frame_builder import ActorLane, FrameBuilder
from state_sensor_ros.files.recording import FrameFile
from state_sensor_ros.frame import Frame
from state_sensor_ros.parameters import parameter
from state_sensor_ros.simulators import Simulator
from state_sensor_ros.source import LOST


@dataclass(frozen=True, kw_only=True)
class ToyParameters:
    """Parameters of the node: `toy.radius` and `toy.tag`."""

    radius: float = parameter(0.1, 'Radius of the ball, m.', low=0.01, high=10.0)
    tag: str = parameter('ball', 'Tag of the ball.')


def frames_of(line: bytes, own: ToyParameters) -> Iterator[Frame]:
    """Yield the frame of a line; raise DecodeError where it is none."""
    try:
        game_time, x, y = map(float, line.split())
    except ValueError:
        raise DecodeError('line', repr(line), 'three numbers') from None
    builder = FrameBuilder('toy', game_time, road_names={7: 'lawn'})
    builder.add('ball', (x, y, 0.0), velocity_xyz=(1.0, 0.0, 0.0), tags=(own.tag,),
                is_vehicle=False, size_xyz=(2 * own.radius,) * 3,
                lane=ActorLane(road_id=7, lane_id=-1, s=x))
    yield builder.frame()


class ToySource(LiveSource):
    """The lines that a running simulator sends."""

    connection: socket.socket | None = None

    def receive(self) -> Iterator[Frame]:
        """Connect, and yield the frames until the simulator closes the connection."""
        own, where = self.settings.of(ToyParameters), (self.settings.host, self.settings.port)
        with socket.create_connection(where, timeout=5.0) as connection:
            connection.settimeout(None)
            self.connection = connection
            self.connected()
            for line in connection.makefile('rb'):
                self.health.n_bytes += len(line)
                yield from self.decoded(partial(frames_of, line, own))

    def disconnect(self) -> None:
        """Forget the connection that has ended."""
        self.connection = None

    def interrupt(self) -> None:
        """End the wait for the next line."""
        if (connection := self.connection) is not None:
            connection.shutdown(socket.SHUT_RDWR)


class ToyCommands:
    """Commands to the ball, on the connection of the source."""

    def __init__(self, source: ToySource) -> None:
        self.source = source

    def send(self, command: EgoCommand) -> None:
        """Send a command; the ball has no wheel."""
        if (connection := self.source.connection) is None:
            raise TransportError('toy', 'no connection', 'a running simulator')
        try:
            connection.sendall(b'%f %f\n' % (command.throttle, command.brake))
        except OSError as error:
            raise TransportError('toy', str(error), 'a running simulator') from error

    def close(self) -> None:
        """Do nothing: each command was sent at once."""


class ToyRecording(FrameFile):
    """A file of lines."""

    def __init__(self, path, own):
        self.lines, self.own = path.read_bytes().splitlines(), own
        super().__init__(str(path), 'lines', 'toy', total=len(self.lines))

    def read(self, mark: int | None) -> Iterator[Frame]:
        """Yield the frame of each line."""
        for line in self.lines:
            try:
                yield from frames_of(line, self.own)
            except DecodeError as error:
                self.faults.add(LOST, error)


def open_lines(path, options):
    """Open a file NAME.ball."""
    return ToyRecording(Path(path), options.settings.of(ToyParameters))


class ToySimulator(Simulator):
    """What the package needs to know of the simulator."""

    name = 'toy'
    parameters = ToyParameters
    default_port = 8790
    takes_commands = True
    formats = (Format(name='lines', noun='a file of lines', suffixes=('.ball',),
                      reader='toy_simulator:open_lines'),)

    def open_source(self, settings, report, *, reconnect=True):
        """Make the live source."""
        return ToySource(settings, self.address(settings), reconnect=reconnect)

    def open_commands(self, settings, source, report):
        """Make what sends commands to the ball."""
        return ToyCommands(source)
