# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""A recording played: pace, pause, step, restart, loop, and an end at once from another thread."""

import json
import threading

from budgets import AWAIT_S
import pytest
from stopwatch import until

from state_sensor_ros import source
from state_sensor_ros.errors import TrajectoryFormatError
from state_sensor_ros.files import open_any
from state_sensor_ros.files.player import FileSource
from state_sensor_ros.settings import Settings


def actor(**members):
    return {'name': 'car', 'position': [0.0, 0.0, 0.0], 'orientation': [0.0, 0.0, 0.0, 1.0],
            'velocity': [0.0, 0.0, 0.0], 'tags': ['ego'], **members}


def at(*game_times):
    """Make v1 frames at ``game_times``, None for a frame without one."""
    return [{'frame': [actor()]} | ({} if when is None else {'game_time': when})
            for when in game_times]


@pytest.fixture
def trajectory(tmp_path):
    def write(frames, name='played.json'):
        (tmp_path / name).write_text(json.dumps(frames))
        return str(tmp_path / name)
    return write


class Player:
    """A source played by a thread of its own, frame times in :attr:`seen`."""

    def __init__(self, source):
        self.source, self.seen, self._changed = source, [], threading.Condition()
        self.thread = threading.Thread(target=self._play, daemon=True)
        self.thread.start()

    def _play(self):
        for frame in self.source.frames():
            with self._changed:
                self.seen.append(frame.game_time)
                self._changed.notify_all()

    def awaited(self, n_frames):
        """Wait until ``n_frames`` have been played, and return their times."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= n_frames, AWAIT_S), self.seen
        return self.seen

    def ended(self):
        self.thread.join(AWAIT_S)
        return not self.thread.is_alive()


def file_source(path, **options):
    return FileSource(open_any(path), Settings(**options))


def paused(path, **options):
    source = file_source(path, **options)
    source.pause()
    player = Player(source)
    until(lambda: source.health.state == 'paused')
    return source, player


class Clock:
    """A clock in place of the real one that advances only in waits."""

    def __init__(self, monkeypatch):
        self.now, self.waits = 100.0, []
        monkeypatch.setattr(source.time, 'monotonic', lambda: self.now)

    def drive(self, source):
        def wait(timeout=None):
            self.waits.append(timeout)
            self.now += timeout
        source._changed.wait = wait


def played(source, clock):
    """Return the time of each packet since the first."""
    clock.drive(source)
    times = []
    for _ in source.frames():
        times.append(clock.now)
    return [round(when - times[0], 9) for when in times]


@pytest.mark.parametrize(('times', 'rate', 'expected'), [
    ((5.0, 5.1, 5.4, 5.5), 1.0, [0.0, 0.1, 0.4, 0.5]),
    ((5.0, 5.1, 5.4), 4.0, [0.0, 0.025, 0.1]),
    # At 20 Hz where game time is no help.
    *((times, 1.0, [0.0, 0.05, 0.1]) for times in (
        (1.0, 1.0, 1.0), (None, None, None), (1.0, 0.5, 0.2), (1.0, 4000.0, 8000.0)))])
def test_source_paces_by_game_time_and_rate(trajectory, monkeypatch, times, rate, expected):
    assert played(file_source(trajectory(at(*times)), rate=rate), Clock(monkeypatch)) == expected


@pytest.mark.parametrize(('late_s', 'expected'), [
    # A little late it catches up; held up for long it does not burst.
    (0.13, [0.13, 0.2, 0.3]), (60.0, [60.0, 60.1, 60.2])])
def test_source_that_is_late(trajectory, monkeypatch, late_s, expected):
    clock = Clock(monkeypatch)
    source = file_source(trajectory(at(0.0, 0.1, 0.2, 0.3)))
    clock.drive(source)
    frames = source.frames()
    next(frames)
    start = clock.now
    clock.now += late_s
    assert [clock.now - start for _ in frames] == pytest.approx(expected)


def test_source_gives_frames_without_time_one(trajectory):
    frames = list(file_source(trajectory(at(None, None, 7.0, None)), rate=0.0).frames())
    assert [frame.game_time for frame in frames] == pytest.approx([0.0, 0.05, 7.0, 7.05])


def test_source_ends_and_plays_again_on_request(trajectory):
    source = file_source(trajectory(at(1.0, 2.0)), rate=0.0)
    for _ in range(2):
        assert [frame.game_time for frame in source.frames()] == [1.0, 2.0]
        assert source.health.state == 'ended'
    assert source.health.n_packets == 4
    assert source.health.n_reconnects == 0


def test_source_loops_with_a_step_back(trajectory, monkeypatch):
    clock = Clock(monkeypatch)
    source = file_source(trajectory(at(1.0, 1.1, 1.2)), loop=True)
    clock.drive(source)
    times, when = [], []
    for frame in source.frames():
        times.append(frame.game_time)
        when.append(round(clock.now - 100.0, 9))
        if len(times) == 7:
            source.close()
    assert times == [1.0, 1.1, 1.2] * 2 + [1.0]
    assert when == [0.0, 0.1, 0.2, 0.25, 0.35, 0.45, 0.5]
    assert source.health.state == 'closed'


def test_source_pauses_steps_and_resumes(trajectory):
    source, player = paused(trajectory(at(1.0, 2.0, 3.0, 4.0, 5.0)), rate=0.0)
    assert player.seen == []
    source.step()
    assert player.awaited(1) == [1.0]
    source.step(2)
    assert player.awaited(3) == [1.0, 2.0, 3.0]
    until(lambda: source.health.state == 'paused')
    assert source.position == pytest.approx(2.0)
    source.resume()
    assert player.ended()
    assert player.seen == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_source_restarts_while_paused_and_while_it_plays(trajectory):
    source, player = paused(trajectory(at(10.0, 11.0, 12.0)))
    source.restart()
    assert player.awaited(1) == [10.0]
    source.step()
    assert player.awaited(2)[-1] == 11.0
    source.restart()
    assert player.awaited(3)[-1] == 10.0
    until(lambda: source.position == 0.0 and source.health.state == 'paused')
    source.reconfigure(Settings(rate=0.0))
    source.resume()
    assert player.ended()
    assert player.seen == [10.0, 11.0, 10.0, 11.0, 12.0]


def test_only_a_restart_that_was_asked_for_is_marked(trajectory):
    source = file_source(trajectory(at(10.0, 11.0)), rate=0.0, loop=True)
    frames = source.frames()
    assert [next(frames).is_behind_gap for _ in range(4)] == [False, False, True, False]
    source.close()


@pytest.mark.parametrize('rate', [0.001, 1e-300])
def test_source_changes_its_rate_while_it_waits(trajectory, rate):
    source = file_source(trajectory(at(0.0, 9.0, 18.0)), rate=rate)
    player = Player(source)
    player.awaited(1)
    source.reconfigure(Settings(rate=0.0))
    assert player.ended()
    assert player.seen == [0.0, 9.0, 18.0]


def test_source_closed_while_it_waits_ends_at_once(trajectory):
    source = file_source(trajectory(at(0.0, 9.0)), rate=0.001)
    player = Player(source)
    player.awaited(1)
    source.close()
    source.close()
    assert player.ended()
    assert player.seen == [0.0]
    assert source.health.state == 'closed'
    assert list(source.frames()) == []


def test_source_names_what_is_wrong_with_a_file(trajectory, tmp_path):
    with pytest.raises(TrajectoryFormatError, match='no such file'):
        file_source(str(tmp_path / 'none.json'))
    with pytest.raises(TrajectoryFormatError, match='found no frames'):
        list(file_source(trajectory([]), loop=True).frames())
    (tmp_path / 'bad.json').write_text(json.dumps(at(1.0, 2.0))[:-1] + 'x')
    source = file_source(str(tmp_path / 'bad.json'), rate=0.0)
    frames = source.frames()
    assert [next(frames).game_time for _ in range(2)] == [1.0, 2.0]
    with pytest.raises(TrajectoryFormatError, match='line 1 column'):
        next(frames)
    assert source.health.state == 'ended'
    assert 'line 1 column' in source.health.last_error
