# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Episodes that the package requests of a server whose ports open late."""

from contextlib import contextmanager

from budgets import AWAIT_S, tries
from carla_late_server import LateServer
from ports import free_ports
import pytest
from source_errors import error_of

from state_sensor_ros.simulators.carla.decoder import CarlaDecoder
from state_sensor_ros.simulators.carla.source import CarlaSource
from state_sensor_ros.simulators.simulator_list import checked_settings

INI = '[CARLA/Server]\nSynchronousMode={}\nSendNonPlayerAgentsInfo=true\n'
N_STARTS = tries(6)


@contextmanager
def packets_of(server, **changes):
    source = CarlaSource(checked_settings({
        'source': 'carla', 'port': server.world_port + 1, 'control_port': server.world_port,
        'reconnect_min': 0.01, 'reconnect_max': 0.05, **changes}))
    try:
        yield source, source.frames()
    finally:
        source.close()


def position(packet):
    return CarlaDecoder().decode(packet.payload)[0].frame.position_xyz[0]


def await_movement(packets):
    """Receive until the player has driven forward."""
    first = position(next(packets))
    while position(next(packets))[0] <= first[0]:
        pass


def starts(folder, mode, latest_s, **options):
    """Yield server, source and packets of each of N_STARTS starts with a settings file."""
    ini = folder / 'CarlaSettings.ini'
    ini.write_text(INI.format(mode))
    for i in range(N_STARTS):
        with LateServer(free_ports(3), (0.0, latest_s), rate=200.0, seed=i, **options) as server, \
                packets_of(server, config_file=str(ini)) as (source, packets):
            yield server, source, packets


BOTH_MODES = pytest.mark.parametrize('mode', ['false', 'true'],
                                     ids=['asynchronous', 'synchronous'])


@BOTH_MODES
def test_carla_starts_drive_in_the_first_episode(tmp_path, mode):
    for server, source, packets in starts(tmp_path, mode, 0.3):
        await_movement(packets)
        assert source.health.n_connects == 1
        assert len(server.episodes) == 1
        assert server.n_loads == 1
        assert set(server.episodes[0].commands) == {0.5}
        assert server.episodes[0].is_synchronous is (mode == 'true')


@BOTH_MODES
def test_carla_starts_drive_where_ports_close_again(tmp_path, mode):
    """Where the measurements port closes its first connection, the episode is kept as well."""
    n_refused = 0
    for server, source, packets in starts(tmp_path, mode, 0.1, refuses=(0.0, 0.5, 0.0)):
        await_movement(packets)
        assert (source.health.n_connects, len(server.episodes), server.n_loads) == (1, 1, 1)
        n_refused += server.n_refused
    assert n_refused > N_STARTS / 4


@BOTH_MODES
def test_carla_starts_drive_where_every_port_closes_again(tmp_path, mode):
    """A control connection that is lost ends the episode; the next one drives."""
    n_refused = 0
    for server, _, packets in starts(tmp_path, mode, 0.1, refuses=(0.3, 0.3, 0.3)):
        while not any(episode.distance > 0.0 for episode in server.episodes):
            next(packets)
        n_refused += server.n_refused
    assert n_refused > N_STARTS / 4


def test_carla_start_at_a_chosen_spot():
    with LateServer(free_ports(3)) as server, packets_of(
            server, **{'carla.start_spot': 2}) as (_, packets):
        assert position(next(packets))[0] == pytest.approx(200.0, abs=1.0)
        assert [episode.spot for episode in server.episodes] == [2]


def test_carla_start_at_a_spot_that_the_map_does_not_have():
    with LateServer(free_ports(3)) as server, packets_of(
            server, **{'carla.start_spot': 4}) as (source, packets):
        assert error_of(source, packets) == (
            f'127.0.0.1:{server.world_port}: found 4 start spots; expected more than '
            'carla.start_spot, 4')
        assert server.episodes == []


@pytest.mark.parametrize('lose', [LateServer.cut, lambda server: server.drop(1)],
                         ids=['all connections', 'that of the measurements'])
def test_carla_start_of_a_new_episode_loads_the_level_once(lose):
    with LateServer(free_ports(3), (0.0, 0.2)) as server, packets_of(server) as (source, packets):
        next(packets)
        lose(server)
        while source.health.n_connects == 1:
            next(packets)
        assert len(server.episodes) == server.n_loads == 2


def test_carla_start_gives_up_a_port_that_stays_closed(monkeypatch):
    monkeypatch.setattr('state_sensor_ros.simulators.carla.source.LATE_PORT_S', 0.2)
    with LateServer(free_ports(3), (AWAIT_S, AWAIT_S)) as server, \
            packets_of(server) as (source, packets):
        assert error_of(source, packets) == (
            f'cannot connect to 127.0.0.1:{server.world_port + 1}: connection refused; is the '
            'simulator running?')
