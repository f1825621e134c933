# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A running SUMO that is joined over TraCI, beside another client, with commands to the ego."""

from contextlib import suppress
import os
import shutil
import signal
import subprocess
import threading

from budgets import AWAIT_S
import numpy as np
from ports import free_port
import pytest
from stopwatch import until
from sumo_runs import Collector, GRID

from state_sensor_ros.control.ego_commands import EgoCommand  # noqa: I100
from state_sensor_ros.emulator.bicycle import DRAG, FULL_THROTTLE  # noqa: I100
from state_sensor_ros.errors import TransportError
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.child_process import ChildCommands
from state_sensor_ros.simulators.sumo import SumoParameters
from state_sensor_ros.simulators.sumo.sumo_process import SumoSource

SUMO = shutil.which('sumo')
pytestmark = pytest.mark.skipif(SUMO is None, reason='needs the program sumo (eclipse-sumo)')
STEP_S = 0.05
# Half the length of the ego: SUMO's position is the front bumper.
FRONT_M = 2.3
# One step in 1000 s: a source that paced the steps would make none.
SLOW = Settings(rate=5e-5)
THROTTLE = EgoCommand(throttle=1.0, brake=0.0, steer=0.0, steering_angle=0.0)
BRAKE = EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0)


class JoinedSumo:
    """
    A SUMO that its first client steps, and a source that has joined it as the second one.

    :ivar client: the first one.
    :ivar source: of the second one.
    """

    def __init__(self, port):
        import traci
        self.client = traci.connect(port, numRetries=int(AWAIT_S / 0.1), waitBetweenRetries=0.1)
        self.source = SumoSource(
            SumoParameters(host='127.0.0.1', port=port, order=2, ego='ego'), SLOW,
            lambda kind, text: None, reconnect=False)
        self._collector = Collector(self.source)
        # SUMO answers when all its clients are there.
        self.client.setOrder(1)

    def take(self, n_steps):
        """Make steps; return their frames, but the last: it is sent during the next step."""
        begin = len(self._collector.packets)
        for _ in range(n_steps):
            self.client.simulationStep()
        until(lambda: len(self._collector.packets) >= begin + n_steps - 1)
        return list(self._collector.packets[begin:])

    def leave(self):
        """Close the source, while SUMO goes on."""
        closing = threading.Thread(target=self._collector.close)
        closing.start()
        while closing.is_alive():
            self.client.simulationStep()


@pytest.fixture
def joined():
    """Return a SUMO with the shipped scenario, and its two clients."""
    port = free_port()
    with subprocess.Popen([
            SUMO, '-c', str(GRID), '--remote-port', str(port), '--num-clients', '2',
            '--step-length', str(STEP_S), '--no-step-log'], start_new_session=True) as process:
        try:
            joined = JoinedSumo(port)
            yield joined
            joined.leave()
            joined.client.close()
        finally:
            # The program `sumo` of eclipse-sumo starts another one.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def speeds_of(frames):
    return np.array([np.linalg.norm(frame.velocity_xyz[frame.ego]) for frame in frames])


def test_joined_sumo_takes_commands_beside_its_other_client(joined):
    speed = speeds_of(joined.take(60))[-1]
    commands = ChildCommands(joined.source)
    commands.write(THROTTLE)
    # The first steps may have begun before the command arrived.
    frames = joined.take(60)[3:]
    speeds = speeds_of(frames)
    assert speeds[-1] > speed + 5.0
    assert np.diff(speeds) == pytest.approx(
        STEP_S * (FULL_THROTTLE - DRAG * speeds[:-1]), abs=1e-6)
    path = np.array([frame.position_xyz[frame.ego] for frame in frames])
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert steps == pytest.approx(STEP_S * speeds[1:], abs=0.01)
    # In SUMO it is one step further, or two if the last frame is still on its way. SUMO's time is
    # that of the next step.
    n_ahead = (joined.client.simulation.getTime() - frames[-1].game_time) / STEP_S - 1.0
    assert n_ahead == pytest.approx(1.0) or n_ahead == pytest.approx(2.0)
    direction = (path[-1] - path[0]) / np.linalg.norm(path[-1] - path[0])
    assert np.array(joined.client.vehicle.getPosition3D('ego')) == pytest.approx(
        path[-1] + direction * (FRONT_M + n_ahead * steps[-1]), abs=0.1)
    commands.write(BRAKE)
    frames = joined.take(120)
    assert speeds_of(frames[-20:]) == pytest.approx(0.0)
    assert joined.client.vehicle.getSpeed('ego') == pytest.approx(0.0, abs=0.01)
    moved = frames[-1].position_xyz - frames[-2].position_xyz
    assert len(np.flatnonzero(np.linalg.norm(moved, axis=1) > 0.1)) > 5
    joined.leave()
    begin = joined.client.simulation.getTime()
    joined.client.simulationStep()
    assert joined.client.simulation.getTime() == pytest.approx(begin + STEP_S)
    assert 'ego' in joined.client.vehicle.getIDList()


def test_joined_sumo_keeps_the_pace_of_its_other_client_and_does_not_block_its_callers(joined):
    joined.take(3)
    joined.source.reconfigure(SLOW)
    assert len(joined.take(10)) >= 9
    commands = ChildCommands(joined.source)

    def fill_the_pipe():
        for _ in range(100_000):
            commands.write(BRAKE)

    with pytest.raises(TransportError, match='SUMO does not take commands'):
        fill_the_pipe()
    change = threading.Thread(target=joined.source.reconfigure, args=(SLOW,), daemon=True)
    change.start()
    change.join(AWAIT_S)
    assert not change.is_alive()
