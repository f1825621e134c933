# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
The commands of the control port: the state they change, their checked values, and the reply.

Reply texts are those of the vendor's documentation, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
import json
import threading
from typing import Annotated, Any, Literal, TYPE_CHECKING, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct
import numpy as np

from state_sensor_ros.emulator import monodrive_frames as frames
from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.traffic.frame_generator import Placement
from state_sensor_ros.errors import StateSensorError

if TYPE_CHECKING:
    from state_sensor_ros.emulator.monodrive import MonodriveServer

COMPLETE = 'complete'


# What advances the simulated time: frames are sent at the configured rate; each sample advances by
# one frame; commands of a client step or place frames, and a sample repeats the current one.
ClockDriver: TypeAlias = Literal['timer', 'sample', 'client']
# Whether the simulation has an ego, without which sensors send nothing. In a scenario without one
# it is pending: the first control command creates it.
Ego: TypeAlias = Literal['absent', 'pending', 'present']


class SimulationState:
    """
    What the threads of a server share: source and driver of frames, and the ego.

    Commands hold ``lock``.
    """

    def __init__(self, source: frames.FrameSource, driver: ClockDriver) -> None:
        self.lock = threading.Lock()
        self._own_source = self._source = source
        self._first_driver = self._driver = driver
        self._current: frames.EmulatedFrame | None = None
        self.ego: Ego = 'present'

    @property
    def is_free_running(self) -> bool:
        """Whether frames are sent at the configured rate now."""
        return self._driver == 'timer' and self.ego == 'present'

    def begin(self, mode: int) -> None:
        """Start over in another simulation mode."""
        # mode: 0 closed loop, 1 replay, 2 replay of placed frames, 3 closed loop with a fixed time
        # step.
        self._current = None
        self._driver = self._first_driver if mode == 0 else 'client'
        self.ego = 'absent' if mode in (0, 3) else 'present'
        self._source = self._own_source
        self._source.rewind()

    def load(self, trajectory: list[frames.EmulatedFrame]) -> None:
        """Replace the source by a trajectory, through which the client steps."""
        self._source = frames.TrajectorySource(trajectory)
        self._current = None
        self._driver = 'client'

    def advance(self) -> frames.EmulatedFrame | None:
        """Go to the next frame at the configured rate."""
        # Returns the frame, None at the end or if a client advances the time now.
        with self.lock:
            if self._driver != 'timer':
                return None
            frame = self._source.advance()
            self._current = frame or self._current
            return frame

    def step(self, amount: int) -> frames.EmulatedFrame | None:
        """Step by a command of the client; ``amount``: frames, negative ones go back."""
        self._driver = 'client'
        return self._show(self._source.step(amount))

    def tick(self) -> None:
        """Advance by one fixed time step without a sample."""
        if self._driver == 'timer':
            self._driver = 'sample'
        self._show(self._source.step(1))

    def sample(self) -> frames.EmulatedFrame | None:
        """Return the frame of a sample command, the next one if samples advance the time."""
        is_next = self._current is None or self._driver == 'sample'
        return self._show(self._source.step(1) if is_next else self._current)

    def newest(self, sampled: frames.EmulatedFrame) -> frames.EmulatedFrame:
        """Return the frame to send for a sample: the timer may have gone on since then."""
        with self.lock:
            return (self._show(self._current) if self._driver == 'timer' else None) or sampled

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego; the first command creates one that the scenario lacks."""
        self.ego = 'present'
        self._source.drive(pedals)

    def update(self, actors: list[Placement]) -> None:
        """Place actors of the simulation, which goes on from there."""
        if not isinstance(self._source, frames.TrafficSource):
            raise RejectedError('frame: found recorded frames; expected a simulation')
        self._source.traffic.place(actors)

    def place(self, members: dict[str, object]) -> frames.EmulatedFrame:
        """Make a frame of the client the current one; game_time advances by at least 0.05 s."""
        self._driver = 'client'
        before = frames.FrameClock() if self._current is None else self._current.clock
        given = frames.EmulatedFrame(members).clock
        game_time = max(given.game_time or 0.0,
                        (before.game_time or 0.0) + frames.DEFAULT_PERIOD_S)
        time = before.time if given.time is None else given.time
        self._current = frames.EmulatedFrame({
            **members, 'game_time': float(np.float32(game_time)), 'time': int(time or 0),
            'sample_count': 0}, is_verbatim=False)
        return self._current

    def _show(self, frame: frames.EmulatedFrame | None) -> frames.EmulatedFrame | None:
        """Make a frame the current one; the sensor counts its samples."""
        if frame is not None:
            self._current = frame = replace(frame, is_verbatim=False)
        return frame


@dataclass(frozen=True, slots=True)
class CommandResult:
    message: object = COMPLETE  # member `message` of the reply
    success: bool = True  # whether the command was executed
    # Frame that the sensors send after the reply, None for no frame.
    frame: frames.EmulatedFrame | None = None
    ports: tuple[int, ...] | None = None  # ports of the sensors that send the frame, None for all


class CommandTable:
    """The commands on a simulation and its sensors."""

    def __init__(self, state: SimulationState, server: MonodriveServer) -> None:
        self._state, self._server = state, server
        self._table: dict[str, Callable[[Any], CommandResult]] = {
            'SimulatorConfig_ID': self._configure_simulator,
            'ClosedLoopConfigCommand_ID': self._configure_scenario,
            'REPLAY_ConfigureTrajectoryCommand_ID': self._configure_trajectory,
            'REPLAY_ConfigureSensorsCommand_ID': self._configure_sensors,
            'REPLAY_ReConfigureSensorCommand_ID': self._reconfigure_sensor,
            'SampleSensorsCommand_ID': self._sample,
            'SampleSensorListCommand_ID': self._sample_list,
            'REPLAY_StepSimulationCommand_ID': self._step,
            'REPLAY_StateStepSimulationCommand_ID':
                lambda message: CommandResult(frame=self._placed(message)),
            'UpdateStateCommand_ID': self._update,
            'ClosedLoopStepCommand_ID': self._closed_loop_step,
            'EgoControl_ID': self._control_ego,
            'GetVersion': lambda _: CommandResult('simulator_version: 1.12, api_version: 1.12')}

    def execute(self, body: bytes) -> tuple[Envelope, CommandResult]:
        """Carry out a request; return its envelope and the result."""
        request = Envelope('')
        try:
            request = typed(parse_json(body, 'request'), Envelope)
            handler = self._table.get(request.type) if isinstance(request.type, str) else None
            if handler is None:
                raise RejectedError(
                    f'type: found {repr(request.type)[:80]}; expected a known command')
            with self._state.lock:
                return request, handler(request.message)
        except (RejectedError, StateSensorError) as error:
            return request, CommandResult(str(error), False)

    def _configure_simulator(self, message: object) -> CommandResult:
        config = typed(message, SimulatorConfig)
        if not isinstance(config.map, str) or not config.map:
            raise RejectedError('invalid map specified')
        mode = int(config.simulation_mode)
        self._state.begin(mode)
        for sensor in self._server.sensors.values():
            sensor.sample_count = 0
        return CommandResult(f'simulator configuration mode = {mode}')

    def _configure_scenario(self, message: object) -> CommandResult:
        vehicles = typed(message, dict[str, Any]).get('vehicles')
        if not isinstance(vehicles, list) or not vehicles:
            raise RejectedError('Failed to configure scenario. No actors spawned.')
        self._state.ego = 'present' if any(map(_is_ego, vehicles)) else 'pending'
        return CommandResult('Successfully configured scenario.')

    def _configure_trajectory(self, message: object) -> CommandResult:
        trajectory = typed(message, list[dict[str, Any]])
        if not trajectory or not frames.has_ego(trajectory[0]):
            raise RejectedError('trajectory[0]: found no ego; expected an actor tagged ego')
        self._state.load([frames.EmulatedFrame(members) for members in trajectory])
        return CommandResult()

    def _configure_sensors(self, message: object) -> CommandResult:
        # A suite may contain other sensors, such as cameras; they are ignored.
        configs = [config for config in message if not (
            isinstance(config, dict) and isinstance(kind := config.get('type'), str)
            and kind != 'State')] if isinstance(message, list) else [message]
        for state in [parse_sensor(config) for config in configs]:
            self._server.configure(*state)
        return CommandResult()

    def _reconfigure_sensor(self, message: object) -> CommandResult:
        port, sensor_filter, is_streaming = parse_sensor(message)
        if port not in self._server.sensors:
            raise RejectedError(f'listen_port: found {port}; expected that of a State sensor')
        self._server.configure(port, sensor_filter, is_streaming)
        return CommandResult()

    def _sample(self, message: object) -> CommandResult:
        typed(message or {}, dict[str, Any])
        return self._sampled(None)

    def _sample_list(self, message: object) -> CommandResult:
        ports = typed(message, SensorList).ports
        if not set(ports) <= self._server.sensors.keys():
            raise RejectedError(
                f'ports: found {repr(ports)[:80]}; expected ports of State sensors')
        return self._sampled(tuple(dict.fromkeys(ports)))

    def _sampled(self, ports: tuple[int, ...] | None) -> CommandResult:
        frame = self._state.sample() if self._state.ego == 'present' else None
        if frame is None:
            raise RejectedError('unable to sample sensors, no ego vehicle is registered')
        return CommandResult(frame=frame, ports=ports)

    def _step(self, message: object) -> CommandResult:
        frame = self._state.step(int(typed(message, Step).amount))
        if frame is None:
            raise RejectedError('trajectory: found none; expected '
                                'REPLAY_ConfigureTrajectoryCommand_ID before')
        return CommandResult(frame=frame)

    def _placed(self, message: object) -> frames.EmulatedFrame:
        members = parse_frame(message)
        if not frames.has_ego(members):
            raise RejectedError('frame: found no ego; expected an actor tagged ego')
        return self._state.place(members)

    def _update(self, message: object) -> CommandResult:
        self._state.update([*map(parse_actor, frames.actors(parse_frame(message)))])
        return CommandResult()

    def _closed_loop_step(self, message: object) -> CommandResult:
        typed(message, TimeStep)
        self._state.tick()
        return CommandResult(True)

    def _control_ego(self, message: object) -> CommandResult:
        control = typed(message, Control)
        forward, right, brake, mode = (min(max(amount, -1.0), 1.0) for amount in (
            control.forward_amount, control.right_amount, control.brake_amount,
            control.drive_mode))
        if self._state.ego == 'absent':
            raise RejectedError('no ego vehicle found')
        # Assumed: the sign of forward_amount is a direction, as is drive_mode.
        self._state.drive(Pedals(right, abs(forward), brake,
                                 reverse=forward < 0 or mode < 0))
        return CommandResult()


def _is_ego(vehicle: object) -> bool:
    return isinstance(vehicle, dict) and 'ego' in frames.lower_tags(vehicle.get('tags'))


class RejectedError(Exception):
    """A command cannot be executed; its text is the reply."""


# Numbers of JSON: neither NaN nor Infinity, which Python's parser takes; 8700 or 8700.0.
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Whole = Annotated[float, Meta(multiple_of=1)]
Port = Annotated[float, Meta(multiple_of=1, ge=1, le=65535)]
Kind = TypeVar('Kind')


class Envelope(Struct):
    type: object
    reference: object = 0
    message: object = None


class SimulatorConfig(Struct):
    map: object = 'default'
    simulation_mode: Annotated[float, Meta(multiple_of=1, ge=0, le=3)] = 0


class SensorList(Struct):
    ports: list[int]


class Step(Struct):
    amount: Whole


class TimeStep(Struct):
    time_step: Annotated[float, Meta(gt=0)]


class Control(Struct):
    forward_amount: Number = 0
    right_amount: Number = 0
    brake_amount: Number = 0
    drive_mode: Number = 0


class SensorConfig(Struct):
    """A State sensor; members of other sensors are ignored."""

    type: Literal['State']
    listen_port: Port
    desired_tags: list[str] = []
    undesired_tags: list[str] = []
    include_obb: bool = False
    enable_streaming: bool = True


def typed(message: object, kind: type[Kind]) -> Kind:
    """Check that plain JSON data has the members of a type."""
    try:
        return msgspec.convert(message, kind)
    except msgspec.ValidationError as error:
        raise RejectedError(f'message: found another type or value: {error}') from error


def parse_json(text: bytes | str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f'{where}: found {error}; expected JSON') from error


def parse_frame(message: object) -> dict[str, Any]:
    """Return the members of a frame: an object, an array of one, or text in a string."""
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if isinstance(message, dict) and 'state_data_as_string' in message:
        message = parse_json(typed(message['state_data_as_string'], str), 'frame')
    return typed(message, dict[str, Any])


def parse_actor(actor: dict[str, Any]) -> Placement:
    """Return the place of an actor of v2, or of v1 with its arrays."""
    odometry = typed(actor.get('odometry', {}), dict[str, Any])
    parts = {'linear_velocity': actor.get('velocity', [None] * 3), **actor, **odometry,
             **typed(odometry.get('pose', {}), dict[str, Any])}
    return typed({key: [part.get(axis) for axis in 'xyzw'[:len(part)]]
                  if isinstance(part, dict) else part for key, part in parts.items()}, Placement)


def parse_sensor(message: object) -> tuple[int, frames.SensorFilter, bool]:
    config = typed(message, SensorConfig)
    desired, undesired = map(frames.lower_tags, (config.desired_tags, config.undesired_tags))
    sensor_filter = frames.SensorFilter(desired, undesired, config.include_obb)
    return int(config.listen_port), sensor_filter, config.enable_streaming
