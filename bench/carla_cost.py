# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
Print the CPU time of a frame of 100 agents of CARLA, and of one of 100 State actors, us.

From the bytes of a packet to the bytes of messages; argument: the subscribed topics (nothing,
everything, like RViz). Runs are interleaved; the figure is the minimum over the frames. With the
argument "images": the cost of the five images of a step of the dataset, from files to messages,
and of the same images as a server sends them.
"""

import json
import math
from pathlib import Path
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image
from row import Row, show

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.emulator.carla_server.carla_schema import SceneDescription
from state_sensor_ros.emulator.carla_server.message_bytes import frame_message, measurements_bytes
from state_sensor_ros.emulator.carla_server.town import Town
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.emulator.traffic.json_template import encode_json
from state_sensor_ros.payloads import Packet
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.carla.decoder import CarlaDecoder
from state_sensor_ros.simulators.carla.recording import DatasetRecording
from state_sensor_ros.simulators.carla.sensors import camera_and_kind, Sensor
from state_sensor_ros.simulators.carla.topic_names import sensor_topics
from state_sensor_ros.simulators.carla.topics import carla_encoders
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.topic import EVERYTHING, NOTHING, Subscriptions

N_ACTORS, N_FRAMES, N_WARM, N_ROUNDS = 100, 40, 5, 5
IMAGES, IMAGE_SIZE = 'images', 200
SETTINGS = Settings(debug_drawing=True)
SUBSCRIPTIONS = {
    'nothing': NOTHING, 'everything': EVERYTHING,
    'like RViz': Subscriptions.of([
        topic for topic in Encoder(SETTINGS, load_definitions()).topics
        if topic.name in ('/tf', '~/markers', '~/ego/odometry')])}


class NoSink:
    """A sink with fixed subscriptions that drops all messages."""

    def __init__(self, subscriptions):
        self._subscriptions = subscriptions

    def subscriptions(self):
        return self._subscriptions

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
        packets.append(Packet(frame_message(measurement) + bytes(4), math.nan, 0, 0))
        town.advance(0.05)
    return packets


def state_packets():
    frames = generate(N_ACTORS, 0, 20.0, 3, 'v2')
    return [Packet(encode_json(next(frames)), math.nan, 0, 0) for _ in range(N_FRAMES)]


def drawn_images(rng):
    """
    Draw the scene of resource/carla, a road to the horizon, with the grain of a rendered image.

    These PNG files compress like those of the dataset: 1.6 bytes per color pixel, and a depth
    whose lowest byte is nearly random.
    """
    y, x = np.mgrid[:IMAGE_SIZE, :IMAGE_SIZE]
    below = (y - IMAGE_SIZE / 2 + 1).clip(0.5)
    on_road = abs(x - IMAGE_SIZE / 2) < 2.0 * below
    classes = np.where(y < IMAGE_SIZE / 2, 0, np.where(on_road, 7, 9))
    colors = np.array([(84, 118, 154)] * 7 + [(89, 89, 94)] * 2 + [(69, 119, 59)], float)
    shade = (10.0 * np.sin(x / 20) * np.cos(y / 15))[..., None]
    images = {f'{side}RGB': colors[classes] + shade + rng.normal(0.0, 3.0, (*y.shape, 3))
              for side in ('Central', 'Left', 'Right')}
    meters = np.where(classes == 0, 1000.0, 140.0 / below + rng.normal(0.0, 0.01, y.shape))
    counts = (meters / 1000.0 * (2 ** 24 - 1)).astype(int)
    images['CentralDepth'] = np.stack((counts, counts >> 8, counts >> 16), -1) & 255
    images['CentralSemanticSeg'] = np.stack((classes, 0 * classes, 0 * classes), -1)
    return images


def write_dataset(folder):
    """Write as many measurements of the player alone, each with five images."""
    rng = np.random.default_rng(0)
    at_rest = {'transform': {'location': {'x': 80.0, 'z': 38.0}, 'rotation': {'yaw': 180.0}}}
    for i in range(N_FRAMES):
        (folder / f'measurements_{i:05}.json').write_text(json.dumps(
            {'frameNumber': i + 1, 'gameTimestamp': 100 * (i + 1), 'playerMeasurements': at_rest}))
        for name, pixels in drawn_images(rng).items():
            Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8)).save(
                folder / f'{name}_{i:05}.png')


def images_ms():
    """Return the cost of a frame with five images that are all subscribed, ms."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_dataset(folder)
        recording = DatasetRecording(folder)
        subscriptions = Subscriptions.of(sensor_topics(recording.sensors))
        return min(quickest_us(recording.decoder, (entry.packet for entry in recording.frames()),
                               subscriptions) for _ in range(N_ROUNDS)) / 1e3


def live_images_ms():
    """Return the cost of a frame of a server with five images that are all subscribed, ms."""
    town, packets = Town(0, 0, 0, seed=3), []
    names = 'CentralRGB', 'LeftRGB', 'RightRGB', 'CentralDepth', 'CentralSemanticSeg'
    sensors = [camera_and_kind(name) for name in names]
    scene = SceneDescription(sensors=[
        {'id': i, 'type': 'CAMERA', 'name': name} for i, name in enumerate(names)])
    bgra = np.random.default_rng(0).integers(0, 256, (IMAGE_SIZE, IMAGE_SIZE, 4), np.uint8)
    for number in range(1, N_FRAMES + 1):
        measurement = measurements_bytes(town, number, number, sends_agents=True)
        images = [struct.pack('<IQIIIf', i, number, IMAGE_SIZE, IMAGE_SIZE, max(1, i - 1), 90.0)
                  + bgra.tobytes() for i in range(len(names))]
        messages = b''.join(map(frame_message, (measurement, *images, b'')))
        packets.append(Packet(messages + scene.SerializeToString(), math.nan, 0, 0))
        town.advance(0.05)
    subscriptions = Subscriptions.of(sensor_topics([Sensor(*split) for split in sensors]))
    return min(quickest_us(CarlaDecoder(), packets, subscriptions) for _ in range(N_ROUNDS)) / 1e3


def refuse(kind, text):
    """Fail on any report, so that only error-free runs are measured."""
    raise RuntimeError(f'{kind}: {text}')


def quickest_us(decoder, packets, subscriptions):
    """Return the cost of a frame, us; a generator of ``packets`` is a part of it."""
    definitions = load_definitions()
    further = () if isinstance(decoder, Decoder) else carla_encoders()
    codec = Codec(decoder, Encoder(SETTINGS, definitions, further=further))
    pipeline = Pipeline(SETTINGS, lambda _: codec, NoSink(subscriptions), report=refuse)
    spent = []
    began = time.process_time_ns()
    for packet in packets:
        pipeline.process(packet, 0)
        ended = time.process_time_ns()
        spent.append(ended - began)
        began = ended
    return min(spent[N_WARM:]) / 1e3


def main():
    """Print the costs."""
    if sys.argv[1] == IMAGES:
        json.dump([images_ms(), live_images_ms()], sys.stdout)
        return
    carla, state, subscriptions = carla_packets(), state_packets(), SUBSCRIPTIONS[sys.argv[1]]
    pairs = [(quickest_us(CarlaDecoder(), carla, subscriptions),
              quickest_us(Decoder(), state, subscriptions))
             for _ in range(N_ROUNDS)]
    json.dump([min(column) for column in zip(*pairs, strict=True)], sys.stdout)


def figures(argument):
    """Return the figures that this file prints in a process of its own."""
    done = subprocess.run([sys.executable, __file__, argument], check=True, capture_output=True,
                          text=True)
    return json.loads(done.stdout)


def carla_rows():
    """Compare agents of CARLA with State actors; measure images."""
    rows = []
    for subscribed in SUBSCRIPTIONS:
        carla_us, state_us = figures(subscribed)
        rows += show([Row(f'an agent of CARLA / a State actor, subscribed: {subscribed}', N_ACTORS,
                          carla_us / state_us, '<= 1.3')])
    filed_ms, live_ms = figures(IMAGES)
    return rows + show([
        Row('five images of 200 x 200, PNG to messages, CPU', 1, filed_ms, '<= 3', 'ms'),
        Row('five images of 200 x 200, of a server, CPU', 1, live_ms, '<= 1.5', 'ms')])


if __name__ == '__main__':
    main()
