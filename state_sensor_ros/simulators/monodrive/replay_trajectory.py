# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
A trajectory for Replay Mode, checked and as text, and the order in which its frames are shown.

Replay Mode accepts strict JSON with an actor tagged ego in each frame
(doc/protocol/trajectories.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
import io

from state_sensor_ros.simulators import (
    DecodeError,
    EGO_TAG,
    has_ego_tag,
    Needs,
    no_frames,
    RecordedFrame,
    TrajectoryFormatError,
)
from state_sensor_ros.simulators.json_text import is_strict_json
from state_sensor_ros.simulators.monodrive.decoder import Decoder
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryWriter
from state_sensor_ros.simulators.recordings import MAX_GAP_S, PERIOD_S


@dataclass(frozen=True, slots=True)
class Trajectory:
    """
    A trajectory that Replay Mode accepts.

    ``text`` the array as JSON; ``game_times`` of its frames, s, NaN for those without; ``tags``
    that occur in it.
    """

    name: str
    text: bytes
    game_times: tuple[float, ...]
    tags: tuple[str, ...]

    @property
    def n_frames(self) -> int:
        """Return the number of frames, at least one."""
        return len(self.game_times)

    def span_s(self, from_index: int, to_index: int) -> float:
        """
        Return the time between two frames.

        :param from_index: index of the one frame.
        :param to_index: index of the other, which may be the earlier one.
        :returns: s, not negative; at 20 Hz if the game times are unknown or equal, or the clock
            has a step between them.
        """
        span = abs(self.game_times[to_index] - self.game_times[from_index])
        n_frames = abs(to_index - from_index)
        return span if 0 < span <= MAX_GAP_S * n_frames else PERIOD_S * n_frames


def read_trajectory(name: str, entries: Iterable[RecordedFrame]) -> Trajectory:
    """
    Read a whole trajectory.

    :param name: name of the file.
    :param entries: all frames of the file.
    :raises TrajectoryFormatError: when Replay Mode would refuse it, with the place.
    """
    text = io.BytesIO()
    writer = TrajectoryWriter(text)
    decoder = Decoder(needs=Needs())
    game_times: list[float] = []
    tags: dict[str, None] = {}
    for entry in entries:
        payload = bytes(entry.packet.payload)
        tags.update(dict.fromkeys(_checked(payload, entry, decoder, name)))
        game_times.append(entry.clock_s)
        writer.write(payload)
    if not game_times:
        raise no_frames(name)
    writer.close()
    return Trajectory(name, text.getvalue(), tuple(game_times),
                      tuple(tag for tag in tags if tag))


def _checked(payload: bytes, recorded: RecordedFrame, decoder: Decoder, name: str) -> list[str]:
    """Return the tags of a frame; refuse one that :mod:`inspection` reports as not replayable."""
    where = f'{name}: {recorded.place}: frame {recorded.index}'
    try:
        frames = [decoded.frame for decoded in decoder.decode(payload)]
    except DecodeError as error:
        raise TrajectoryFormatError(f'{where}: {error.where}', error.found,
                                    error.expected) from error
    if not is_strict_json(payload):
        raise TrajectoryFormatError(where, 'text that only a lenient reader takes',
                                    'strict JSON, which has no NaN or Infinity')
    tags = [tag for frame in frames for actor_tags in frame.tags for tag in actor_tags]
    if not has_ego_tag(tags):
        raise TrajectoryFormatError(where, f'no actor tagged {EGO_TAG}',
                                    'one in each frame: Replay Mode needs it')
    return tags


class Cursor:
    """
    Index of the frame that the simulator shows, and of the next one.

    :param n_frames: number of frames of the trajectory.
    :param step: frames to advance at a time, at least 1.
    :param start: index of the first frame shown.
    :param loop: whether to continue at the other end.
    :param is_backwards: initial direction.
    """

    def __init__(self, n_frames: int, *, step: int = 1, start: int = 0, loop: bool = False,
                 is_backwards: bool = False) -> None:
        self.index = -1  # before the first frame, as after configuring
        self.is_backwards = is_backwards
        self._n_frames, self._step, self._start, self._loop = n_frames, step, start, loop

    def target(self) -> int | None:
        """Return the index of the next frame; None at the end."""
        if self.index < 0:
            return self._start
        target = self.index + (-self._step if self.is_backwards else self._step)
        if 0 <= target < self._n_frames:
            return target
        other_end = self._n_frames - 1 if self.is_backwards else 0
        return other_end if self._loop and other_end != self.index else None
