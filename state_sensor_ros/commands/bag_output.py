# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A bag with the messages of the node's topics, written by the pipeline of the node."""

from __future__ import annotations

from collections.abc import Sequence
import re
import time

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.commands.reading import Warnings
from state_sensor_ros.errors import ConfigError
from state_sensor_ros.files.bags.bag_writer import BagSink
from state_sensor_ros.files.formats import WriteOptions
from state_sensor_ros.frame import Frame
from state_sensor_ros.payloads import Packet, PayloadDecoder
from state_sensor_ros.pipeline.pipeline import Codec, Pipeline
from state_sensor_ros.simulators.opening import with_map
from state_sensor_ros.simulators.simulator_list import find_simulator
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.transforms import encode_static_frames

_TOKEN = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')


class BagOutput(BagSink):
    """
    A bag with the topics that the node would publish.

    :param path: path of a folder or of a single file.
    :param storage: ``mcap`` or ``sqlite3``.
    :param simulator: simulator of the frames, a value of the parameter ``source``.
    :param options: options of the conversion or recording.
    :ivar warnings: about the frames.
    :raises StateSensorError: if it cannot be written, or an option is out of its range.
    """

    def __init__(self, path: str, storage: str, simulator: str, options: WriteOptions) -> None:
        values = options.values
        settings = options.settings
        definitions = load_definitions()
        self.warnings = Warnings(options.source)
        self._settings = settings
        self._pipeline: Pipeline | None = None
        super().__init__(
            path, storage=storage, compression=values.get('compression') or 'zstd',
            overwrite=options.force, node_name=_node_name(
                values.get('namespace', '/'), values.get('name', 'state_sensor')))
        try:
            specific = with_map(find_simulator(simulator).topics(
                settings, recording=options.recording), settings)
            self._encoder = Encoder(settings, definitions, self.warnings.add, specific.encoders)
            self.open(self._encoder.topics)
            static_frames = encode_static_frames(settings, definitions, specific.transforms)
            if static_frames is not None:
                self.latch(*static_frames)
        except BaseException:
            self.abort()
            raise

    def begin(self, decoder: PayloadDecoder) -> None:
        """
        Begin the pipeline into this bag.

        :param decoder: decoder of the packets that are written.
        """
        self._pipeline = Pipeline(
            self._settings, lambda settings: Codec(decoder, self._encoder), self,
            report=self.warnings.add)

    def split(self, packet: Packet) -> Sequence[Packet]:
        """Return a packet for each frame of ``packet``."""
        assert self._pipeline is not None
        return self._pipeline.split(packet)

    def write(self, packet: Packet, place: str) -> Frame | None:
        """
        Process a packet.

        :param packet: packet with one frame.
        :param place: place of the packet, in words.
        :returns: the last frame whose clock advanced; None if the packet was dropped.
        """
        pipeline = self._pipeline
        assert pipeline is not None
        self.warnings.place, counters = place, pipeline.counters
        n_published, n_repeated = counters.n_published, counters.n_repeated
        pipeline.process(packet, time.perf_counter_ns())
        if counters.n_published == n_published or pipeline.snapshot is None:
            return None
        if counters.n_repeated > n_repeated:
            self.warnings.add_repeated(counters.game_time)
        frame = pipeline.snapshot.frame
        self.warnings.losses.add(frame)
        return frame

    def complete(self) -> None:
        """Write the messages that are held back, and complete the files."""
        if self._pipeline is not None:
            self._pipeline.finish()
        super().complete()


def _node_name(namespace: str, name: str) -> str:
    """Return the fully qualified name of the node that the topics of the bag are named after."""
    tokens = [*filter(None, [namespace.strip('/')]), name]
    tokens = '/'.join(tokens).split('/')
    for token in tokens:
        if not _TOKEN.fullmatch(token):
            raise ConfigError('--name, --namespace', repr(token),
                              'letters, digits and _, none of them beginning with a digit')
    return '/' + '/'.join(tokens)
