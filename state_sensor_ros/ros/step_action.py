# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The action SimulateSteps: as the service StepSimulation, with a reply for each step."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any, cast

from rclpy.action import ActionServer, CancelResponse
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from simulation_interfaces.action import SimulateSteps
from simulation_interfaces.msg import Result

from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.source import Health, Source, SteerableSource

_POLL_S = 0.005
# Longest wait for the frame of a step, s.
_LONGEST_STEP_S = 30.0


class StepAction:
    """Serve the action on ``~/simulate_steps``."""

    # checked: returns the source if it may make so many steps, or raises.

    def __init__(self, node: Node, checked: Callable[[int], SteerableSource]) -> None:
        self._node, self._checked = node, checked
        self._server = ActionServer(
            node, SimulateSteps, '~/simulate_steps', self._execute,
            cancel_callback=lambda goal: CancelResponse.ACCEPT)

    async def _execute(self, goal: Any) -> Any:  # noqa: ANN401
        n_steps, n_done, text = goal.request.steps, 0, ''
        try:
            source = self._checked(n_steps)
            while n_done < n_steps and not text and not goal.is_cancel_requested:
                health = cast(Source, source).health
                n_wanted = health.n_packets + 1
                source.step(1)
                if await self._until(health, n_wanted):
                    n_done += 1
                    goal.publish_feedback(SimulateSteps.Feedback(
                        completed_steps=n_done, remaining_steps=n_steps - n_done))
                else:
                    text = f'found no frame of a step within {_LONGEST_STEP_S:g} s'
        except StateSensorError as error:
            text = str(error)
        if text:
            goal.abort()
        elif n_done < n_steps:
            goal.canceled()
            text = f'canceled after {n_done} of {n_steps} steps'
        else:
            goal.succeed()
        return SimulateSteps.Result(result=Result(
            result=Result.RESULT_OPERATION_FAILED if text else Result.RESULT_OK,
            error_message=text))

    async def _until(self, health: Health, n_packets: int) -> bool:
        """Wait for so many packets while the node goes on; return whether they have come."""
        future: Future[bool] = Future()
        until_s = time.monotonic() + _LONGEST_STEP_S

        def check() -> None:
            if health.n_packets >= n_packets or time.monotonic() > until_s:
                future.set_result(health.n_packets >= n_packets)

        # The simulated clock stands.
        timer = self._node.create_timer(_POLL_S, check,
                                        clock=Clock(clock_type=ClockType.STEADY_TIME))
        try:
            return bool(await future)
        finally:
            self._node.destroy_timer(timer)
