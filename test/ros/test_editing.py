# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""Entities that are moved, added and removed in SUMO and CARLA 0.9, moved in monoDrive."""

from contextlib import contextmanager, ExitStack
from importlib.util import find_spec
import math

from budgets import one_of
from commands_rig import pedals, RecordingWorld, Stack
from geometry_msgs.msg import Point, Pose, PoseWithCovarianceStamped, Quaternion, Vector3
import pytest
from rig import NodeProcess
from simulation_interfaces.msg import EntityState, Resource, Result
from simulation_interfaces.srv import (
    DeleteEntity,
    GetSimulatorFeatures,
    SetEntityState,
    SpawnEntity,
)
from sumo_runs import write_crowd
from test_simulation_services import caller

from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import TrafficSource
from state_sensor_ros.emulator.traffic.frame_generator import TrafficFrames

FRAME = 'state_sensor_ros/StateFrame'
# Within one step of an ego at 20 m/s.
NEAR_M = 1.5
# Of base_link in the ego's axes, m, more than that.
BASE_LINK_X = -4.0


def pose_at(x, y, yaw=0.0):
    return Pose(position=Point(x=x, y=y),
                orientation=Quaternion(z=math.sin(yaw / 2), w=math.cos(yaw / 2)))


def state_at(x, y, yaw=0.0, speed=0.0):
    state = EntityState(pose=pose_at(x, y, yaw))
    state.header.frame_id = 'map'
    state.twist.linear = Vector3(x=speed * math.cos(yaw), y=speed * math.sin(yaw))
    return state


def actor_of(frame, name):
    return next((actor for actor in frame.actors if actor.name == name), None)


def is_at(frame, name, x, y):
    actor = actor_of(frame, name)
    return actor is not None and math.dist(
        (actor.pose.position.x, actor.pose.position.y), (x, y)) < NEAR_M


def stamp_ns(message):
    return message.header.stamp.sec * 10 ** 9 + message.header.stamp.nanosec


def move_the_driven_ego(call, stack, frames, transforms, ego, place):
    """Expect the brake before the jump, no transform within it, and the stack's next command."""
    stack.publish_until(pedals(throttle=0.5), lambda: frames and actor_of(
        frames[-1], ego).twist.linear != Vector3() and stack.sent[-1:] and stack.sent[-1].throttle)
    n_sent, n_frames = len(stack.sent), len(frames)
    moved = call.start(SetEntityState, entity=ego, state=state_at(*place), set_pose=True)
    stack.publish_until(pedals(throttle=0.5), moved.done, what='the answer')
    assert moved.result().result.result == Result.RESULT_OK, moved.result().result
    stack.publish_until(pedals(throttle=0.5), lambda: any(
        is_at(frame, ego, *place[:2]) for frame in frames[n_frames:]) and stack.sent[-1].throttle)
    first = next(frame for frame in frames[n_frames:] if is_at(frame, ego, *place[:2]))
    brakes = [each for each in stack.sent[n_sent:] if each.brake == 1.0]
    assert brakes
    # A report may wait until that frame has come.
    assert stamp_ns(brakes[0]) <= stamp_ns(first)
    # Transforms of before, just before those of the new place: no time lies between both.
    [last] = [each for message in transforms for each in message.transforms
              if each.child_frame_id == 'base_link' and stamp_ns(each) == stamp_ns(first) - 1]
    assert math.dist((last.transform.translation.x, last.transform.translation.y),
                     place[:2]) > 10.0


def checking(call):
    def check(code, type_, **fields):
        answer = call(type_, **fields)
        assert answer.result.result == code, answer.result
        return answer
    return check


def change_others(call, frames, resource, place):
    """Add actors, move and remove them; each is in a frame when the answer arrives."""
    check, (x, y) = checking(call), place[:2]
    pose, own = pose_at(x + 5.0, y + 30.0, 0.5), Resource(uri=resource)
    add = {'name': 'added', 'initial_pose__pose': pose, 'entity_resource': own}
    check(Result.RESULT_OK, SpawnEntity, **add)
    check(SpawnEntity.Response.NAME_NOT_UNIQUE, SpawnEntity, **add)
    # It stays beside the road.
    n_frames = len(frames)
    call.listener.until(lambda: len(frames) > n_frames + 20, what='a second')
    assert is_at(frames[-1], 'added', x + 5.0, y + 30.0)
    add['initial_pose__pose'] = pose_at(x + 5.0, y + 40.0)
    renamed = check(Result.RESULT_OK, SpawnEntity, allow_renaming=True, **add).entity_name
    assert renamed == 'added_2'
    check(Result.RESULT_OK, SetEntityState, entity=renamed, set_pose=True,
          state=state_at(x, y + 45.0))
    # Of the scenario, if there is one: in SUMO the one that was added stands.
    mover = next((actor.name for actor in frames[-1].actors if actor.name.startswith('car')),
                 'added')
    for speed in (3.0, 0.0):
        check(Result.RESULT_OK, SetEntityState, entity=mover, set_pose=True, set_twist=True,
              state=state_at(*place, speed=speed))
    for each in {mover, 'added', renamed}:
        check(Result.RESULT_OK, DeleteEntity, entity=each)
        check(Result.RESULT_NOT_FOUND, DeleteEntity, entity=each)
    add['initial_pose__pose'] = pose
    check(SpawnEntity.Response.NO_RESOURCE, SpawnEntity, **{**add, 'entity_resource': Resource()})
    wrong = check(Result.RESULT_OPERATION_FAILED, SpawnEntity, **{
        **add, 'entity_resource': Resource(uri='none.such')})
    assert "'none.such'" in wrong.result.error_message
    bad = check(SpawnEntity.Response.INVALID_POSE, SpawnEntity, **{
        **add, 'initial_pose__pose': Pose(orientation=Quaternion(w=3.0))})
    assert bad.result.error_message.endswith('an orientation of length 1')


def move_by_rviz(call, stack, frames, node, ego, place):
    publisher = call.listener.node.create_publisher(PoseWithCovarianceStamped, '/initialpose', 1)
    call.listener.until(publisher.get_subscription_count, what='the node')
    message = PoseWithCovarianceStamped()
    message.pose.pose, message.header.frame_id = pose_at(*place), 'odom'
    publisher.publish(message)
    call.listener.until(lambda: "/initialpose is refused: found the frame 'odom'; expected 'map'"
                        in node.log, what='the refusal')
    message.header.frame_id = 'map'
    publisher.publish(message)
    # The pose is that of base_link.
    x, y, yaw = place
    origin = x - BASE_LINK_X * math.cos(yaw), y - BASE_LINK_X * math.sin(yaw)
    call.listener.until(lambda: is_at(frames[-1], ego, *origin), what='the ego at its place')
    # The stack has sent nothing since: the brake holds.
    assert stack.sent[-1].brake == 1.0


def simulation(kind, stack):
    """Return parameters of a node, the ego, a type of vehicles, and two places far from it."""
    if kind == 'sumo':
        pytest.importorskip('libsumo')
        return {'sumo.ego': 'ego'}, 'ego', 'car', (300.0, 278.3, -0.01), (320.0, 278.3, -0.01)
    pytest.importorskip('carla')
    server = stack.enter_context(RecordingWorld(2))
    # CARLA's y axis points to the right, and its yaw turns to the right.
    places = [(x, -y, -math.radians(yaw))
              for (x, y, _), (_, yaw, _) in server.world.scene.spawn_points[39:36:-2]]
    return {'carla9.port': server.port, 'carla9.tick': kind == 'carla9 tick'}, 'hero', \
        'vehicle.tesla.model3', *places


@contextmanager
def driven(domain, listener, **parameters):
    """Provide a node with an ego that a stack drives, its frames and transforms, and services."""
    frames = listener.subscribe('/state_sensor/frame', FRAME)
    transforms = listener.subscribe('/tf', 'tf2_msgs/TFMessage')
    with NodeProcess(domain, control_input='vehicle_control', overflow='block',
                     ego_frame='base_link', base_link_xyz=[BASE_LINK_X, 0.0, 0.0],
                     **parameters) as node:
        call, stack = caller(listener), Stack(listener).matched()
        call.listener = listener
        listener.until(lambda: frames, what='frames')
        yield node, frames, transforms, call, stack
        assert node.end()[0] == 0
        assert 'Traceback' not in node.log


@pytest.mark.parametrize('kind', one_of(['sumo', 'carla9', 'carla9 tick'], n_always=2))
def test_entities_are_moved_added_and_removed(domain, listener, kind):
    with ExitStack() as exits:
        parameters, ego, resource, first, second = simulation(kind, exits)
        node, frames, transforms, call, stack = exits.enter_context(driven(
            domain, listener, source=kind.split()[0], **parameters))
        assert {0, 1, 11} <= set(call(GetSimulatorFeatures).features.features)
        move_the_driven_ego(call, stack, frames, transforms, ego, first)
        change_others(call, frames, resource, second)
        if kind != 'sumo':
            # One that the server drives itself, as the traffic manager does.
            [driven_by_it] = {actor.name for actor in frames[-1].actors
                              if actor.name.startswith('vehicle.')}
            refused = checking(call)(Result.RESULT_OPERATION_FAILED, SetEntityState,
                                     entity=driven_by_it, set_pose=True, state=state_at(*first))
            assert 'no frame within 1 s shows the change' in refused.result.error_message
        move_by_rviz(call, stack, frames, node, ego, second)


@pytest.mark.skipif(find_spec('libsumo') is None, reason='needs libsumo')
def test_person_of_sumo_is_moved_and_removed(domain, listener, tmp_path):
    frames = listener.subscribe('/state_sensor/frame', FRAME)
    with NodeProcess(domain, source='sumo', overflow='block',
                     **{'sumo.config': str(write_crowd(tmp_path, 0))}):
        check, name = checking(caller(listener)), 'walker0'
        listener.until(lambda: frames and actor_of(frames[-1], name), what='a person')
        check(Result.RESULT_OK, SetEntityState, entity=name, set_pose=True,
              state=state_at(-50.0, -40.0))
        n_frames = len(frames)
        listener.until(lambda: len(frames) > n_frames + 3, what='frames')
        assert is_at(frames[-1], name, -50.0, -40.0)
        # SUMO takes the way for a movement, and says so until the next one.
        assert actor_of(frames[-1], name).twist.linear == Vector3()
        for code in (Result.RESULT_OK, Result.RESULT_NOT_FOUND):
            check(code, DeleteEntity, entity=name)


@pytest.mark.parametrize(('generation', 'on_sample'), [('v2', False), ('v1', True)])
def test_entities_of_monodrive_are_moved(domain, listener, generation, on_sample):
    source = TrafficSource(TrafficFrames(3, 1, 20.0, 1, generation))
    brakes, place = [], source.traffic.place

    def noted(actors):
        brakes.append(source.traffic._traffic.driven.pedals.brake)
        place(actors)

    source.traffic.place = noted
    options = MonodriveOptions(control_port=0, on_sample=on_sample)
    with MonodriveServer(source, options) as simulator, driven(
            domain, listener, port=simulator.port, control_port=simulator.control_port,
            sample_rate=20.0 * on_sample, desired_tags=['vehicle', 'cone']) as (
            node, frames, transforms, call, stack):
        check = checking(call)
        assert {0, 1, 11} & set(call(GetSimulatorFeatures).features.features) == {11}
        ego, other, cone = (next(actor.name for actor in frames[-1].actors if tag in actor.tags)
                            for tag in ('ego', 'traffic', 'cone'))
        move_the_driven_ego(call, stack, frames, transforms, ego, (20.0, -5.0, -0.3))
        assert brakes == [1.0]
        for name, speed in ((other, 15.0), (other, 0.0), (cone, 0.0)):
            check(Result.RESULT_OK, SetEntityState, entity=name, set_pose=True, set_twist=True,
                  state=state_at(60.0, 30.0, speed=speed))
        # It stands there.
        n_frames = len(frames)
        listener.until(lambda: len(frames) > n_frames + 10, what='half a second')
        assert is_at(frames[-1], other, 60.0, 30.0)
        turning = state_at(60.0, 30.0)
        turning.twist.angular.z = 2.0
        answer = check(Result.RESULT_OPERATION_FAILED, SetEntityState, entity=other,
                       set_twist=True, state=turning)
        assert '0.00 rad/s' in answer.result.error_message
        check(Result.RESULT_FEATURE_UNSUPPORTED, DeleteEntity, entity=other)
        check(Result.RESULT_FEATURE_UNSUPPORTED, SpawnEntity, name='added',
              initial_pose__pose=pose_at(0.0, 0.0), entity_resource=Resource(uri='car'))
        move_by_rviz(call, stack, frames, node, ego, (40.0, -12.0, 0.2))
