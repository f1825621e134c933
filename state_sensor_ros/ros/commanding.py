# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Commands from a stack to the ego, while the node is active."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
import math
from statistics import median
import time

from rclpy.exceptions import InvalidHandle
from rclpy.node import Node

from state_sensor_ros.control.command_inputs import CommandInput, INPUTS
from state_sensor_ros.control.ego_commands import ControlParameters, EgoCommand, EgoCommands
from state_sensor_ros.control.ego_driver import CommandCounters, DriverState, EgoDriver, EgoMotion
from state_sensor_ros.frame import speed_along
from state_sensor_ros.pipeline.pipeline import Snapshot
from state_sensor_ros.ros.command_topics import CommandStatus, CommandTopics
from state_sensor_ros.ros.diagnostics import Level, percentile, shown, Status
from state_sensor_ros.ros.node_log import NodeLog
from state_sensor_ros.ros.stack_checks import check_package
from state_sensor_ros.settings import Settings


def check_input(settings: Settings) -> None:
    """
    Check that the messages of the selected input are installed.

    :param settings: parameters; ``control_input`` is read.
    :raises ConfigError: naming the package and how to get it.
    """
    if settings.control_input:
        for topic in INPUTS[settings.control_input].topics:
            check_package('control_input', settings.control_input,
                          topic.type_name.partition('/')[0])


class Commanding:
    """
    The topics of an input, the driver of the ego, and the status of both.

    :param node: owner of the topics.
    :param settings: parameters with a ``control_input``.
    :param commands: sender of the simulator.
    :param snapshot: returns the last frame, None before the first.
    :param is_paused: returns whether the source is paused: then no frame is expected.
    :param log: log of the node.
    """

    def __init__(self, node: Node, settings: Settings, commands: EgoCommands,
                 snapshot: Callable[[], Snapshot | None], is_paused: Callable[[], bool],
                 log: NodeLog) -> None:
        parameters = settings.of(ControlParameters)
        self._node, self._snapshot, self._is_paused = node, snapshot, is_paused
        # Time from which the age of the ego counts, ns of the performance counter: at first that
        # of the activation, before which no frame counts.
        self._fresh_ns = self._begun_ns = time.perf_counter_ns()
        self._was_paused = False
        self._status = CommandStatus(node, self._place)
        self._driver = EgoDriver(
            parameters, commands, self._motion, stale_after=settings.stale_after,
            on_sent=self._publish, report=log.warn, on_defect=log.defect)
        new_input: type[CommandInput] = INPUTS[settings.control_input]
        self._topics = CommandTopics(node, new_input(parameters), self._driver,
                                     parameters.timeout, log.warn)
        self._last = CommandCounters()
        self._seen: Snapshot | None = None
        self._needs_speed = settings.control_input != 'vehicle_control'

    def frame_arrived(self) -> None:
        """Evaluate a wanted speed again if there is a new frame; called by one thread."""
        snapshot = self._last_frame()
        if snapshot is not None and snapshot is not self._seen:
            self._seen = snapshot
            if _has_ego(snapshot):
                self._fresh_ns = snapshot.received_ns
            self._driver.frame_arrived()

    def end(self) -> None:
        """Brake at once, and for good, if commands were sent; from any thread."""
        self._driver.end()

    def close(self) -> None:
        """Brake if commands were sent; then end."""
        self._driver.close()
        self._topics.close()
        self._status.close()

    def status(self) -> Status:
        """Return the state of the driver, and the faults since the last call."""
        counters, last, state = self._driver.counters, self._last, self._driver.state
        self._last = replace(counters)
        faults = []
        if state is DriverState.BLOCKED:
            faults.append(self._topics.rivals or state.value)
        elif state is DriverState.STALE:
            faults.append(self._why_stale())
        elif state is DriverState.TIMED_OUT:
            faults.append(state.value)
        elif counters.n_timeouts > last.n_timeouts:
            faults.append('no command for a while')
        elif state is DriverState.DRIVING and self._needs_speed \
                and math.isnan(self._motion().speed):
            faults.append('the ego brakes: its speed is not known')
        if state is DriverState.DRIVING and self._topics.unknown_state:
            faults.append(f'the ego stands: no message on {self._topics.unknown_state} yet')
        if counters.n_refused > last.n_refused and state is not DriverState.BLOCKED:
            faults.append(f'{counters.n_refused - last.n_refused} commands refused: '
                          f'{counters.last_refusal}')
        if counters.n_unsent > last.n_unsent:
            faults.append(f'{counters.n_unsent - last.n_unsent} commands not sent')
        latencies_ms = [latency / 1e6 for latency in list(counters.latencies_ns)]
        return Status(Level.WARN if faults else Level.OK, '; '.join(faults) or state.value, (
            ('state', state.name.lower()),
            ('commands received', str(counters.n_received)),
            ('commands refused', str(counters.n_refused)),
            ('commands sent', str(counters.n_sent)),
            ('commands not sent', str(counters.n_unsent)),
            ('time-outs', str(counters.n_timeouts)),
            ('last refusal', counters.last_refusal),
            ('command-to-simulator latency median (ms)',
             shown(median(latencies_ms) if latencies_ms else math.nan)),
            ('command-to-simulator latency p99 (ms)', shown(percentile(latencies_ms, 0.99)))))

    def _motion(self) -> EgoMotion:
        age_s, snapshot = self._age_s(), self._last_frame()
        if snapshot is None or not _has_ego(snapshot):
            return EgoMotion(age_s=age_s)
        return EgoMotion(speed_along(snapshot.frame, snapshot.actor_list.i_ego),
                         snapshot.frame.game_time, age_s)

    def _last_frame(self) -> Snapshot | None:
        """Return the last frame since the activation."""
        snapshot = self._snapshot()
        return None if snapshot is None or snapshot.received_ns < self._begun_ns else snapshot

    def _age_s(self) -> float:
        """Return the time since the last frame with the ego was received, or since a pause, s."""
        now_ns, is_paused = time.perf_counter_ns(), self._is_paused()
        if is_paused or self._was_paused:
            self._fresh_ns = now_ns
        self._was_paused = is_paused
        return (now_ns - self._fresh_ns) / 1e9

    def _why_stale(self) -> str:
        if self._seen is None:
            return 'the ego brakes: no frame has arrived'
        if not _has_ego(self._seen):
            return 'the ego brakes: it is not in the frames, its speed is not known'
        return f'the ego brakes: its last new frame is {self._age_s():.1f} s old'

    def _place(self) -> tuple[int, str]:
        """Return stamp and frame of the ego in the last frame; before it, the node's time."""
        snapshot = self._snapshot()
        if snapshot is None:
            return self._node.get_clock().now().nanoseconds, ''
        i_ego = snapshot.actor_list.i_ego
        return snapshot.stamp_ns, '' if i_ego < 0 else snapshot.actor_list.actors[i_ego].frame_id

    def _publish(self, command: EgoCommand) -> None:
        # The node may be destroyed while the last brake is still on its way.
        with suppress(InvalidHandle):
            self._status.publish(command)


def _has_ego(snapshot: Snapshot) -> bool:
    """Return whether the ego is in a frame, with a pose."""
    i_ego = snapshot.actor_list.i_ego
    return i_ego >= 0 and bool(snapshot.frame.has_pose()[i_ego])
