# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The world: its episodes, actors, traffic lights, settings and snapshots."""

from dataclasses import dataclass, field, replace
import itertools
import struct
import time

import numpy as np

from carla9_server.bodies import (  # noqa: I100
    axes_of_rotation,
    Body,
    GREEN,
    N_NUMBERS,
    POSITION,
    RED,
    ROTATION,
    VELOCITY,
    YELLOW,
)
from state_sensor_ros.emulator.bicycle import FULL_BRAKE, FULL_LOCK_DEG, FULL_THROTTLE, Pedals

# Duration of the states of a traffic light, s.
GREEN_S, YELLOW_S, RED_S = 10.0, 3.0, 7.0
# Place of the world's observer in the client's list of sensors.
_OBSERVER = 17
# A snapshot is its length, the header of any sensor, that of the world, and 119 bytes for each
# actor, whose last 54 depend on its kind. All is little endian and packed.
_HEADER = struct.Struct('<IQQd6fQdf3iI')
_STATE = 65
_FIELDS = {
    'id': ('<u4', 0), 'actor_state': ('u1', 4), 'numbers': ('(15,)<f4', 5),
    # A vehicle.
    'throttle': ('<f4', _STATE), 'steer': ('<f4', _STATE + 4), 'brake': ('<f4', _STATE + 8),
    'hand_brake': ('?', _STATE + 12), 'reverse': ('?', _STATE + 13), 'gear': ('<i4', _STATE + 15),
    'speed_limit': ('<f4', _STATE + 19), 'light_at_vehicle': ('u1', _STATE + 23),
    # A traffic light, and its first field a sign.
    'sign_id': ('S32', _STATE), 'green_s': ('<f4', _STATE + 32),
    'yellow_s': ('<f4', _STATE + 36), 'red_s': ('<f4', _STATE + 40),
    'elapsed_s': ('<f4', _STATE + 44), 'light': ('u1', _STATE + 53)}
ACTOR = np.dtype({'names': list(_FIELDS), 'formats': [kind for kind, _ in _FIELDS.values()],
                  'offsets': [at for _, at in _FIELDS.values()], 'itemsize': 119})
_ACTIVE = 1
_RESTS = 0.15  # speed that the friction of a body that stands ends, m/s
_SPACE_M = 5.0
_SPEED_GAIN = 2.0  # of :class:`Target`, 1/s


@dataclass(frozen=True)
class Target:
    """A speed to follow, as the client's VehicleAckermannControl."""

    steering_angle: float  # rad, + = right
    steering_rate: float
    speed: float  # m/s, negative backward
    acceleration: float  # largest, m/s2
    jerk: float

    def pedals(self, speed):
        """Return the pedals that lead from a speed toward this one."""
        is_reverse = self.speed < 0.0
        wanted, speed = abs(self.speed), -speed if is_reverse else speed
        most = self.acceleration or FULL_THROTTLE
        gain = min(max(_SPEED_GAIN * (wanted - speed), -FULL_BRAKE), most)
        return Pedals(self.steering_angle / np.radians(FULL_LOCK_DEG),
                      max(gain / FULL_THROTTLE, 0.0), max(-gain / FULL_BRAKE, 0.0) or
                      float(wanted == 0.0), reverse=is_reverse)


@dataclass(eq=False)
class EpisodeActor:
    id: int  # noqa: A003
    body: Body
    numbers: np.ndarray  # (15,) float64, columns as in bodies, unused of one that moves by itself
    row: int = -1  # its row in the frames of the scene, -1 of a spawned one, which stays in place
    lights: int = 0  # of a vehicle
    pedals: Pedals = field(default_factory=Pedals)
    first_gear: bool = False  # whether a client has shifted to it
    follows: Target | None = None
    is_awake: bool = False


@dataclass
class Light:
    """The state of a traffic light and how long it has lasted, s; durations by state."""

    state: int
    elapsed_s: float = 0.0
    durations: dict = field(default_factory=lambda: {GREEN: GREEN_S, YELLOW: YELLOW_S, RED: RED_S})

    def advance(self, elapsed_s):
        """Let it change after its time: ``elapsed_s`` of simulated time, s."""
        if self.state not in self.durations:
            return
        self.elapsed_s += elapsed_s
        if self.elapsed_s >= self.durations[self.state]:
            self.elapsed_s -= self.durations[self.state]
            self.state = {GREEN: YELLOW, YELLOW: RED, RED: GREEN}[self.state]


@dataclass(frozen=True)
class EpisodeOptions:
    """The settings of an episode, as the client's type has them."""

    is_synchronous: bool = False
    fixed_delta_s: float | None = None  # simulated time of a step, s, None if it is not fixed
    others: tuple = (False, True, 0.01, 10, 0.0, True, 3000.0, 2000.0, True)

    def as_array(self):
        no_rendering, *rest = self.others
        fixed = [False] if self.fixed_delta_s is None else [True, self.fixed_delta_s]
        return [self.is_synchronous, no_rendering, fixed, *rest]


class EmulatedWorld:
    """
    One world after another.

    :param period_s: expected time of a step without ``fixed_delta_s``, s.
    :ivar delta_s: simulated time of the last step, s.
    :ivar sleeps: whether a body that stands has to be woken, as of 0.10.
    :ivar wakes: velocities of the ego that clients have set.
    :ivar least_throttle: that moves the ego from rest in first gear, 0 if any does in any gear.
    :ivar n_cues: steps that clients have asked for; ``n_tokens`` streams that they will open.
    """

    def __init__(self, scene, period_s):
        self.scene, self.period_s = scene, period_s
        self.sleeps, self.wakes, self.least_throttle = False, [], 0.0
        self.frame = self.episode = self.n_cues = self.n_tokens = 0
        self._ids = itertools.count(1)
        self.begin_episode(settings=EpisodeOptions())

    def begin_episode(self, *, settings):
        """Begin anew; the next snapshot says that the map is new."""
        self.settings = settings
        self.episode += 1
        self.elapsed_s, self.delta_s = 0.0, self.period_s
        self.is_over, self._is_new_map = False, True
        self.actors, self.lights, self._by_row, self._bodies = {}, {}, [], None
        self.spectator = self._add(Body('spectator', 'spectator'), np.zeros(N_NUMBERS))
        self._now = None
        self._take(self.scene.first())

    def _add(self, body, numbers, row=-1):
        actor = EpisodeActor(next(self._ids), body, np.array(numbers), row)
        self.actors[actor.id] = actor
        if body.is_light:
            # Groups of two change in turn.
            self.lights[actor.id] = Light(RED if len(self.lights) // 2 % 2 else GREEN)
        return actor

    def spawn(self, body, position, rotation):
        """Add an actor of a client, which stays where it is put until it is pushed."""
        actor = self._add(body, np.zeros(N_NUMBERS))
        actor.numbers[POSITION], actor.numbers[ROTATION] = position, rotation
        return actor

    def destroy(self, actor):
        self.actors.pop(actor.id, None)
        self.lights.pop(actor.id, None)

    def drive(self, actor, pedals):
        """Drive an actor from the next step on."""
        actor.follows = None
        self._apply(actor, pedals)

    def _apply(self, actor, pedals):
        actor.pedals = pedals
        if actor.row >= 0:
            self.scene.drive(replace(pedals, hand_brake=pedals.hand_brake or self._stays(actor)))

    def _stays(self, actor):
        """Return whether no throttle moves an actor that stands."""
        if np.linalg.norm(self.numbers(actor)[VELOCITY]) > _RESTS:
            return False
        actor.is_awake &= actor.pedals.throttle > 0.0
        is_weak = actor.pedals.throttle < self.least_throttle or not actor.first_gear
        return (self.sleeps and not actor.is_awake) or (self.least_throttle > 0.0 and is_weak)

    def is_free(self, position):
        """Return whether no body is so near to a place that another one may touch it."""
        return all(np.linalg.norm(self.numbers(other)[POSITION] - position) > _SPACE_M
                   for other in self.actors.values() if any(other.body.extent))

    def place(self, actor, position, rotation):
        """Put an actor elsewhere, which keeps its velocity; the next step shows it."""
        if actor.row >= 0:
            self.scene.place(position, rotation[1])
        else:
            actor.numbers[POSITION], actor.numbers[ROTATION] = position, rotation

    def push(self, actor, columns, values):
        """Set a velocity of an actor, which wakes it; the ego turns as its path does."""
        actor.is_awake = True
        if actor.row < 0:
            actor.numbers[columns] = values
        elif columns is VELOCITY:
            self.wakes.append(values)
            self.scene.push(values)

    def follow(self, actor, target):
        """Have an actor follow a speed from the next step on, until :meth:`drive`."""
        actor.follows = target

    def steer(self, actor):
        """Return how far the wheels of a vehicle are turned, -1..1, + = right."""
        return actor.pedals.steer if actor.row < 0 else float(self._now.controls[actor.row, 2])

    def step(self):
        """Advance by one step; only the frame counter advances in a scene that is over."""
        for actor in self.actors.values():
            if actor.follows is not None:
                numbers = self.numbers(actor)
                speed = float(axes_of_rotation(numbers[ROTATION])[0] @ numbers[VELOCITY])
                self._apply(actor, actor.follows.pedals(speed))
        fixed_s = self.settings.fixed_delta_s
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
        for light in self.lights.values():
            light.advance(delta_s)
        for actor in self.actors.values():
            # Unused of those that move by themselves.
            actor.numbers[POSITION] += delta_s * actor.numbers[VELOCITY]

    def _take(self, frame):
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
            self._row_ids = np.array([actor.id for actor in self._by_row], np.uint32)
        if frame.lights is not None:
            for actor in self._by_row:
                if actor.id in self.lights:
                    self.lights[actor.id] = Light(int(frame.lights[actor.row]), durations={})

    def numbers(self, actor):
        """Return the numbers of an ``actor`` now, (15,) as in bodies."""
        return actor.numbers if actor.row < 0 else self._now.numbers[actor.row]

    def snapshot(self):
        """Return the message of this instant."""
        rows = self._rows()
        is_new_map, self._is_new_map = self._is_new_map, False
        return _HEADER.pack(
            _HEADER.size - 4 + rows.nbytes, _OBSERVER, self.frame, self.elapsed_s,
            0, 0, 0, 0, 0, 0, self.episode, time.monotonic(), self.delta_s, 0, 0, 0,
            int(is_new_map)) + rows.tobytes()

    def _rows(self):
        """Return all actors as the stream has them, those that move by themselves first."""
        others = [actor for actor in self.actors.values() if actor.row < 0]
        actors, n_moving = [*self._by_row, *others], len(self._by_row)
        rows = np.zeros(len(actors), ACTOR)
        rows['actor_state'] = _ACTIVE
        controls = np.array([(actor.pedals.throttle, actor.pedals.brake, actor.pedals.steer)
                             for actor in actors])
        if self._now is not None:
            rows['id'][:n_moving], rows['numbers'][:n_moving] = self._row_ids, self._now.numbers
            controls[:n_moving] = self._now.controls
        for at, actor in enumerate(others, n_moving):
            rows[at]['id'], rows[at]['numbers'] = actor.id, actor.numbers
        # Fields of different kinds of actors share their bytes: each only on its own rows.
        vehicles = [row for row, actor in enumerate(actors) if actor.body.family == 'vehicle']
        chosen = rows[vehicles]
        chosen['throttle'], chosen['brake'], chosen['steer'] = controls[vehicles].T
        chosen['speed_limit'], chosen['light_at_vehicle'] = 90.0, GREEN
        pedals = [actors[row].pedals for row in vehicles]
        chosen['hand_brake'] = [each.hand_brake for each in pedals]
        chosen['reverse'] = [each.reverse for each in pedals]
        chosen['gear'] = np.where(chosen['reverse'], -1, 1)
        rows[vehicles] = chosen
        for at, actor in enumerate(actors):
            if (light := self.lights.get(actor.id)) is not None:
                _put_light(rows[at], actor.body.sign_id, light)
        return rows


def _put_light(row, sign_id, light):
    row['sign_id'] = sign_id.encode()
    row['green_s'], row['yellow_s'], row['red_s'] = (
        light.durations.get(state, 0.0) for state in (GREEN, YELLOW, RED))
    row['elapsed_s'], row['light'] = light.elapsed_s, light.state
