# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The calls of clients: each public method is one, by its name."""

from __future__ import annotations

from dataclasses import replace
import math
from typing import TypeVar

from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG, Pedals
from state_sensor_ros.emulator.carla9_server.ackermann import AckermannTarget
from state_sensor_ros.emulator.carla9_server.client_bytes import CallError, token_bytes
from state_sensor_ros.emulator.carla9_server.emulated_world import (
    EmulatedWorld,
    EpisodeActor,
    EpisodeOptions,
    Light,
    MAX_SPAWNED,
)
from state_sensor_ros.emulator.carla9_server.world_bodies import (
    BLUEPRINTS,
    Body,
    definitions,
    GREEN,
    POSITION,
    RED,
    ROTATION,
    Triple,
    UNKNOWN,
    VELOCITY,
    YELLOW,
)

# The release whose client library accepts this server.
VERSION = '0.9.16'
MAP_FOLDER, MAP_NAME = 'Carla/Maps', 'MockRing'
WORLD_STREAM = 1
# Class of environment objects by which a client asks for all.
_ANY = 255
# Longest step, s, and largest number in a call.
_LONGEST_STEP_S, _FAR = 10.0, 1e9
_MAX_TEXT = 1000
_FRONT_LEFT, _FRONT_RIGHT = 0, 1

Numbers = TypeVar('Numbers', bound=tuple[float, ...])
Transform = tuple[Triple, Triple]
Control = tuple[float, float, float, bool, bool, bool, int]
AckermannControl = tuple[float, float, float, float, float]
WalkerControl = tuple[Triple, float, bool]
Description = tuple[int, str, list[tuple[str, int, str]]]
# A list of one flag, or of a flag and a value.
OptionalNumber = list[bool | float]
EpisodeSettings = tuple[bool, bool, OptionalNumber, bool, float, int, float, bool, float, float,
                        bool]
Command = tuple[tuple[int, list[object]]]
# The last two: socket of the parent, and commands that follow.
SpawnCommand = tuple[Description, Transform, list[bool | int], int, str, list[Command]]


class Calls:

    def __init__(self, world: EmulatedWorld, port: int, version: str) -> None:
        self._world, self._port, self._version = world, port, version
        self._weather: list[float] = [0.0] * 14
        self._managers: dict[int, str] = {}

    # Episodes and settings.

    def version(self) -> str:
        return self._version

    def get_available_maps(self) -> list[str]:
        return [f'/Game/{MAP_FOLDER}/{MAP_NAME}']

    def load_new_episode(self, name: str, resets: bool, layers: int) -> None:
        if name.rpartition('/')[2] not in ('', MAP_NAME):
            raise CallError(f"Map '{name}' not found")
        self._world.begin_episode(settings=EpisodeOptions() if resets else self._world.settings)

    def get_episode_info(self) -> list[object]:
        return [self._world.episode, [token_bytes(WORLD_STREAM, self._port)]]

    def get_map_info(self) -> list[object]:
        return [f'{MAP_FOLDER}/{MAP_NAME}', self._world.scene.spawn_points]

    def get_map_data(self) -> str:
        return self._world.scene.xodr

    def get_required_files(self, folder: str) -> list[str]:
        return []

    def get_navigation_mesh(self) -> bytes:
        return b''

    def get_episode_settings(self) -> list[object]:
        return self._world.settings.as_array()

    def set_episode_settings(self, settings: EpisodeSettings) -> int:
        is_synchronous, no_rendering, fixed, *others = settings
        delta_s = fixed[1] if len(fixed) > 1 else 0.0
        if not 0.0 <= delta_s <= _LONGEST_STEP_S:
            raise CallError(f'fixed_delta_seconds: found {delta_s}; expected 0 to '
                            f'{_LONGEST_STEP_S:g}')
        self._world.settings = EpisodeOptions(is_synchronous, delta_s or None,
                                              (no_rendering, *others))
        self._world.n_cues = 0
        return self._world.frame

    def tick_cue(self) -> int:
        self._world.n_cues += 1
        return self._world.frame + self._world.n_cues

    def get_sensor_token(self, stream: int) -> list[object]:
        if stream != WORLD_STREAM and self._world.actor_of_stream(stream) is None:
            raise CallError(f'there is no stream {stream}')
        self._world.n_tokens += 1
        return [token_bytes(stream, self._port)]

    def get_weather_parameters(self) -> list[float]:
        return self._weather

    def set_weather_parameters(self, weather: list[float]) -> None:
        self._weather = (weather + [0.0] * 14)[:14]

    # Traffic managers, which run in clients.

    def is_traffic_manager_running(self, port: int) -> bool:
        return port in self._managers

    def get_traffic_manager_running(self, port: int) -> list[object]:
        return [self._managers[port], port] if port in self._managers else ['', 0]

    def add_traffic_manager_running(self, address: tuple[str, int]) -> bool:
        host, port = address
        return self._managers.setdefault(port, host) is host and len(self._managers) < 100

    def destroy_traffic_manager(self, port: int) -> bool:
        return self._managers.pop(port, None) is not None

    # Actors.

    def get_actor_definitions(self) -> list[object]:
        return definitions()

    def get_spectator(self) -> list[object]:
        return self._description(self._world.spectator)

    def get_actors_by_id(self, ids: list[int]) -> list[object]:
        actors = self._world.actors
        return [self._description(actors[number]) for number in dict.fromkeys(ids)
                if number in actors]

    def spawn_actor(self, description: Description, transform: Transform) -> list[object]:
        return self._spawn(description, transform, 0)

    def spawn_actor_with_parent(self, description: Description, transform: Transform, parent: int,
                                attachment: int, socket: str) -> list[object]:
        self._actor(parent)
        return self._spawn(description, transform, parent)

    def destroy_actor(self, number: int) -> bool:
        self._world.destroy(self._spawned(number))
        return True

    def get_actor_bounding_box(self, number: int) -> list[object]:
        return _box(self._actor(number).body)

    def set_actor_location(self, number: int, location: Triple) -> None:
        self._spawned(number).place(_finite(location))

    def set_actor_transform(self, number: int, transform: Transform) -> None:
        location, rotation = transform
        self._spawned(number).place(_finite(location), _finite(rotation))

    def set_walker_state(self, number: int, transform: Transform, speed: float) -> None:
        actor = self._spawned(number)
        actor.place(_finite(transform[0]), _finite(transform[1]))
        yaw = math.radians(transform[1][1])
        actor.walk = (math.cos(yaw), math.sin(yaw), 0.0), _finite((speed, 0.0, 0.0))[0], False

    def set_actor_target_velocity(self, number: int, velocity: Triple) -> None:
        actor = self._spawned(number)
        actor.numbers[VELOCITY] = _finite(velocity)
        if actor.bicycle is not None:
            yaw = actor.bicycle.yaw
            actor.bicycle.speed = velocity[0] * math.cos(yaw) + velocity[1] * math.sin(yaw)

    def set_actor_simulate_physics(self, number: int, is_on: bool) -> None:
        self._actor(number)

    def set_actor_enable_gravity(self, number: int, is_on: bool) -> None:
        self._actor(number)

    def set_actor_autopilot(self, number: int, is_on: bool) -> None:
        self._actor(number)

    # Vehicles and walkers.

    def apply_control_to_vehicle(self, number: int, control: Control) -> None:
        actor = self._actor(number, 'vehicle')
        if not self._world.drives(actor):
            raise CallError(f'actor {number} is driven by the traffic of the mock server')
        throttle, steer, brake, hand_brake, reverse, *_ = control
        throttle, steer, brake = _finite((throttle, steer, brake))
        self._world.drive(actor, Pedals(
            min(max(steer, -1.0), 1.0), min(max(throttle, 0.0), 1.0), min(max(brake, 0.0), 1.0),
            hand_brake, reverse))

    def apply_ackermann_control_to_vehicle(self, number: int, control: AckermannControl) -> None:
        actor = self._actor(number, 'vehicle')
        if not self._world.drives(actor):
            raise CallError(f'actor {number} is driven by the traffic of the mock server')
        self._world.follow(actor, AckermannTarget(*_finite(control)))

    def apply_control_to_walker(self, number: int, control: WalkerControl) -> None:
        direction, speed, jumps = control
        self._spawned(number, 'walker').walk = (
            _finite(direction), _finite((speed, 0.0, 0.0))[0], jumps)

    def get_physics_control(self, number: int) -> list[object]:
        actor = self._actor(number, 'vehicle')
        return _physics(actor.body, self._world.numbers(actor).tolist())

    def apply_physics_control(self, number: int, control: list[object]) -> None:
        self._actor(number, 'vehicle')

    def get_wheel_steer_angle(self, number: int, wheel: int) -> float:
        """Return the angle of a wheel, degrees, positive to the right."""
        actor = self._actor(number, 'vehicle')
        return self._world.steer(actor) * FULL_LOCK_DEG * (wheel in (_FRONT_LEFT, _FRONT_RIGHT))

    def get_vehicle_light_state(self, number: int) -> list[int]:
        return [self._actor(number, 'vehicle').lights]

    def set_vehicle_light_state(self, number: int, state: tuple[int]) -> None:
        self._actor(number, 'vehicle').lights, = state

    def get_vehicle_light_states(self) -> list[tuple[int, int]]:
        return [(actor.id, actor.lights) for actor in self._world.actors.values()
                if actor.body.family == 'vehicle']

    # Traffic lights.

    def set_traffic_light_state(self, number: int, state: int) -> None:
        light = self._light(number)
        if not RED <= state <= UNKNOWN:
            raise CallError(f'there is no state {state} of a traffic light')
        light.state, light.elapsed_s = state, 0.0

    def set_traffic_light_green_time(self, number: int, duration_s: float) -> None:
        self._set_duration(number, GREEN, duration_s)

    def set_traffic_light_yellow_time(self, number: int, duration_s: float) -> None:
        self._set_duration(number, YELLOW, duration_s)

    def set_traffic_light_red_time(self, number: int, duration_s: float) -> None:
        self._set_duration(number, RED, duration_s)

    def freeze_traffic_light(self, number: int, is_frozen: bool) -> None:
        self._light(number).is_frozen = is_frozen

    def freeze_all_traffic_lights(self, is_frozen: bool) -> None:
        for light in self._world.lights.values():
            light.is_frozen = is_frozen

    def reset_all_traffic_lights(self) -> None:
        self._world.reset_lights()

    def reset_traffic_light_group(self, number: int) -> None:
        self._world.reset_lights(self.get_group_traffic_lights(number))

    def get_group_traffic_lights(self, number: int) -> list[int]:
        self._light(number)
        actors = self._world.actors
        group = actors[number].body.group
        return [other for other in self._world.lights
                if other == number or (actors[other].body.group == group and group >= 0)]

    def get_light_boxes(self, number: int) -> list[object]:
        self._light(number)
        return [_box(self._world.actors[number].body)]

    # The level.

    def get_all_level_BBs(self, label: int) -> list[object]:  # noqa: N802
        return [box for _, box, _, _, kind in self._world.scene.environment
                if label in (_ANY, kind)]

    def get_environment_objects(self, label: int) -> list[object]:
        return [list(thing) for thing in self._world.scene.environment
                if label in (_ANY, thing[4])]

    def query_lights_state(self, client: str) -> list[object]:
        return []

    # What calls have in common.

    def _actor(self, number: int, family: str = '') -> EpisodeActor:
        actor = self._world.actors.get(number)
        if actor is None:
            raise CallError(f'there is no actor {number}')
        if family and actor.body.family != family:
            raise CallError(f'actor {number} is not of the kind {family}: {actor.body.type_id}')
        return actor

    def _spawned(self, number: int, family: str = '') -> EpisodeActor:
        actor = self._actor(number, family)
        if actor.row >= 0:
            raise CallError(f'actor {number} is moved by the mock server')
        return actor

    def _light(self, number: int) -> Light:
        self._actor(number)
        if number not in self._world.lights:
            raise CallError(f'actor {number} is not a traffic light')
        return self._world.lights[number]

    def _set_duration(self, number: int, state: int, duration_s: float) -> None:
        self._light(number).durations[state] = max(_finite((duration_s, 0.0, 0.0))[0], 0.0)

    def _spawn(self, description: Description, transform: Transform,
               parent: int) -> list[object]:
        _, name, given = description
        if any(len(key) + len(value) > _MAX_TEXT for key, _, value in given):
            raise CallError(f'an attribute has more than {_MAX_TEXT} letters')
        if (body := BLUEPRINTS.get(name)) is None:
            raise CallError(f'Spawn failed because of invalid actor description: {name}')
        if self._world.n_spawned >= MAX_SPAWNED:
            raise CallError(f'the mock server has {MAX_SPAWNED} spawned actors at most')
        chosen = {key: (key, kind, value) for key, kind, value in body.attributes}
        chosen.update((row[0], row) for row in given)
        body = replace(body, attributes=tuple(chosen.values()))
        return self._description(self._world.spawn(
            body, _finite(transform[0]), _finite(transform[1]), parent))

    def _description(self, actor: EpisodeActor) -> list[object]:
        body = actor.body
        token = token_bytes(actor.stream, self._port) if actor.stream else b''
        return [actor.id, actor.parent, [actor.id, body.type_id, body.attributes], _box(body),
                bytes(body.semantic_tags), token]


def _box(body: Body) -> list[object]:
    return [body.center, body.extent, body.tilt, 0]


def _finite(numbers: Numbers) -> Numbers:
    """Return numbers from a client; raise CallError if one is not finite, or far off."""
    if not all(-_FAR < number < _FAR for number in numbers):
        raise CallError(f'found {numbers}; expected finite numbers')
    return numbers


def _physics(body: Body, numbers: list[float]) -> list[object]:
    """Return the client's type of a vehicle's physics, with its wheels in centimeters."""
    x, y, z = numbers[POSITION]
    yaw = math.radians(numbers[ROTATION][1])
    n_wheels = int(body.attribute('number_of_wheels') or 4)
    half_m, aside = 0.6 * body.extent[0], 0.8 * body.extent[1] * (n_wheels > 2)
    wheels: list[object] = []
    for ahead, right in ((half_m, -aside), (half_m, aside), (-half_m, -aside),
                         (-half_m, aside))[::1 if n_wheels > 2 else 2]:
        place = (100.0 * (x + ahead * math.cos(yaw) - right * math.sin(yaw)),
                 100.0 * (y + ahead * math.sin(yaw) + right * math.cos(yaw)), 100.0 * (z + 0.35))
        wheels.append([3.5, 0.25, FULL_LOCK_DEG if ahead > 0 else 0.0, 35.0, 1500.0, 3000.0, 2.0,
                       17.0, 1000.0, place])
    return [[(0.0, 500.0), (5000.0, 500.0)], 5000.0, 1.0, 0.15, 2.0, 0.35, True, 0.5, 10.0, 4.0,
            [(1.0, 0.5, 0.65)], 1500.0, 0.3, (0.0, 0.0, 0.0), [(0.0, 1.0), (120.0, 1.0)], wheels,
            False]
