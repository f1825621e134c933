# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Runs SUMO in this process, has its vehicles change lanes, and pickles the frames of all steps.

Arguments: network, file for the frames, file for the FCD output, further arguments of SUMO.
Vehicles: `car` and `bus` change lanes at 8 m/s, at standing and in a bend; `parked` parks beside
its lane; `train` is 60 m long; the vehicle `1` is there before the person `1`, the person `2`
before the vehicle `2`; the other people walk, up slopes too.
"""

from dataclasses import replace
from pathlib import Path
import pickle
import sys

STEP_S = 0.05
N_STEPS = 1400
# Steps at which both vehicles go to another lane: at 8 m/s, standing, and again at 8 m/s.
CHANGES = {100: 2, 300: 3, 420: 2, 600: 3, 700: 2, 800: 1}
STANDS, GOES_ON = 200, 480
ROUTES = """<routes>
  <vType id="car" vClass="passenger" length="4.6" lcMaxSpeedLatStanding="1" maxSpeedLat="1"/>
  <vType id="bus" vClass="bus" length="12" lcMaxSpeedLatStanding="1" maxSpeedLat="1"/>
  <vType id="train" vClass="tram" length="60" maxSpeed="8"/>
  <route id="all" edges="ab bc cd"/>
  <vehicle id="1" type="car" route="all" depart="0" departLane="3" departPos="200"/>
  <vehicle id="car" type="car" route="all" depart="0" departLane="1" departPos="60"/>
  <vehicle id="bus" type="bus" route="all" depart="0" departLane="1" departPos="30"/>
  <vehicle id="parked" type="car" route="all" depart="0" departLane="1" departPos="100">
    <stop lane="ab_1" endPos="130" duration="20" parking="true"/></vehicle>
  <person id="waits" depart="0" departPos="10"><walk edges="ab" arrivalPos="14"/>
    <stop edge="ab" duration="15" endPos="14"/><walk edges="ab" arrivalPos="30"/></person>
  <person id="2" depart="1" departPos="280"><walk from="ab" to="be"/></person>
  <person id="1" depart="2" departPos="270"><walk from="ab" to="cd"/></person>
  <personFlow id="walker" begin="2" end="30" number="12" departPos="285"><walk from="ab" to="eb"/>
  </personFlow>
  <vehicle id="2" type="car" route="all" depart="3" departLane="3" departPos="100"/>
  <vehicle id="train" type="train" route="all" depart="32" departLane="3" departPos="base"/>
</routes>"""


def main(network, output, fcd, *args):
    """Run SUMO with a network."""
    import libsumo
    from traci import constants

    from state_sensor_ros.simulators.sumo.map import read_network, Signals
    from state_sensor_ros.simulators.sumo.steps import Steps
    from state_sensor_ros.simulators.sumo.sumo_process import StepReader
    routes = Path(fcd).with_suffix('.rou.xml')
    routes.write_text(ROUTES)
    libsumo.start(['sumo', '-n', network, '-r', str(routes), '--step-length', str(STEP_S),
                   '--no-step-log', '--no-warnings', '--fcd-output', fcd, '--precision', '9',
                   '--fcd-output.attributes',
                   'x,y,z,angle,speed,speedLat,pos,lane,edge,slope,type', *args])
    roads = read_network(network)
    maker, reader = Steps(roads, 'car'), StepReader(libsumo, constants)
    lights = Signals(roads)
    frames = []
    for i in range(N_STEPS):
        libsumo.simulationStep()
        frame = maker.frame(libsumo.simulation.getTime() - STEP_S, *reader.read())
        states = reader.lights()
        # Without the names of all roads in each frame.
        frames.append((replace(frame, map_lines=(), lanes=replace(frame.lanes, road_names={}),
                               traffic_lights=lights.lights(states)), states))
        for name in {'car', 'bus'} & set(libsumo.vehicle.getIDList()):
            command(libsumo.vehicle, name, i, is_sublane='--lateral-resolution' in args)
    libsumo.close()
    with Path(output).open('wb') as file:
        pickle.dump(frames, file)


def command(vehicle, name, i, *, is_sublane):
    """Have a vehicle do what is due after a step."""
    if i == 1:
        vehicle.setMaxSpeed(name, 8.0)
    if i in (STANDS, GOES_ON):
        vehicle.setSpeed(name, 0.0 if i == STANDS else 8.0)
    if i in CHANGES and is_sublane:
        vehicle.changeSublane(name, 3.2 * (CHANGES[i] - vehicle.getLaneIndex(name)))
    elif i in CHANGES:
        vehicle.changeLane(name, CHANGES[i], 100.0)


if __name__ == '__main__':
    main(*sys.argv[1:])
