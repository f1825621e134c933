# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""The world: its episodes, actors, traffic lights and settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
import itertools

import numpy as np
import numpy.typing as npt

from state_sensor_ros.emulator.bicycle import Bicycle, Pedals
from state_sensor_ros.emulator.carla9_server.ackermann import AckermannController, AckermannTarget
from state_sensor_ros.emulator.carla9_server.client_bytes import (
    ACTIVE,
    ACTOR,
    ActorRows,
    snapshot_bytes,
)
from state_sensor_ros.emulator.carla9_server.world_bodies import (
    ACCELERATION,
    axes_of_rotation,
    Body,
    GREEN,
    MovingScene,
    N_NUMBERS,
    POSITION,
    RED,
    ROTATION,
    SceneFrame,
    Triple,
    VELOCITY,
    YELLOW,
)
from state_sensor_ros.emulator.traffic.road import FloatArray, IntArray

# Duration of the states of a traffic light until a client sets others, s.
GREEN_S, YELLOW_S, RED_S = 10.0, 3.0, 7.0
SPEED_LIMIT_KMH = 90.0
# Most actors that clients spawn, and commands that wait for a step.
MAX_SPAWNED = 5000


@dataclass(slots=True)
class EpisodeActor:
    id: int
    body: Body
    # (15,) float64, columns as in world_bodies, unused of one that moves by itself.
    numbers: FloatArray
    row: int = -1  # its row in the frames of the scene, -1 of a spawned one
    parent: int = 0  # id, 0 for none
    # Position and rotation on it.
    mount: tuple[Triple, Triple] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    stream: int = 0  # number of its stream, of a sensor
    lights: int = 0  # of a vehicle
    pedals: Pedals = field(default_factory=Pedals)
    bicycle: Bicycle | None = None
    follows: AckermannController | None = None  # controller of one that follows a speed
    walk: tuple[Triple, float, bool] = ((1.0, 0.0, 0.0), 0.0, False)

    def advance(self, elapsed_s: float) -> None:
        """Move one that a client has spawned, on a plane at its height."""
        # elapsed_s: simulated time, s.
        numbers, before = self.numbers, self.numbers[VELOCITY].copy()
        if self.body.family == 'walker':
            direction, speed, _ = self.walk
            numbers[VELOCITY] = np.asarray(direction) * speed
            numbers[POSITION] += numbers[VELOCITY] * elapsed_s
            if speed:
                numbers[4] = np.degrees(np.arctan2(direction[1], direction[0]))
        elif self.bicycle is not None:
            yaw = self.bicycle.yaw
            self.bicycle.advance(self.pedals, elapsed_s)
            body, middle_m = self.bicycle, self.bicycle.wheelbase / 2
            along = np.array((np.cos(body.yaw), np.sin(body.yaw)))
            turn = np.remainder(body.yaw - yaw + np.pi, 2 * np.pi) - np.pi
            numbers[0:2] = (body.x, body.y) + middle_m * along
            numbers[4] = np.degrees(body.yaw)
            rate = turn / elapsed_s if elapsed_s else 0.0
            numbers[6:8] = along * body.speed + middle_m * rate * np.array((-along[1], along[0]))
            numbers[11] = np.degrees(rate)
        if elapsed_s:
            numbers[ACCELERATION] = (numbers[VELOCITY] - before) / elapsed_s

    def place(self, position: Triple | FloatArray,
              rotation: Triple | FloatArray | None = None) -> None:
        """Move to a place; the speed stays."""
        # position: m.
        # rotation: pitch, yaw, roll, degrees; None to keep it.
        self.numbers[POSITION] = position
        if rotation is not None:
            self.numbers[ROTATION] = rotation
        if self.bicycle is not None:
            body = self.bicycle
            body.yaw = float(np.radians(self.numbers[4]))
            body.x = float(position[0] - body.wheelbase / 2 * np.cos(body.yaw))
            body.y = float(position[1] - body.wheelbase / 2 * np.sin(body.yaw))


@dataclass(slots=True)
class Light:
    """The state of a traffic light and how long it has lasted, s; durations by state."""

    state: int
    elapsed_s: float = 0.0
    is_frozen: bool = False
    durations: dict[int, float] = field(
        default_factory=lambda: {GREEN: GREEN_S, YELLOW: YELLOW_S, RED: RED_S})

    def advance(self, elapsed_s: float) -> None:
        """Let it change after its time: ``elapsed_s`` of simulated time, s."""
        if self.is_frozen or self.state not in self.durations:
            return
        self.elapsed_s += elapsed_s
        for _ in self.durations:
            if self.elapsed_s < self.durations[self.state]:
                return
            self.elapsed_s -= self.durations[self.state]
            self.state = {GREEN: YELLOW, YELLOW: RED, RED: GREEN}[self.state]
        self.elapsed_s = 0.0  # all durations are over: they may be 0


@dataclass(frozen=True, slots=True)
class EpisodeOptions:
    """The settings of an episode, as the client's type has them."""

    is_synchronous: bool = False
    # Simulated time of a step, s, None for the time that passes.
    fixed_delta_s: float | None = None
    others: tuple[object, ...] = (False, True, 0.01, 10, 0.0, True, 3000.0, 2000.0, True)

    def as_array(self) -> list[object]:
        """Return the array of the client's type."""
        no_rendering, *rest = self.others
        fixed = [False] if self.fixed_delta_s is None else [True, self.fixed_delta_s]
        return [self.is_synchronous, no_rendering, fixed, *rest]


class EmulatedWorld:
    """One world after another."""

    # period_s: expected time of a step without ``fixed_delta_s``, s.
    # delta_s: simulated time of the last step, s.

    def __init__(self, scene: MovingScene, period_s: float) -> None:
        self.scene = scene
        self.period_s = period_s
        self.settings = EpisodeOptions()
        self.frame = 0
        self.episode = 0
        self.is_over = False
        self.n_cues = self.n_tokens = 0
        self._ids = itertools.count(1)
        self._streams = itertools.count(2)
        self.begin_episode(settings=self.settings)

    def begin_episode(self, *, settings: EpisodeOptions) -> None:
        """Begin anew, with ``settings``; the next snapshot says that the map is new."""
        self.settings = settings
        self.episode += 1
        self.elapsed_s, self.delta_s = 0.0, self.period_s
        self.is_over = False
        self._is_new_map = True
        self.actors: dict[int, EpisodeActor] = {}
        self.lights: dict[int, Light] = {}
        self._by_row: list[EpisodeActor] = []
        self._bodies: tuple[Body, ...] | None = None
        self._row_ids: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._families: dict[str, IntArray] = {}
        self.spectator = self._add(Body('spectator', 'spectator'), np.zeros(N_NUMBERS))
        self.spectator.numbers[2] = 50.0
        self._now: SceneFrame | None = None
        self._take(self.scene.first())

    def _add(self, body: Body, numbers: FloatArray, row: int = -1) -> EpisodeActor:
        actor = EpisodeActor(next(self._ids), body, np.array(numbers), row)
        self.actors[actor.id] = actor
        if body.is_light:
            self.lights[actor.id] = _first_light(body)
        if body.family == 'sensor':
            actor.stream = next(self._streams)
        return actor

    def spawn(self, body: Body, position: Triple, rotation: Triple,
              parent: int = 0) -> EpisodeActor:
        """Add an actor of a client."""
        # position: m; from the parent, if there is one.
        # rotation: pitch, yaw, roll, degrees.
        # parent: id of the actor that it is attached to, 0 for none.
        actor = self._add(body, np.zeros(N_NUMBERS))
        actor.parent = parent
        if body.family == 'vehicle':
            actor.bicycle = Bicycle(0.0, 0.0, 0.0, 0.0, wheelbase=1.2 * body.extent[0])
        actor.mount = position, rotation
        actor.place(position, rotation)
        self._carry(actor)
        return actor

    def _carry(self, actor: EpisodeActor) -> None:
        if (parent := self.actors.get(actor.parent)) is None:
            return
        numbers, (position, rotation) = self.numbers(parent), actor.mount
        actor.place(numbers[POSITION] + axes_of_rotation(numbers[ROTATION]).T @ position,
                    numbers[ROTATION] + rotation)
        actor.numbers[VELOCITY] = numbers[VELOCITY]

    def destroy(self, actor: EpisodeActor) -> None:
        """Remove an ``actor`` and what is attached to it."""
        removed = {actor.id}
        # What is attached has a higher id.
        for other in self.actors.values():
            if other.parent in removed:
                removed.add(other.id)
        for number in removed:
            self.actors.pop(number, None)
            self.lights.pop(number, None)

    @property
    def n_spawned(self) -> int:
        """Return the number of actors that do not move by themselves."""
        return len(self.actors) - len(self._by_row)

    def actor_of_stream(self, stream: int) -> EpisodeActor | None:
        """Return the sensor of a ``stream``."""
        return next((actor for actor in self.actors.values() if actor.stream == stream), None)

    def drives(self, actor: EpisodeActor) -> bool:
        """Return whether a client can drive ``actor``."""
        return actor.row < 0 or actor.body.name == self.scene.ego

    def drive(self, actor: EpisodeActor, pedals: Pedals) -> None:
        """Drive an actor from the next step on."""
        actor.follows = None
        self._apply(actor, pedals)

    def _apply(self, actor: EpisodeActor, pedals: Pedals) -> None:
        actor.pedals = pedals
        if actor.row >= 0:
            self.scene.drive(pedals)

    def follow(self, actor: EpisodeActor, target: AckermannTarget) -> None:
        """Have an actor follow a speed from the next step on, until :meth:`drive`."""
        actor.follows = actor.follows or AckermannController()
        actor.follows.target = target

    def _press_pedals(self, elapsed_s: float) -> None:
        for actor in self.actors.values():
            if actor.follows is not None and elapsed_s > 0.0:
                numbers = self.numbers(actor)
                speed = float(axes_of_rotation(numbers[ROTATION])[0] @ numbers[VELOCITY])
                self._apply(actor, actor.follows.pedals(speed, actor.pedals, elapsed_s))

    def steer(self, actor: EpisodeActor) -> float:
        """Return how far the wheels of a vehicle are turned, -1..1, + = right."""
        if actor.row < 0 or self._now is None:
            return actor.pedals.steer
        return float(self._now.controls[actor.row, 2])

    def reset_lights(self, ids: Iterable[int] | None = None) -> None:
        """Begin the states of lights anew, those with these ``ids`` or all."""
        for number in self.lights if ids is None else ids:
            self.lights[number] = _first_light(self.actors[number].body)

    def step(self) -> None:
        """Advance by one step; only the frame counter advances in a scene that is over."""
        fixed_s = self.settings.fixed_delta_s
        self._press_pedals(fixed_s or self.delta_s)
        frame = None if self.is_over else self.scene.advance(fixed_s)
        delta_s = fixed_s or self.delta_s
        if frame is None:
            self.is_over = True
        else:
            if fixed_s is None and self._now is not None:
                delta_s = frame.time_s - self._now.time_s
            self._take(frame)
        self.frame += 1
        self.delta_s = delta_s
        self.elapsed_s += delta_s
        for actor in self.actors.values():
            if actor.row < 0:
                actor.advance(delta_s)
                self._carry(actor)
        for light in self.lights.values():
            light.advance(delta_s)

    def _take(self, frame: SceneFrame | None) -> None:
        """Take the bodies of a frame that are new, and remove those that it has no more."""
        self._now = frame
        if frame is None:
            return
        if frame.bodies is not self._bodies:
            known = {actor.body: actor for actor in self._by_row}
            rows = [known.pop(body, None) for body in frame.bodies]
            for actor in known.values():
                self.destroy(actor)
            self._by_row = [actor or self._add(body, frame.numbers[row])
                            for row, (body, actor) in enumerate(
                                zip(frame.bodies, rows, strict=True))]
            self._bodies = frame.bodies
            for row, actor in enumerate(self._by_row):
                actor.row = row
            self._families = {family: np.array(
                [row for row, body in enumerate(frame.bodies) if body.family == family], np.int64)
                for family in ('vehicle', 'walker')}
            self._row_ids = np.array([actor.id for actor in self._by_row], np.uint32)
        if frame.lights is not None:
            for actor in self._by_row:
                if actor.id in self.lights and not self.lights[actor.id].is_frozen:
                    self.lights[actor.id] = Light(int(frame.lights[actor.row]), durations={})

    def numbers(self, actor: EpisodeActor) -> FloatArray:
        """Return the numbers of an ``actor`` now, (15,) as in world_bodies."""
        if actor.row < 0 or self._now is None:
            return actor.numbers
        moving: FloatArray = self._now.numbers[actor.row]
        return moving

    def snapshot(self) -> bytes:
        """Return the message of this instant."""
        is_new_map, self._is_new_map = self._is_new_map, False
        return snapshot_bytes(
            self._rows(), episode=self.episode, frame=self.frame, elapsed_s=self.elapsed_s,
            delta_s=self.delta_s, is_new_map=is_new_map)

    def _rows(self) -> ActorRows:
        """Return all actors as the stream has them, those that move by themselves first."""
        others = [actor for actor in self.actors.values() if actor.row < 0]
        n_moving = len(self._by_row)
        rows = np.zeros(n_moving + len(others), ACTOR)
        rows['actor_state'] = ACTIVE
        if self._now is not None:
            self._put_moving(rows[:n_moving], self._now)
        for at, actor in enumerate(others, n_moving):
            rows[at]['id'], rows[at]['numbers'] = actor.id, actor.numbers
            if actor.body.family == 'vehicle':
                pedals = actor.pedals
                _put_vehicle(rows[at:at + 1], pedals.throttle, pedals.steer, pedals.brake)
                _put_levers(rows[at], pedals)
            elif actor.body.family == 'walker':
                direction, rows[at]['walking_speed'], rows[at]['jumps'] = actor.walk
                rows[at]['direction'] = direction
        return rows

    def _put_moving(self, rows: ActorRows, frame: SceneFrame) -> None:
        rows['id'], rows['numbers'] = self._row_ids, frame.numbers
        # Fields of different kinds of actors share their bytes: each only on its own rows.
        vehicles, walkers = self._families['vehicle'], self._families['walker']
        chosen = rows[vehicles]
        throttle, brake, steer = frame.controls[vehicles].T
        _put_vehicle(chosen, throttle, steer, brake)
        rows[vehicles] = chosen
        chosen, velocities = rows[walkers], frame.numbers[walkers, VELOCITY]
        speeds = np.linalg.norm(velocities, axis=1)
        chosen['walking_speed'] = speeds
        chosen['direction'] = velocities / np.where(speeds > 0.0, speeds, 1.0)[:, None]
        rows[walkers] = chosen
        for actor in self._by_row:
            row, body = actor.row, actor.body
            if (light := self.lights.get(actor.id)) is not None:
                _put_light(rows[row], body, light)
            elif body.name == self.scene.ego:
                _put_levers(rows[row], actor.pedals)


def _first_light(body: Body) -> Light:
    """Return a light at the begin of an episode: groups change in turn."""
    return Light(RED if body.group % 2 else GREEN)


def _put_vehicle(rows: ActorRows, throttle: FloatArray | float, steer: FloatArray | float,
                 brake: FloatArray | float) -> None:
    rows['throttle'], rows['steer'], rows['brake'] = throttle, steer, brake
    rows['speed_limit'] = SPEED_LIMIT_KMH
    rows['light_at_vehicle'] = GREEN
    rows['gear'] = 1


def _put_levers(row: np.void, pedals: Pedals) -> None:
    row['hand_brake'], row['reverse'] = pedals.hand_brake, pedals.reverse
    row['gear'] = -1 if pedals.reverse else 1


def _put_light(row: np.void, body: Body, light: Light) -> None:
    row['sign_id'], row['pole_index'] = body.sign_id.encode(), body.pole_index
    row['green_s'], row['yellow_s'], row['red_s'] = (
        light.durations.get(state, 0.0) for state in (GREEN, YELLOW, RED))
    row['elapsed_s'], row['is_frozen'], row['light'] = (
        light.elapsed_s, light.is_frozen, light.state)
