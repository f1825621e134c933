# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""What is taken from inside rclpy, each with what is done in a version that does not have it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
import time
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher

# Middleware whose acknowledgments are those of the subscribers; that of Zenoh returns at once.
_ACKNOWLEDGING = ('fastrtps', 'cyclonedds', 'connext', 'gurumdds')
# How long messages take to subscribers that do not acknowledge them, s.
_IN_FLIGHT_S = 0.1


def raw_publish(publisher: Publisher) -> Callable[[bytes], None]:
    """Return what publishes serialized messages in half the time of ``publish()``."""
    found: Callable[[bytes], None] = getattr(
        getattr(publisher, 'handle', None), 'publish_raw', publisher.publish)
    return found


def subscription_counter(publisher: Publisher) -> Callable[[], int]:
    """Return what counts the subscribers of a publisher in half the time of its own method."""
    found: Callable[[], int] = getattr(getattr(publisher, 'handle', None),
                                       'get_subscription_count', publisher.get_subscription_count)
    return found


def given_parameters(node: Node) -> Mapping[str, Parameter]:
    """Return the parameters given at start, declared or not; none if rclpy does not keep them."""
    found: Mapping[str, Parameter] = getattr(node, '_parameter_overrides', {})
    return found


def release_state_machine(node: Node) -> None:
    """
    Destroy the state machine of a lifecycle node, which its ``destroy_node()`` leaves.

    It keeps the participant of the middleware: that was then destroyed by the exit of the process,
    beside its own threads, which ended some processes with SIGSEGV.
    """
    machine = getattr(node, '_state_machine', None)
    if machine is not None:
        machine.destroy_when_not_in_use()


def guard_service(node: Node, type_: type,
                  guard: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace the callback of a service that rclpy has made."""
    for service in node.services:
        if getattr(service, 'srv_type', None) is type_ and hasattr(service, 'callback'):
            with suppress(AttributeError):
                service.callback = guard(service.callback)


def destroy_publisher(node: Node, publisher: Publisher) -> None:
    """Destroy a publisher through its node, which lists it; one that is destroyed is left."""
    with suppress(InvalidHandle):
        node.destroy_publisher(publisher)


def await_delivery(publishers: Iterable[Publisher], seconds: float) -> None:
    """Wait until the subscribers of publishers have the last messages."""
    # seconds: longest wait for all of them, s.
    start_s = time.monotonic()
    has_subscribers = False
    for publisher in publishers:
        has_subscribers |= subscription_counter(publisher)() > 0
        left_s = max(0.0, start_s + seconds - time.monotonic())
        with suppress(AttributeError, RuntimeError):
            publisher.wait_for_all_acked(Duration(seconds=left_s))
    identifier = rclpy.get_rmw_implementation_identifier()
    if has_subscribers and not any(name in identifier for name in _ACKNOWLEDGING):
        end_s = start_s + min(seconds, _IN_FLIGHT_S)
        time.sleep(max(0.0, end_s - time.monotonic()))
