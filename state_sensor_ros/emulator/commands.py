# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The commands of the control port: what each asks for and what the simulator answers.

May know: command names, their bodies and reply texts. Must not: sockets, bytes, threads.
Source of truth: PROTOCOL 2.5; texts that no page names are our own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from state_sensor_ros.emulator.playback import Shot
from state_sensor_ros.emulator.requests import (
    as_object,
    frame,
    integer,
    kind,
    number,
    RefusedError,
    sensor,
    shown,
)
from state_sensor_ros.emulator.samples import Frame
from state_sensor_ros.emulator.selection import has_ego, lower_tags, Selection
from state_sensor_ros.emulator.sensors import SensorBank
from state_sensor_ros.emulator.world import World
from state_sensor_ros.errors import TransportError

COMPLETE = 'complete'
VERSION = 'simulator_version: 1.12, api_version: 1.12'
NO_EGO_FOR_SAMPLE = 'unable to sample sensors, no ego vehicle is registered'
NO_EGO_FOR_CONTROL = 'no ego vehicle found'
# Accepted, answered and otherwise without effect: nothing that a State sensor would show.
WITHOUT_EFFECT = ('WeatherConfig', 'EgoVehicleConfig_ID', 'AutopilotControl', 'MapCommand_ID',
                  'ActivateLicense', 'Status_ID', 'AttachSensorCommand_ID',
                  'DetachSensorCommand_ID', 'WaypointUpdate_ID')
MAX_STEP = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """
    What sensors shall send once the reply is out.

    :param shot: the frame.
    :param ports: the sensors, None for all.
    """

    shot: Shot
    ports: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """
    The outcome of a command.

    :param message: for the reply.
    :param success: whether it was done.
    :param sampling: what follows on the sensor ports.
    """

    message: object = COMPLETE
    success: bool = True
    sampling: Sampling | None = None


class Commands:
    """
    The table of commands over a world and its sensors.

    :param world: what is simulated.
    :param sensors: who looks at it.
    """

    def __init__(self, world: World, sensors: SensorBank) -> None:
        self._world = world
        self._sensors = sensors
        self._table: dict[str, Callable[[object], Answer]] = {
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
            'GetVersion': lambda message: Answer(VERSION),
            'StartAllSensorsCommand_ID': lambda message: self._stream(True),
            'StopAllSensorsCommand_ID': lambda message: self._stream(False),
            'StreamData_ID': lambda message: self._stream(True),
            **{name: lambda message: Answer() for name in WITHOUT_EFFECT},
        }

    def answer(self, command: object, message: object) -> Answer:
        """
        Do what a command asks for.

        :param command: the `type` of the envelope.
        :param message: its body.
        :returns: the outcome; refusals carry a text that says why.
        """
        handler = self._table.get(command) if isinstance(command, str) else None
        if handler is None:
            return Answer(f'type: found {shown(command)}; expected a known command', False)
        try:
            return handler(message)
        except RefusedError as error:
            return Answer(str(error), False)

    def _configure_simulator(self, message: object) -> Answer:
        config = as_object(message)
        name = config.get('map', 'default')
        if not isinstance(name, str) or not name:
            return Answer('invalid map specified', False)
        mode = integer(config, 'simulation_mode', 0)
        if mode not in (0, 1, 2, 3):
            raise RefusedError(f'simulation_mode: found {mode}; expected 0, 1, 2 or 3')
        self._world.begin(mode)
        self._sensors.reset_counts()
        return Answer(f'simulator configuration mode = {mode}')

    def _configure_scenario(self, message: object) -> Answer:
        vehicles = as_object(message).get('vehicles')
        if not isinstance(vehicles, list) or not vehicles:
            return Answer('Failed to configure scenario. No actors spawned.', False)
        self._world.has_scenario = True
        # Without an ego of its own, the scenario gets one with the first control.
        self._world.has_ego = any('ego' in lower_tags(vehicle.get('tags'))
                                  for vehicle in vehicles if isinstance(vehicle, dict))
        return Answer('Successfully configured scenario.')

    def _configure_trajectory(self, message: object) -> Answer:
        if not isinstance(message, list) or not message:
            raise RefusedError(f'trajectory: found {kind(message)}; expected an array of frames')
        for i, members in enumerate(message):
            if not isinstance(members, dict):
                raise RefusedError(f'trajectory[{i}]: found {kind(members)}; expected a frame')
        if not has_ego(message[0]):
            raise RefusedError('trajectory[0]: found no ego; expected an actor tagged ego')
        self._world.load([Frame(members) for members in message])
        return Answer()

    def _configure_sensors(self, message: object) -> Answer:
        # A whole suite may hold cameras and more: this simulator has State sensors only.
        configs = message if isinstance(message, list) else [message]
        others = [config for config in configs if isinstance(message, list)
                  and isinstance(config, dict) and isinstance(config.get('type'), str)
                  and config['type'] != 'State']
        states = [sensor(config) for config in configs if config not in others]
        for state in states:
            self._build(*state)
        return Answer()

    def _reconfigure_sensor(self, message: object) -> Answer:
        port, selection, is_streaming = sensor(message)
        if port not in self._sensors.ports():
            raise RefusedError(f'listen_port: found {port}; expected that of a State sensor')
        self._build(port, selection, is_streaming)
        return Answer()

    def _build(self, port: int, selection: Selection, is_streaming: bool) -> None:
        try:
            self._sensors.configure(port, selection, is_streaming)
        except TransportError as error:
            raise RefusedError(str(error)) from error

    def _sampled(self, shot: Shot | None, ports: tuple[int, ...] | None = None) -> Answer:
        if shot is None or not self._world.has_ego:
            return Answer(NO_EGO_FOR_SAMPLE, False)
        return Answer(sampling=Sampling(shot, ports))

    def _sample(self, message: object) -> Answer:
        if message is not None and message != '':
            as_object(message)
        if not self._world.has_ego:
            return Answer(NO_EGO_FOR_SAMPLE, False)
        return self._sampled(self._world.sample())

    def _sample_list(self, message: object) -> Answer:
        ports = as_object(message).get('ports')
        if not isinstance(ports, list):
            raise RefusedError(f'ports: found {kind(ports)}; expected an array of ports')
        known = self._sensors.ports()
        for port in ports:
            if isinstance(port, bool) or port not in known:
                raise RefusedError(f'ports: found {shown(port)}; expected ports of State sensors')
        if not self._world.has_ego:
            return Answer(NO_EGO_FOR_SAMPLE, False)
        return self._sampled(self._world.sample(), tuple(dict.fromkeys(ports)))

    def _step(self, message: object) -> Answer:
        amount = integer(as_object(message), 'amount')
        shot = self._world.step(max(-MAX_STEP, min(amount, MAX_STEP)))
        if shot is None:
            raise RefusedError('trajectory: found none; expected '
                               'REPLAY_ConfigureTrajectoryCommand_ID before')
        return Answer(sampling=Sampling(shot))

    def _state_step(self, message: object) -> Answer:
        return Answer(sampling=Sampling(self._placed(message)))

    def _update_state(self, message: object) -> Answer:
        self._placed(message)
        return Answer()

    def _placed(self, message: object) -> Shot:
        members = frame(message)
        if not has_ego(members):
            raise RefusedError('frame: found no ego; expected an actor tagged ego')
        return self._world.place(members)

    def _closed_loop_step(self, message: object) -> Answer:
        if not (step_s := number(as_object(message), 'time_step')) > 0:
            raise RefusedError(f'time_step: found {step_s}; expected seconds above 0')
        self._world.tick()
        return Answer(True)

    def _control_ego(self, message: object) -> Answer:
        control = as_object(message)
        for key in ('forward_amount', 'right_amount', 'brake_amount', 'drive_mode'):
            number(control, key, 0)
        if not self._world.has_ego and not self._world.has_scenario:
            return Answer(NO_EGO_FOR_CONTROL, False)
        self._world.has_ego = True
        return Answer()

    def _spawn(self, message: object) -> Answer:
        vehicle = as_object(message)
        if not vehicle:
            return Answer('Failed to spawn vehicle: empty configuration.', False)
        self._world.has_ego |= 'ego' in lower_tags(vehicle.get('tags'))
        return Answer('Successfully spawned vehicle.')

    def _stream(self, is_on: bool) -> Answer:
        self._world.is_stopped = not is_on
        return Answer()
