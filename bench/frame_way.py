#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Count the modules and the Python calls of a steady frame, from its packet to its messages.

Steady: the same actors, topics and readers as in the frames before. At few actors a frame costs
what its calls cost, and after a pause each module has to be read from memory again. The counts are
exact, and the same on every machine.
"""

import argparse
from collections import Counter
from itertools import islice
import math
from pathlib import Path
import sys

from carla_cost import NoSink

import state_sensor_ros
from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.emulator.traffic.json_template import encode_json
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, Subscriptions

PACKAGE = f'{Path(state_sensor_ros.__file__).parent}/'
N_ACTORS, N_FRAMES = 10, 24
SETTINGS = Settings(debug_drawing=True)
LIKE_A_USER = ('/tf', '~/frame', '~/markers', '~/ego/odometry')


def measured():
    """Return the subscriptions that are measured, by their names."""
    return {'~/frame, /tf, markers, odometry of the ego': Subscriptions.of([
        topic for topic in Encoder(SETTINGS, load_definitions()).topics
        if topic.name in LIKE_A_USER]),
        'every topic': EVERYTHING}


def calls_of_frame(subscriptions):
    """
    Return how often each Python function of the package is called in a steady frame.

    Of the last frames of a stream the one with the fewest calls counts: in others the velocities
    are checked, for example.

    :returns: a Counter of (module, function).
    """
    packets = [Packet(encode_json(frame), math.nan, 0, 0)
               for frame in islice(generate(N_ACTORS, 0, 20.0, 3, 'v2'), N_FRAMES)]
    pipeline = Pipeline(SETTINGS, lambda settings: Codec(
        Decoder(), Encoder(settings, load_definitions())), NoSink(subscriptions),
        report=lambda kind, text: None)
    counted = []
    for packet in packets:
        calls = Counter()

        def note(frame, event, _, calls=calls):
            if event == 'call' and frame.f_code.co_filename.startswith(PACKAGE):
                calls[frame.f_code.co_filename.removeprefix(PACKAGE),
                      frame.f_code.co_qualname] += 1

        sys.setprofile(note)
        pipeline.process(packet, 0)
        sys.setprofile(None)
        counted.append(calls)
    return min(counted[N_FRAMES // 2:], key=lambda calls: calls.total())


def main():
    """Print a line for each subscriptions; with --functions each function, too."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--functions', action='store_true', help='print each function')
    args = parser.parse_args()
    for name, subscriptions in measured().items():
        calls = calls_of_frame(subscriptions)
        modules = {module for module, _ in calls}
        print(f'{name}: {len(modules)} modules, {calls.total()} Python calls')
        if args.functions:
            for (module, function), n_calls in sorted(calls.items()):
                print(f'  {n_calls:4}  {module}  {function}')


if __name__ == '__main__':
    main()
