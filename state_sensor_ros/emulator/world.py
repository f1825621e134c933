# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The state of a simulation: what is shown now, who drives the clock, whether an ego exists.

May know: frames and their order. Must not: sockets, JSON of commands, threads other than locks.
Source of truth: PROTOCOL 2.5 and 6.
"""

from __future__ import annotations

import threading

import numpy as np

from state_sensor_ros.emulator.placement import placed
from state_sensor_ros.emulator.playback import DEFAULT_PERIOD_S, Playback, Shot, Trajectory
from state_sensor_ros.emulator.samples import Clock, Frame

CLOSED_LOOP_MODES = (0, 3)


class World:
    """
    What the sensors look at.

    :param playback: where frames come from, None for frames that are only pushed or placed.
    :param is_free_running: whether time goes on by itself.
    """

    def __init__(self, playback: Playback | None, is_free_running: bool) -> None:
        self._lock = threading.RLock()
        self._own_playback = playback
        self._playback = playback
        self._begins_free = is_free_running
        self._is_free_running = is_free_running
        self._mode: int | None = None
        self._now: Shot | None = None
        self.has_ego = True
        self.has_scenario = False
        self.is_stopped = False

    @property
    def is_free_running(self) -> bool:
        """Whether frames come by themselves; a client that drives the clock ends that."""
        return (self._is_free_running and not self.is_stopped and self.has_ego
                and self._playback is not None)

    def begin(self, mode: int) -> None:
        """
        Start over in another simulation mode.

        :param mode: 0 and 3 are closed loop; 1, 2 and 3 are clocked by the client.
        """
        with self._lock:
            self._mode = mode
            self._now = None
            self._is_free_running = self._begins_free and mode == 0
            # In closed loop the ego comes with a scenario, a control or a command to spawn it.
            self.has_ego, self.has_scenario = mode not in CLOSED_LOOP_MODES, False
            self._playback = self._own_playback
            if self._playback is not None:
                self._playback.rewind()

    def load(self, frames: list[Frame]) -> None:
        """
        Replace what is played; from now on the client steps through it.

        :param frames: a trajectory.
        """
        with self._lock:
            self._playback = Trajectory(frames)
            self._now = None
            self._is_free_running = False
            self._mode = self._mode if self._mode == 2 else 1

    def advance(self) -> Shot | None:
        """
        Go on to the next frame by the simulator's own clock.

        :returns: the frame, None at the end, or where a client has just taken the clock over.
        """
        with self._lock:
            if self._playback is None or not self._is_free_running:
                return None
            shot = self._playback.advance()
            self._now = shot or self._now
            return shot

    def step(self, amount: int) -> Shot | None:
        """
        Step at the client's command.

        :param amount: frames, negative ones go back.
        :returns: the frame, None where there is nothing to step through.
        """
        with self._lock:
            self._is_free_running = False
            self._mode = self._mode or 1
            if self._playback is None:
                return None
            return self._show(self._playback.step(amount))

    def tick(self) -> None:
        """Go on by one fixed time step without sampling anything."""
        with self._lock:
            self._is_free_running = False
            if self._playback is not None:
                self._show(self._playback.step(1))

    def sample(self) -> Shot | None:
        """
        Look once more; where nobody else drives the clock, the sample itself does.

        :returns: the frame, None where there is none.
        """
        with self._lock:
            others_drive = self._is_free_running or self._mode not in (None, 0)
            if self._playback is not None and (self._now is None or not others_drive):
                return self._show(self._playback.step(1))
            return self._show(self._now)

    def place(self, members: dict[str, object]) -> Shot:
        """
        Put the actors where a frame from the client says; its clock is the simulator's.

        :param members: the frame; poses are enough.
        :returns: the frame to be sampled.
        """
        with self._lock:
            self._is_free_running = False
            self._mode = self._mode or 2
            frame = Frame(placed(members))
            before = Clock(0.0, 0, 0) if self._now is None else self._now.clock
            earliest_s = (before.game_time or 0.0) + DEFAULT_PERIOD_S
            asked = frame.clock
            clock = Clock(float(np.float32(max(asked.game_time or 0.0, earliest_s))),
                          asked.time if asked.time is not None else before.time, 0)
            self._now = Shot(frame, clock, is_verbatim=False)
            return self._now

    def _show(self, shot: Shot | None) -> Shot | None:
        """Keep what is shown; samples are counted by the sensor, not by the recording."""
        if shot is not None:
            self._now = shot = Shot(shot.frame, shot.clock, is_verbatim=False)
        return shot
