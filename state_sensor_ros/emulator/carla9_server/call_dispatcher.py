# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Finds the call that a request names, checks its arguments, and makes the reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_type_hints

import msgspec

from state_sensor_ros.emulator.carla9_server.calls import Calls, SpawnCommand
from state_sensor_ros.emulator.carla9_server.client_bytes import (
    CallError,
    encode_reply,
    Request,
)

# Most names of unknown calls that are counted apart.
_MAX_NAMES = 100
# Calls of the commands in a batch, by the place of the command in the client's variant; '' is
# one without an effect here.
_COMMANDS = (
    'spawn_actor', 'destroy_actor', 'apply_control_to_vehicle',
    'apply_ackermann_control_to_vehicle', 'apply_control_to_walker', '', 'set_actor_transform',
    'set_walker_state', 'set_actor_target_velocity', '', '', '', '', '', '', '',
    'set_actor_autopilot', '', 'set_vehicle_light_state', 'set_actor_location', '',
    'set_traffic_light_state')
_BATCH = 'apply_batch'
_Batch = tuple[list[tuple[tuple[int, list[object]]]], bool]


class Dispatcher:
    """Answers requests."""

    def __init__(self, calls: Calls) -> None:
        self.unknown: Counter[str] = Counter()
        self._calls: dict[str, tuple[Callable[..., object], object, bool]] = {}
        for name, function in vars(Calls).items():
            if not name.startswith('_'):
                hints = get_type_hints(function)
                returned = hints.pop('return')
                self._calls[name] = (getattr(calls, name),
                                     tuple[tuple(hints.values())],  # type: ignore[misc]
                                     returned is type(None))

    def answer(self, request: Request) -> bytes:
        number, name, arguments = request.number, request.name, request.arguments[1:]
        try:
            if name == _BATCH:
                return encode_reply(number, self._batch(arguments))
            if name not in self._calls:
                self.unknown[name if len(self.unknown) < _MAX_NAMES else '...'] += 1
                return encode_reply(number, error=f'rpclib: server could not find function '
                                    f'{name!r} with argument count {len(request.arguments)}.')
            is_void = self._calls[name][2]
            try:
                value = self._call(name, arguments)
            except CallError as error:
                return encode_reply(number, [[True if is_void else 0, [str(error)]]])
            return encode_reply(number, [[False]] if is_void else [[1, value]])
        except (msgspec.ValidationError, RecursionError) as error:
            return encode_reply(number, error=f'rpclib: {name}: {error}')

    def _call(self, name: str, arguments: list[object]) -> object:
        function, types, _ = self._calls[name]
        return function(*msgspec.convert(arguments, types))

    def _batch(self, arguments: list[object]) -> list[object]:
        """Return the result of each command: the id of its actor, or why it failed."""
        commands, is_cue = msgspec.convert(arguments, _Batch)
        results = [self._command(kind, values) for (kind, values), in commands]
        if is_cue:
            self._call('tick_cue', [])
        return results

    def _command(self, kind: int, values: list[object]) -> object:
        try:
            if kind == 0:
                return [[1, self._spawn(values)]]
            if not 0 < kind < len(_COMMANDS) or _COMMANDS[kind] not in self._calls:
                raise CallError(f'the mock server has no command of kind {kind}')
            self._call(_COMMANDS[kind], values)
            return [[1, values[0]]]
        except CallError as error:
            return [[0, [str(error)]]]

    def _spawn(self, values: list[object]) -> object:
        """Spawn, then do to the actor what else the command has; return its id."""
        command = msgspec.convert(values, SpawnCommand)
        description, transform, parent, attachment, socket, after = command
        if len(parent) > 1:
            actor = self._call('spawn_actor_with_parent',
                               [description, transform, parent[1], attachment, socket])
        else:
            actor = self._call('spawn_actor', [description, transform])
        assert isinstance(actor, list)
        for (kind, arguments), in after:
            self._command(kind, [actor[0], *arguments[1:]] if kind else arguments)
        return actor[0]
