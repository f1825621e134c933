# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Completion of frames by which a client places actors: names, tags and poses are sufficient.

An orientation may be a rotator in degrees: yaw right, pitch up, roll lowers the right side.
"""

from __future__ import annotations

from enum import Enum
import threading

import numpy as np

from state_sensor_ros.emulator.bicycle import Pedals
from state_sensor_ros.emulator.monodrive_server.frame_source import (
    DEFAULT_PERIOD_S,
    EmulatedFrame,
    FrameClock,
    FrameSource,
    is_actor,
    TimedFrame,
    TrajectorySource,
)
from state_sensor_ros.emulator.monodrive_server.packet_bytes import LARGEST_FLOAT32
from state_sensor_ros.emulator.traffic.json_template import quaternion_of_rotator

CLOSED_LOOP_MODES = (0, 3)


def completed(members: dict[str, object]) -> dict[str, object]:
    """Add the members that a sensor always sends to a frame that places actors."""
    # Returns the members with velocities of 0, empty lists for missing ones, and quaternions.
    frame = members.get('frame')
    if isinstance(frame, list):
        return {**members, 'frame': [_complete_flat(actor) for actor in frame]}
    if not isinstance(frame, dict):
        return {key: _complete_flat(value) if is_actor(value) else value
                for key, value in members.items()}
    groups: dict[str, object] = {'objects': [], 'vehicles': [], **frame}
    for key, value in groups.items():
        if isinstance(value, list):
            groups[key] = [_complete_nested(actor) for actor in value]
    return {**members, 'frame': groups}


def _complete_flat(actor: object) -> object:
    """Complete an actor of v0 or v1: vectors are arrays."""
    if not isinstance(actor, dict):
        return actor
    actor = {'velocity': [0.0, 0.0, 0.0], 'angular_velocity': [0.0, 0.0, 0.0], **actor}
    if (quaternion := _rotator_quaternion(actor.get('orientation'))) is not None:
        actor['orientation'] = quaternion
    return actor


def _complete_nested(actor: object) -> object:
    """Complete an actor of v2: a vehicle with a state, or the state itself."""
    if not isinstance(actor, dict) or 'state' not in actor:
        return _complete_state(actor)
    return {'wheels': [], **actor, 'state': _complete_state(actor['state'])}


def _complete_state(state: object) -> object:
    """Complete a state of v2: vectors are objects."""
    if not isinstance(state, dict) or not isinstance(state.get('odometry'), dict):
        return state
    still = {'x': 0.0, 'y': 0.0, 'z': 0.0}
    odometry = {'angular_velocity': still, 'linear_velocity': still, **state['odometry']}
    pose = odometry.get('pose')
    if isinstance(pose, dict) and (
            quaternion := _rotator_quaternion(pose.get('orientation'))) is not None:
        x, y, z, w = quaternion
        odometry['pose'] = {**pose, 'orientation': {'w': w, 'x': x, 'y': y, 'z': z}}
    return {'oriented_bounding_box': [], **state, 'odometry': odometry}


def _rotator_quaternion(orientation: object) -> list[float] | None:
    """Return the quaternion x y z w of a rotator, or None for anything else."""
    if not isinstance(orientation, dict) or 'w' in orientation:
        return None
    angles = [float(angle) for key in ('yaw', 'pitch', 'roll')
              if isinstance(angle := orientation.get(key), (int, float))
              and abs(angle) <= LARGEST_FLOAT32]
    return quaternion_of_rotator(*angles) if len(angles) == 3 else None


class ClockDriver(Enum):
    """What advances the simulated time."""

    TIMER = 'frames are sent at the configured rate'
    SAMPLE = 'each sample advances by one frame'
    CLIENT = 'commands step or place frames; a sample repeats the current frame'


class Ego(Enum):
    """Whether the simulation has an ego, without which sensors send nothing."""

    ABSENT = 'none'
    PENDING = 'the scenario has none; the first control command creates it'
    PRESENT = 'one'


class SimulationState:
    """What the threads of a server share: source and driver of frames, and the ego."""

    # source: the source of frames, None if clients place all frames.

    def __init__(self, source: FrameSource | None, is_free_running: bool) -> None:
        self._lock = threading.RLock()
        self._own_source = source
        self._source = source
        self._first_driver = ClockDriver.TIMER if is_free_running else ClockDriver.SAMPLE
        self._driver = self._first_driver
        self._current: TimedFrame | None = None
        self.ego = Ego.PRESENT
        self.is_stopped = False

    @property
    def is_free_running(self) -> bool:
        """Whether frames are sent at the configured rate now."""
        return (self._driver is ClockDriver.TIMER and not self.is_stopped
                and self.ego is Ego.PRESENT and self._source is not None)

    def begin(self, mode: int) -> None:
        """Start over in another simulation mode."""
        # mode: 0 closed loop, 1 replay, 2 replay of placed frames, 3 closed loop with a fixed time
        # step.
        with self._lock:
            self._current = None
            self._driver = self._first_driver if mode == 0 else ClockDriver.CLIENT
            self.ego = Ego.ABSENT if mode in CLOSED_LOOP_MODES else Ego.PRESENT
            self._source = self._own_source
            if self._source is not None:
                self._source.rewind()

    def load(self, frames: list[EmulatedFrame]) -> None:
        """Replace the source by a trajectory, through which the client steps."""
        with self._lock:
            self._source = TrajectorySource(frames)
            self._current = None
            self._driver = ClockDriver.CLIENT

    def advance(self) -> TimedFrame | None:
        """Go to the next frame at the configured rate."""
        # Returns the frame, None at the end or if a client advances the time now.
        with self._lock:
            if self._source is None or self._driver is not ClockDriver.TIMER:
                return None
            frame = self._source.advance()
            self._current = frame or self._current
            return frame

    def step(self, amount: int) -> TimedFrame | None:
        """Step by a command of the client; ``amount``: frames, negative ones go back."""
        with self._lock:
            self._driver = ClockDriver.CLIENT
            return self._step_source(amount)

    def tick(self) -> None:
        """Advance by one fixed time step without a sample."""
        with self._lock:
            if self._driver is ClockDriver.TIMER:
                self._driver = ClockDriver.SAMPLE
            self._step_source(1)

    def sample(self) -> TimedFrame | None:
        """Return the frame of a sample command, the next one if samples advance the time."""
        with self._lock:
            if self._source is not None and (
                    self._current is None or self._driver is ClockDriver.SAMPLE):
                return self._step_source(1)
            return self._show(self._current)

    def newest(self, sampled: TimedFrame) -> TimedFrame:
        """Return the frame to send for a sample: the timer may have gone on since then."""
        with self._lock:
            is_timed = self._driver is ClockDriver.TIMER
            return (self._show(self._current) if is_timed else None) or sampled

    def drive(self, pedals: Pedals) -> None:
        """Drive the ego; the first command creates one that the scenario lacks."""
        with self._lock:
            self.ego = Ego.PRESENT
            if self._source is not None:
                self._source.drive(pedals)

    def place(self, members: dict[str, object]) -> TimedFrame:
        """Make a frame of the client the current one; game_time advances by at least 0.05 s."""
        with self._lock:
            self._driver = ClockDriver.CLIENT
            frame = EmulatedFrame(completed(members))
            before = FrameClock(0.0, 0, 0) if self._current is None else self._current.clock
            earliest_s = (before.game_time or 0.0) + DEFAULT_PERIOD_S
            given = frame.clock
            clock = FrameClock(float(np.float32(max(given.game_time or 0.0, earliest_s))),
                               given.time if given.time is not None else before.time, 0)
            self._current = TimedFrame(frame, clock, is_verbatim=False)
            return self._current

    def _step_source(self, amount: int) -> TimedFrame | None:
        return None if self._source is None else self._show(self._source.step(amount))

    def _show(self, frame: TimedFrame | None) -> TimedFrame | None:
        """Make a frame the current one; the sensor counts its samples."""
        if frame is not None:
            self._current = frame = TimedFrame(frame.frame, frame.clock, is_verbatim=False)
        return frame
