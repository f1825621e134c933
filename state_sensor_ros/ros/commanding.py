# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The topics of commands to the ego, and the topic of the commands that were sent.

A state, such as the gear, has two subscriptions: a transient local one does not match a volatile
publisher, and a volatile one gets nothing that was published before it. The volatile one matches
both kinds of publishers, so what it receives of a transient local one comes twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, ExitStack, suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
import math
from statistics import median
import time
from typing import Any

from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from rclpy.time import Time

from state_sensor_ros import frame as frames
from state_sensor_ros.connections.connection import resolved
from state_sensor_ros.control import command_inputs as inputs
from state_sensor_ros.control import ego_commands
from state_sensor_ros.control.drive_mark import DriveMark
from state_sensor_ros.control.ego_driver import CommandCounters, EgoDriver, LateCalls
from state_sensor_ros.control.gate import DriverState, EgoMotion
from state_sensor_ros.control.witness import EgoWatch
from state_sensor_ros.errors import reason_of, StateError, StateSensorError
from state_sensor_ros.pipeline.pipeline import Snapshot
from state_sensor_ros.ros import report
from state_sensor_ros.ros.sink import await_delivery, message_class
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import find_simulator
from state_sensor_ros.source import Health, Report, SourceState
from state_sensor_ros.topics.encoding import LastCommand

# Longest wait for a look-up of the host at the end, s.
_MARKING_S = 0.1
# Limit of the last reports of the driver, s.
_REPORTS_S = 0.4
# Longest wait for subscribers that have not acknowledged the last command, s.
_DELIVERY_S = 0.2
# Time from the first command after which a state is assumed if its topic has no publisher, s; the
# publishers of a stack are discovered within some tenths of a second of each other.
STATE_WAIT_S = 1.0
# Speed of an ego that moves, m/s.
_MOVES = 0.3
# Longest time between two frames whose positions give a speed, s: it is that of half of it ago.
_LONGEST_STEP_S = 0.25
_NO_STAMP = Time().to_msg()
# States without a fault.
_ORDINARY = frozenset((DriverState.DRIVING, DriverState.IDLE, DriverState.CLOSED))
# States in which the ego cannot be driven, and what happens to it is not known.
_ERRORS = frozenset((DriverState.SEVERAL, DriverState.FAULT, DriverState.UNANSWERED,
                     DriverState.DISOBEYED, DriverState.DEFECT))
_LATCHED = DurabilityPolicy.TRANSIENT_LOCAL
# Topics of turn signals: type, name, and lights by the command of a message; 0 is no command.
_LIGHTS = (('TurnIndicators', 'turn_indicators_cmd',
            {1: frames.INDICATORS_OFF, 2: frames.INDICATORS_LEFT, 3: frames.INDICATORS_RIGHT}),
           ('HazardLights', 'hazard_lights_cmd',
            {1: frames.INDICATORS_OFF, 2: frames.INDICATORS_BOTH}))


class CommandTopics:
    """
    Subscribe to the topics of an input; refuse commands while a topic has two publishers.

    :param timeout_s: age from which a command is too old, s.
    :param clocks_s: returns the times that stamps of commands may be of, s.
    :ivar rivals: error text about a topic with several publishers, ``''`` if there is none.
    """

    def __init__(self, node: Node, command_input: inputs.CommandInput, driver: EgoDriver,
                 timeout_s: float, clocks_s: Callable[[], tuple[float, ...]],
                 on_fault: Report) -> None:
        self._node, self._input, self._driver, self._report = (
            node, command_input, driver, on_fault)
        self._timeout_s, self._clocks_s = timeout_s, clocks_s
        self.rivals = self._reported = ''
        # When an unknown state is assumed, s of the steady clock.
        self._assume_s = math.inf
        self._ages = {topic: (inputs.CommandAge(), inputs.CommandAge())
                      for topic in command_input.topics}
        # Types by name of the topics that may have one publisher together: all streams.
        self._alternatives = [
            {self._name(topic): topic.type_name for topic in topics} for topics in (
                [topic for topic in command_input.topics if not topic.is_state],
                *([topic] for topic in command_input.topics if topic.is_state))]
        # The last message that is a command, and the gear, None before the first of each.
        self._command: Any = None
        self._gear: int | None = None
        self._subscriptions = [
            self._subscribe(topic, is_latched=False) for topic in command_input.topics]
        self._latched = self._subscribe_latched()

    @property
    def unknown_state(self) -> str:
        """Return the name of a topic without which no command drives, ``''`` if all are known."""
        return next((self._name(topic) for topic in self._input.topics
                     if topic.is_state and self._gear is None), '')

    def close(self) -> None:
        for subscription in self._subscriptions + self._latched:
            self._node.destroy_subscription(subscription)

    def _name(self, topic: inputs.InputTopic) -> str:
        return str(self._node.resolve_topic_name(topic.name))

    def _subscribe_latched(self) -> list[Subscription]:
        return [self._subscribe(topic, is_latched=True) for topic in self._input.topics
                if topic.is_state]

    def _subscribe(self, topic: inputs.InputTopic, *, is_latched: bool) -> Subscription:
        # Another publisher may use another clock.
        events = SubscriptionEventCallbacks(
            matched=lambda event: self._ages.update(
                {topic: (inputs.CommandAge(), inputs.CommandAge())}))
        if is_latched:
            # Each publisher of a state matches one of both: no warning of the other one.
            events.incompatible_qos = lambda event: None
        # The newest message only; the subscription to a stream matches any publisher.
        qos = QoSProfile(
            depth=1, durability=_LATCHED if is_latched else DurabilityPolicy.VOLATILE,
            reliability=ReliabilityPolicy.RELIABLE if topic.is_state
            else ReliabilityPolicy.BEST_EFFORT)
        return self._node.create_subscription(
            message_class(topic.type_name), topic.name, partial(self._take, topic, is_latched),
            qos, event_callbacks=events,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def _take(self, topic: inputs.InputTopic, is_latched: bool, message: Any,  # noqa: ANN401
              info: Mapping[str, int]) -> None:
        received_ns = time.perf_counter_ns()
        if topic.is_state and not is_latched and any(
                each.qos_profile.durability is _LATCHED for each in
                self._node.get_publishers_info_by_topic(self._name(topic))):
            # It comes through the other subscription, in the order of the publisher.
            return
        # An AckermannDrive has none.
        stamp = getattr(getattr(message, 'header', message), 'stamp', _NO_STAMP)
        by_header, by_middleware = self._ages[topic]
        now_s = time.time()
        age_s = max(
            by_header.age_s(stamp.sec + stamp.nanosec / 1e9, self._clocks_s()),
            # Also without a stamp: what waited while this process was stopped.
            by_middleware.age_s(info['source_timestamp'] / 1e9, (now_s,)),
            now_s - (info['received_timestamp'] / 1e9 or math.inf))
        had_rivals = bool(self.rivals)
        if self._has_rivals():
            self._driver.refuse(self.rivals, blocks=True)
            return
        if had_rivals:
            # Which of several publishers has sent the states is not known: the one that is left
            # sends a latched one to a new subscription.
            self._gear = None
            old, self._latched = self._latched, self._subscribe_latched()
            for subscription in old:
                self._node.destroy_subscription(subscription)
        try:
            if topic.is_state:
                self._gear = int(message.command)
                # It counts at once, not from the next command on.
                if self._command is not None:
                    self._driver.revise(self._input.wanted(self._gear, self._command))
                return
            wanted = self._input.wanted(self._gear, message)
        except StateError as error:
            self._driver.refuse(str(error))
            self._report('command', f'a command on {topic.name} is refused: {error}')
            return
        if age_s < self._timeout_s:
            self._command = message
        self._driver.accept(wanted, received_ns, age_s)
        self._assume_state()

    def _assume_state(self) -> None:
        """Assume an unknown state that no publisher has since :data:`STATE_WAIT_S`."""
        state, now_s = self.unknown_state, time.monotonic()
        if not state:
            return
        self._assume_s = min(self._assume_s, now_s + STATE_WAIT_S)
        if now_s < self._assume_s:
            return
        if not self._node.count_publishers(state):
            self._gear = inputs.DRIVE
            self._report('command state', f'{state} has no publisher: the gear is drive')

    def _has_rivals(self) -> bool:
        """Return whether a topic has several publishers; report them once."""
        for types in self._alternatives:
            if names := report.rival_publishers(self._node, types):
                self.rivals = (f'{" with ".join(types)} has {len(names)} publishers, '
                               f'{", ".join(names)}; expected one: every command is refused')
                # A publisher may be discovered before the name of its node.
                if report.UNDISCOVERED not in names and self.rivals != self._reported:
                    self._reported = self.rivals
                    self._report('command publishers', self.rivals)
                return True
        self.rivals = self._reported = ''
        return False


class Commanding:
    """
    The topics of an input, the driver of the ego, and the status of both.

    Each command that was sent to the simulator is published on ``~/command_status``.

    :param snapshot: returns the last frame, None before the first.
    :ivar last_command: gear and steering of the last command that was sent, None before it.
    """

    def __init__(self, node: Node, settings: Settings, commands: ego_commands.EgoCommands,
                 snapshot: Callable[[], Snapshot | None], health: Health, address: str,
                 log: report.NodeLog) -> None:
        parameters = settings.of(ego_commands.ControlParameters)
        self._node, self._snapshot, self._health, self._log = node, snapshot, health, log
        # No frame from before the activation counts.
        self._begun_ns = time.perf_counter_ns()
        self._watch, self._last = EgoWatch(), CommandCounters()
        self._address, self._brakes_left = address, parameters.brake_at_start
        # Made by a thread of its own: the name of the host is looked up.
        self._mark: DriveMark | None = None
        self._marking, self._reports = LateCalls(log.defect), LateCalls(log.defect)
        late = self._reports.late
        self.last_command: LastCommand | None = None
        self._status_class: Any = message_class('state_sensor_ros/msg/VehicleControl')
        self._publisher = node.create_publisher(
            self._status_class, '~/command_status', QoSProfile(depth=10),
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        # Destroys what is made of ROS.
        self._made = ExitStack()
        self._made.callback(node.destroy_publisher, self._publisher)
        self._made.callback(await_delivery, [self._publisher], _DELIVERY_S)
        self._seen: Snapshot | None = None
        self._is_begun = False
        self.driver = EgoDriver(
            parameters, commands, self._motion, stale_after=settings.stale_after,
            follows_speed=find_simulator(settings.source).follows_speed(settings),
            on_sent=late(self._publish), before_first=self._mark_drive, report=late(log.warn),
            on_defect=late(log.defect))
        new_input: type[inputs.CommandInput] = inputs.INPUTS[settings.control_input]
        self._topics = self._made.enter_context(closing(CommandTopics(
            node, new_input(parameters, settings.role), self.driver, parameters.timeout,
            self._clocks_s, log.warn)))
        # Lights by the topic that wants them; hazard lights come before turn indicators.
        self._lights = [frames.INDICATORS_OFF] * len(_LIGHTS)
        if settings.control_input == 'autoware':
            self._serve_autoware(commands)
        self.driver.start()

    def _serve_autoware(self, commands: ego_commands.EgoCommands) -> None:
        """Take turn signals, if the simulator has them, and requests for a control mode."""
        node = self._node
        if isinstance(commands, ego_commands.IndicatorCommands):
            for place, (kind, name, lights) in enumerate(_LIGHTS):
                self._made.callback(node.destroy_subscription, node.create_subscription(
                    message_class(f'autoware_vehicle_msgs/msg/{kind}Command'),
                    f'/control/command/{name}', partial(self._light, commands, place, lights),
                    QoSProfile(depth=1)))
        modes = import_module('autoware_vehicle_msgs.srv').ControlModeCommand
        self._made.callback(node.destroy_service, node.create_service(
            modes, '/control/control_mode_request', self._answer_mode))

    def frame_arrived(self) -> None:
        """Decide again if there is a new frame; called by one thread."""
        snapshot = self._snapshot()
        if snapshot is None or snapshot is self._seen or snapshot.received_ns < self._begun_ns:
            return
        before, self._seen = self._seen, snapshot
        frame, i_ego = snapshot.frame, snapshot.actor_list.i_ego
        has_ego = i_ego >= 0 and bool(frame.has_pose()[i_ego])
        speed = frames.speed_along(frame, i_ego) if has_ego else math.nan
        if has_ego and math.isnan(speed) and before is not None \
                and before.actor_list.i_ego >= 0 \
                and 0.0 < frame.game_time - before.frame.game_time < _LONGEST_STEP_S:
            speed = frames.speed_by_positions(before.frame, before.actor_list.i_ego, frame, i_ego)
        self._watch.see(
            EgoMotion(speed, frame.game_time, n_egos=snapshot.actor_list.n_egos,
                      climb=frames.climb_of(frame, i_ego) if has_ego else math.nan,
                      pose=tuple(frame.kinematics[i_ego, :7].tolist()) if has_ego else ()),
            time.monotonic() - (time.perf_counter_ns() - snapshot.received_ns) / 1e9)
        if math.isfinite(speed) and not self._is_begun:
            self._is_begun = True
            self._marking.late(self._begin)(speed)
        self.driver.frame_arrived()

    def _found_mark(self, *, is_driven: bool = False) -> DriveMark | None:
        try:
            self._mark = self._mark or DriveMark(resolved(self._address))
            if is_driven:
                self._mark.set()
        except OSError as error:
            self._log.warn('control mark',
                           f'a node that is killed leaves no mark: {reason_of(error)}')
        return self._mark

    def _mark_drive(self) -> None:
        # Before the command: its node may be killed at any time.
        if self._mark is not None:
            self._found_mark(is_driven=True)
        else:
            self._marking.late(self._found_mark)(is_driven=True)

    def _begin(self, speed: float) -> None:
        """Report an ego that moves at the start, and brake it if a killed node has left it."""
        mark = self._found_mark()
        if self.driver.state is DriverState.IDLE and abs(speed) > _MOVES:
            text = (f'the ego moves at {speed:.1f} m/s before the first command: an autopilot, '
                    'another client or the last command of a killed driver drives it until then')
            if self._brakes_left and mark is not None and mark.was_left:
                self._log.warn('ego', text)
                self.driver.brake_left()
            else:
                self._log.info(text)

    def close(self) -> None:
        """Brake if commands were sent; then end, once subscribers have the last command."""
        self.driver.close()
        self._reports.close(_REPORTS_S)
        self._marking.close(_MARKING_S)
        if self._mark is not None:
            self._mark.close(is_kept=bool(self.driver.failure and self.driver.counters.n_sent))
        self._made.close()

    def status(self) -> report.Status:
        """Return the state of the driver, and the faults since the last call."""
        counters, last, state = self.driver.counters, self._last, self.driver.state
        self._last = replace(counters)
        faults = [each for each in (self.driver.disobedience, self._fault(state)) if each]
        is_error = state in _ERRORS or bool(self.driver.disobedience)
        if counters.n_timeouts > last.n_timeouts and state in _ORDINARY:
            faults.append('no command for a while')
        if counters.n_refused > last.n_refused and state is not DriverState.BLOCKED:
            faults.append(f'commands refused ({counters.n_refused - last.n_refused}): '
                          f'{counters.last_refusal}')
        if counters.n_unsent > last.n_unsent:
            faults.append(f'commands not sent ({counters.n_unsent - last.n_unsent})')
        usual, speed = state.value, self._motion().speed
        if state is DriverState.IDLE and abs(speed) > _MOVES:
            usual += f': another driver moves the ego at {speed:.1f} m/s'
        latencies_ms = [latency / 1e6 for latency in list(counters.latencies_ns)]
        return report.Status(
            report.Level.ERROR if is_error else report.Level.WARN if faults else report.Level.OK,
            '; '.join(faults) or usual, {
                'state': state.name.lower(), 'commands received': counters.n_received,
                'commands refused': counters.n_refused, 'commands sent': counters.n_sent,
                'commands not sent': counters.n_unsent, 'time-outs': counters.n_timeouts,
                'last refusal': counters.last_refusal,
                'command-to-simulator latency median (ms)':
                    report.shown(median(latencies_ms) if latencies_ms else math.nan),
                'command-to-simulator latency p99 (ms)':
                    report.shown(report.percentile(latencies_ms, 0.99))})

    def _fault(self, state: DriverState) -> str:
        """Return why the ego brakes or does not move, empty if it drives."""
        motion, last = self._motion(), self._watch.last
        is_stale = state is DriverState.STALE
        if state is DriverState.BLOCKED:
            return self._topics.rivals or state.value
        if state is DriverState.FAULT:
            return f'the ego brakes: {motion.fault or state.value}'
        if is_stale and last is None:
            return 'the ego brakes: no frame has arrived'
        if is_stale and last is not None and not last.pose:
            return 'the ego brakes: it is not in the frames, so its speed is unknown'
        if (is_stale or state is DriverState.DRIVING) and math.isnan(motion.speed):
            return 'the ego brakes: its speed is unknown'
        if is_stale:
            return f'the ego brakes: its last new frame is {motion.age_s:.1f} s old'
        if state is DriverState.DRIVING and self._topics.unknown_state:
            return f'the ego does not move: no message on {self._topics.unknown_state} yet'
        return '' if state in _ORDINARY else state.value

    def _answer_mode(self, request: Any, response: Any) -> Any:  # noqa: ANN401
        """
        Answer a request for a control mode.

        Commands drive the ego as soon as they arrive, so autonomous control needs no change. The
        ego is never left to a driver: manual modes fail.
        """
        response.success = request.mode == request.AUTONOMOUS \
            and self.driver.state is not DriverState.BLOCKED
        return response

    def _light(self, commands: ego_commands.IndicatorCommands, place: int,
               lights: Mapping[int, int], message: Any) -> None:  # noqa: ANN401
        """Set the turn signals by a message on the topic of a row of ``_LIGHTS``."""
        self._lights[place] = lights.get(message.command, self._lights[place])
        turn, hazard = self._lights
        try:
            commands.indicate(turn if hazard == frames.INDICATORS_OFF else hazard)
        except StateSensorError as error:
            self._log.warn('turn signals', f'turn signals are not sent: {error}')

    def _clocks_s(self) -> tuple[float, float]:
        """Return the game time of the last frame, NaN before it, and the node's time, s."""
        snapshot = self._snapshot()
        return (math.nan if snapshot is None else snapshot.frame.game_time,
                self._node.get_clock().now().nanoseconds / 1e9)

    def _motion(self) -> EgoMotion:
        return self._watch.motion(self._health.fault,
                                  is_paused=self._health.state is SourceState.PAUSED)

    def _publish(self, command: ego_commands.EgoCommand) -> None:
        self.last_command = LastCommand(
            command.reverse, command.hand_brake, command.steering_angle)
        # The node may be destroyed while the last brake is still on its way.
        with suppress(InvalidHandle):
            message = self._status_class(
                origin=self._status_class.ORIGIN_COMMAND, steer=command.steer,
                raw_steer=-command.steer, steering_angle=command.steering_angle,
                throttle=command.throttle, brake=command.brake, hand_brake=command.hand_brake,
                reverse=command.reverse)
            # Of the ego in the last frame; before it, the node's time.
            snapshot = self._snapshot()
            message.header.stamp = Time(
                nanoseconds=self._node.get_clock().now().nanoseconds if snapshot is None
                else snapshot.stamp_ns).to_msg()
            if snapshot is not None and snapshot.actor_list.i_ego >= 0:
                actors = snapshot.actor_list
                message.header.frame_id = actors.actors[actors.i_ego].frame_id
            self._publisher.publish(message)
