# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The commands of the control port: their checked values, what each one does, and the reply.

Reply texts are those of the vendor's documentation, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
import json
import math

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
        config = as_object(message)
        name = config.get('map', 'default')
        if not isinstance(name, str) or not name:
            return CommandResult('invalid map specified', False)
        mode = integer(config, 'simulation_mode', 0)
        if mode not in (0, 1, 2, 3):
            raise RejectedError(f'simulation_mode: found {mode}; expected 0, 1, 2 or 3')
        self._state.begin(mode)
        self._suite.reset_counts()
        return CommandResult(f'simulator configuration mode = {mode}')

    def _configure_scenario(self, message: object) -> CommandResult:
        vehicles = as_object(message).get('vehicles')
        if not isinstance(vehicles, list) or not vehicles:
            return CommandResult('Failed to configure scenario. No actors spawned.', False)
        self._state.ego = Ego.PRESENT if any(map(_is_ego, vehicles)) else Ego.PENDING
        return CommandResult('Successfully configured scenario.')

    def _configure_trajectory(self, message: object) -> CommandResult:
        if not isinstance(message, list) or not message:
            raise RejectedError(
                f'trajectory: found {json_type(message)}; expected an array of frames')
        for i, members in enumerate(message):
            if not isinstance(members, dict):
                raise RejectedError(
                    f'trajectory[{i}]: found {json_type(members)}; expected a frame')
        if not has_ego(message[0]):
            raise RejectedError('trajectory[0]: found no ego; expected an actor tagged ego')
        self._state.load([EmulatedFrame(members) for members in message])
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
            as_object(message)
        return self._sampled(None)

    def _sample_list(self, message: object) -> CommandResult:
        ports = as_object(message).get('ports')
        if not isinstance(ports, list):
            raise RejectedError(f'ports: found {json_type(ports)}; expected an array of ports')
        known = tuple(self._suite.sensors)
        for port in ports:
            if isinstance(port, bool) or port not in known:
                raise RejectedError(
                    f'ports: found {as_text(port)}; expected ports of State sensors')
        return self._sampled(tuple(dict.fromkeys(ports)))

    def _sampled(self, ports: tuple[int, ...] | None) -> CommandResult:
        frame = self._state.sample() if self._state.ego is Ego.PRESENT else None
        if frame is None:
            return CommandResult(NO_EGO_FOR_SAMPLE, False)
        return CommandResult(frame=frame, ports=ports)

    def _step(self, message: object) -> CommandResult:
        amount = integer(as_object(message), 'amount')
        frame = self._state.step(max(-MAX_STEP, min(amount, MAX_STEP)))
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
        if not (step_s := number(as_object(message), 'time_step')) > 0:
            raise RejectedError(f'time_step: found {step_s}; expected seconds above 0')
        self._state.tick()
        return CommandResult(True)

    def _control_ego(self, message: object) -> CommandResult:
        control = as_object(message)
        # A whole number of JSON may be too large for a float.
        forward, right, brake, mode = (float(min(max(number(control, key, 0), -1), 1)) for key in (
            'forward_amount', 'right_amount', 'brake_amount', 'drive_mode'))
        if self._state.ego is Ego.ABSENT:
            return CommandResult(NO_EGO_FOR_CONTROL, False)
        # Assumed: the sign of forward_amount is a direction, as is drive_mode.
        self._state.drive(Pedals(right, abs(forward), brake,
                                 reverse=forward < 0 or mode < 0))
        return CommandResult()

    def _spawn(self, message: object) -> CommandResult:
        vehicle = as_object(message)
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


def json_type(value: object) -> str:
    names = {dict: 'an object', list: 'an array', str: 'a string', bool: 'a bool',
             int: 'a number', float: 'a number', type(None): 'null'}
    return names.get(type(value), 'something else')


def as_text(value: object) -> str:
    """
    Return a wrong value as text for a reply.

    :param value: plain JSON data.
    :returns: at most 80 characters.
    """
    return repr(value)[:SHOWN_CHARACTERS]


def parse_envelope(body: bytes) -> tuple[object, object, object]:
    try:
        request = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RejectedError(f'request: found {error}; expected JSON') from error
    if not isinstance(request, dict) or 'type' not in request:
        raise RejectedError(
            f'request: found {json_type(request)}; expected an object with a type')
    return request['type'], request.get('reference', 0), request.get('message')


def as_object(message: object) -> dict[str, object]:
    """Check that a body is an object."""
    if not isinstance(message, dict):
        raise RejectedError(f'message: found {json_type(message)}; expected an object')
    return message


def number(message: dict[str, object], key: str, default: float | None = None) -> float:
    """Return a member that is a number; NaN and Infinity, which are not JSON, are none."""
    value = message.get(key, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RejectedError(f'{key}: found {json_type(value)}; expected a number')
    if not abs(value) < math.inf:
        raise RejectedError(f'{key}: found {value}; expected a number')
    return value


def integer(message: dict[str, object], key: str, default: int | None = None) -> int:
    """Return a member that is a whole number, such as 8700 or 8700.0."""
    value = number(message, key, default)
    if isinstance(value, float) and not value.is_integer():
        raise RejectedError(f'{key}: found {value}; expected a whole number')
    return int(value)


def _flag(message: dict[str, object], key: str, default: bool) -> bool:
    value = message.get(key, default)
    if not isinstance(value, bool):
        raise RejectedError(f'{key}: found {json_type(value)}; expected a bool')
    return value


def _tags(config: dict[str, object], key: str) -> frozenset[str]:
    tags = config.get(key, [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise RejectedError(f'{key}: found {json_type(tags)}; expected an array of strings')
    return lower_tags(tags)


def parse_sensor(message: object) -> tuple[int, SensorFilter, bool]:
    """Parse the configuration of one State sensor; members of other sensors are ignored."""
    config = as_object(message)
    if config.get('type') != 'State':
        raise RejectedError(f"type: found {as_text(config.get('type'))}; expected 'State'")
    port = integer(config, 'listen_port')
    if not 1 <= port <= 65535:
        raise RejectedError(f'listen_port: found {port}; expected 1 to 65535')
    sensor_filter = SensorFilter(_tags(config, 'desired_tags'), _tags(config, 'undesired_tags'),
                                 _flag(config, 'include_obb', False))
    return port, sensor_filter, _flag(config, 'enable_streaming', True)


def parse_state_frame(message: object) -> dict[str, object]:
    """Parse the frame of a state step: an object, an array of one, or text in a string."""
    if isinstance(message, list) and len(message) == 1:
        message = message[0]
    if isinstance(message, dict) and 'state_data_as_string' in message:
        text = message['state_data_as_string']
        if not isinstance(text, str):
            raise RejectedError(
                f'state_data_as_string: found {json_type(text)}; expected a string')
        try:
            return as_object(json.loads(text))
        except (ValueError, RecursionError) as error:
            raise RejectedError(f'state_data_as_string: found {error}; expected JSON') from error
    return as_object(message)
