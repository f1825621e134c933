# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Print the CPU time of a frame with and without the outputs for autonomy stacks, ms.

From the bytes of a packet to the bytes of messages, in one process; argument: the number of
actors. Both are measured in turn, so that each pair of figures is of the same speed of the
machine; the median of the ratios of the pairs counts. And what imperfect perception adds to the
messages of each output, relative to the same messages without it.
"""

from itertools import islice
import math
from statistics import median
import sys
import time

from carla_cost import NoSink
from row import Row, show

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.emulator.traffic.json_template import encode_json
from state_sensor_ros.naming import Registry
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.settings import OUTPUTS, parse_settings, Settings
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions
from state_sensor_ros.topics.topic_list import output_encoders

N_ACTORS, N_FRAMES, N_WARM, N_ROUNDS = 100, 40, 5, 25
GOAL = '<= 1.6'
PERIOD_NS = 50_000_000
NOISE = {'position_std': 0.2, 'yaw_std': 0.05, 'size_std': 0.1, 'velocity_std': 0.3}
VIEW = {'range': 100.0, 'field_of_view': 200.0, 'occlusion': 0.2}
CHANCE = {'missing': 0.1, 'ghosts': 1.0}
# Few objects are within VIEW, most are within WIDE_VIEW.
WIDE_VIEW = {'range': 1000.0, 'field_of_view': 359.0, 'occlusion': 0.2}
MOST_IN_VIEW = 'all kinds, most objects in view'
PERCEPTION = {'noise': NOISE, 'range, view, occlusion': VIEW, 'misses, ghosts': CHANCE,
              'all kinds at once': {**NOISE, **VIEW, **CHANCE},
              MOST_IN_VIEW: {**NOISE, **WIDE_VIEW, **CHANCE}}
# The others take a third of the time of autoware, and as much for imperfection: the goals of
# their rows, and of most objects in view, only show when they become slower.
GOAL_OF_AUTOWARE, GOAL_MOST_IN_VIEW, GOAL_OF_OTHERS = '<= 1', '<= 2', '<= 6'


def frame_ms(packets, outputs):
    """Return the CPU time of a frame with every topic subscribed."""
    settings, definitions = Settings(debug_drawing=True, outputs=outputs), load_definitions()
    pipeline = Pipeline(settings, lambda settings: Codec(
        Decoder(), Encoder(settings, definitions)), NoSink(EVERYTHING),
        report=lambda kind, text: None)
    for packet in packets[:N_WARM]:
        pipeline.process(packet, 0)
    begin = time.process_time()
    for packet in packets[N_WARM:]:
        pipeline.process(packet, 0)
    return (time.process_time() - begin) * 1e3 / (N_FRAMES - N_WARM)


def encode_times(frames, output, perception):
    """Return the time of the messages of each frame on the topics of an output, s."""
    settings = parse_settings({'outputs': (output,), **{
        f'perception.{name}': value for name, value in perception.items()}})
    encoder, registry = Encoder(settings, load_definitions()), Registry()
    subscriptions = Subscriptions.of([
        topic for each in output_encoders(output) for topic in each.topics_of(settings)])
    times = []
    for i, frame in enumerate(frames):
        actor_list = registry.update(frame)
        begin = time.perf_counter()
        encoder.encode(frame, actor_list, i * PERIOD_NS + 1, subscriptions)
        times.append(time.perf_counter() - begin)
    return times[N_WARM:]


def perception_rows(packets, n_actors, output):
    """
    Measure what imperfection adds to the messages of an output, kind by kind.

    Every run has the same random numbers, so that the least time of each frame counts. The mean
    of all frames has ghosts in it, of which the fastest frame has none.
    """
    kinds = {'': {}, **PERCEPTION}
    least = {kind: [math.inf] * (N_FRAMES - N_WARM) for kind in kinds}
    for _ in range(N_ROUNDS):
        for kind, perception in kinds.items():
            # Poses and boxes are computed once for a frame.
            decoder = Decoder()
            frames = [decoder.decode(packet.payload)[0].frame for packet in packets]
            least[kind] = list(map(min, least[kind], encode_times(frames, output, perception)))
    without = sum(least.pop(''))
    return show([Row(
        f'{output}, {kind}: added / encoding without', n_actors, sum(times) / without - 1.0,
        GOAL_OF_OTHERS if output != 'autoware' else
        GOAL_MOST_IN_VIEW if kind == MOST_IN_VIEW else GOAL_OF_AUTOWARE)
        for kind, times in least.items()])


def stack_rows(n_actors=N_ACTORS):
    """Measure and print; return the rows."""
    packets = [Packet(encode_json(frame), math.nan, 0, 0)
               for frame in islice(generate(n_actors, 0, 20.0, 3, 'v2'), N_FRAMES)]
    pairs = [[frame_ms(packets, outputs) for outputs in ((), OUTPUTS)] for _ in range(N_ROUNDS)]
    without, with_all = map(min, zip(*pairs, strict=True))
    print(f'    every topic subscribed: {without:.3f} CPU ms per frame, with outputs '
          f'{with_all:.3f}', flush=True)
    rows = show([Row('with all outputs for autonomy stacks / without, every topic subscribed',
                     n_actors, median(both / one for one, both in pairs), GOAL)])
    for output in OUTPUTS:
        rows += perception_rows(packets, n_actors, output)
    return rows


if __name__ == '__main__':
    stack_rows(*map(int, sys.argv[1:]))
