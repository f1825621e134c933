# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Print what a frame of 100 agents of CARLA costs, and one of 100 State actors: CPU, microseconds.

From the bytes of a packet to the bytes of messages; argument: who listens (nobody, everything,
like RViz). Runs are interleaved, the quickest frame counts.
"""

import json
import math
import subprocess
import sys
import time

from row import Row, show

from state_sensor_ros.carla.decode import CarlaDecoder
from state_sensor_ros.carla.encode import CarlaEncoder
from state_sensor_ros.carla.framing import join_messages
from state_sensor_ros.decode import Decoder
from state_sensor_ros.definitions import load_definitions
from state_sensor_ros.encode import Demand, Encoder, fixed_topics
from state_sensor_ros.framing import Packet
from state_sensor_ros.pipeline import Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulator.carla_wire import measurements_bytes
from state_sensor_ros.simulator.town import Town
from state_sensor_ros.simulator.traffic import generate
from state_sensor_ros.simulator.wire import encode_json

N_ACTORS, N_FRAMES, N_WARM, N_ROUNDS = 100, 40, 5, 5
SETTINGS = Settings(debug_drawing=True)
DEMANDS = {
    'nobody': Demand.nothing(), 'everything': Demand(),
    'like RViz': Demand.of([topic for topic in fixed_topics(SETTINGS)
                            if topic.name in ('/tf', '~/markers', '~/ego/odometry')])}


class NoSink:
    """Wants what it is told to want, and keeps nothing."""

    def __init__(self, demand):
        self._demand = demand

    def demand(self):
        return self._demand

    def open(self, topics):
        pass

    def shut(self, topics):
        pass

    def publish(self, messages, stamp_ns):
        pass


def carla_packets():
    town, packets = Town(N_ACTORS - 1, 0, 0, seed=3), []
    for i in range(N_FRAMES):
        measurement = measurements_bytes(town, i + 1, i, sends_agents=True)
        packets.append(Packet(join_messages([measurement]), math.nan, 0, 0))
        town.advance(0.05)
    return packets


def state_packets():
    frames = generate(N_ACTORS, 0, 20.0, 3, 'v2')
    return [Packet(encode_json(next(frames)), 0.0, 0, 0) for _ in range(N_FRAMES)]


def quickest_us(decoder, packets, demand):
    definitions = load_definitions()
    extra = (CarlaEncoder(SETTINGS, definitions),) if isinstance(decoder, CarlaDecoder) else ()
    pipeline = Pipeline(SETTINGS, decoder, Encoder(SETTINGS, definitions), NoSink(demand),
                        extra_encoders=extra, report=lambda kind, text: None)
    spent = []
    for packet in packets:
        began = time.process_time_ns()
        pipeline.process(packet, 0)
        spent.append(time.process_time_ns() - began)
    return min(spent[N_WARM:]) / 1e3


def main():
    """Print the two costs."""
    carla, state, demand = carla_packets(), state_packets(), DEMANDS[sys.argv[1]]
    pairs = [(quickest_us(CarlaDecoder(), carla, demand), quickest_us(Decoder(), state, demand))
             for _ in range(N_ROUNDS)]
    json.dump([min(column) for column in zip(*pairs, strict=True)], sys.stdout)


def carla_rows():
    """Compare agents of CARLA with State actors, in a process of their own."""
    rows = []
    for heard in DEMANDS:
        done = subprocess.run([sys.executable, __file__, heard], check=True, capture_output=True,
                              text=True)
        carla_us, state_us = json.loads(done.stdout)
        rows += show([Row(f'an agent of CARLA / a State actor, heard by: {heard}', N_ACTORS,
                          carla_us / state_us, '<= 1.3')])
    return rows


if __name__ == '__main__':
    main()
