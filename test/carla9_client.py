# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""CARLA's own client as a program: `PORT WORD…` calls a function, whose result is JSON."""

import faulthandler
import json
import os
import sys

TIMEOUT_S = 20.0


def xyz(vector):
    return [vector.x, vector.y, vector.z]


def transform_of(transform):
    rotation = transform.rotation
    return [*xyz(transform.location), rotation.pitch, rotation.yaw, rotation.roll]


def state_of(actor):
    """Return the numbers of an actor's snapshot, as the server has them."""
    return [*transform_of(actor.get_transform()), *xyz(actor.get_velocity()),
            *xyz(actor.get_angular_velocity()), *xyz(actor.get_acceleration())]


def description_of(actor):
    """Return what of an actor stays the same."""
    box = getattr(actor, 'bounding_box', None)
    return {'type': actor.type_id, 'attributes': actor.attributes,
            'tags': list(actor.semantic_tags), 'box': box and [*xyz(box.location),
                                                               *xyz(box.extent)]}


def axes_of(transform):
    return [xyz(transform.get_forward_vector()), xyz(transform.get_right_vector()),
            xyz(transform.get_up_vector())]


def synchronous(world, delta_s):
    settings = world.get_settings()
    settings.synchronous_mode, settings.fixed_delta_seconds = True, delta_s
    world.apply_settings(settings)


def look(client, n_ticks):
    """Tick, then return the snapshot and the actors."""
    world = client.get_world()
    synchronous(world, 0.05)
    frames = [world.tick() for _ in range(int(n_ticks))]
    snapshot = world.get_snapshot()
    stamp = snapshot.timestamp
    return {'frames': frames, 'frame': snapshot.frame, 'elapsed_s': stamp.elapsed_seconds,
            'delta_s': stamp.delta_seconds,
            'states': {actor.id: state_of(actor) for actor in snapshot},
            'axes': {actor.id: axes_of(actor.get_transform()) for actor in snapshot},
            'actors': {actor.id: description_of(actor) for actor in world.get_actors()}}


def main():
    # A crash in the library names the thread.
    faulthandler.enable()
    import carla
    client = carla.Client('127.0.0.1', int(sys.argv[1]))
    client.set_timeout(TIMEOUT_S)
    result = globals()[sys.argv[2]](client, *sys.argv[3:])
    sys.stdout.write(json.dumps(result))
    sys.stdout.flush()
    # The threads of the library may outlast their world, and crash at the end of the program.
    os._exit(0)


if __name__ == '__main__':
    main()
