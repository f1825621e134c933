# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The child with CARLA's client library: a step of the world, its columns, and again.

Its threads, since a call of the library may wait for its time-out: the main one reads or makes
steps, and changes actors between them; one takes requests, so that a command is sent at once; one
asks for what no snapshot has; one waits for SIGTERM. The end of the requests or the signal ends
the process within a second: it brakes an ego that it has driven and restores the settings of the
world.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
import math
from multiprocessing.connection import Connection
import os
import pickle
from queue import Empty, SimpleQueue
import signal
import threading
import time
from typing import cast

import numpy as np

from state_sensor_ros.errors import importing, line_of, StateSensorError, UnreachableError
from state_sensor_ros.frame import INDICATORS_LEFT, INDICATORS_RIGHT, Rows
from state_sensor_ros.simulators import child_process
from state_sensor_ros.simulators.carla9 import edits, frames, is_release, SLEEPING, source
from state_sensor_ros.simulators.carla9.commands import EgoDrive
from state_sensor_ros.simulators.carla9.world_reader import CarlaObject, WorldReader
from state_sensor_ros.source import EntityEdit

# The process ends this long after its requests, even if the server does not answer, s.
_END_S = 0.9
# Time without a step after which the reason is looked for, s.
_SILENCE_S = 2.0
_WAKE_S = 0.1
# Loading of a map may take this long, s.
_LOAD_S = 120.0
_NOT_RESTORED = 1
# Time between two questions for the lights of vehicles, s.
_LIGHTS_S = 0.2
# Snapshots that wait to be read: of a slow reader the oldest are dropped.
_MAX_WAITING = 8


class WorldClient:
    """One connection to a server."""

    def __init__(self, run: source.ClientRun, messages: Connection) -> None:
        self._own, self._messages = run.own, messages
        self._telling = threading.Lock()
        self._details = run.details
        # Guards the pace; notified when it changes.
        self._changed = threading.Condition()
        self._clock = child_process.StepClock(run.rate, is_paused=run.is_paused)
        self._is_reload = False
        # Guards the end, and the settings.
        self._ending = threading.Lock()
        # Held while a command of the driver is sent, and from the last brake on.
        self._commanding = threading.Lock()
        self._has_set, self._found = run.is_restore, run.found
        self._drive = EgoDrive(run.own, self._note)
        self._reader: WorldReader | None = None
        # Changes of actors that were requested.
        self._edits: deque[EntityEdit] = deque()
        # (K, 2) ids and lights of vehicles, CARLA's bits.
        self._lights: Rows = np.zeros((0, 2), np.int64)
        # The ego and the angle of its tires, as last asked; set by each step.
        self._tires: tuple[CarlaObject | None, float] = (None, math.nan)
        self._has_stepped = threading.Event()
        # Turn signals that were requested last, None once they are set.
        self._wanted: int | None = None
        # The scene that was sent last.
        self._scene: frames.StepActors | None = None
        self._carla = self._client = self._world = cast(CarlaObject, None)
        self._episode = 0
        # Number of the last step, and why steps are not under control.
        self._ticked, self._fault = -1, ''
        # Snapshots of a guest, from a thread of the library.
        self._waiting: SimpleQueue[CarlaObject] = SimpleQueue()

    def connect(self) -> None:
        with importing('source carla9'):
            import carla
        self._carla = carla
        try:
            client = self._client = carla.Client(self._own.host, self._own.port, worker_threads=1)
            client.set_timeout(self._own.timeout)
            server = client.get_server_version()
        except RuntimeError as error:
            raise UnreachableError('no answer', line_of(error)) from error
        mine = client.get_client_version()
        if server.split('-')[0] != mine.split('-')[0]:
            self._note('version', f'the server is CARLA {server}, the client library {mine}: '
                       'calls that changed between them fail')
        self._drive.carla, self._drive.may_sleep = carla, is_release(server, SLEEPING)
        self._world = client.get_world()

    def work(self) -> None:
        """Read steps or make them, until the end of the process."""
        while True:
            self._begin_episode()
            if self._own.tick:
                self._tick()
            else:
                self._follow()

    def _begin_episode(self) -> None:
        """Read the map and the settings of the world, and set those of ticking."""
        world = self._world = self._client.get_world()
        is_new, self._episode = bool(self._episode), world.id
        settings = world.get_settings()
        found = source.StepSettings(settings.synchronous_mode,
                                    settings.fixed_delta_seconds or None)
        town = world.get_map()
        reader = WorldReader(self._carla, world, town, self._own)
        with self._ending:
            self._reader = reader
            # Settings as this run makes them were left by an earlier process.
            if self._found is None or found != source.StepSettings(True, self._own.step):
                self._found = found
        town_map, problem = frames.read_town(town.to_opendrive())
        if problem:
            self._note('map', problem)
        self._tell(source.EpisodeBegun(town_map, self._found, is_new))
        if self._own.tick:
            with self._ending:
                self._has_set = True
                self._set(source.StepSettings(True, self._own.step))

    def _set(self, wanted: source.StepSettings) -> None:
        """Change the settings that ticking needs; the others stay as they are."""
        settings = self._world.get_settings()
        settings.synchronous_mode = wanted.is_synchronous
        settings.fixed_delta_seconds = wanted.step_s
        self._world.apply_settings(settings, self._own.timeout)

    # Ticking.

    def _tick(self) -> None:
        """Make steps until another episode has begun."""
        is_first = True
        # The server moved the world itself until now.
        self._ticked = self._world.get_snapshot().frame
        while self._await_step():
            self._make_edits()
            self._world.tick(self._own.timeout)
            snapshot = self._world.get_snapshot()
            self._ticked = snapshot.frame
            if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                return
            is_first = False
        self._reload()

    def _await_step(self) -> bool:
        """Wait until a step is due; return False if the world is to begin again."""
        while True:
            with self._changed:
                if self._is_reload or (left_s := self._clock.left_s()) == 0.0:
                    self._clock.step(self._own.step)
                    break
                if (made := self._clock.made()) is None:
                    self._changed.wait(left_s if left_s is not None else _WAKE_S)
            if left_s is None:
                if made is not None:
                    self._tell(made)
                self._watch_pause()
        self._note_fault('')
        return not self._is_reload

    def _watch_pause(self) -> None:
        """Send the steps that another client makes of a world that is paused."""
        snapshot = self._world.get_snapshot()
        if snapshot.frame != self._ticked and snapshot.id == self._episode:
            self._ticked = snapshot.frame
            self._note_fault('the paused world moves: another client ticks it, or has set '
                             'asynchronous mode')
            self._send(snapshot, is_first=False)

    def _note_fault(self, text: str) -> None:
        if text != self._fault:
            self._fault = text
            self._note(source.FAULT, text)

    def _reload(self) -> None:
        self._client.set_timeout(max(self._own.timeout, _LOAD_S))
        self._client.reload_world(False)
        self._client.set_timeout(self._own.timeout)
        with self._changed:
            self._is_reload = False
            self._clock.restart()

    # Following.

    def _follow(self) -> None:
        """Read the steps that the server or another client makes, until another episode begins."""
        self._waiting = SimpleQueue()
        callback = self._world.on_tick(self._receive)
        is_first, silence_s, last_s = True, _SILENCE_S, time.monotonic()
        while True:
            self._make_edits()
            try:
                snapshot = self._waiting.get(timeout=_WAKE_S)
            except Empty:
                if time.monotonic() - last_s > silence_s:
                    silence_s += max(_SILENCE_S, self._own.timeout)
                    if self._is_other_episode():
                        break
                continue
            if silence_s > _SILENCE_S:
                self._note(source.SILENCE, '')
            last_s, silence_s = time.monotonic(), _SILENCE_S
            if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                break
            is_first = False
        with suppress(RuntimeError):
            self._world.remove_on_tick(callback)

    def _make_edits(self) -> None:
        """Make the changes that were requested; what is sent afterward may show them."""
        while self._edits and self._reader is not None:
            edit = self._edits.popleft()
            self._tell(child_process.EditMade(edit, edits.make(edit, self._reader)))
            # Snapshots of before do not.
            self._waiting = SimpleQueue()

    def _receive(self, snapshot: CarlaObject) -> None:
        self._waiting.put(snapshot)
        if self._waiting.qsize() > _MAX_WAITING:
            with suppress(Empty):
                self._waiting.get_nowait()

    def _is_other_episode(self) -> bool:
        """Return whether another episode has begun; otherwise send why there are no steps."""
        world = self._client.get_world()
        if world.id != self._episode:
            return True
        self._note(source.SILENCE,
                   'the world is in synchronous mode and no client ticks it; if the client was '
                   'killed, set carla9.tick' if world.get_settings().synchronous_mode
                   else 'the server answers but makes no steps')
        return False

    def _send(self, snapshot: CarlaObject, *, is_first: bool) -> bool:
        """Send the step of a snapshot; return False if another episode has begun meanwhile."""
        assert self._reader is not None
        try:
            step = self._reader.step(snapshot, details=self._details, is_first=is_first,
                                     tire_angle=self._tire_angle)
        except RuntimeError:
            if self._client.get_world().id != self._episode:
                return False
            raise
        scene = self._reader.scene
        if scene is not self._scene:
            self._scene = scene
            self._tell(scene)
        self._drive.compare(self._reader.ego)
        indicators = frames.indicators_of(scene.rows.numbers, *self._lights.T)
        self._tell(step._replace(indicators=b'' if indicators is None else indicators.tobytes(),
                                 n_proven=self._drive.n_proven))
        self._has_stepped.set()
        return True

    def _tire_angle(self, ego: CarlaObject | None) -> float:
        """Return the angle of the tires of the ego, degrees, + = right; NaN if unknown."""
        if self._own.tick:
            return self._asked_angle(ego)
        # The server may answer only with its next step, for which this one does not wait.
        of_ego, angle = self._tires
        return angle if of_ego is ego else math.nan

    def _asked_angle(self, ego: CarlaObject | None) -> float:
        if ego is None:
            return math.nan
        wheels = self._carla.VehicleWheelLocation
        # The second wheel of a bicycle is its rear one.
        front = [wheels.FL_Wheel, *([] if ego.attributes.get('number_of_wheels') == '2'
                                    else [wheels.FR_Wheel])]
        try:
            return float(sum(map(ego.get_wheel_steer_angle, front)) / len(front))
        except RuntimeError:
            return math.nan

    def watch_vehicles(self) -> None:
        """
        Ask for what snapshots lack: tires after each step of others, lights from time to time.

        In a thread of its own: each question waits for a reply of the server.
        """
        asked_s = -math.inf
        while True:
            self._has_stepped.wait()
            self._has_stepped.clear()
            ego = self._ego
            if not self._own.tick:
                self._tires = ego, self._asked_angle(ego)
            if time.monotonic() - asked_s >= _LIGHTS_S:
                self._ask_lights(ego)
                asked_s = time.monotonic()

    def _ask_lights(self, ego: CarlaObject | None) -> None:
        """Ask for the lights of vehicles; set the turn signals that are wanted."""
        lights: dict[int, int] = {}
        with suppress(RuntimeError):
            lights = {int(number): int(state) for number, state
                      in self._world.get_vehicles_light_states().items()}
            wanted, self._wanted = self._wanted, None
            if ego is not None and wanted is not None and ego.id in lights:
                ego.set_light_state(self._carla.VehicleLightState(
                    lights[ego.id] & ~(frames.LEFT_BLINKER | frames.RIGHT_BLINKER)
                    | frames.LEFT_BLINKER * bool(wanted & INDICATORS_LEFT)
                    | frames.RIGHT_BLINKER * bool(wanted & INDICATORS_RIGHT)))
        self._lights = np.array([*lights.items()], np.int64).reshape(-1, 2)

    # Requests, in threads of their own.

    def serve(self, requests: Connection) -> None:
        """Take requests until they end, then end the process."""
        try:
            while True:
                # Until the gate passes another command.
                command = self._drive.last.command
                left_s = math.inf if command is None else command.left_s()
                if requests.poll(left_s if math.isfinite(left_s) else None):
                    self._take(requests.recv())
                else:
                    # The driver, which may be stopped, has sent no more.
                    self._take(self._drive.last)
        except (EOFError, OSError):
            pass
        finally:
            # Also after a defect, which must not leave the ego driving.
            self.end()

    def _take(self, request: object) -> None:
        if isinstance(request, child_process.Order):
            with self._commanding:
                self._drive.drive(self._ego, request)
        elif isinstance(request, bool):
            self._details = request
        elif isinstance(request, EntityEdit):
            self._edits.append(request)
        elif isinstance(request, child_process.Indicate):
            self._wanted = request.indicators
        elif isinstance(request, child_process.StepPace):
            with self._changed:
                self._clock.take(request)
                self._is_reload |= request.is_restart
                self._changed.notify_all()

    @property
    def _ego(self) -> CarlaObject | None:
        return None if self._reader is None else self._reader.ego

    def _note(self, kind: str, text: str) -> None:
        self._tell(source.WorldNote(kind, text))

    def _tell(self, message: object) -> None:
        # Connection.send() takes twice the time.
        pickled = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._telling:
            self._messages.send_bytes(pickled)

    def end_on_signal(self) -> None:
        """Wait for SIGTERM, then end the process."""
        signal.sigwait({signal.SIGTERM})
        self.end()

    def end(self) -> None:
        """Brake an ego that was driven, restore the settings, and end the process; once."""
        threading.Timer(_END_S, os._exit, (_NOT_RESTORED,)).start()
        # Never released: the first caller ends the process.
        self._ending.acquire()
        with suppress(Exception):
            self._client.set_timeout(_END_S)
            # Never released: no command may follow the brake. One that is stuck does not delay it
            # for long.
            self._commanding.acquire(timeout=_END_S / 2)
            # The brake of a followed speed is NaN.
            last = self._drive.last.command
            if last is not None and not last.brake >= 1.0:
                self._drive.drive(self._ego, child_process.Order(0, last.full_brake()))
        exit_code = _NOT_RESTORED
        with suppress(Exception):
            if self._has_set and self._found is not None:
                self._set(self._found)
            # An answer shows that what was sent before has been received.
            self._client.get_server_version()
            exit_code = 0
        # The library may crash or wait in its destructors.
        os._exit(exit_code)


def main() -> None:
    """Serve the driver that started this process."""
    # Ctrl-C in a terminal is handled by the driver, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # In all threads, for the one that waits for it: the main one may be in a call of the library.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    requests, messages = child_process.process_pipes()
    try:
        run = cast(source.ClientRun, requests.recv())
    except EOFError:
        return
    client = WorldClient(run, messages)
    for work in (client.end_on_signal, lambda: client.serve(requests), client.watch_vehicles):
        threading.Thread(target=work, daemon=True).start()
    try:
        client.connect()
        if not run.is_restore:
            client.work()
    except BrokenPipeError:
        pass
    except Exception as error:  # noqa: BLE001
        # RuntimeError is the only class of the library's errors; a defect restores the world, too.
        found = error.found if isinstance(error, StateSensorError) \
            else line_of(error) if isinstance(error, RuntimeError) \
            else f'internal error: {type(error).__name__}: {line_of(error)}'
        with suppress(OSError):
            messages.send(child_process.ProcessEnd(
                found, is_unreachable=isinstance(error, UnreachableError)))
    client.end()


if __name__ == '__main__':
    main()
