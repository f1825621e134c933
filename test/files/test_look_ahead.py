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

from state_sensor_ros.files.frame_builder import build_frame
from state_sensor_ros.files.look_ahead import is_needed, LookAhead
from state_sensor_ros.objects.predicted_paths import HORIZON_S
from state_sensor_ros.settings import Settings

PERIOD_S = 0.5


def frames_at(times):
    """Yield a frame of one car for each time."""
    for i, time_s in enumerate(times):
        yield build_frame('v1', time_s, ['car'], np.array([[100.0 * i, 0.0, 0.0]]))


class Recorded:
    """A reader that counts how far it was read and can be read again."""

    details = True

    def __init__(self, times):
        self.times, self.n_read = times, 0

    def frames(self):
        for each in frames_at(self.times):
            self.n_read += 1
            yield each

    def close(self):
        self.times = ()


def chain(link):
    times = []
    while link is not None:
        times.append(link.game_time)
        link = link.following
    return times


def follow(times, *, is_read_twice=True):
    recording = Recorded(times) if is_read_twice else None
    return recording, LookAhead(recording, Settings()).follow(frames_at(times))


@pytest.mark.parametrize('is_read_twice', [True, False])
def test_horizon_is_read_and_not_more(is_read_twice):
    times = [PERIOD_S * i for i in range(200)]
    recording, frames = follow(times, is_read_twice=is_read_twice)
    for i, frame in enumerate(frames):
        ahead = chain(frame.upcoming)
        assert ahead[0] == times[i]
        assert ahead[-1] == times[min(i + int(HORIZON_S / PERIOD_S) + 1, len(times) - 1)]
        if recording is not None:
            assert recording.n_read <= i + HORIZON_S / PERIOD_S + 2
    assert i == len(times) - 1


def test_frames_that_are_past_are_freed():
    _, frames = follow([PERIOD_S * i for i in range(500)])
    first = weakref.ref(next(frames).upcoming.poses)
    for _ in range(5):
        next(frames)
    gc.collect()
    assert first() is None


def test_restart_ends_the_chain():
    times = [5.0, 5.5, 6.0, 1.0, 1.5]
    _, frames = follow(times)
    assert [chain(frame.upcoming) for frame in frames] == [
        [5.0, 5.5, 6.0], [5.5, 6.0], [6.0], [1.0, 1.5], [1.5]]


def test_another_frame_at_the_same_time_ends_the_chain():
    [frame] = frames_at([0.5])
    frames = [replace(frame, identity=number) for number in (7, 8, 8)]
    found = [frame.upcoming for frame in LookAhead(None, Settings()).follow(iter(frames))]
    assert [chain(link) for link in found] == [[0.5], [0.5], [0.5]]
    assert found[0] is not found[1] is found[2]


def test_repeated_frames_are_no_links():
    _, frames = follow([1.0, 1.0, 2.0])
    assert [chain(frame.upcoming) for frame in frames] == [
        [1.0, 2.0], [1.0, 2.0], [2.0]]


@pytest.mark.parametrize(('parameters', 'expected'), [
    ({}, False), ({'outputs': ('vision',)}, False), ({'outputs': ('autoware',)}, True),
    ({'outputs': ('autoware',), 'autoware_objects': ('tracking',)}, False)])
def test_only_predicted_objects_need_it(parameters, expected):
    assert is_needed(Settings(**parameters)) is expected
