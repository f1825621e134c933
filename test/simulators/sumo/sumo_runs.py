# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Small scenarios of SUMO, its own account of them (FCD output), and the packets of a source."""

from functools import cache
import random
import threading
from xml.etree import ElementTree

from budgets import AWAIT_S
import numpy as np
from paths import ROOT

GRID = ROOT / 'resource' / 'sumo' / 'grid.sumocfg'
HILL = ROOT / 'test' / 'data' / 'sumo' / 'hill.net.xml'
TYPES = """
  <vType id="car" vClass="passenger" length="4.6" width="1.85" height="1.5"/>
  <vType id="hauler" vClass="truck" length="9.5" width="2.5" height="3.4"/>
  <vType id="bike" vClass="bicycle"/>
  <vType id="walker" vClass="pedestrian"/>"""


def write_hill(folder):
    """Write a scenario on slopes of 6 % and return its configuration."""
    (folder / 'hill.rou.xml').write_text(f"""<routes>{TYPES}
  <route id="over" edges="up down turn"/>
  <flow id="car" type="car" route="over" begin="0" end="60" period="3"/>
  <flow id="hauler" type="hauler" route="over" begin="1" end="60" period="9"/>
</routes>""")
    return _write(folder, 'hill', HILL)


@cache
def edges_of(network):
    import sumolib.net
    return [edge.getID() for edge in sumolib.net.readNet(str(network)).getEdges()]


def write_crowd(folder, n_vehicles=300):
    """Write a scenario with vehicles, bicycles and pedestrians at once, and return it."""
    network = GRID.with_name('grid.net.xml.gz')
    edges = edges_of(network)
    dice = random.Random(4)
    trips = []
    for i in range(n_vehicles):
        start, end = dice.sample(edges, 2)
        kind = dice.choices(('car', 'hauler', 'bike'), (8, 1, 1))[0]
        trips.append(f'<trip id="{kind}{i}" type="{kind}" depart="{i // 50 * 0.05:.2f}" '
                     f'from="{start}" to="{end}" departLane="random" departPos="random_free"/>')
    for i in range(30):
        start, end = dice.sample(edges, 2)
        trips.append(f'<person id="walker{i}" type="walker" depart="1"><walk from="{start}" '
                     f'to="{end}"/></person>')
    (folder / 'crowd.rou.xml').write_text(
        f'<routes>{TYPES}\n' + '\n'.join(trips) + '\n</routes>')
    return _write(folder, 'crowd', network)


def _write(folder, name, network):
    config = folder / f'{name}.sumocfg'
    config.write_text(f"""<configuration><input><net-file value="{network}"/>
  <route-files value="{name}.rou.xml"/></input>
  <processing><lanechange.duration value="3"/></processing></configuration>""")
    return config


def read_fcd(path):
    """Return SUMO's own account: the elements of each step by id, by time."""
    account = {}
    for _, element in ElementTree.iterparse(path):
        if element.tag == 'timestep':
            account[round(float(element.get('time')), 3)] = {
                actor.get('id'): actor for actor in element}
    return account


def fronts_of(frame):
    """Return the middles of the front bumpers, as SUMO says them, and the directions."""
    x, y, z, w = frame.orientation_xyzw.T
    forward = np.stack((1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)), 1)
    return frame.position_xyz + forward * frame.boxes.size_xyz[:, :1] / 2, forward


class Collector:
    """Takes the packets of a source in a thread."""

    def __init__(self, source):
        self.packets = []
        self._source = source
        self._thread = threading.Thread(target=self._collect)
        self._thread.start()

    def _collect(self):
        for packet in self._source.frames():
            self.packets.append(packet)

    @property
    def times(self):
        return [packet.game_time for packet in self.packets]

    def close(self):
        self._source.close()
        self._thread.join(AWAIT_S)
        assert not self._thread.is_alive()
