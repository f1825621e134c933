# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A replay of the command `replay`: its recording as a trajectory, its options as a plan."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from state_sensor_ros.simulators import ConfigError, Reading
from state_sensor_ros.simulators.monodrive.generations.wire import V2
from state_sensor_ros.simulators.monodrive.json_recording import JsonRecording
from state_sensor_ros.simulators.monodrive.replay_client import Plan, ReplayClient
from state_sensor_ros.simulators.monodrive.replay_trajectory import read_trajectory, Trajectory
from state_sensor_ros.simulators.monodrive.sensor_config import read_json


def open_replay(options: argparse.Namespace, reading: Reading,
                warn: Callable[[str], None]) -> ReplayClient:
    """
    Read the recording, and prepare its replay.

    :param options: options of the command.
    :param reading: progress display, as for :meth:`Simulator.open_replay`; ``warn`` likewise.
    """
    return ReplayClient(_read(options, reading, warn), _plan(options), warn)


def _read(options: argparse.Namespace, reading: Reading,
          warn: Callable[[str], None]) -> Trajectory:
    # Frames of other simulators are sent as V2.
    recording = JsonRecording(options.file, V2, options.read_options)
    try:
        with reading(recording) as frames:
            trajectory = read_trajectory(options.file, frames)
    finally:
        recording.close()
    if recording.lost:
        warn(f'{options.file}: {V2} does not carry: {", ".join(recording.lost)}')
    return trajectory


def _plan(options: argparse.Namespace) -> Plan:
    simulator = None
    if options.simulator is not None:
        simulator = read_json(options.simulator)
        if not isinstance(simulator, dict):
            raise ConfigError(options.simulator, 'no object',
                              'an object with map, simulation_mode')
    return Plan(host=options.host, control_port=options.control_port,
                port=None if options.no_sensor else options.port, rate=options.rate,
                step=options.step, start=options.start, loop=options.loop,
                is_backwards=options.is_backwards, simulator=simulator)
