# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What every simulator does with the driver, from its first frame to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, ExitStack
from dataclasses import replace
from itertools import pairwise
import math
from pathlib import Path
import re
import threading
import time
from typing import ClassVar

import numpy as np
import pytest

from state_sensor_ros.classes import has_ego_tag
from state_sensor_ros.control.ego_commands import EgoCommand, EgoCommands, IndicatorCommands
from state_sensor_ros.errors import DecodeError, StateSensorError, TransportError
from state_sensor_ros.frame import (
    Frame,
    INDICATORS_BOTH,
    INDICATORS_LEFT,
    INDICATORS_OFF,
    INDICATORS_RIGHT,
    INDICATORS_UNKNOWN,
)
from state_sensor_ros.payloads import decode_packet
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators.simulator import Simulator
from state_sensor_ros.simulators.simulator_list import checked_settings, find_simulator
from state_sensor_ros.source import SteerableSource
from state_sensor_ros.testing.format_suite import equal_parts, write_read

_LIMIT_S, _CLOSING_S, _STEP_S = 60.0, 10.0, 0.01
_N_FRAMES = 12
# Share of the movement by which the median of the velocities may be wrong.
_VELOCITY_TOLERANCE = 0.2
_FULL_THROTTLE = EgoCommand(throttle=1.0, brake=0.0, steer=0.0, steering_angle=0.0)
_FULL_BRAKE = replace(_FULL_THROTTLE, throttle=0.0, brake=1.0)


class Drive:
    """
    A live source whose frames a thread receives.

    :param simulator: of the source.
    :param settings: checked ones.
    :param reconnect: as of :meth:`Simulator.open_source`.
    :ivar frames: those received so far.
    :ivar error: that ended the source, or None.
    """

    def __init__(self, simulator: Simulator, settings: Settings, *, reconnect: bool) -> None:
        self.frames: list[Frame] = []
        self.error: StateSensorError | None = None
        self.notes: list[str] = []
        self.source = simulator.open_source(settings, self._note, reconnect=reconnect)
        self.commands: EgoCommands | None = simulator.open_commands(
            settings, self.source, self._note) if settings.control_input else None
        self._decoder = simulator.new_decoder(settings)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _note(self, kind: str, text: str) -> None:
        self.notes.append(f'{kind}: {text}')

    def _receive(self) -> None:
        try:
            for packet in self.source.packets():
                try:
                    decoded = decode_packet(self._decoder, packet)
                except DecodeError as error:
                    self._note('payload', str(error))
                else:
                    self.frames += [each.frame for each in decoded]
        except StateSensorError as error:
            self.error = error

    def until(self, condition: Callable[[], object], *, may_end: bool = False) -> None:
        """Wait until a condition is true; fail after a minute, or if the source ends before."""
        deadline_s = time.monotonic() + _LIMIT_S
        while not condition():
            has_ended = not self._thread.is_alive()
            assert may_end or not has_ended or condition(), f'the source has ended: {self.error}'
            assert time.monotonic() < deadline_s, \
                f'not within {_LIMIT_S} s; {len(self.frames)} frames, {self.source.health}'
            time.sleep(_STEP_S)

    def receive(self, n_frames: int) -> list[Frame]:
        """Wait for so many more frames; return them."""
        n_before = len(self.frames)
        self.until(lambda: len(self.frames) >= n_before + n_frames)
        return self.frames[n_before:n_before + n_frames]

    @property
    def has_ended(self) -> bool:
        """Whether no more frames come."""
        return not self._thread.is_alive()

    def close(self) -> None:
        """Brake, close the source, and wait for its end."""
        if self.commands is not None:
            self.commands.close()
        self.source.close()
        self._thread.join(_CLOSING_S)
        assert not self._thread.is_alive(), f'close() does not end packets() in {_CLOSING_S} s'


class SimulatorSuite:
    """
    Tests of a simulator: inherit in a class ``Test…``, with at least the name of the simulator.

    :cvar simulator: its name.
    :cvar parameters: of the driver, by name.
    :cvar has_ego: whether there is one ego.
    :cvar has_boxes: whether some actors have boxes.
    :cvar has_map: whether the frames have lines of a map.
    :cvar connects: whether a simulator that does not run is an error.
    :cvar reuses_port: whether it can begin again where it ran before.
    """

    simulator: ClassVar[str] = ''
    parameters: ClassVar[Mapping[str, object]] = {}
    has_ego: ClassVar[bool] = True
    has_boxes: ClassVar[bool] = True
    has_map: ClassVar[bool] = False
    connects: ClassVar[bool] = True
    reuses_port: ClassVar[bool] = True

    def running(self, port: int = 0) -> AbstractContextManager[Mapping[str, object]]:
        """
        Run the simulator; the context has the parameters to receive from it.

        :param port: the one on which it ran before, 0 for any.
        """
        raise NotImplementedError

    @contextmanager
    def driving(self, given: Mapping[str, object], *, reconnect: bool = False) -> Iterator[Drive]:
        """Receive from a simulator that runs."""
        settings = checked_settings({
            'source': self.simulator, 'reconnect_min': 0.05, 'reconnect_max': 0.2,
            **self.parameters, **given})
        drive = Drive(find_simulator(self.simulator), settings, reconnect=reconnect)
        try:
            yield drive
        finally:
            drive.close()

    def commanding(self, given: Mapping[str, object]) -> Mapping[str, object]:
        """Return the parameters with which the ego is driven, from those of :meth:`running`."""
        return {**given, 'control_input': 'vehicle_control'}

    @contextmanager
    def _driving(self) -> Iterator[Drive]:
        with self.running() as given, self.driving(given) as drive:
            drive.receive(1)
            yield drive

    def test_frames_are_sound(self) -> None:
        """Times increase, names and boxes are sound, one ego, and unknown is not 0."""
        with self._driving() as drive:
            drive.receive(_N_FRAMES)
            frames = list(drive.frames)
        times = [frame.game_time for frame in frames]
        assert times == sorted(times)
        assert times[-1] > times[0]
        kinds: dict[str, int] = {}
        for frame in frames:
            assert len(set(frame.names)) == len(frame.names)
            assert all(frame.names)
            assert np.isfinite(frame.position_xyz).all()
            norms = np.linalg.norm(frame.orientation_xyzw, axis=1)
            np.testing.assert_allclose(norms, 1.0, atol=1e-3)
            for name, kind in zip(frame.names, frame.kinds.tolist(), strict=True):
                assert kinds.setdefault(name, kind) == kind, f'{name} is of another kind'
            egos = [name for name, tags in zip(frame.names, frame.tags, strict=True)
                    if has_ego_tag(tags)]
            assert len(egos) == self.has_ego, egos
        if self.has_boxes:
            self._check_boxes(frames[-1])
        if self.has_map:
            assert any(frame.map_lines for frame in frames)

    def _check_boxes(self, frame: Frame) -> None:
        boxes = frame.boxes
        assert boxes, 'no boxes'
        assert (boxes.size_xyz > 0).all()
        assert ((boxes.actor >= 0) & (boxes.actor < len(frame))).all()
        away_m = np.linalg.norm(boxes.position_xyz - frame.position_xyz[boxes.actor], axis=1)
        assert (away_m <= np.linalg.norm(boxes.size_xyz, axis=1)).all(), 'a box without its actor'

    def test_velocities_are_those_of_the_movement(self) -> None:
        """The unit and the axes: position and velocity agree in most steps of moving actors."""
        with self._driving() as drive:
            drive.receive(3 * _N_FRAMES)
            frames = list(drive.frames)
        shares = []
        for before, after in pairwise(frames):
            step_s = after.game_time - before.game_time
            for row, name in enumerate(before.names):
                if step_s > 0 and name in after.names:
                    moved = after.position_xyz[after.row(name)] - before.position_xyz[row]
                    expected = before.velocity_xyz[row] * step_s
                    if (length_m := float(np.linalg.norm(expected))) > step_s:
                        shares.append(float(np.linalg.norm(moved - expected)) / length_m)
        assert not shares or np.median(shares) < _VELOCITY_TOLERANCE, np.median(shares)

    def test_pause_step_and_restart(self) -> None:
        """For a source that has these: a pause holds, steps are counted, a run begins again."""
        with self._driving() as drive:
            source = drive.source
            if not isinstance(source, SteerableSource):
                pytest.skip('it cannot be paused')
            source.pause()
            assert source.is_paused
            n_frames = -1
            # Steps that were on their way arrive.
            while n_frames != len(drive.frames):
                n_frames = len(drive.frames)
                time.sleep(30 * _STEP_S)
            source.step(3)
            drive.until(lambda: len(drive.frames) == n_frames + 3)
            before_s = drive.frames[-1].game_time
            source.restart()
            drive.until(lambda: drive.frames[-1].game_time < before_s)
            source.resume()
            drive.receive(3)
            assert not source.is_paused

    def test_end_of_the_simulator_ends_the_source(self) -> None:
        """It ends without an error, or with one line."""
        if not self.connects:
            pytest.skip('it is not connected to')
        with ExitStack() as stack:
            with self.running() as given:
                drive = stack.enter_context(self.driving(given))
                drive.receive(1)
            drive.until(lambda: drive.has_ended, may_end=True)
            assert '\n' not in str(drive.error)

    def test_simulator_that_returns_is_received_again(self) -> None:
        """A lost connection is counted, and the frames go on."""
        if not (self.connects and self.reuses_port):
            pytest.skip('it does not begin again at the same place')
        with ExitStack() as stack:
            with self.running() as given:
                drive = stack.enter_context(self.driving(given, reconnect=True))
                drive.receive(1)
            drive.until(lambda: drive.source.health.n_losses)
            n_frames = len(drive.frames)
            with self.running(int(str(given['port']))):
                drive.until(lambda: len(drive.frames) > n_frames)
                assert drive.source.health.n_reconnects >= 1

    def test_simulator_that_does_not_run_is_one_line(self) -> None:
        """The error names the place, and is no traceback."""
        if not self.connects:
            pytest.skip('it is not connected to')
        with self.running() as given:
            pass
        with self.driving(given) as drive:
            drive.until(lambda: drive.has_ended, may_end=True)
            assert isinstance(drive.error, TransportError)
            assert re.search(rf':{given["port"]}\b', str(drive.error)), drive.error
            assert '\n' not in str(drive.error)

    def test_commands_drive_the_ego(self) -> None:
        """Full throttle makes it faster, full brake makes it stand."""
        if not find_simulator(self.simulator).takes_commands:
            pytest.skip('it takes no commands')
        with self.running() as given, self.driving(self.commanding(given)) as drive:
            drive.receive(2)
            commands = drive.commands
            assert commands is not None

            def speed() -> float:
                before, after = drive.frames[-2:]
                if before.ego is None or after.ego is None:
                    return math.nan
                moved = after.position_xyz[after.ego] - before.position_xyz[before.ego]
                step_s = after.game_time - before.game_time
                return float(np.linalg.norm(moved)) / step_s if step_s > 0 else math.nan

            for command, is_reached in ((_FULL_BRAKE, lambda: speed() < 0.1),
                                        (_FULL_THROTTLE, lambda: speed() > 1.0),
                                        (_FULL_BRAKE, lambda: speed() < 0.1)):
                def has_obeyed(command: EgoCommand = command,
                               is_reached: Callable[[], bool] = is_reached) -> bool:
                    commands.send(command)
                    return is_reached()
                drive.until(has_obeyed)

    def test_turn_signals_are_set(self) -> None:
        """What was requested of the ego is in its frames, for commands that have it."""
        if not find_simulator(self.simulator).takes_commands:
            pytest.skip('it takes no commands')
        with self.running() as given, self.driving(self.commanding(given)) as drive:
            drive.receive(2)
            commands = drive.commands
            if not isinstance(commands, IndicatorCommands):
                pytest.skip('it has no turn signals')

            def shown() -> int:
                commands.send(_FULL_BRAKE)
                frame = drive.frames[-1]
                return INDICATORS_UNKNOWN if frame.ego is None or frame.indicators is None \
                    else int(frame.indicators[frame.ego])

            for wanted in (INDICATORS_LEFT, INDICATORS_BOTH, INDICATORS_RIGHT, INDICATORS_OFF):
                commands.indicate(wanted)
                drive.until(lambda wanted=wanted: shown() == wanted)  # type: ignore[misc]

    def test_recording_is_read_back(self, tmp_path: Path) -> None:
        """Frames come back from a bag and a trajectory, also with a pose that is NaN."""
        with self._driving() as drive:
            frames = drive.receive(_N_FRAMES)
        frames = [frame for before, frame in pairwise(frames)
                  if frame.game_time > before.game_time]
        broken = frames[-1].kinematics.copy()
        broken[0] = math.nan
        frames[-1] = replace(frames[-1], kinematics=broken)
        for name in ('bag', 'drive.json'):
            read, lost = write_read(frames, tmp_path / name)
            assert len(read) == len(frames)
            for before, after in zip(frames, read, strict=True):
                equal_parts(before, after, lost)
