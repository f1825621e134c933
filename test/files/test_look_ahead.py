# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames of a recording are linked with those that follow, within a horizon only."""


from dataclasses import replace
import gc
import weakref

import numpy as np
import pytest

from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.files.player import with_upcoming
from state_sensor_ros.objects.predicted_paths import HORIZON_S
from state_sensor_ros.settings import Settings

PERIOD_S = 0.5


def frames_at(times):
    """Yield a frame of one car for each time."""
    for i, time_s in enumerate(times):
        yield build_frame('v1', time_s, ['car'], np.array([[100.0 * i, 0.0, 0.0]]))


PREDICTED = Settings(outputs=('autoware',))


def chain(link):
    times = []
    while link is not None:
        times.append(link.game_time)
        link = link.following
    return times


def follow(times):
    return with_upcoming(frames_at(times), PREDICTED)


def test_horizon_is_read_and_not_more():
    times, n_read = [PERIOD_S * i for i in range(200)], 0

    def counted():
        nonlocal n_read
        for each in frames_at(times):
            n_read += 1
            yield each

    for i, frame in enumerate(with_upcoming(counted(), PREDICTED)):
        ahead = chain(frame.upcoming)
        assert ahead[0] == times[i]
        assert ahead[-1] == times[min(i + int(HORIZON_S / PERIOD_S) + 1, len(times) - 1)]
        assert n_read <= i + HORIZON_S / PERIOD_S + 2
    assert i == len(times) - 1


def test_an_error_comes_after_the_frames_before_it():
    def damaged():
        yield from frames_at([0.0, 0.1])
        raise TrajectoryFormatError('here', 'nothing')

    frames = with_upcoming(damaged(), PREDICTED)
    assert [next(frames).game_time for _ in range(2)] == [0.0, 0.1]
    with pytest.raises(TrajectoryFormatError):
        next(frames)


def test_frames_that_are_past_are_freed():
    frames = follow([PERIOD_S * i for i in range(500)])
    first = weakref.ref(next(frames).upcoming.poses)
    for _ in range(5):
        next(frames)
    gc.collect()
    assert first() is None


def test_restart_ends_the_chain():
    times = [5.0, 5.5, 6.0, 1.0, 1.5]
    frames = follow(times)
    assert [chain(frame.upcoming) for frame in frames] == [
        [5.0, 5.5, 6.0], [5.5, 6.0], [6.0], [1.0, 1.5], [1.5]]


def test_another_frame_at_the_same_time_ends_the_chain():
    [frame] = frames_at([0.5])
    frames = [replace(frame, identity=number) for number in (7, 8, 8)]
    found = [frame.upcoming for frame in with_upcoming(iter(frames), PREDICTED)]
    assert [chain(link) for link in found] == [[0.5], [0.5], [0.5]]
    assert found[0] is not found[1] is found[2]
