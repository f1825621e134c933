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

# What advances the simulated time: frames are sent at the configured rate; each sample advances by
# one frame; commands of a client step or place frames, and a sample repeats the current one.
ClockDriver: TypeAlias = Literal['timer', 'sample', 'client']
# Whether the simulation has an ego, without which sensors send nothing. In a scenario without one
# it is pending: the first control command creates it.
Ego: TypeAlias = Literal['absent', 'pending', 'present']


@dataclass(frozen=True, slots=True)
class CommandResult:
    message: object = 'complete'  # member `message` of the reply
    success: bool = True  # whether the command was executed
    # Frame that the sensors send after the reply, None for no frame.
    frame: frames.EmulatedFrame | None = None
    ports: tuple[int, ...] | None = None  # ports of the sensors that send the frame, None for all


class Simulation:
    """Source and driver of frames, and the ego: what commands change, and the timer reads."""

    def __init__(self, source: frames.FrameSource, driver: ClockDriver,
                 server: MonodriveServer) -> None:
        self._server = server
        # Held by a command, and by the timer.
        self._lock = threading.Lock()
        self._own_source = self._source = source
        self._first_driver = self._driver = driver
        self._current: frames.EmulatedFrame | None = None
        self._ego: Ego = 'present'
        self._table: dict[str, Callable[[Any], CommandResult | None]] = {
            'SimulatorConfig_ID': self._configure_simulator,
            'ClosedLoopConfigCommand_ID': self._configure_scenario,
            'REPLAY_ConfigureTrajectoryCommand_ID': self._configure_trajectory,
            'REPLAY_ConfigureSensorsCommand_ID': self._configure_sensors,
            'REPLAY_ReConfigureSensorCommand_ID': self._reconfigure_sensor,
            'SampleSensorsCommand_ID': self._sample,
            'SampleSensorListCommand_ID': self._sample_list,
            'REPLAY_StepSimulationCommand_ID': self._step,
            'REPLAY_StateStepSimulationCommand_ID': self._step_to_state,
            'UpdateStateCommand_ID': self._update,
            'ClosedLoopStepCommand_ID': self._closed_loop_step,
            'EgoControl_ID': self._control_ego,
            'GetVersion': lambda _: CommandResult('simulator_version: 1.12, api_version: 1.12')}

    @property
    def is_free_running(self) -> bool:
        """Whether frames are sent at the configured rate now."""
        return self._driver == 'timer' and self._ego == 'present'

    def advance(self) -> frames.EmulatedFrame | None:
        """Go to the next frame at the configured rate."""
        # Returns the frame, None at the end or if a client advances the time now.
        with self._lock:
            if self._driver != 'timer':
                return None
            frame = self._source.advance()
            self._current = frame or self._current
            return frame

    def newest(self, sampled: frames.EmulatedFrame) -> frames.EmulatedFrame:
        """Return the frame to send for a sample: the timer may have gone on since then."""
        with self._lock:
            return (self._show(self._current) if self._driver == 'timer' else None) or sampled

    def execute(self, body: bytes) -> tuple[Envelope, CommandResult]:
        """Carry out a request; return its envelope and the result."""
        request = Envelope('')
        try:
            request = typed(parse_json(body, 'request'), Envelope)
            handler = self._table.get(request.type) if isinstance(request.type, str) else None
            if handler is None:
                raise RejectedError(
                    f'type: found {repr(request.type)[:80]}; expected a known command')
            with self._lock:
                return request, handler(request.message) or CommandResult()
        except (RejectedError, StateSensorError) as error:
            return request, CommandResult(str(error), False)

    def _show(self, frame: frames.EmulatedFrame | None) -> frames.EmulatedFrame | None:
        """Make a frame the current one; the sensor counts its samples."""
        if frame is not None:
            self._current = frame = replace(frame, is_verbatim=False)
        return frame

    def _configure_simulator(self, message: object) -> CommandResult:
        """Start over in another simulation mode."""
        config = typed(message, SimulatorConfig)
        if not isinstance(config.map, str) or not config.map:
            raise RejectedError('invalid map specified')
        # 0 closed loop, 1 replay, 2 replay of placed frames, 3 closed loop with a fixed time step.
        mode = int(config.simulation_mode)
        self._current = None
        self._driver = self._first_driver if mode == 0 else 'client'
        self._ego = 'absent' if mode in (0, 3) else 'present'
        self._source = self._own_source
        self._source.rewind()
        for sensor in self._server.sensors.values():
            sensor.sample_count = 0
        return CommandResult(f'simulator configuration mode = {mode}')

    def _configure_scenario(self, message: object) -> CommandResult:
        vehicles = typed(message, dict[str, Any]).get('vehicles')
        if not isinstance(vehicles, list) or not vehicles:
            raise RejectedError('Failed to configure scenario. No actors spawned.')
        self._ego = 'present' if frames.has_ego({'frame': vehicles}) else 'pending'
        return CommandResult('Successfully configured scenario.')

    def _configure_trajectory(self, message: object) -> None:
        """Replace the source by a trajectory, through which the client steps."""
        trajectory = typed(message, list[dict[str, Any]])
        if not trajectory or not frames.has_ego(trajectory[0]):
            raise RejectedError('trajectory[0]: found no ego; expected an actor tagged ego')
        self._source = frames.TrajectorySource([*map(frames.EmulatedFrame, trajectory)])
        self._current, self._driver = None, 'client'

    def _configure_sensors(self, message: object) -> None:
        # A suite may contain other sensors, such as cameras; they are ignored.
        configs = [config for config in message if not (
            isinstance(config, dict) and isinstance(kind := config.get('type'), str)
            and kind != 'State')] if isinstance(message, list) else [message]
        for state in [parse_sensor(config) for config in configs]:
            self._server.configure(*state)

    def _reconfigure_sensor(self, message: object) -> None:
        port, sensor_filter, is_streaming = parse_sensor(message)
        if port not in self._server.sensors:
            raise RejectedError(f'listen_port: found {port}; expected that of a State sensor')
        self._server.configure(port, sensor_filter, is_streaming)

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
        """Send the current frame, or the next one if samples advance the time."""
        is_next = self._current is None or self._driver == 'sample'
        frame = None if self._ego != 'present' else self._show(
            self._source.step(1) if is_next else self._current)
        if frame is None:
            raise RejectedError('unable to sample sensors, no ego vehicle is registered')
        return CommandResult(frame=frame, ports=ports)

    def _step(self, message: object) -> CommandResult:
        amount = int(typed(message, Step).amount)
        self._driver = 'client'
        frame = self._show(self._source.step(amount))
        if frame is None:
            raise RejectedError('trajectory: found none; expected '
                                'REPLAY_ConfigureTrajectoryCommand_ID before')
        return CommandResult(frame=frame)

    def _step_to_state(self, message: object) -> CommandResult:
        """Make a frame of the client the current one; game_time advances by at least 0.05 s."""
        members = parse_frame(message)
        if not frames.has_ego(members):
            raise RejectedError('frame: found no ego; expected an actor tagged ego')
        self._driver = 'client'
        before = frames.FrameClock() if self._current is None else self._current.clock
        given = frames.EmulatedFrame(members).clock
        game_time = max(given.game_time or 0.0,
                        (before.game_time or 0.0) + frames.DEFAULT_PERIOD_S)
        time = before.time if given.time is None else given.time
        self._current = frames.EmulatedFrame({
            **members, 'game_time': float(np.float32(game_time)), 'time': int(time or 0),
            'sample_count': 0}, is_verbatim=False)
        return CommandResult(frame=self._current)

    def _update(self, message: object) -> None:
        """Place actors of the simulation, which goes on from there."""
        actors = [*map(parse_actor, frames.actors(parse_frame(message)))]
        if not isinstance(self._source, frames.TrafficSource):
            raise RejectedError('frame: found recorded frames; expected a simulation')
        self._source.traffic.place(actors)

    def _closed_loop_step(self, message: object) -> CommandResult:
        """Advance by one fixed time step without a sample."""
        typed(message, TimeStep)
        if self._driver == 'timer':
            self._driver = 'sample'
        self._show(self._source.step(1))
        return CommandResult(True)

    def _control_ego(self, message: object) -> None:
        """Drive the ego; the first command creates one that the scenario lacks."""
        control = typed(message, Control)
        forward, right, brake, mode = (min(max(amount, -1.0), 1.0) for amount in (
            control.forward_amount, control.right_amount, control.brake_amount,
            control.drive_mode))
        if self._ego == 'absent':
            raise RejectedError('no ego vehicle found')
        self._ego = 'present'
        # Assumed: the sign of forward_amount is a direction, as is drive_mode.
        self._source.drive(Pedals(right, abs(forward), brake, reverse=forward < 0 or mode < 0))


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
