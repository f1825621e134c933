# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Stamps within a run, across repeats and restarts."""

from dataclasses import replace

import numpy as np
import pytest

from state_sensor_ros.errors import DecodeError
from state_sensor_ros.frame import Frame, NO_LANES
from state_sensor_ros.pipeline.stamps import Stamper, Step


def frame(game_time, sample_count=0, time=0, *, has_exact_time=False):
    return Frame('v2', game_time, time, sample_count, (), np.zeros(0, np.uint8), (),
                 np.zeros((0, 13)), NO_LANES, has_exact_time=has_exact_time)


def test_stamps_repeat_and_restart():
    stamper = Stamper('game_time')
    steps = [stamper.step(frame(t, n), 0) for t, n in
             [(1.0, 5), (1.0, 6), (1.5, 7), (0.2, 8), (0.3, 1), (0.4, 2)]]
    assert steps == [Step.ADVANCED, Step.REPEATED, Step.ADVANCED, Step.RESTARTED, Step.RESTARTED,
                     Step.ADVANCED]
    assert stamper.stamp_ns == 400_000_000


def test_stamps_utc_is_the_first_time_plus_what_elapsed():
    stamper = Stamper('utc')
    stamper.step(frame(10.0, time=1_600_000_000), 0)
    assert stamper.stamp_ns == 1_600_000_000_000_000_000
    # ``time`` has whole seconds only: later frames are stamped by the game time.
    stamper.step(frame(10.25, time=1_600_000_001), 0)
    assert stamper.stamp_ns == 1_600_000_000_250_000_000


@pytest.mark.parametrize('time', [
    -3_000_000_000, -11, -2 ** 31 - 1, 2 ** 31, 2 ** 63 - 1, -2 ** 63])
def test_stamps_utc_begin_with_the_first_time_that_ros_can_represent(time):
    stamper = Stamper('utc')
    for game_time in (10.0, 10.5):
        with pytest.raises(DecodeError, match='time: found a stamp of'):
            stamper.step(frame(game_time, time=time), 0)
    for game_time, own_time, stamp_s in [(11.0, 100, 100), (12.0, time, 101), (13.0, 0, 102)]:
        assert stamper.step(frame(game_time, time=own_time), 0) is Step.ADVANCED
        assert stamper.stamp_ns == stamp_s * 1_000_000_000
    with pytest.raises(DecodeError, match='time: found a stamp of'):
        stamper.step(frame(1.0, time=time), 0)
    assert stamper.step(frame(2.0, time=50), 0) is Step.RESTARTED
    assert stamper.stamp_ns == 50_000_000_000


def test_stamps_ros_clock_that_goes_back_is_a_restart():
    stamper = Stamper('ros')
    stamps = []
    for game_time, now_ns in [(1.0, 500), (2.0, 400), (0.0, 300), (1.0, 900)]:
        stamper.step(frame(game_time), now_ns)
        stamps.append(stamper.stamp_ns)
    assert stamps == [500, 400, 300, 900]


def test_stamps_count_gaps_but_not_across_a_restart():
    stamper = Stamper('game_time')
    for game_time, sample_count in [(1.0, 1), (1.1, 2), (1.2, 5), (1.2, 6), (0.0, 1), (0.1, 3)]:
        stamper.step(frame(game_time, sample_count), 0)
    assert stamper.n_missed == 2 + 1


def test_stamps_need_no_sample_count():
    stamper = Stamper('game_time')
    steps = [stamper.step(frame(0.1 * i, n), 0) for i, n in
             enumerate([0, 7, 0, 9, 0, 0, 10, 14, 0, 3, 0, 6, 7, 0, 7, 9])]
    assert [i for i, step in enumerate(steps) if step is Step.RESTARTED] == [9]
    # Between 10 and 14, and between 7 and 9: around frames without a count it is unknown.
    assert stamper.n_missed == 3 + 1


def test_stamps_of_another_frame_at_the_same_time_begin_a_run():
    stamper = Stamper('game_time')
    steps = []
    for game_time, sample_count, identity in [
            (0.0, 7, 7), (0.0, 7, 7), (0.0, 8, 8), (0.1, 9, 9), (0.1, 9, 9), (0.1, 12, None),
            (0.1, 13, 13), (0.0, 14, 14), (0.0, 15, 15)]:
        steps.append(stamper.step(replace(frame(game_time, sample_count), identity=identity), 0))
    repeated, restarted, advanced = Step.REPEATED, Step.RESTARTED, Step.ADVANCED
    assert steps == [advanced, repeated, restarted, advanced, repeated, repeated, restarted,
                     restarted, restarted]
    assert stamper.stamp_ns == 0
    assert stamper.restart_cause == 'another frame has the same game_time'


def test_stamps_notice_a_coarse_clock():
    # At 131,072 s a float32 steps by 15.6 ms: too coarse for 30 Hz, fine for 1 Hz.
    stamper = Stamper('game_time')
    for game_time in (131072.0, 131072.03125):
        stamper.step(frame(game_time), 0)
    assert stamper.n_coarse == 1
    stamper.step(frame(131073.03125), 0)
    assert stamper.n_coarse == 1
    stamper.step(frame(131073.0625, has_exact_time=True), 0)
    assert stamper.n_coarse == 1


@pytest.mark.parametrize('game_time', [float('nan'), float('inf'), -1.0, 2.0 ** 31])
def test_stamps_refuse_what_a_ros_stamp_cannot_hold(game_time):
    with pytest.raises(DecodeError, match='game_time: found'):
        Stamper('game_time').step(frame(game_time), 0)


def test_stamps_do_not_count_lost_frames_as_missed():
    stamper = Stamper('game_time')
    for game_time, sample_count, n_lost in [(1.0, 1, 0), (1.1, 5, 3), (1.2, 9, 1), (1.2, 11, 5)]:
        stamper.step(frame(game_time, sample_count), 0, n_lost)
    assert stamper.n_missed == 2
    stamper.resume()
    stamper.step(frame(2.0, 100), 0)
    stamper.step(frame(2.1, 102), 0)
    assert stamper.n_missed == 3


def test_stamps_increase_while_the_ros_clock_stands_still():
    stamper = Stamper('ros')
    for game_time in (1.0, 2.0, 3.0):
        assert stamper.step(frame(game_time), 500) is Step.ADVANCED
    assert stamper.stamp_ns == 502
    # A simulator that restarts does not turn the clock of ROS back.
    assert stamper.step(frame(0.0), 500) is Step.RESTARTED
    assert stamper.stamp_ns == 503


@pytest.mark.parametrize('first', [1, 2 ** 32 - 2])
def test_stamps_count_no_samples_across_a_jump_of_the_counter(first):
    """A counter of 32 bits that begins near its end, or a peer that sends any number."""
    stamper = Stamper('game_time')
    counts = [first, first + 2 ** 32 - 10, first + 2 ** 32 - 8, 2 ** 40, 2 ** 62]
    for i, sample_count in enumerate(counts):
        stamper.step(frame(1.0 + i, sample_count), 0)
    assert stamper.n_missed == 1
    # Hours of a connection that was away are counted.
    stamper.step(frame(9.0, 2 ** 62 + 500_001), 0)
    assert stamper.n_missed == 1 + 500_000
