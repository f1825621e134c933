# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The example that drives the ego along a recorded line, on every simulator."""

from contextlib import contextmanager, ExitStack
from importlib.util import find_spec
import math
import os
import signal
import threading
import time

from budgets import AWAIT_S, is_large, one_of
from carla9_server.scenes import TrafficScene
from carla9_server.server import WorldOptions, WorldServer
from carla_server.town_server import CarlaOptions, CarlaServer
from commands_rig import FAST, VELOCITY
from geometry_msgs.msg import TwistStamped
import numpy as np
from paths import ROOT
from programs import PIPES, start_node
import pytest
from rig import NodeProcess

import state_sensor_ros as sensor
from state_sensor_ros.commands.cli import main
from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import TrafficSource
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

EXAMPLE = ROOT / 'examples' / 'follow_line.py'
# Simulated time of a drive, s; it begins with the first command.
DRIVE_S = 30.0 if is_large() else 9.0
# A frame waits so long for a twist that was lost, s; the ego is not taken for disobedient by then.
LOST_S = 1.5


class Turns:
    """
    Lets a simulator make a frame when the command that answers the last one is there.

    The drive is the same however late the processes come to a core. Before :meth:`begin` and after
    :meth:`end` the simulator makes frames by its own clock.
    """

    def __init__(self, listener, kind=TwistStamped, topic=VELOCITY):
        self._listener, self._answered, self._is_over = listener, threading.Event(), True
        self._step, self._frame, self._seen_s = self._answered.set, 0, time.monotonic()
        self._topic = topic
        self._listener.node.create_subscription(kind, topic, lambda _: self._step(), 10)

    def wait(self):
        """Wait, in the thread of a mock server."""
        if not self._is_over:
            self._answered.wait(LOST_S)
            self._answered.clear()

    def begin(self, *, by_services):
        """Begin with the next command; by services, the simulator is paused and makes steps."""
        self._listener.matched(self._topic)
        if by_services:
            from simulation_interfaces.srv import SetSimulationState, StepSimulation
            pause, step = (self._listener.node.create_client(type_, f'/state_sensor/{name}')
                           for type_, name in ((SetSimulationState, 'set_simulation_state'),
                                               (StepSimulation, 'step_simulation')))
            self._listener.until(lambda: pause.service_is_ready() and step.service_is_ready(),
                                 what='the services')
            request = SetSimulationState.Request()
            request.state.state = request.state.STATE_PAUSED
            self._asked = pause.call_async(request)
            self._listener.until(self._asked.done, what='the pause')

            def ask(_):
                self._asked = step.call_async(StepSimulation.Request(steps=1))
            # A step is refused while another one is outstanding, whose frame may be there.
            self._step = lambda: self._asked.add_done_callback(ask)
        self._is_over = False
        # A command that came before has no answer.
        self._step()

    def go_on(self, frame):
        """Make a frame where no other has come for a while: its command was lost; return True."""
        now_s = time.monotonic()
        if frame != self._frame:
            self._frame, self._seen_s = frame, now_s
        elif now_s - self._seen_s > LOST_S:
            self._seen_s = now_s
            self._step()
        return True

    def end(self):
        """End the turns."""
        self._is_over = True
        self._answered.set()


def synthetic_line(folder):
    """Write the undriven run of synthetic traffic."""
    line = folder / 'line.json'
    assert main(['synth', str(line), '--vehicles', '1', '--objects', '0',
                 '--frames', '700' if is_large() else '200',
                 '--rate', '10', '--seed', '1']) == 0
    return line


class PatientSource(TrafficSource):
    """Frames of monoDrive that wait for their turn."""

    def __init__(self, turns):
        super().__init__(TrafficFrames(1, 0, 10.0, 1, 'v2'))
        self._turns = turns

    def advance(self):
        self._turns.wait()
        return super().advance()


@contextmanager
def monodrive(folder, turns):
    """Provide the line of an undriven run and parameters of a node."""
    line = synthetic_line(folder)
    with MonodriveServer(PatientSource(turns), MonodriveOptions(control_port=0, rate=20.0)) \
            as server:
        yield line, {'port': server.port, 'control_port': server.control_port,
                     'desired_tags': ['vehicle']}


class PatientTown(CarlaServer):
    """A server of CARLA whose frames wait for their turn."""

    def __init__(self, turns, options):
        self._turns = turns
        super().__init__(options)

    def _make_frame(self):
        self._turns.wait()
        return super()._make_frame()


@contextmanager
def carla(folder, turns):
    """Provide the same of CARLA's mock server."""
    line, alone = folder / 'line.json', {'n_vehicles': 0, 'n_pedestrians': 0}
    with CarlaServer(CarlaOptions(rate='max', period_s=0.05, **alone)) as server:
        assert main(['record', str(line), '--source', 'carla', '--port', str(server.port),
                     '--frames', '2000']) == 0
    with PatientTown(turns, CarlaOptions(rate=40.0, period_s=0.05, **alone)) as server:
        yield line, {'source': 'carla', 'port': server.port, 'control_port': server.world_port}


@contextmanager
def carla9(folder, _):
    """Provide the same of the mock server of CARLA 0.9, which has the road of monoDrive's."""
    if find_spec('carla') is None:
        pytest.skip('carla is not installed')
    line = synthetic_line(folder)
    with WorldServer(TrafficScene(1, 0, seed=1), WorldOptions(rate=20.0)) as server:
        yield line, {'source': 'carla9', 'port': server.port, 'carla9.tick': True}


@contextmanager
def sumo(folder, _):
    """Provide the same of SUMO, with the ego alone on the roads of the shipped scenario."""
    pytest.importorskip('libsumo')
    line, config = folder / 'line.json', folder / 'alone.sumocfg'
    routes = (ROOT / 'resource' / 'sumo' / 'grid.rou.xml').read_text().splitlines()
    (folder / 'alone.rou.xml').write_text('\n'.join(
        each for each in routes if '<flow' not in each and '<personFlow' not in each
        and '<walk' not in each and '</personFlow' not in each))
    config.write_text(f"""<configuration><input>
  <net-file value="{ROOT / 'resource' / 'sumo' / 'grid.net.xml.gz'}"/>
  <route-files value="alone.rou.xml"/></input></configuration>""")
    own = ['-p', f'sumo.config:={config}', '-p', 'sumo.ego:=ego']
    assert main(['record', str(line), '--source', 'sumo', *own, '-p', 'rate:=0.0',
                 '--frames', '4000']) == 0
    yield line, {'source': 'sumo', 'sumo.config': str(config), 'sumo.ego': 'ego'}


def deviations(driven_xy, line_xy):
    """Return the distance of each point to the line, m."""
    starts, ways = line_xy[:-1], np.diff(line_xy, axis=0)
    squares = np.maximum((ways ** 2).sum(axis=1), 1e-12)
    found = []
    for point in driven_xy:
        share = np.clip(((point - starts) * ways).sum(axis=1) / squares, 0.0, 1.0)
        found.append(np.hypot(*(point - starts - share[:, None] * ways).T).min())
    return np.array(found)


@pytest.mark.parametrize('simulator', one_of([monodrive, carla9, carla, sumo]))
def test_example_follows_the_line(domain, listener, tmp_path, simulator):
    odometry = listener.subscribe('/state_sensor/ego/odometry', 'nav_msgs/Odometry')
    sent = listener.subscribe('/state_sensor/command_status', 'state_sensor_ros/VehicleControl')
    turns = Turns(listener)
    with ExitStack() as stack:
        line, parameters = stack.enter_context(simulator(tmp_path, turns))
        node = stack.enter_context(NodeProcess(
            domain, control_input='twist', **FAST, **parameters))
        # The node finds the example when it has read the line.
        example = stack.enter_context(start_node(
            [str(EXAMPLE), str(line)], **PIPES, env={
                **os.environ, 'ROS_DOMAIN_ID': str(domain),
                'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST'}))
        stack.callback(example.kill)
        listener.until(lambda: sent, what='the first command')
        turns.begin(by_services=simulator in (carla9, sumo))
        stack.callback(turns.end)
        n_before = len(odometry)

        def seconds():
            stamps = [each.header.stamp for each in (odometry[n_before], odometry[-1])]
            first, last = (stamp.sec + stamp.nanosec / 1e9 for stamp in stamps)
            return last - first
        listener.until(lambda: turns.go_on(len(odometry)) and len(odometry) > n_before
                       and seconds() > DRIVE_S, seconds=2 * AWAIT_S, what='the drive')
        turns.end()
        assert 'Traceback' not in node.log
        example.send_signal(signal.SIGINT)
        assert example.communicate(timeout=AWAIT_S) == ('', '')
        assert example.returncode == 0
    driven = odometry[n_before:]
    xy = np.array([(each.pose.pose.position.x, each.pose.pose.position.y) for each in driven])
    with sensor.open_recording(str(line)) as recording:
        away = deviations(xy, recording.ego_track().position_xyz[:, :2])
    # It takes the ego over at up to 27 m/s.
    driven = driven[len(driven) // 3:]
    speeds = np.array([each.twist.twist.linear.x for each in driven])
    turns = np.array([each.pose.pose.orientation for each in driven])
    yaws = np.unwrap([2 * math.atan2(each.z, each.w) for each in turns])
    times = np.array([each.header.stamp.sec + each.header.stamp.nanosec / 1e9 for each in driven])
    lateral = np.abs(speeds[1:] * np.diff(yaws) / np.diff(times))
    # What holds however late the example's twists come: its lane, and the bounds of the gate.
    assert away[len(away) // 3:].max() < 1.6
    assert 5.0 < speeds.max() < 18.0
    # The command of a step turns the wheel at once: the mean of half a second.
    n_steps = round(0.5 / np.diff(times).mean())
    assert np.convolve(lateral, np.full(n_steps, 1 / n_steps), 'valid').max() < 8.0
    assert math.dist(xy[-1], xy[0]) > 20.0
