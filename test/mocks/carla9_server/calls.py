# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The calls of clients: each public method is one, by its name."""

from dataclasses import replace
import struct

from carla9_server.bodies import ANGULAR_VELOCITY, BLUEPRINTS, VELOCITY
from carla9_server.world import EpisodeOptions, Target
from state_sensor_ros.emulator.bicycle import FULL_LOCK_DEG, Pedals

# The release whose client library accepts this server.
VERSION = '0.9.16'
MAP_FOLDER, MAP_NAME = 'Carla/Maps', 'MockRing'
WORLD_STREAM = 1
# Class of environment objects by which a client asks for all.
_ANY = 255
_TOKEN = struct.Struct('<IHBB16x')
_TCP, _ADDRESS_OF_THE_SERVER = 1, 0


class CallError(Exception):
    """A call that fails; the text is the reply."""


class Calls:
    """``port`` is that of the streams."""

    # Their failure has another form than that of a call with a value.
    WITHOUT_VALUE = frozenset((
        'load_new_episode', 'apply_control_to_vehicle', 'apply_ackermann_control_to_vehicle',
        'set_vehicle_light_state', 'set_actor_transform', 'set_actor_target_velocity',
        'set_actor_target_angular_velocity'))

    def __init__(self, world, port, version):
        self._world, self._port, self._version = world, port, version

    # Episodes and settings.

    def version(self):
        return self._version

    def get_available_maps(self):
        return [f'/Game/{MAP_FOLDER}/{MAP_NAME}']

    def load_new_episode(self, name, resets, layers):
        if name.rpartition('/')[2] not in ('', MAP_NAME):
            raise CallError(f"Map '{name}' not found")
        self._world.begin_episode(settings=EpisodeOptions() if resets else self._world.settings)

    def get_episode_info(self):
        return [self._world.episode, [self._token(WORLD_STREAM)]]

    def get_map_info(self):
        return [f'{MAP_FOLDER}/{MAP_NAME}', self._world.scene.spawn_points]

    def get_map_data(self):
        return self._world.scene.xodr

    def get_required_files(self, folder):
        return []

    def get_navigation_mesh(self):
        return b''

    def get_episode_settings(self):
        return self._world.settings.as_array()

    def set_episode_settings(self, settings):
        is_synchronous, no_rendering, fixed, *others = settings
        delta_s = fixed[1] if len(fixed) > 1 else 0.0
        self._world.settings = EpisodeOptions(is_synchronous, delta_s or None,
                                              (no_rendering, *others))
        self._world.n_cues = 0
        return self._world.frame

    def tick_cue(self):
        self._world.n_cues += 1
        return self._world.frame + self._world.n_cues

    def get_sensor_token(self, stream):
        self._world.n_tokens += 1
        return [self._token(stream)]

    def _token(self, stream):
        """Return the token of a stream, on the address by which the client reached the server."""
        return _TOKEN.pack(stream, self._port, _TCP, _ADDRESS_OF_THE_SERVER)

    # Actors.

    def get_actor_definitions(self):
        return [[uid, body.type_id, body.type_id.replace('.', ','),
                 [[name, kind, value, [], True, False] for name, kind, value in body.attributes]]
                for uid, body in enumerate(BLUEPRINTS.values(), 1)]

    def get_spectator(self):
        return _description(self._world.spectator)

    def get_actors_by_id(self, ids):
        actors = self._world.actors
        return [_description(actors[number]) for number in dict.fromkeys(ids) if number in actors]

    def spawn_actor(self, description, transform):
        _, name, given = description
        if (body := BLUEPRINTS.get(name)) is None:
            raise CallError(f'Spawn failed because of invalid actor description: {name}')
        if not self._world.is_free(transform[0]):
            raise CallError('Spawn failed because of collision at spawn position')
        chosen = {key: (key, kind, value) for key, kind, value in (*body.attributes, *given)}
        return _description(self._world.spawn(
            replace(body, attributes=tuple(chosen.values())), *transform))

    def destroy_actor(self, number):
        self._world.destroy(self._free(number))
        return True

    def set_actor_transform(self, number, transform):
        self._world.place(self._movable(number), *transform)

    def set_actor_target_velocity(self, number, velocity):
        self._world.push(self._movable(number), VELOCITY, velocity)

    def set_actor_target_angular_velocity(self, number, rates):
        self._world.push(self._movable(number), ANGULAR_VELOCITY, rates)

    def get_actor_bounding_box(self, number):
        return _box(self._actor(number).body)

    # Vehicles.

    def apply_control_to_vehicle(self, number, control):
        actor = self._movable(number)
        throttle, steer, brake, hand_brake, reverse, is_manual, gear = control
        actor.first_gear = is_manual and abs(gear) == 1
        self._world.drive(actor, Pedals(steer, throttle, brake, hand_brake, reverse))

    def apply_ackermann_control_to_vehicle(self, number, control):
        self._world.follow(self._movable(number), Target(*control))

    def get_wheel_steer_angle(self, number, wheel):
        """Return the angle of a wheel, degrees, positive to the right; 0 and 1 are in front."""
        return self._world.steer(self._vehicle(number)) * FULL_LOCK_DEG * (wheel < 2)

    def get_vehicle_light_state(self, number):
        return [self._vehicle(number).lights]

    def set_vehicle_light_state(self, number, state):
        [self._vehicle(number).lights] = state

    def get_vehicle_light_states(self):
        return [(actor.id, actor.lights) for actor in self._world.actors.values()
                if actor.body.family == 'vehicle']

    # The level.

    def get_environment_objects(self, label):
        return [thing for thing in self._world.scene.environment if label in (_ANY, thing[4])]

    def query_lights_state(self, client):
        return []

    # What calls have in common.

    def _actor(self, number):
        if number not in self._world.actors:
            raise CallError(f'there is no actor {number}')
        return self._world.actors[number]

    def _vehicle(self, number):
        actor = self._actor(number)
        if actor.body.family != 'vehicle':
            raise CallError(f'actor {number} is no vehicle: {actor.body.type_id}')
        return actor

    def _movable(self, number):
        return self._free(number, self._world.scene.ego)

    def _free(self, number, ego=None):
        actor = self._actor(number)
        if actor.row >= 0 and actor.body.name != ego:
            raise CallError(f'actor {number} is moved by the mock server')
        return actor


def _description(actor):
    body = actor.body
    return [actor.id, 0, [actor.id, body.type_id, body.attributes], _box(body),
            bytes(body.semantic_tags), b'']


def _box(body):
    return [body.center, body.extent, body.tilt, 0]
