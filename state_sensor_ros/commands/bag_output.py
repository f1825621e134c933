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

import time

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.commands.reading import fault_lines
from state_sensor_ros.files import bag_writer, recording, WriteOptions
from state_sensor_ros.frame import Frame
from state_sensor_ros.library.stream import FaultList, FrameFault
from state_sensor_ros.pipeline.pipeline import Pipeline
from state_sensor_ros.simulators import find_simulator, opening
from state_sensor_ros.texts import counted
from state_sensor_ros.topics.encoder import Encoder
from state_sensor_ros.topics.state_frame import carried
from state_sensor_ros.topics.transforms import encode_static_frames


class BagOutput(bag_writer.BagSink, recording.FrameWriter):
    """
    A bag with the topics that the node would publish.

    :param path: path of a folder or of a single file.
    :param options: options of the conversion or recording.
    :raises StateSensorError: if it cannot be written, or an option is out of its range.
    """

    checks = True

    def __init__(self, path: str, options: WriteOptions) -> None:
        values, settings, reader = options.values, options.settings, options.recording
        definitions = load_definitions()
        self._reader, self.n_frames = reader, 0
        self._place, self._faults = '', FaultList()
        self.losses = recording.Losses('a bag', carried())
        super().__init__(
            path, storage=options.storage, compression=values.get('compression') or 'zstd',
            overwrite=options.force, node_name=values.get('name', '/state_sensor'))
        try:
            simulator = find_simulator(settings.source if reader is None else reader.simulator)
            specific = opening.with_map(simulator.topics(settings, recording=reader), settings)
            encoder = Encoder(settings, definitions, self._note, specific.encoders)
            self.open(encoder.topics)
            static_frames = encode_static_frames(settings, definitions, specific.transforms)
            if static_frames is not None:
                self.latch(*static_frames)
            self._pipeline = Pipeline(settings, lambda settings: encoder, self, report=self._note,
                                      keeps_topics=True)
            self._most = settings.max_actor_topics
        except BaseException:
            self.abort()
            raise

    def _note(self, kind: str, text: str) -> None:
        self._faults.add(FrameFault(kind, self._place, text))

    @property
    def remarks(self) -> list[str]:
        """Return a line for each kind of warning about the frames."""
        return [*fault_lines(self._faults)]

    @property
    def notes(self) -> list[str]:
        n_refused = self._pipeline.registry.n_refused
        text = (f'{counted(n_refused, "actor")} without topics of their own; ~/frame has them '
                f'(max_actor_topics is {self._most}, in a bag in all)')
        return [text] if n_refused else []

    def write(self, frame: Frame) -> None:
        """
        Process a frame.

        :param frame: SI, REP-103 axes.
        """
        place = '' if self._reader is None else self._reader.faults.place
        self._place = place or f'frame {self.n_frames}'
        self._pipeline.process(frame, time.perf_counter_ns())
        self.n_frames = self._pipeline.counters.n_published

    def complete(self) -> None:
        """Write the messages that are held back, and complete the files."""
        self._pipeline.finish()
        super().complete()
