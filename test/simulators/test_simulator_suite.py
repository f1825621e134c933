# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""The simulators of the package and the toy, by the suite that plug-ins inherit."""

from contextlib import contextmanager
from types import MappingProxyType

from carla9_server.scenes import PERIOD_S, TrafficScene
from carla9_server.server import WorldOptions, WorldServer
from carla_server.town_server import CarlaOptions, CarlaServer
from paths import ROOT
from ports import free_port, free_ports, free_udp_port
import pytest
from test_toy_simulator import installed_toy
from toy_server import ToyServer

from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.monodrive_server.frame_source import synthetic_source
from state_sensor_ros.simulators import simulator_list
from state_sensor_ros.testing import SimulatorSuite


class Suite(SimulatorSuite):
    """On ports that no other test takes while nothing runs there."""

    @contextmanager
    def running(self, port=0):
        # The mock server of CARLA 0.8 has the ones before and after it, too.
        with self.server(port or free_ports(3) + 1) as server:
            yield {'port': server.port}


class TestMonodrive(Suite):
    simulator = 'monodrive'

    @pytest.fixture(autouse=True)
    def _control_port(self, monkeypatch):
        # Of each test: only the last ports of a process are reserved for it.
        monkeypatch.setattr(type(self), 'control_port', free_port(), raising=False)

    def server(self, port):
        return MonodriveServer(synthetic_source(12, 9, 20.0, 1, 'v2'), MonodriveOptions(
            port=port, control_port=self.control_port))

    def commanding(self, given):
        return {**super().commanding(given), 'control_port': self.control_port,
                'desired_tags': ['ego', 'vehicle']}


class TestCarla(Suite):
    simulator = 'carla'

    def server(self, port):
        return CarlaServer(CarlaOptions(port=port))

    def commanding(self, given):
        return {**super().commanding(given), 'control_port': given['port'] - 1}


@pytest.mark.usefixtures('forked_clients')
class TestCarla9(Suite):
    simulator = 'carla9'
    has_map = True
    reuses_port = False

    def server(self, port):
        return WorldServer(TrafficScene(12, 9, 1, PERIOD_S), WorldOptions(port=port))


@pytest.mark.usefixtures('forked_clients')
class TestTickedCarla9(TestCarla9):
    parameters = MappingProxyType({'carla9.tick': True})


class TestSumo(SimulatorSuite):
    simulator = 'sumo'
    connects = False
    has_map = True

    @contextmanager
    def running(self, port=0):
        yield {'sumo.config': str(ROOT / 'resource' / 'sumo' / 'grid.sumocfg'), 'rate': 0.0,
               'sumo.ego': 'first'}


class TestOsi(SimulatorSuite):
    simulator = 'osi'
    parameters = MappingProxyType({'osi.ego': 'car_1'})
    connects = False

    @contextmanager
    def running(self, port=0):
        import osi_traces
        port = port or free_udp_port()
        with osi_traces.esmini(port, osi_traces.large_drive()):
            yield {'port': port}


class TestToy(Suite):
    simulator = 'toy'
    parameters = MappingProxyType({'toy.tag': 'ego'})

    def server(self, port):
        return ToyServer(port, speed=2.0)

    @pytest.fixture(autouse=True)
    def _installed(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(installed_toy(tmp_path / 'site'))
        for cached in (simulator_list._entries, simulator_list._loaded, simulator_list.simulators):
            cached.cache_clear()
        yield
        for cached in (simulator_list._entries, simulator_list._loaded, simulator_list.simulators):
            cached.cache_clear()
