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
steps; one takes requests, so that a command is sent at once; one asks for what no snapshot has;
one waits for SIGTERM. The end of the requests or the signal ends the process within a second: it
brakes an ego that it has driven and restores the settings of the world.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
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
from typing import Any, cast, TypeAlias

import numpy as np

from state_sensor_ros.control.ego_commands import EgoCommand, STANDSTILL_SPEED
from state_sensor_ros.errors import importing, StateSensorError, UnreachableError
from state_sensor_ros.frame import INDICATORS_LEFT, INDICATORS_RIGHT
from state_sensor_ros.simulators import child_process
from state_sensor_ros.simulators.carla9 import actors, frames, is_release, SLEEPING, source
from state_sensor_ros.simulators.child_process import Indicate, Order, Restart, StepPace

# Objects of CARLA's client library, which has no types.
Snapshot: TypeAlias = Any
World: TypeAlias = Any
Vehicle: TypeAlias = Any
# The process ends this long after its requests, even if the server does not answer, s.
_END_S = 0.9
# Time without a step after which the reason is looked for, s.
_SILENCE_S = 2.0
_WAKE_S = 0.1
# Loading of a map may take this long, s.
_LOAD_S = 120.0
_NOT_RESTORED = 1
# Commands that are compared with the pedals in effect, and the difference of equal ones.
_MAX_PRESSED, _NEAR = 64, 1e-3
# Speed that wakes a body, m/s.
_NUDGE = 0.1
# Time between two questions for the lights of vehicles, s.
_LIGHTS_S = 0.2
# Snapshots that wait to be read: of a slow reader the oldest are dropped.
_MAX_WAITING = 8
# Numbers of an actor that does not move, after its place.
_AT_REST = (0.0,) * (frames.N_NUMBERS - 6)
# Parked vehicles of the level by the label of the server, with their tag.
_PARKED = (('Car', 'car'), ('Truck', 'truck'), ('Bus', 'bus'), ('Motorcycle', 'motorcycle'),
           ('Bicycle', 'bicycle'), ('Vehicles', 'car'))


class WorldReader:
    """Reads the snapshots of one episode; lights and signs are read once."""

    def __init__(self, carla: ModuleType, world: World, town: Any,  # noqa: ANN401
                 table: actors.WorldActors, *, with_parked: bool) -> None:
        self._world, self._town, self._table = world, town, table
        self._location = carla.Location
        state = carla.ActorSnapshot
        [self._id] = _getters(state, 'id')
        self._of_transform = _getters(carla.Transform, 'location', 'rotation')
        self._of_state = (state.get_transform, state.get_velocity, state.get_angular_velocity,
                          state.get_acceleration)
        self._xyz = _getters(carla.Vector3D, 'x', 'y', 'z')
        self._rpy = _getters(carla.Rotation, 'roll', 'pitch', 'yaw')
        self._actors: dict[int, Any] = {}
        # Ids in the last snapshot, and of these the places of the actors that move.
        self._ids: tuple[int, ...] = ()
        self._moving: list[int] = []
        self._fixed: dict[int, Sequence[float]] = {}
        # The ego in the last snapshot, None if there is none.
        self.ego: Vehicle | None = None
        if with_parked:
            self._add_parked(carla)
        self._arrange(())

    def _add_parked(self, carla: ModuleType) -> None:
        known: set[int] = set()
        for label, tag in _PARKED:
            kind = getattr(carla.CityObjectLabel, label, None)
            for found in () if kind is None else self._world.get_environment_objects(kind):
                if found.id in known:
                    continue
                number = actors.FIRST_PARKED + len(known)
                known.add(found.id)
                # The box of such an object is given in the world, not relative to the object.
                box = found.bounding_box
                extent = _xyz(box.extent)
                x, y, z = _xyz(box.location)
                box_on_ground = actors.box_of((0, 0, extent[2]), extent)
                self._table.add_parked(number, found.name, tag, box_on_ground)
                self._fixed[number] = (x, y, z - extent[2], *_rpy(box.rotation))

    def step(self, snapshot: Snapshot, *, details: bool, is_first: bool,
             tire_angle: Callable[[Vehicle | None], float]) -> frames.WorldStep:
        """
        Return the step of a snapshot; :attr:`scene` is the same object until it changes.

        :param tire_angle: returns that of the ego, degrees, + = right.
        """
        states = list(snapshot)
        ids = tuple(map(self._id, states))
        if ids != self._ids:
            self._update(ids, states)
            self._ids = ids
        numbers = self._numbers(map(states.__getitem__, self._moving))
        stamp = snapshot.timestamp
        return frames.WorldStep(
            stamp.elapsed_seconds, snapshot.frame % (1 << 32), is_first, numbers.tobytes(),
            bytes([int(light.get_state()) for light in self._lights]),
            self._controls(tire_angle(self.ego)) if details else b'', self._lanes(numbers))

    def _numbers(self, moving: Iterable[Any]) -> array[float]:
        """Return the numbers of a step, of the states of the actors that move."""
        transform, velocity, rate, acceleration = self._of_state
        location, rotation = self._of_transform
        (x, y, z), (roll, pitch, yaw) = self._xyz, self._rpy
        flat: list[float] = []
        for state in moving:
            at, moves, turns = transform(state), velocity(state), rate(state)
            xyz, rpy, gains = location(at), rotation(at), acceleration(state)
            flat += (x(xyz), y(xyz), z(xyz), roll(rpy), pitch(rpy), yaw(rpy), x(moves), y(moves),
                     z(moves), x(turns), y(turns), z(turns), x(gains), y(gains), z(gains))
        # Half the time of numpy.
        return array('f', flat + self._still)

    def _update(self, ids: tuple[int, ...], states: Sequence[Any]) -> None:
        """Add the actors that are new, and remove those that have gone."""
        present = set(ids)
        for number in set(self._ids) - present:
            self._table.remove(number)
            self._actors.pop(number, None)
            self._fixed.pop(number, None)
        new = present.difference(self._ids)
        if new:
            # One that was removed meanwhile is not returned, and not asked for again.
            for actor in sorted(self._world.get_actors(sorted(new)), key=lambda one: one.id):
                self._add(actor)
        for number, state in zip(ids, states, strict=True):
            known = self._table.get(number) if number in new else None
            if known is not None and known.is_fixed:
                place = state.get_transform()
                self._fixed[number] = (*_xyz(place.location), *_rpy(place.rotation))
        self._arrange(ids)

    def _add(self, actor: Any) -> None:  # noqa: ANN401
        box = getattr(actor, 'bounding_box', None)
        number, attributes = actor.id, {}
        # An attribute whose value is not of its type makes all of them unreadable.
        with suppress(ValueError):
            attributes = actor.attributes
        if self._table.add(number, actor.type_id, attributes, actors.NO_BOX if box is None
                           else actors.box_of(_xyz(box.location), _xyz(box.extent))) is not None:
            self._actors[number] = actor

    def _arrange(self, ids: tuple[int, ...]) -> None:
        """Put the actors of a frame in the order of their ids."""
        self._moving = [place for place, number in enumerate(ids) if number not in self._fixed
                        and self._table.get(number) is not None]
        self._moving.sort(key=ids.__getitem__)
        moving, fixed = [ids[place] for place in self._moving], sorted(self._fixed)
        self._still = [number for actor in fixed for number in (*self._fixed[actor], *_AT_REST)]
        numbers = moving + fixed
        ego = self._table.ego_of(moving)
        self.ego = None if ego is None else self._actors.get(ego)
        known = [self._table.get(number) for number in numbers]
        lights = [row for row, actor in enumerate(known) if actor is not None and actor.is_light]
        self._lights = [self._actors[numbers[row]] for row in lights]
        self._vehicles = [row for row, actor in enumerate(known)
                          if actor is not None and actor.is_vehicle]
        self.scene = frames.StepActors(
            self._table.rows(np.array(numbers, np.int64)), np.array(lights, np.int64),
            tuple(str(light.get_opendrive_id()) for light in self._lights)
            if self._lights and hasattr(self._lights[0], 'get_opendrive_id') else ())

    def _controls(self, tire_angle: float) -> bytes:
        numbers = self.scene.rows.numbers.tolist()
        controls = np.full((len(numbers), 4), np.nan)
        # From the snapshot, without a request to the server.
        for row in self._vehicles:
            if (actor := self._actors.get(numbers[row])) is not None:
                control = actor.get_control()
                controls[row, :3] = control.throttle, control.brake, control.steer
                if actor is self.ego:
                    controls[row, 3] = tire_angle
        return controls.tobytes()

    def _lanes(self, numbers: array[float]) -> bytes:
        """Return the lanes of vehicles: row, road, section, lane, s (m), speed to the right."""
        rows, found = np.array(numbers).reshape(-1, frames.N_NUMBERS), []
        for row in self._vehicles:
            x, y, z, _, _, _, vx, vy, vz = rows[row, :9].tolist()
            waypoint = self._town.get_waypoint(self._location(x, y, z), project_to_road=False)
            if waypoint is not None:
                right = waypoint.transform.get_right_vector()
                found.append((row, waypoint.road_id, waypoint.section_id, waypoint.lane_id,
                              waypoint.s, vx * right.x + vy * right.y + vz * right.z))
        return np.array(found, float).tobytes()


def _getters(kind: Any, *names: str) -> tuple[Callable[[Any], Any], ...]:  # noqa: ANN401
    """Return functions that get properties of a class of the library."""
    return tuple(getattr(kind, name).fget for name in names)


def _xyz(vector: Any) -> tuple[float, float, float]:  # noqa: ANN401
    return vector.x, vector.y, vector.z


def _rpy(rotation: Any) -> tuple[float, float, float]:  # noqa: ANN401
    return rotation.roll, rotation.pitch, rotation.yaw


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
        self._last: Order | None = None
        # The ego that the controller of the server drives, None for pedals.
        self._followed: Vehicle | None = None
        self._gear = 1
        # Whether the server puts a body that stands to sleep, and the ego was woken since it did.
        self._may_sleep = self._is_woken = False
        self._reader: WorldReader | None = None
        # Lights of vehicles by id as CARLA's bits.
        self._lights: dict[int, int] = {}
        # The ego and the angle of its tires, as last asked; set by each step.
        self._tires: tuple[Vehicle | None, float] = (None, math.nan)
        self._has_stepped = threading.Event()
        # Turn signals that were requested last, None once they are set.
        self._wanted: int | None = None
        # The scene that was sent last.
        self._scene: frames.StepActors | None = None
        self._carla: Any = None
        self._client: Any = None
        self._world: World = None
        self._episode = 0
        # Number of the last step, and why steps are not under control.
        self._ticked, self._fault = -1, ''
        # Throttle, brake and number of the last commands; numbers of the one that is shown to be
        # in effect, and of the one before the last step.
        self._pressed: deque[tuple[float, float, int]] = deque(maxlen=_MAX_PRESSED)
        self._n_proven = self._n_stepped = 0
        # Snapshots of a guest, from a thread of the library.
        self._waiting: SimpleQueue[Snapshot] = SimpleQueue()

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
            self._note('version', f'the server is CARLA {server}, the client library {mine}: '
                       'calls that changed between them fail')
        self._may_sleep = is_release(server, SLEEPING)
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
        world = self._world
        is_new, self._episode = bool(self._episode), world.id
        settings = world.get_settings()
        found = source.StepSettings(settings.synchronous_mode,
                                    settings.fixed_delta_seconds or None)
        town = world.get_map()
        table = actors.WorldActors(self._own.ego, with_level=self._own.static)
        reader = WorldReader(self._carla, world, town, table, with_parked=self._own.static)
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
            self._world.tick(self._own.timeout)
            snapshot = self._world.get_snapshot()
            self._ticked = snapshot.frame
            if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                self._world = self._client.get_world()
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
                continue
            if silence_s > _SILENCE_S:
                self._note(source.SILENCE, '')
            last_s, silence_s = time.monotonic(), _SILENCE_S
            if snapshot.id != self._episode or not self._send(snapshot, is_first=is_first):
                break
            is_first = False
        with suppress(RuntimeError):
            self._world.remove_on_tick(callback)
        self._world = self._client.get_world()

    def _receive(self, snapshot: Snapshot) -> None:
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

    def _send(self, snapshot: Snapshot, *, is_first: bool) -> bool:
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
        self._compare_pedals()
        self._tell(step._replace(indicators=_indicators(scene, self._lights),
                                 n_proven=self._n_proven))
        self._has_stepped.set()
        return True

    def _tire_angle(self, ego: Vehicle | None) -> float:
        """Return the angle of the tires of the ego, degrees, + = right; NaN if unknown."""
        if self._own.tick:
            return self._asked_angle(ego)
        # The server may answer only with its next step, for which this one does not wait.
        of_ego, angle = self._tires
        return angle if of_ego is ego else math.nan

    def _asked_angle(self, ego: Vehicle | None) -> float:
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
            ego = None if self._reader is None else self._reader.ego
            if not self._own.tick:
                self._tires = ego, self._asked_angle(ego)
            if time.monotonic() - asked_s >= _LIGHTS_S:
                self._ask_lights(ego)
                asked_s = time.monotonic()

    def _ask_lights(self, ego: Vehicle | None) -> None:
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
        self._lights = lights

    def _compare_pedals(self) -> None:
        """Note the newest command whose pedals the server shows."""
        assert self._reader is not None
        ego = self._reader.ego
        if self._followed is not None:
            # Its controller has the pedals; what was sent before a step is in effect in the next.
            self._n_proven = self._n_stepped
            self._n_stepped = self._last.number if self._last is not None else 0
        elif ego is not None:
            shown = ego.get_control()
            self._n_proven = max((number for throttle, brake, number in (*self._pressed,) if max(
                abs(shown.throttle - throttle), abs(shown.brake - brake)) < _NEAR),
                default=self._n_proven)

    # Requests, in threads of their own.

    def serve(self, requests: Connection) -> None:
        """Take requests until they end, then end the process."""
        try:
            while True:
                # Until the gate passes another command.
                command = self._last and self._last.command
                left_s = math.inf if command is None else command.left_s()
                if requests.poll(left_s if math.isfinite(left_s) else None):
                    self._take(requests.recv())
                elif self._last is not None:
                    # The driver, which may be stopped, has sent no more.
                    self._take(self._last)
        except (EOFError, OSError):
            pass
        finally:
            # Also after a defect, which must not leave the ego driving.
            self.end()

    def _take(self, request: object) -> None:
        if isinstance(request, Order):
            with self._commanding:
                self._drive(request)
        elif isinstance(request, bool):
            self._details = request
        elif isinstance(request, Indicate):
            self._wanted = request.indicators
        elif isinstance(request, StepPace | Restart):
            with self._changed:
                if isinstance(request, StepPace):
                    self._clock.take(request)
                else:
                    self._is_reload, self._clock.number = True, request.number
                self._changed.notify_all()

    def _drive(self, order: Order) -> None:
        """Send a command to the ego; the library does not wait for an answer."""
        assert order.command is not None
        command = order.command.now()
        ego: Vehicle = self._reader.ego if self._reader is not None else None
        if ego is None or self._carla is None:
            self._note('command', 'a command is lost: there is no ego')
            return
        try:
            # Before the call: what is sent late is followed by a brake, too.
            self._last = order._replace(command=command)
            least = self._own.min_throttle if self._starts(ego, command) else 0.0
            if math.isnan(command.speed):
                self._followed = None
                first = {'manual_gear_shift': True, 'gear': -1 if command.reverse else 1}
                self._press(ego, throttle=max(command.throttle, least), brake=command.brake,
                            steer=-command.steer, hand_brake=command.hand_brake,
                            reverse=command.reverse, **(first if least else {}))
                return
            if self._followed is not ego:
                # The controller of the server leaves the hand brake as it is.
                self._press(ego, steer=-command.steer)
                self._followed = ego
            ego.apply_ackermann_control(self._carla.VehicleAckermannControl(
                steer=-command.steering_angle, speed=command.speed,
                acceleration=command.max_acceleration))
        except RuntimeError as error:
            self._note('command', f'a command is lost: {_line(error)}')

    def _starts(self, ego: Vehicle, command: EgoCommand) -> bool:
        """Return whether the ego is to move from rest; wake it once, since no throttle does."""
        # A comparison with NaN, of what the command does not have, is false.
        if not (abs(command.speed) > 0.0 or (command.throttle > 0.0 and not command.brake)) \
                or math.hypot(*_xyz(ego.get_velocity())) > STANDSTILL_SPEED:
            self._is_woken = False
            return False
        if self._may_sleep and not self._is_woken:
            self._is_woken = True
            ego.set_target_velocity(ego.get_transform().get_forward_vector() * (
                -_NUDGE if command.reverse else _NUDGE))
        return True

    def _press(self, ego: Vehicle, **pedals: float) -> None:
        # The library does not send a control that is equal to its last one, although another
        # client, or what drove before, may have changed the pedals since: each one differs by its
        # gear, which has no effect.
        self._gear = 3 - self._gear
        self._pressed.append((pedals.get('throttle', 0.0), pedals.get('brake', 0.0),
                              self._last.number if self._last else 0))
        ego.apply_control(self._carla.VehicleControl(**{'gear': self._gear, **pedals}))

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
        threading.Thread(target=_exit_late, daemon=True).start()
        # Never released: the first caller ends the process.
        self._ending.acquire()
        with suppress(Exception):
            self._client.set_timeout(_END_S)
            # Never released: no command may follow the brake. One that is stuck does not delay it
            # for long.
            self._commanding.acquire(timeout=_END_S / 2)
            # The brake of a followed speed is NaN.
            if self._last and self._last.command and not self._last.command.brake >= 1.0:
                self._drive(Order(0, EgoCommand(throttle=0.0, brake=1.0, steer=0.0,
                                                steering_angle=0.0)))
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


def _indicators(scene: frames.StepActors, lights: dict[int, int]) -> bytes:
    indicators = frames.indicators_of(
        scene.rows.numbers, np.fromiter(lights, np.int64, len(lights)),
        np.fromiter(lights.values(), np.uint32, len(lights)))
    return b'' if indicators is None else indicators.tobytes()


def _line(error: BaseException) -> str:
    return ' '.join(str(error).split()) or type(error).__name__


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
            else _line(error) if isinstance(error, RuntimeError) \
            else f'internal error: {type(error).__name__}: {_line(error)}'
        with suppress(OSError):
            messages.send(child_process.ProcessEnd(
                found, is_unreachable=isinstance(error, UnreachableError)))
    client.end()


if __name__ == '__main__':
    main()
