# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A trajectory file that is being written from frames."""

from __future__ import annotations

from state_sensor_ros.simulators import Frame, FrameWriter, Units, WriteOptions
from state_sensor_ros.simulators.frame_arrays import DEFAULT_UNITS
from state_sensor_ros.simulators.monodrive.decoder import conversion_losses, format_payload
from state_sensor_ros.simulators.monodrive.generations.wire import GENERATIONS, V2
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryWriter
from state_sensor_ros.simulators.recordings import WholeFile


class TrajectoryOutput(WholeFile, FrameWriter):
    """
    Frames as the elements of a JSON array.

    :param path: path of the file, ``-`` for standard output.
    :param force: whether a file of that name may be replaced.
    :param generation: to write, None for that of each frame; v2 of another simulator.
    :param units: units of box extents and of ``s``.
    :raises SinkError: if it cannot be written.
    """

    is_timed = False

    def __init__(self, path: str, *, force: bool, generation: str | None = None,
                 units: Units = DEFAULT_UNITS) -> None:
        super().__init__(path, force=force)
        self.n_frames = 0
        # What the generation cannot hold, in the order of its discovery.
        self._lost: dict[str, None] = {}
        self._generation, self._units = generation, units
        self._writer: TrajectoryWriter | None = None

    @property
    def notes(self) -> list[str]:
        """Return a line about what the generation does not carry."""
        return [f'{self._generation} does not carry: {", ".join(self._lost)}'] if self._lost \
            else []

    def write(self, frame: Frame) -> None:
        """
        Append a frame.

        :param frame: in SI units and REP-103 axes.
        """
        generation = self._generation
        if generation is None and frame.generation not in GENERATIONS:
            generation = self._generation = V2
        if generation is not None and generation != frame.generation:
            self._lost.update(dict.fromkeys(conversion_losses(frame, generation)))
        if self._writer is None:
            # A pipe is opened with its first frame.
            self._writer = TrajectoryWriter(self.handle)
        self._writer.write(format_payload(frame, generation, self._units))
        self.n_frames += 1

    def complete(self) -> None:
        """Finish the array, and wait until everything has reached the disk."""
        if self._writer is not None:
            self._writer.close()
        super().complete()


def new_trajectory(path: str, options: WriteOptions) -> TrajectoryOutput:
    """Begin a trajectory; without the option ``generation``, frames keep theirs."""
    return TrajectoryOutput(path, force=options.force, units=options.units,
                            generation=options.values.get('generation'))
