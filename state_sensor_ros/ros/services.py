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
PLAYING  not paused           --        set: pause          set: pause, begin
PAUSED   paused after 0 s     set:      step: plays frames  set: begin, reset
                              resume
STOPPED  paused at 0 s        set:      step: plays frames  --
                              resume
=======  ===================  ========  ==================  ==================

with the service (set, step, reset) that leads from the state of a row to that of a column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from geometry_msgs.msg import Vector3
import numpy as np
from rclpy.node import Node
from simulation_interfaces import msg, srv
from simulation_interfaces.msg import (
    Bounds,
    EntityCategory,
    Result,
    SimulationState,
    SimulatorFeatures,
)

from state_sensor_ros.classes import class_of, PERSON
from state_sensor_ros.errors import StateSensorError
from state_sensor_ros.frame import Floats, KIND_VEHICLE, NS_PER_S
from state_sensor_ros.objects.box_bounds import ActorBox, box_of, point_of
from state_sensor_ros.objects.object_maker import MAX_GAP_S, origin_twist
from state_sensor_ros.pipeline.pipeline import Snapshot
from state_sensor_ros.source import SteerableSource

_FAILED = Result.RESULT_OPERATION_FAILED
# Features of any source, and further ones of a source that can be held.
_FEATURES = (
    SimulatorFeatures.ENTITY_TAGS, SimulatorFeatures.ENTITY_CATEGORIES,
    SimulatorFeatures.ENTITY_BOUNDS, SimulatorFeatures.ENTITY_BOUNDS_BOX,
    SimulatorFeatures.ENTITY_STATE_GETTING, SimulatorFeatures.ENTITY_INFO_GETTING,
    SimulatorFeatures.SIMULATION_STATE_GETTING)
_STEERABLE_FEATURES = (
    SimulatorFeatures.SIMULATION_RESET, SimulatorFeatures.SIMULATION_RESET_TIME,
    SimulatorFeatures.SIMULATION_STATE_SETTING, SimulatorFeatures.SIMULATION_STATE_PAUSE,
    SimulatorFeatures.STEP_SIMULATION_SINGLE, SimulatorFeatures.STEP_SIMULATION_MULTIPLE)


class Services:
    """
    The services of ``node``: ``~/get_entities`` and so on.

    :param snapshot: returns the last frame, None before the first.
    :param steerable: returns the source, None if it cannot be held or is not active.
    :param with_boxes: returns the last frame, with boxes, None before the first.
    """

    def __init__(self, node: Node, snapshot: Callable[[], Snapshot | None],
                 steerable: Callable[[], SteerableSource | None],
                 with_boxes: Callable[[], Snapshot | None], global_frame: str) -> None:
        self._snapshot, self._steerable = snapshot, steerable
        self._with_boxes, self._global_frame = with_boxes, global_frame
        for name, type_, callback in (
                ('get_simulator_features', srv.GetSimulatorFeatures, self._get_features),
                ('get_entities', srv.GetEntities, self._get_entities),
                ('get_entities_states', srv.GetEntitiesStates, self._get_states),
                ('get_entity_state', srv.GetEntityState, self._get_state),
                ('get_entity_info', srv.GetEntityInfo, self._get_info),
                ('get_entity_bounds', srv.GetEntityBounds, self._get_bounds),
                ('get_simulation_state', srv.GetSimulationState, self._get_simulation_state),
                ('set_simulation_state', srv.SetSimulationState, self._set_simulation_state),
                ('step_simulation', srv.StepSimulation, self._step),
                ('reset_simulation', srv.ResetSimulation, self._reset)):
            node.create_service(type_, f'~/{name}', partial(_reply, callback))

    def _get_features(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.features.features = [
            *_FEATURES, *(() if self._steerable() is None else _STEERABLE_FEATURES)]
        response.features.custom_info = 'state_sensor_ros: ground truth; entities are read only'

    def _get_entities(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.entities = [name for _, _, name in self._matching(request.filters)]

    def _get_states(self, request: Any, response: Any) -> None:  # noqa: ANN401
        found = list(self._matching(request.filters))
        response.entities = [name for _, _, name in found]
        response.states = [self._state(snapshot, row) for snapshot, row, _ in found]

    def _get_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.state = self._state(*self._find(request.entity))

    def _get_info(self, request: Any, response: Any) -> None:  # noqa: ANN401
        snapshot, row = self._find(request.entity)
        response.info.category.category = self._category(snapshot, row)
        response.info.tags = list(snapshot.actor_list.tags[row])
        response.info.description = snapshot.actor_list.actors[row].frame_id

    def _get_bounds(self, request: Any, response: Any) -> None:  # noqa: ANN401
        self._with_boxes()
        snapshot, row = self._find(request.entity)
        box = box_of(snapshot.frame, row)
        if box is None:
            raise _RefusedError(_FAILED, f'found no box of {request.entity!r}')
        corners = box.corners()
        response.bounds.type = Bounds.TYPE_BOX
        if box.is_turned():
            response.bounds.type = Bounds.TYPE_CONVEX_HULL
        else:
            corners = np.array((corners.max(axis=0), corners.min(axis=0)))
        response.bounds.points = [Vector3(x=x, y=y, z=z) for x, y, z in corners.tolist()]

    def _get_simulation_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        response.state.state = self._simulation_state()

    def _set_simulation_state(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source, target = self._source('the state'), request.state.state
        if target == self._simulation_state():
            raise _RefusedError(srv.SetSimulationState.Response.ALREADY_IN_TARGET_STATE)
        if target == SimulationState.STATE_PLAYING:
            source.resume()
        elif target == SimulationState.STATE_PAUSED:
            source.pause()
        elif target == SimulationState.STATE_STOPPED:
            source.pause()
            source.restart()
        else:
            raise _unsupported(f'state {target}')

    def _step(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source, n_steps = self._source('steps'), request.steps
        if not source.is_paused:
            raise _RefusedError(
                _FAILED, 'found a source that is playing; expected it to be paused')
        if n_steps < 1:
            raise _RefusedError(_FAILED, f'found {n_steps} steps; expected 1 or more')
        source.step(n_steps)

    def _reset(self, request: Any, response: Any) -> None:  # noqa: ANN401
        source = self._source('the reset')
        if request.scope not in (srv.ResetSimulation.Request.SCOPE_DEFAULT,
                                 srv.ResetSimulation.Request.SCOPE_TIME,
                                 srv.ResetSimulation.Request.SCOPE_ALL):
            raise _unsupported(f'scope {request.scope}')
        source.restart()

    def _source(self, wanted: str) -> SteerableSource:
        source = self._steerable()
        if source is None:
            raise _unsupported(f'{wanted} of a live simulator')
        return source

    def _find(self, name: str) -> tuple[Snapshot, int]:
        """Return the last frame and the row of one entity."""
        snapshot = self._snapshot()
        if snapshot is None or name not in snapshot.frame.names:
            raise _RefusedError(Result.RESULT_NOT_FOUND, f'found no entity {name!r}')
        return snapshot, snapshot.frame.names.index(name)

    def _simulation_state(self) -> int:
        source = self._steerable()
        if source is None or not source.is_paused:
            return int(SimulationState.STATE_PLAYING)
        return int(SimulationState.STATE_PAUSED if source.position else
                   SimulationState.STATE_STOPPED)

    def _matching(self, filters: Any) -> Iterator[tuple[Snapshot, int, str]]:  # noqa: ANN401
        """Yield the last frame with row and name of each entity that passes filters."""
        if filters.filter:
            raise _unsupported('a filter of names by a regular expression')
        overlaps = _overlap_test(filters.bounds)
        snapshot = self._snapshot() if overlaps is None else self._with_boxes()
        if snapshot is None:
            return
        frame = snapshot.frame
        categories = {each.category for each in filters.categories}
        tags = {tag.lower() for tag in filters.tags.tags}
        for row, name in enumerate(snapshot.frame.names):
            own = {tag.lower() for tag in snapshot.actor_list.tags[row]}
            has_tags = tags <= own if filters.tags.filter_mode == msg.TagsFilter.FILTER_MODE_ALL \
                else not tags or bool(tags & own)
            if has_tags and (not categories or self._category(snapshot, row) in categories) and (
                    overlaps is None or (frame.has_pose()[row] and overlaps(
                        box_of(frame, row) or point_of(frame, row)))):
                yield snapshot, row, name

    def _category(self, snapshot: Snapshot, row: int) -> int:
        tags = {tag.lower() for tag in snapshot.actor_list.tags[row]}
        if class_of(snapshot.actor_list.kinds[row], tags) == PERSON:
            return int(EntityCategory.CATEGORY_HUMAN)
        if row == snapshot.actor_list.i_ego:
            return int(EntityCategory.CATEGORY_ROBOT)
        if snapshot.actor_list.kinds[row] == KIND_VEHICLE:
            return int(EntityCategory.CATEGORY_DYNAMIC_OBJECT)
        return int(EntityCategory.CATEGORY_STATIC_OBJECT if 'static' in tags
                   else EntityCategory.CATEGORY_OBJECT)

    def _state(self, snapshot: Snapshot, row: int) -> Any:  # noqa: ANN401
        """Return pose, twist and acceleration of the origin in the global frame."""
        state = msg.EntityState()
        state.header.frame_id = self._global_frame
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(snapshot.stamp_ns, NS_PER_S)
        frame = snapshot.frame
        _assign(state.pose.position, frame.position_xyz[row])
        _assign(state.pose.orientation, frame.orientation_xyzw[row])
        twist = origin_twist(frame, row)
        _assign(state.twist.linear, twist[:3])
        _assign(state.twist.angular, twist[3:])
        # NaN if unknown.
        change: Floats = np.full(6, np.nan)
        before, name = snapshot.before, frame.names[row]
        if before is not None and name in before.names:
            elapsed = frame.game_time - before.game_time
            if 0.0 < elapsed <= MAX_GAP_S:
                change = (twist - origin_twist(before, before.names.index(name))) / elapsed
        if np.isfinite(given := frame.acceleration_xyz[row]).all():
            change[:3] = given
        _assign(state.acceleration.linear, change[:3])
        _assign(state.acceleration.angular, change[3:])
        return state


def _overlap_test(bounds: Any) -> Callable[[ActorBox], bool] | None:  # noqa: ANN401
    """Return the test whether a box overlaps bounds in the global frame, None without bounds."""
    if bounds.type == Bounds.TYPE_EMPTY and not bounds.points:
        return None
    if bounds.type not in (Bounds.TYPE_SPHERE, Bounds.TYPE_BOX):
        raise _unsupported(f'bounds of type {bounds.type}')
    points = np.array([(each.x, each.y, each.z) for each in bounds.points]).reshape(-1, 3)
    if not np.isfinite(points).all() or len(points) != 2:
        raise _RefusedError(
            _FAILED, f'bounds: found {len(points)} points; expected two of finite numbers')
    if bounds.type == Bounds.TYPE_SPHERE:
        center, (radius, *_) = points
        return lambda box: box.overlaps_sphere(center, float(radius))
    return lambda box: box.overlaps_box(points.min(axis=0), points.max(axis=0))


def _assign(target: object, numbers: Floats) -> None:
    for name, number in zip('xyzw', numbers.tolist(), strict=False):
        setattr(target, name, number)


class _RefusedError(StateSensorError):
    """A request that is refused: ``code`` and text of the result."""

    def __init__(self, code: int, text: str = '') -> None:
        Exception.__init__(self, text)
        self.code = code


def _unsupported(what: str) -> _RefusedError:
    return _RefusedError(Result.RESULT_FEATURE_UNSUPPORTED, f'not supported: {what}')


def _reply(answer: Callable[[Any, Any], None], request: Any, response: Any) -> Any:  # noqa: ANN401
    try:
        answer(request, response)
    except _RefusedError as error:
        result = Result(result=error.code, error_message=str(error))
    except StateSensorError as error:
        result = Result(result=_FAILED, error_message=str(error))
    else:
        result = Result(result=Result.RESULT_OK)
    # It alone has no result.
    if not isinstance(response, srv.GetSimulatorFeatures.Response):
        response.result = result
    return response
