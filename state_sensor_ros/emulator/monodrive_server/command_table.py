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
The commands of the control port: their checked values, what each one does, and the reply.

Reply texts are those of the vendor's documentation, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import json
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.monodrive_server.frame_source import (
    EmulatedFrame,
    has_ego,
    lower_tags,
    SensorFilter,
    TimedFrame,
)
from state_sensor_ros.emulator.monodrive_server.sensor_ports import SensorSuite
from state_sensor_ros.emulator.monodrive_server.simulation_state import Ego, SimulationState
from state_sensor_ros.errors import TransportError

COMPLETE = 'complete'
VERSION = 'simulator_version: 1.12, api_version: 1.12'
NO_EGO_FOR_SAMPLE = 'unable to sample sensors, no ego vehicle is registered'
NO_EGO_FOR_CONTROL = 'no ego vehicle found'
# Commands with the reply `complete` that change nothing in the frames of a State sensor.
WITHOUT_EFFECT = ('WeatherConfig', 'EgoVehicleConfig_ID', 'AutopilotControl', 'MapCommand_ID',
                  'ActivateLicense', 'Status_ID', 'AttachSensorCommand_ID',
                  'DetachSensorCommand_ID', 'WaypointUpdate_ID', 'EgoTorqueControl_ID',
                  'VehicleLightsConfigCommand_ID', 'VehicleLightsUpdateCommand_ID',
                  'ScenarioConfig_ID', 'ScenarioInit_ID')
# No page of the vendor describes their replies.
WITHOUT_PAGE = 'SpawnActorCommand_ID', 'UpdateActorCommand_ID'
NO_PAGE = 'not done: the reply of the real simulator is not documented'
NO_MAP = 'this simulator has no map that can be sent'
MAX_STEP = 2**31 - 1
# Length of a wrong value in a reply.
SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class CommandResult:
    message: object = COMPLETE  # member `message` of the reply
    success: bool = True  # whether the command was executed
    # Frame that the sensors send after the reply, None for no frame.
    frame: TimedFrame | None = None
    ports: tuple[int, ...] | None = None  # ports of the sensors that send the frame, None for all


class CommandTable:
    """The commands on a simulation and its sensors."""

    def __init__(self, state: SimulationState, suite: SensorSuite) -> None:
        self._state = state
        self._suite = suite
        self._table: dict[str, Callable[[object], CommandResult]] = {
            'SimulatorConfig_ID': self._configure_simulator,
            'ClosedLoopConfigCommand_ID': self._configure_scenario,
            'REPLAY_ConfigureTrajectoryCommand_ID': self._configure_trajectory,
            'REPLAY_ConfigureSensorsCommand_ID': self._configure_sensors,
            'REPLAY_ReConfigureSensorCommand_ID': self._reconfigure_sensor,
            'SampleSensorsCommand_ID': self._sample,
            'SampleSensorListCommand_ID': self._sample_list,
            'REPLAY_StepSimulationCommand_ID': self._step,
            'REPLAY_StateStepSimulationCommand_ID': self._state_step,
            'UpdateStateCommand_ID': self._update_state,
            'ClosedLoopStepCommand_ID': self._closed_loop_step,
            'EgoControl_ID': self._control_ego,
            'SpawnVehicleCommand_ID': self._spawn,
            'GetVersion': lambda message: CommandResult(VERSION),
            'GetMap': lambda message: CommandResult(NO_MAP, False),
            'GetStartPoints': lambda message: CommandResult(
                {'type': [], 'locations': [], 'rotations': []}),
            # The documented reply for a map that was not loaded.
            **{name: lambda message: CommandResult(NO_PAGE, False) for name in WITHOUT_PAGE},
            'ImportMap': lambda message: CommandResult(False, False),
            'StartAllSensorsCommand_ID': lambda message: self._stream(True),
            'StopAllSensorsCommand_ID': lambda message: self._stream(False),
            'StreamData_ID': lambda message: self._stream(True),
            **{name: lambda message: CommandResult() for name in WITHOUT_EFFECT},
        }

    def execute(self, command: object, message: object) -> CommandResult:
        handler = self._table.get(command) if isinstance(command, str) else None
        if handler is None:
            return CommandResult(
                f'type: found {as_text(command)}; expected a known command', False)
        try:
            return handler(message)
        except (RejectedError, TransportError) as error:
            return CommandResult(str(error), False)

    def _configure_simulator(self, message: object) -> CommandResult:
        config = typed(message, SimulatorConfig)
        if not isinstance(config.map, str) or not config.map:
            return CommandResult('invalid map specified', False)
        mode = int(config.simulation_mode)
        self._state.begin(mode)
        self._suite.reset_counts()
        return CommandResult(f'simulator configuration mode = {mode}')

    def _configure_scenario(self, message: object) -> CommandResult:
        vehicles = typed(message, dict[str, Any]).get('vehicles')
        if not isinstance(vehicles, list) or not vehicles:
            return CommandResult('Failed to configure scenario. No actors spawned.', False)
        self._state.ego = Ego.PRESENT if any(map(_is_ego, vehicles)) else Ego.PENDING
        return CommandResult('Successfully configured scenario.')

    def _configure_trajectory(self, message: object) -> CommandResult:
        frames = typed(message, list[dict[str, Any]])
        if not frames or not has_ego(frames[0]):
            raise RejectedError('trajectory[0]: found no ego; expected an actor tagged ego')
        self._state.load([EmulatedFrame(members) for members in frames])
        return CommandResult()

    def _configure_sensors(self, message: object) -> CommandResult:
        # A suite may contain other sensors, such as cameras; they are ignored.
        configs = message if isinstance(message, list) else [message]
        others = [config for config in configs if isinstance(message, list)
                  and isinstance(config, dict) and isinstance(config.get('type'), str)
                  and config['type'] != 'State']
        states = [parse_sensor(config) for config in configs if config not in others]
        for state in states:
            self._suite.configure(*state)
        return CommandResult()

    def _reconfigure_sensor(self, message: object) -> CommandResult:
        port, sensor_filter, is_streaming = parse_sensor(message)
        if port not in self._suite.sensors:
            raise RejectedError(f'listen_port: found {port}; expected that of a State sensor')
        self._suite.configure(port, sensor_filter, is_streaming)
        return CommandResult()

    def _sample(self, message: object) -> CommandResult:
        if message is not None and message != '':
            typed(message, dict[str, Any])
        return self._sampled(None)

    def _sample_list(self, message: object) -> CommandResult:
        ports = typed(message, SensorList).ports
        if not set(ports) <= self._suite.sensors.keys():
            raise RejectedError(f'ports: found {as_text(ports)}; expected ports of State sensors')
        return self._sampled(tuple(dict.fromkeys(ports)))

    def _sampled(self, ports: tuple[int, ...] | None) -> CommandResult:
        frame = self._state.sample() if self._state.ego is Ego.PRESENT else None
        if frame is None:
            return CommandResult(NO_EGO_FOR_SAMPLE, False)
        return CommandResult(frame=frame, ports=ports)

    def _step(self, message: object) -> CommandResult:
        amount = typed(message, Step).amount
        frame = self._state.step(int(max(-MAX_STEP, min(amount, MAX_STEP))))
        if frame is None:
            raise RejectedError('trajectory: found none; expected '
                                'REPLAY_ConfigureTrajectoryCommand_ID before')
        return CommandResult(frame=frame)

    def _state_step(self, message: object) -> CommandResult:
        return CommandResult(frame=self._placed(message))

    def _update_state(self, message: object) -> CommandResult:
        self._placed(message)
        return CommandResult()

    def _placed(self, message: object) -> TimedFrame:
        members = parse_state_frame(message)
        if not has_ego(members):
            raise RejectedError('frame: found no ego; expected an actor tagged ego')
        return self._state.place(members)

    def _closed_loop_step(self, message: object) -> CommandResult:
        typed(message, TimeStep)
        self._state.tick()
        return CommandResult(True)

    def _control_ego(self, message: object) -> CommandResult:
        control = typed(message, Control)
        forward, right, brake, mode = (min(max(amount, -1.0), 1.0) for amount in (
            control.forward_amount, control.right_amount, control.brake_amount,
            control.drive_mode))
        if self._state.ego is Ego.ABSENT:
            return CommandResult(NO_EGO_FOR_CONTROL, False)
        # Assumed: the sign of forward_amount is a direction, as is drive_mode.
        self._state.drive(Pedals(right, abs(forward), brake,
                                 reverse=forward < 0 or mode < 0))
        return CommandResult()

    def _spawn(self, message: object) -> CommandResult:
        vehicle = typed(message, dict[str, Any])
        if not vehicle:
            return CommandResult('Failed to spawn vehicle: empty configuration.', False)
        if _is_ego(vehicle):
            self._state.ego = Ego.PRESENT
        return CommandResult('Successfully spawned vehicle.')

    def _stream(self, is_on: bool) -> CommandResult:
        self._state.is_stopped = not is_on
        return CommandResult()


def _is_ego(vehicle: object) -> bool:
    return isinstance(vehicle, dict) and 'ego' in lower_tags(vehicle.get('tags'))


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


class StateText(Struct):
    state_data_as_string: str


def typed(message: object, kind: type[Kind]) -> Kind:
    """Check that plain JSON data has the members of a type."""
    try:
        return msgspec.convert(message, kind)
    except msgspec.ValidationError as error:
        raise RejectedError(f'message: found another type or value: {error}') from error


def as_text(value: object) -> str:
    """Return a wrong value, plain JSON data, as text of at most 80 characters for a reply."""
    return repr(value)[:SHOWN_CHARACTERS]


def parse_json(text: bytes | str, where: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f'{where}: found {error}; expected JSON') from error


def parse_envelope(body: bytes) -> Envelope:
    return typed(parse_json(body, 'request'), Envelope)


def parse_sensor(message: object) -> tuple[int, SensorFilter, bool]:
    config = typed(message, SensorConfig)
    sensor_filter = SensorFilter(lower_tags(config.desired_tags),
                                 lower_tags(config.undesired_tags), config.include_obb)
    return int(config.listen_port), sensor_filter, config.enable_streaming


def parse_state_frame(message: object) -> dict[str, object]:
    """Parse the frame of a state step: an object, an array of one, or text in a string."""
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if isinstance(message, dict) and 'state_data_as_string' in message:
        message = parse_json(typed(message, StateText).state_data_as_string,
                             'state_data_as_string')
    return typed(message, dict[str, Any])
