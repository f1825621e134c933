# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The services of ``simulation_interfaces``: entities of the last frame, the state of the source.

Their meaning is that of the comments in the package's interfaces; what is not supported, such as a
filter of names, is answered with RESULT_FEATURE_UNSUPPORTED. A live simulator is PLAYING unless it
can be held, as a recording can; these have the states

=======  ===================  ========  ==================  ==================
state    of the source        PLAYING   PAUSED              STOPPED
=======  ===================  ========  ==================  ==================
PLAYING  not paused, or in    --        set: pause          set: pause, begin
         the steps of a pause
PAUSED   paused after 0 s     set:      step: plays frames  set: begin, reset
                              resume
STOPPED  paused at 0 s        set:      step: plays frames  --
                              resume
=======  ===================  ========  ==================  ==================

with the service (set, step, reset) that leads from the state of a row to that of a column. Steps
and resets are answered when their frames have been published; until then the state is PLAYING, and
setting another one ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
import time
from typing import Any, TYPE_CHECKING

from geometry_msgs.msg import Vector3
import numpy as np
from simulation_interfaces import msg, srv
from simulation_interfaces.msg import Bounds, EntityCategory, Result
from simulation_interfaces.msg import SimulationState as State
from simulation_interfaces.msg import SimulatorFeatures as Features

from state_sensor_ros.classes import class_of, PERSON
from state_sensor_ros.frame import KIND_VEHICLE, NS_PER_S
from state_sensor_ros.objects.box_bounds import ActorBox, box_of, point_of
from state_sensor_ros.objects.object_maker import MAX_GAP_S, origin_twists
from state_sensor_ros.pipeline.pipeline import Snapshot
from state_sensor_ros.ros.editing import Editing, RefusedError
from state_sensor_ros.source import DELETE, edits_of, EntityEdit, SET, SPAWN, SteerableSource

if TYPE_CHECKING:
    from state_sensor_ros.ros.node import StateSensorNode

# Each is a method of Services.
_SERVICES = ('get_simulator_features', 'get_entities', 'get_entities_states', 'get_entity_state',
             'get_entity_info', 'get_entity_bounds', 'get_simulation_state',
             'set_simulation_state', 'step_simulation', 'reset_simulation', 'set_entity_state',
             'spawn_entity', 'delete_entity')
_FAILED = Result.RESULT_OPERATION_FAILED
# Between two looks whether steps have been made, s.
_LOOK_S = 0.002
# Features of any source, and further ones of a source that can be held.
_FEATURES = (Features.ENTITY_TAGS, Features.ENTITY_CATEGORIES, Features.ENTITY_BOUNDS,
             Features.ENTITY_BOUNDS_BOX, Features.ENTITY_STATE_GETTING,
             Features.ENTITY_INFO_GETTING, Features.SIMULATION_STATE_GETTING)
_STEERABLE_FEATURES = (Features.SIMULATION_RESET, Features.SIMULATION_RESET_TIME,
                       Features.SIMULATION_STATE_SETTING, Features.SIMULATION_STATE_PAUSE,
                       Features.STEP_SIMULATION_SINGLE, Features.STEP_SIMULATION_MULTIPLE)
# Those of a source whose simulator makes changes, by their kind.
_EDIT_FEATURES = {SPAWN: Features.SPAWNING, DELETE: Features.DELETING,
                  SET: Features.ENTITY_STATE_SETTING}


class Services:
    """The services of ``node``: ``~/get_entities`` and so on."""

    def __init__(self, node: StateSensorNode, editing: Editing) -> None:
        self._node, self._editing, self._snapshot = node, editing, node.snapshot
        for name in _SERVICES:
            node.create_service(
                getattr(srv, name.title().replace('_', '')), f'~/{name}',
                partial(_reply, getattr(self, name)), callback_group=node.service_group)

    def _steerable(self) -> SteerableSource | None:
        source = self._node.source
        return source if isinstance(source, SteerableSource) else None

    def get_simulator_features(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.features.features = [
            *_FEATURES, *(() if self._steerable() is None else _STEERABLE_FEATURES),
            *(_EDIT_FEATURES[kind] for kind in edits_of(self._node.source))]
        response.features.custom_info = 'state_sensor_ros: ground truth'

    def get_entities(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.entities = [snapshot.frame.names[row] for snapshot, row in self._matching(
            request.filters)]

    def get_entities_states(self, request: Any, response: Any) -> None:  # noqa: ANN401
        found = list(self._matching(request.filters))
        response.entities = [snapshot.frame.names[row] for snapshot, row in found]
        response.states = self._states(found[0][0], [row for _, row in found]) if found else []

    def get_entity_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        snapshot, row = self._find(request.entity)
        [response.state] = self._states(snapshot, [row])

    def get_entity_info(self, request: Any, response: Any) -> None:  # noqa: ANN401
        snapshot, row = self._find(request.entity)
        response.info.category.category = _category(snapshot, row)
        response.info.tags = list(snapshot.actor_list.tags[row])
        response.info.description = snapshot.actor_list.actors[row].frame_id

    def get_entity_bounds(self, request: Any, response: Any) -> None:  # noqa: ANN401
        self._node.with_boxes()
        snapshot, row = self._find(request.entity)
        box = box_of(snapshot.frame, row)
        if box is None:
            raise RefusedError(_FAILED, f'found no box of {request.entity!r}')
        corners = box.corners()
        response.bounds.type = Bounds.TYPE_BOX
        response.bounds.points = [Vector3(x=x, y=y, z=z) for x, y, z in (
            corners.max(axis=0).tolist(), corners.min(axis=0).tolist())]

    def get_simulation_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source, state = self._steerable(), State.STATE_PLAYING
        if source is not None and source.is_paused and not source.is_stepping:
            state = State.STATE_PAUSED if source.position \
                else State.STATE_STOPPED
        response.state.state = int(state)

    def set_simulation_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source, now = self._source('the state'), srv.GetSimulationState.Response()
        self.get_simulation_state(request, now)
        if request.state.state == now.state.state and not source.is_stepping:
            raise RefusedError(srv.SetSimulationState.Response.ALREADY_IN_TARGET_STATE)
        if request.state.state == State.STATE_PLAYING:
            source.resume()
        elif request.state.state in (State.STATE_PAUSED, State.STATE_STOPPED):
            source.pause()
            if request.state.state == State.STATE_STOPPED:
                self._made(source.restart)
        else:
            raise _unsupported(f'state {request.state.state}')

    def step_simulation(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source = self._source('steps')
        if not source.is_paused or source.is_stepping:
            raise RefusedError(
                _FAILED, 'found a source that is playing; expected it to be paused')
        if request.steps < 1:
            raise RefusedError(_FAILED, f'found {request.steps} steps; expected 1 or more')
        n_made = self._made(partial(source.step, request.steps))
        if n_made < request.steps:
            raise RefusedError(_FAILED, f'{n_made} of {request.steps} steps made: another state '
                               'was set, or the run is over')

    def reset_simulation(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source = self._source('the reset')
        if request.scope not in (request.SCOPE_DEFAULT, request.SCOPE_TIME, request.SCOPE_ALL):
            raise _unsupported(f'scope {request.scope}')
        self._made(source.restart)

    def set_entity_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        self._find(request.entity)
        state, moves = request.state, request.state.twist
        pose = self._editing.pose_of(state.pose, state.header, response.INVALID_POSE)
        twist = tuple(getattr(part, axis) for part in (moves.linear, moves.angular)
                      for axis in 'xyz')
        if not np.isfinite(twist).all():
            raise RefusedError(_FAILED, f'found the twist {twist}; expected finite numbers')
        # Older definitions have no flags: all is set.
        self._editing.make(EntityEdit(
            SET, request.entity, pose if getattr(request, 'set_pose', True) else None,
            twist if getattr(request, 'set_twist', True) else None))

    def spawn_entity(self, request: Any, response: Any) -> None:  # noqa: ANN401
        last, name = self._snapshot(), request.name
        # In older definitions its members are those of the request.
        resource = getattr(request, 'entity_resource', request)
        if request.entity_namespace or (resource.resource_string and not resource.uri):
            raise _unsupported('entity_namespace and resource_string')
        if not resource.uri:
            raise RefusedError(response.NO_RESOURCE, 'found no uri; expected a type of vehicles')
        taken = ('', *(() if last is None else last.frame.names))
        if name in taken and not request.allow_renaming:
            raise RefusedError(response.NAME_NOT_UNIQUE if name else response.NAME_INVALID,
                               f'found the name {name!r}; expected one that no entity has')
        if name in taken:
            name = next(new for i in count(2) if (new := f'{name or "entity"}_{i}') not in taken)
        pose = self._editing.pose_of(request.initial_pose.pose, request.initial_pose.header,
                                     response.INVALID_POSE)
        self._editing.make(EntityEdit(SPAWN, name, pose, resource=resource.uri))
        response.entity_name = name

    def delete_entity(self, request: Any, response: Any) -> None:  # noqa: ANN401
        self._find(request.entity)
        self._editing.make(EntityEdit(DELETE, request.entity))

    def _made(self, request: Callable[[], None]) -> int:
        """Request steps; return how many frames were made until all were published."""
        n_before = self._node.counters.n_received
        request()
        while (source := self._steerable()) is not None and (
                source.is_stepping or (source.is_paused and self._node.counters.n_in_flight)):
            time.sleep(_LOOK_S)
        return self._node.counters.n_received - n_before

    def _source(self, wanted: str) -> SteerableSource:
        source = self._steerable()
        if source is None:
            raise _unsupported(f'{wanted} of a live simulator')
        return source

    def _find(self, name: str) -> tuple[Snapshot, int]:
        """Return the last frame and the row of one entity."""
        snapshot = self._snapshot()
        if snapshot is None or name not in snapshot.frame.names:
            raise RefusedError(Result.RESULT_NOT_FOUND, f'found no entity {name!r}')
        return snapshot, snapshot.frame.names.index(name)

    def _matching(self, filters: Any) -> Iterator[tuple[Snapshot, int]]:  # noqa: ANN401
        """Yield the last frame with the row of each entity that passes filters."""
        if filters.filter:
            raise _unsupported('a filter of names by a regular expression')
        overlaps = _overlap_test(filters.bounds)
        snapshot = self._snapshot() if overlaps is None else self._node.with_boxes()
        categories = {each.category for each in filters.categories}
        wanted = {tag.lower() for tag in filters.tags.tags}
        needs_all = filters.tags.filter_mode == msg.TagsFilter.FILTER_MODE_ALL
        for row in range(0 if snapshot is None else snapshot.frame.n_actors):
            assert snapshot is not None
            frame, tags = snapshot.frame, {tag.lower() for tag in snapshot.actor_list.tags[row]}
            if (wanted <= tags if needs_all else not wanted or wanted & tags) \
                    and (not categories or _category(snapshot, row) in categories) \
                    and (overlaps is None or (frame.has_pose()[row] and overlaps(
                        box_of(frame, row) or point_of(frame, row)))):
                yield snapshot, row

    def _states(self, snapshot: Snapshot, rows: list[int]) -> list[Any]:
        """Return pose, twist and acceleration of the origins in the global frame."""
        frame, before = snapshot.frame, snapshot.before
        twists, gained = origin_twists(frame), np.full((frame.n_actors, 6), np.nan)
        if before is not None and 0.0 < (elapsed := frame.game_time - before.game_time) \
                <= MAX_GAP_S:
            places = {name: place for place, name in enumerate(before.names)}
            known = [row for row in rows if frame.names[row] in places]
            gained[known] = (twists[known] - origin_twists(before)[
                [places[frame.names[row]] for row in known]]) / elapsed
        given = np.isfinite(frame.acceleration_xyz).all(axis=1)
        gained[given, :3] = frame.acceleration_xyz[given]
        numbers = np.hstack((frame.position_xyz, frame.orientation_xyzw, twists, gained))
        return [self._state(snapshot.stamp_ns, each) for each in numbers[rows].tolist()]

    def _state(self, stamp_ns: int, numbers: list[float]) -> Any:  # noqa: ANN401
        state, left = msg.EntityState(), iter(numbers)
        state.header.frame_id = self._node.settings.global_frame
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(stamp_ns, NS_PER_S)
        for target, axes in (
                (state.pose.position, 'xyz'), (state.pose.orientation, 'xyzw'),
                (state.twist.linear, 'xyz'), (state.twist.angular, 'xyz'),
                (state.acceleration.linear, 'xyz'), (state.acceleration.angular, 'xyz')):
            for axis in axes:
                setattr(target, axis, next(left))
        return state


def _category(snapshot: Snapshot, row: int) -> int:
    actors = snapshot.actor_list
    tags = {tag.lower() for tag in actors.tags[row]}
    if class_of(actors.kinds[row], tags) == PERSON:
        return int(EntityCategory.CATEGORY_HUMAN)
    if row == actors.i_ego:
        return int(EntityCategory.CATEGORY_ROBOT)
    if actors.kinds[row] == KIND_VEHICLE:
        return int(EntityCategory.CATEGORY_DYNAMIC_OBJECT)
    return int(EntityCategory.CATEGORY_STATIC_OBJECT if 'static' in tags
               else EntityCategory.CATEGORY_OBJECT)


def _overlap_test(bounds: Any) -> Callable[[ActorBox], bool] | None:  # noqa: ANN401
    """Return the test whether a box overlaps bounds in the global frame, None without bounds."""
    if bounds.type == Bounds.TYPE_EMPTY and not bounds.points:
        return None
    if bounds.type not in (Bounds.TYPE_SPHERE, Bounds.TYPE_BOX):
        raise _unsupported(f'bounds of type {bounds.type}')
    points = np.array([(each.x, each.y, each.z) for each in bounds.points]).reshape(-1, 3)
    if not np.isfinite(points).all() or len(points) != 2:
        raise RefusedError(
            _FAILED, f'bounds: found {len(points)} points; expected two of finite numbers')
    if bounds.type == Bounds.TYPE_SPHERE:
        return lambda box: box.overlaps_sphere(points[0], float(points[1, 0]))
    return lambda box: box.overlaps_box(points.min(axis=0), points.max(axis=0))


def _unsupported(what: str) -> RefusedError:
    return RefusedError(Result.RESULT_FEATURE_UNSUPPORTED, f'not supported: {what}')


def _reply(answer: Callable[[Any, Any], None], request: Any, response: Any) -> Any:  # noqa: ANN401
    result = Result(result=Result.RESULT_OK)
    try:
        answer(request, response)
    except Exception as error:  # noqa: BLE001
        # A defect, too, is for the caller: the simulation goes on.
        result = Result(result=getattr(error, 'code', _FAILED), error_message=str(error))
    # It alone has no result.
    if not isinstance(response, srv.GetSimulatorFeatures.Response):
        response.result = result
    return response
