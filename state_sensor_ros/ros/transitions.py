# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A lifecycle node that stores the errors of its transitions and refuses invalid ones."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TypeVar

from lifecycle_msgs.srv import ChangeState
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn

from state_sensor_ros.errors import importing, StateSensorError

_Node = TypeVar('_Node', bound='ManagedNode')
_Transition = Callable[[_Node, LifecycleState], TransitionCallbackReturn]


def noting(transition: _Transition[_Node]) -> _Transition[_Node]:
    """
    Store the exception of a transition in the node: rclpy only logs it.

    :param transition: method of the node.
    :returns: a method that returns FAILURE if ``transition`` raises StateSensorError.
    """
    @wraps(transition)
    def noted(self: _Node, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            with importing(self.default_name):
                return transition(self, state)
        except StateSensorError as error:
            self.refusal = error
            if not self.is_starting:
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except BaseException as error:
            self.failure = error
            raise
    return noted


class ManagedNode(LifecycleNode):  # type: ignore[misc]
    """
    A node whose transitions are marked with :func:`noting`.

    :param name: name of the node unless it is remapped.
    :ivar default_name: that name, with which errors begin.
    :ivar failure: the unexpected exception of a transition or a thread, None for none.
    :ivar refusal: the reason why the last transition was refused, None for none.
    :ivar is_starting: whether the program itself requests the transitions, and prints a refusal.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.default_name = name
        self.failure: BaseException | None = None
        self.refusal: StateSensorError | None = None
        self.is_starting = False
        self._refuse_wrong_transitions()

    def destroy_node(self) -> None:
        """
        Destroy what belongs to the node.

        rclpy leaves the state machine, which keeps the participant of the middleware: that was
        then destroyed by the exit of the process, beside its own threads, which ended some
        processes with SIGSEGV.
        """
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def shut_down(self) -> None:
        """Go to the state finalized, from any state."""
        # rclpy raises it if the node is already finalized, such as by `ros2 lifecycle set`.
        with suppress(RuntimeError):
            self.trigger_shutdown()

    def _refuse_wrong_transitions(self) -> None:
        """Refuse a transition that the state does not have: rclpy would end the program."""
        service = next(each for each in self.services if each.srv_type is ChangeState)
        change = service.callback

        def change_or_refuse(request: ChangeState.Request,
                             response: ChangeState.Response) -> ChangeState.Response:
            try:
                return change(request, response)
            except RuntimeError as error:
                self.get_logger().warning(f'transition refused: {error}')
                response.success = False
                return response

        service.callback = change_or_refuse
