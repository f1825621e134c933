# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The process with CARLA's client library: a step of the world, a frame, and again.

Three threads, since a call of the library may wait for its time-out: the main one reads or makes
steps; one takes requests, so that a command is sent at once; one waits for SIGTERM. The end of
the requests or the signal ends the process within a second: it brakes an ego that it has driven
and restores the settings of the world.
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
from types import ModuleType
from typing import Any, cast

import numpy as np

from state_sensor_ros.simulators import (
    EgoCommand,
    importing,
    INDICATORS_LEFT,
    INDICATORS_RIGHT,
    Needs,
    StateSensorError,
    UnreachableError,
)
from state_sensor_ros.simulators.carla9.actors import WorldActors
from state_sensor_ros.simulators.carla9.frames import (
    indicators_of,
    LEFT_BLINKER,
    read_town,
    RIGHT_BLINKER,
    StepActors,
)
from state_sensor_ros.simulators.carla9.snapshot_reader import WorldReader
from state_sensor_ros.simulators.carla9.source import (
    ClientRun,
    EpisodeBegun,
    FAULT,
    SILENCE,
    StepSettings,
    UNANSWERED,
    WorldNote,
)
from state_sensor_ros.simulators.process_source import (
    Indicate,
    process_pipes,
    ProcessEnd,
    Restart,
    StepClock,
    StepPace,
)

# The process ends this long after its requests, even if the server does not answer, s.
_END_S = 0.9
# Time without a step after which the reason is looked for, s.
_SILENCE_S = 2.0
_WAKE_S = 0.1
# Loading of a map may take this long, s.
_LOAD_S = 120.0
_NOT_RESTORED = 1
# Commands that are compared with the pedals in effect, the time and the steps that these may take,
# s, and the difference of equal ones.
_MAX_PRESSED, _UNANSWERED_S, _MANY_STEPS, _NEAR = 256, 0.5, 5, 1e-3
# Time between two questions for the lights of vehicles, s.
_LIGHTS_S = 0.2
# Snapshots that wait to be read: of a slow reader the oldest are dropped.
_MAX_WAITING = 8


class WorldClient:
    """One connection to a server."""

    def __init__(self, run: ClientRun, messages: Connection) -> None:
        self._run, self._own, self._messages = run, run.own, messages
        self._telling = threading.Lock()
        self._needed = run.needed
        # Guards the pace; notified when it changes.
        self._changed = threading.Condition()
        self._clock, self._is_reload = StepClock(run.rate, is_paused=run.is_paused), False
        # Guards the end, and the settings.
        self._ending = threading.Lock()
        # Held while a command of the driver is sent, and from the last brake on.
        self._commanding = threading.Lock()
        self._has_set = run.is_restore
        self._found = run.found
        self._last: EgoCommand | None = None
        # The ego that the controller of the server drives, None for pedals.
        self._followed: Any = None
        self._gear = 1
        self._reader: WorldReader | None = None
        # Lights of vehicles by id as CARLA's bits, and the turn signals of the scene by them.
        self._lights: dict[int, int] = {}
        self._shown, self._indicators = self._lights, b''
        # The ego and the angle of its tires, as last asked; set by each step that others make.
        self._tires: tuple[Any, float] = (None, math.nan)
        self._has_stepped = threading.Event()
        # Turn signals that were requested last, None once they are set.
        self._wanted: int | None = None
        # The scene that was sent last.
        self._scene: StepActors | None = None
        self._carla: ModuleType | None = None
        self._client: Any = None
        self._world: Any = None
        self._episode = 0
        # Number of the last step, and why steps are not under control.
        self._ticked, self._fault = -1, ''
        # Time, throttle and brake of the last commands, and whether the server shows another one.
        self._pressed: deque[tuple[float, float, float]] = deque(maxlen=_MAX_PRESSED)
        self._is_unanswered, self._answered_s, self._n_unlike = False, 0.0, 0
        # Snapshots of a guest, from a thread of the library.
        self._waiting: SimpleQueue[Any] = SimpleQueue()

    def connect(self) -> None:
        with importing('source carla9'):
            import carla
        own = self._own
        self._carla = carla
        try:
            client = self._client = carla.Client(own.host, own.port, worker_threads=1)
            client.set_timeout(own.timeout)
            server = client.get_server_version()
        except RuntimeError as error:
            raise UnreachableError('no answer', _line(error)) from error
        mine = client.get_client_version()
        if server.split('-')[0] != mine.split('-')[0]:
            self._tell(WorldNote('version', f'the server is CARLA {server}, the client '
                                 f'library {mine}: calls that changed between them fail'))
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
        assert self._carla is not None
        world = self._world
        is_new, self._episode = bool(self._episode), world.id
        settings = world.get_settings()
        found = StepSettings(settings.synchronous_mode, settings.fixed_delta_seconds or None)
        town = world.get_map()
        table = WorldActors(self._own.ego, with_level=self._own.static)
        reader = WorldReader(self._carla, world, town, table, with_parked=self._own.static)
        with self._ending:
            self._reader = reader
            # Settings as this run makes them were left by an earlier process.
            if self._found is None or found != StepSettings(True, self._own.step):
                self._found = found
        town_map, problem = read_town(town.to_opendrive())
        if problem:
            self._tell(WorldNote('map', problem))
        self._tell(EpisodeBegun(town_map, self._found, is_new))
        if self._own.tick:
            with self._ending:
                self._has_set = True
                self._set(StepSettings(True, self._own.step))

    def _set(self, wanted: StepSettings) -> None:
        """Change the settings that ticking needs; the others stay as they are."""
        settings = self._world.get_settings()
        settings.synchronous_mode = wanted.is_synchronous
        settings.fixed_delta_seconds = wanted.step_s
        self._world.apply_settings(settings, self._own.timeout)

    # Ticking.

    def _tick(self) -> None:
        """Make steps until another episode has begun."""
        is_first = True
        while True:
            self._wait_until_due()
            if self._is_reload:
                self._reload()
                return
            self._world.tick(self._own.timeout)
            snapshot = self._world.get_snapshot()
            self._ticked = snapshot.frame
            if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                self._world = self._client.get_world()
                return
            is_first = False

    def _wait_until_due(self) -> None:
        while True:
            with self._changed:
                if self._is_reload or (left_s := self._clock.left_s()) == 0.0:
                    self._clock.step(self._own.step)
                    break
                self._changed.wait(left_s if left_s is not None else _WAKE_S)
            if left_s is None:
                self._watch_pause()
        self._note_fault('')

    def _watch_pause(self) -> None:
        """Send the steps that another client makes of a world that is paused."""
        snapshot = self._world.get_snapshot()
        if snapshot.frame == self._ticked or snapshot.id != self._episode:
            return
        self._ticked = snapshot.frame
        self._note_fault('the paused world moves: another client ticks it, or has set '
                         'asynchronous mode')
        self._send(snapshot, is_first=False)

    def _note_fault(self, text: str) -> None:
        if text != self._fault:
            self._fault = text
            self._tell(WorldNote(FAULT, text))

    def _reload(self) -> None:
        self._client.set_timeout(max(self._own.timeout, _LOAD_S))
        self._world = self._client.reload_world(False)
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
            try:
                snapshot = self._waiting.get(timeout=_WAKE_S)
            except Empty:
                if time.monotonic() - last_s > silence_s:
                    silence_s += max(_SILENCE_S, self._own.timeout)
                    if self._is_other_episode():
                        break
            else:
                if silence_s > _SILENCE_S:
                    self._tell(WorldNote(SILENCE, ''))
                last_s, silence_s = time.monotonic(), _SILENCE_S
                if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                    break
                is_first = False
        with suppress(RuntimeError):
            self._world.remove_on_tick(callback)
        self._world = self._client.get_world()

    def _receive(self, snapshot: Any) -> None:  # noqa: ANN401
        self._waiting.put(snapshot)
        if self._waiting.qsize() > _MAX_WAITING:
            with suppress(Empty):
                self._waiting.get_nowait()

    def _is_other_episode(self) -> bool:
        """Return whether another episode has begun; otherwise send why there are no steps."""
        world = self._client.get_world()
        if world.id != self._episode:
            return True
        self._tell(WorldNote(
            SILENCE,
            'the world is in synchronous mode and no client ticks it; if the client was killed, '
            'set carla9.tick' if world.get_settings().synchronous_mode
            else 'the server answers but makes no steps'))
        return False

    def _send(self, snapshot: Any, *, is_first: bool) -> bool:  # noqa: ANN401
        """Send the frame of a snapshot; return False if another episode has begun meanwhile."""
        assert self._reader is not None
        try:
            scene, step = self._reader.step(
                snapshot, self._needed, is_first=is_first, tire_angle=self._tire_angle)
        except RuntimeError:
            if self._client.get_world().id != self._episode:
                return False
            raise
        lights = self._lights
        if scene is not self._scene or lights is not self._shown:
            self._shown, self._indicators = lights, _indicators(scene, lights)
        if scene is not self._scene:
            self._scene = scene
            self._tell(scene)
        self._tell(step._replace(indicators=self._indicators))
        self._compare_pedals()
        return True

    def _tire_angle(self, ego: Any) -> float:  # noqa: ANN401
        """Return the angle of the tires of the ego, degrees, + = right; NaN if unknown."""
        if self._own.tick:
            return self._asked_angle(ego)
        # The server may answer only with its next step, for which this one does not wait.
        self._has_stepped.set()
        of_ego, angle = self._tires
        return angle if of_ego is ego else math.nan

    def _asked_angle(self, ego: Any) -> float:  # noqa: ANN401
        assert self._carla is not None
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

    def watch_tires(self) -> None:
        """Ask for the angle of the tires after each step that others make."""
        while True:
            self._has_stepped.wait()
            self._has_stepped.clear()
            ego = None if self._reader is None else self._reader.ego
            self._tires = ego, self._asked_angle(ego)

    def _compare_pedals(self) -> None:
        """Note whether the pedals that the server shows are of a command of the last moments."""
        assert self._reader is not None
        ego: Any = self._reader.ego
        now_s = time.monotonic()
        if ego is None or not self._pressed or self._followed is not None:
            self._answered_s, self._n_unlike = now_s, 0
            return
        while len(self._pressed) > 1 and now_s - self._pressed[1][0] > _UNANSWERED_S:
            self._pressed.popleft()
        shown = ego.get_control()
        if any(abs(shown.throttle - throttle) < _NEAR and abs(shown.brake - brake) < _NEAR
               for _, throttle, brake in (*self._pressed,)):
            self._answered_s, self._n_unlike = now_s, 0
        else:
            self._n_unlike += 1
        is_unanswered = self._n_unlike >= _MANY_STEPS and now_s - max(
            self._answered_s, self._pressed[0][0]) > _UNANSWERED_S
        if is_unanswered is not self._is_unanswered:
            self._is_unanswered = is_unanswered
            self._tell(WorldNote(
                UNANSWERED, f'throttle {shown.throttle:.2f} and brake {shown.brake:.2f} are in '
                'effect, unlike the last commands: the server ignores commands, or another '
                'client drives' if is_unanswered else ''))

    # Requests, in threads of their own.

    def serve(self, requests: Connection) -> None:
        """Take requests until they end, then end the process."""
        try:
            while True:
                if requests.poll(self._command_left_s()):
                    self._take(requests.recv())
                else:
                    self._repeat()
        except (EOFError, OSError):
            pass
        finally:
            # Also after a defect, which must not leave the ego driving.
            self.end()

    def _command_left_s(self) -> float | None:
        """Return the time until the gate passes another command, s; None for never."""
        last_s = math.inf if self._last is None else self._last.left_s()
        return last_s if math.isfinite(last_s) else None

    def _repeat(self) -> None:
        """Send what the gate passes now: the driver, which may be stopped, has sent no more."""
        assert self._last is not None
        with self._commanding:
            self._drive(self._last.now())

    def _take(self, request: object) -> None:
        if isinstance(request, EgoCommand):
            with self._commanding:
                self._drive(request.now())
        elif isinstance(request, Needs):
            self._needed = request
        elif isinstance(request, Indicate):
            self._wanted = request.indicators
        elif isinstance(request, StepPace):
            with self._changed:
                self._clock.take(request)
                self._changed.notify_all()
        elif isinstance(request, Restart):
            with self._changed:
                self._is_reload = True
                self._changed.notify_all()

    def _drive(self, command: EgoCommand) -> None:
        """Send a command to the ego; the library does not wait for an answer."""
        ego = self._reader.ego if self._reader is not None else None
        if ego is None or self._carla is None:
            self._tell(WorldNote('command', 'a command is lost: there is no ego'))
            return
        try:
            # Before the call: what is sent late is followed by a brake, too.
            self._last = command
            if math.isnan(command.speed):
                self._followed = None
                self._press(ego, throttle=command.throttle, brake=command.brake,
                            steer=-command.steer, hand_brake=command.hand_brake,
                            reverse=command.reverse)
                return
            if self._followed is not ego:
                # The controller of the server leaves the hand brake as it is.
                self._press(ego, steer=-command.steer)
                self._followed = ego
            ego.apply_ackermann_control(self._carla.VehicleAckermannControl(
                steer=-command.steering_angle, speed=command.speed,
                acceleration=command.max_acceleration))
        except RuntimeError as error:
            self._tell(WorldNote('command', f'a command is lost: {_line(error)}'))

    def watch_lights(self) -> None:
        """Ask for the lights of vehicles from time to time; set the turn signals wanted."""
        # In a thread of its own: each question waits for a reply of the server.
        while True:
            time.sleep(_LIGHTS_S)
            if self._reader is None:
                continue
            ego = self._reader.ego
            try:
                lights = {int(number): int(state) for number, state
                          in self._world.get_vehicles_light_states().items()}
                wanted, self._wanted = self._wanted, None
                if ego is not None and wanted is not None and ego.id in lights:
                    ego.set_light_state(self._with_signals(lights[ego.id], wanted))
            except RuntimeError:
                lights = {}
            if lights != self._lights:
                self._lights = lights

    def _with_signals(self, lights: int, indicators: int) -> Any:  # noqa: ANN401
        assert self._carla is not None
        return self._carla.VehicleLightState(
            lights & ~(LEFT_BLINKER | RIGHT_BLINKER)
            | LEFT_BLINKER * bool(indicators & INDICATORS_LEFT)
            | RIGHT_BLINKER * bool(indicators & INDICATORS_RIGHT))

    def _press(self, ego: Any, **pedals: float) -> None:  # noqa: ANN401
        assert self._carla is not None
        # The library does not send a control that is equal to its last one, although another
        # client, or what drove before, may have changed the pedals since: each one differs by its
        # gear, which has no effect.
        self._gear = 3 - self._gear
        self._pressed.append((time.monotonic(), pedals.get('throttle', 0.0),
                              pedals.get('brake', 0.0)))
        ego.apply_control(self._carla.VehicleControl(gear=self._gear, **pedals))

    def _tell(self, message: object) -> None:
        # Connection.send() takes twice the time.
        pickled = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._telling:
            self._messages.send_bytes(pickled)

    def end_on_signal(self, signals: int) -> None:
        """Wait for a signal, then end the process."""
        os.read(signals, 1)
        self.end()

    def end(self) -> None:
        """Brake an ego that was driven, restore the settings, and end the process; once."""
        threading.Thread(target=_exit_late, daemon=True).start()
        # Never released: the first caller ends the process.
        self._ending.acquire()
        with suppress(Exception):
            self._client.set_timeout(_END_S)
            # Never released: no command may follow the brake. One that is stuck does not delay it
            # for long.
            self._commanding.acquire(timeout=_END_S / 2)
            # The brake of a followed speed is NaN.
            if self._last is not None and not self._last.brake >= 1.0:
                self._drive(EgoCommand(throttle=0.0, brake=1.0, steer=0.0, steering_angle=0.0))
        exit_code = _NOT_RESTORED
        with suppress(Exception):
            if self._has_set and self._found is not None:
                self._set(self._found)
            # An answer shows that what was sent before has been received.
            self._client.get_server_version()
            exit_code = 0
        # The library may crash or wait in its destructors.
        os._exit(exit_code)


def _exit_late() -> None:
    time.sleep(_END_S)
    os._exit(_NOT_RESTORED)


def _indicators(scene: StepActors, lights: dict[int, int]) -> bytes:
    indicators = indicators_of(
        scene.rows.numbers, np.fromiter(lights, np.int64, len(lights)),
        np.fromiter(lights.values(), np.uint32, len(lights)))
    return b'' if indicators is None else indicators.tobytes()


def _line(error: BaseException) -> str:
    return ' '.join(str(error).split()) or type(error).__name__


def main() -> None:
    """Serve the driver that started this process."""
    # Ctrl-C in a terminal is handled by the driver, which closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The main thread, which handles signals, may be in a call of the library.
    signals, written = os.pipe()
    os.set_blocking(written, False)
    signal.set_wakeup_fd(written)
    signal.signal(signal.SIGTERM, lambda *_: None)
    requests, messages = process_pipes()
    try:
        run = cast(ClientRun, requests.recv())
    except EOFError:
        return
    client = WorldClient(run, messages)
    threading.Thread(target=client.end_on_signal, args=(signals,), daemon=True).start()
    threading.Thread(target=client.serve, args=(requests,), daemon=True).start()
    threading.Thread(target=client.watch_lights, daemon=True).start()
    threading.Thread(target=client.watch_tires, daemon=True).start()
    try:
        client.connect()
        if not run.is_restore:
            client.work()
    except BrokenPipeError:
        pass
    except Exception as error:  # noqa: BLE001
        # RuntimeError is the only class of the library's errors; a defect restores the world, too.
        found = error.found if isinstance(error, StateSensorError) \
            else _line(error) if isinstance(error, RuntimeError) \
            else f'internal error: {type(error).__name__}: {_line(error)}'
        with suppress(OSError):
            messages.send(ProcessEnd(found, is_unreachable=isinstance(error, UnreachableError)))
    client.end()


if __name__ == '__main__':
    main()
