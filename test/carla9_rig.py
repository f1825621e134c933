# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A mock server of CARLA 0.9 in the process of a test."""

from carla9_server.scenes import TrafficScene
from carla9_server.server import WorldOptions, WorldServer
import numpy as np


class Rig(WorldServer):
    """It remembers its numbers by frame, and does what a test wants in a step."""

    def __init__(self, n_vehicles=8, n_objects=4, port=0, seed=3, **options):
        super().__init__(TrafficScene(n_vehicles, n_objects, seed=seed),
                         WorldOptions(port=port, **options))
        self.history, self.todo = {}, []
        self._step_of_world = self.world.step
        self.world.step = self.step

    def step(self):
        while self.todo:
            self.todo.pop(0)()
        self._step_of_world()
        self.history[self.world.frame] = {number: np.array(self.world.numbers(actor))
                                          for number, actor in self.world.actors.items()}

    def do(self, action):
        """Do something in the next step, in the thread of the server."""
        self.todo.append(action)

    @property
    def ego(self):
        return next(actor for actor in list(self.world.actors.values())
                    if actor.body.attribute('role_name') == 'hero')
