# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The driver as a managed ROS node: its life cycle, and the wiring of its parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, ExitStack, suppress
from dataclasses import replace
from functools import wraps
import gc
from importlib.util import find_spec
import time
from typing import Any, TypeAlias

from lifecycle_msgs.srv import ChangeState
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import InvalidHandle
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.serialization import deserialize_message

from state_sensor_ros.cdr.definitions import load_definitions
from state_sensor_ros.errors import importing, StateSensorError
from state_sensor_ros.pipeline.pipeline import Counters, Pipeline, Snapshot
from state_sensor_ros.pipeline.stream import FrameQueue, StreamThreads
from state_sensor_ros.ros import report, sink
from state_sensor_ros.ros.commanding import Commanding
from state_sensor_ros.ros.editing import Editing
from state_sensor_ros.ros.parameters import check_packages, NodeParameters
from state_sensor_ros.settings import ActorQos, FILE, Settings
from state_sensor_ros.simulators import find_simulator
from state_sensor_ros.simulators.opening import Input
from state_sensor_ros.source import latest, Source, SourceState
from state_sensor_ros.texts import one_line
from state_sensor_ros.topics.encoder import Encoder, verify
from state_sensor_ros.topics.topic import Qos
from state_sensor_ros.topics.transforms import encode_static_frames

NODE_NAME = 'state_sensor'
_DIAGNOSTICS_PERIOD_S = 1.0
# Time in which the publishers are found that are there at activation, s.
_DISCOVERY_S = 3.0
# Longest wait for a frame with boxes.
_BOXES_S = 0.5
# Period of the log of a stream until its rate is known, and while it is not connected.
_STREAM_LOG_PERIOD_S = 0.2
# Kinds of reports that are not errors.
_REMARKS = frozenset({'unknown', 'clocks', 'restart', 'base_link', 'lights', 'perception'})
_SUCCESS = TransitionCallbackReturn.SUCCESS
_Transition: TypeAlias = 'Callable[[StateSensorNode, LifecycleState], TransitionCallbackReturn]'


def noting(transition: _Transition) -> _Transition:
    """Store the exception of a transition in the node: rclpy only logs it."""
    # Returns a method that returns FAILURE if ``transition`` raises StateSensorError.
    @wraps(transition)
    def noted(self: StateSensorNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            with importing(NODE_NAME):
                return transition(self, state)
        except StateSensorError as error:
            self.refusal = error
            if not self.is_starting:
                self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except BaseException as error:
            self.failure = error
            raise
    return noted


class StateSensorNode(LifecycleNode):  # type: ignore[misc]
    """The State sensor of a simulator on ROS topics: doc/interface.md."""

    # commanding: what drives the ego, None if nothing does.
    # failure: the unexpected exception of a transition or a thread, None for none.
    # refusal: the reason why the last transition was refused, None for none.
    # is_ending: whether the program is ending; the simulator then often ends as well, so that the
    # loss of its connection is not logged.

    def __init__(self) -> None:
        super().__init__(NODE_NAME)
        self.failure: BaseException | None = None
        self.refusal: StateSensorError | None = None
        self.is_starting = self.is_ending = False
        self._own_parameters = NodeParameters(self, self._reconfigure)
        self._pipeline: Pipeline | None = None
        self._sink: sink.TopicSink | None = None
        self._stream: StreamThreads | None = None
        self.commanding: Commanding | None = None
        # The stream that was stopped last; its thread may still process a frame.
        self._stopped: StreamThreads | None = None
        self._input: Input | None = None
        # What :meth:`on_configure` has opened.
        self._opened = ExitStack()
        self._report: report.StreamReport | None = None
        self._n_losses = 0
        # Whether /clock is left to another node, and the end of the search for it.
        self._clock_left, self._clock_until_s = False, 0.0
        sink.guard_service(self, ChangeState, self._refusing)
        # Of the services that an executor may run beside everything else, and each other.
        self.service_group = ReentrantCallbackGroup()
        self.log = report.NodeLog(self.get_logger())
        self._editing = Editing(self)
        if find_spec('simulation_interfaces') is not None:
            from state_sensor_ros.ros.services import Services
            Services(self, self._editing)
        self._diagnostics = report.DiagnosticsTopic(self)
        for line in self._own_parameters.warnings:
            self.get_logger().warning(one_line(line))
        # A steady clock: with sim time, a paused simulation would stop the diagnostics.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_DIAGNOSTICS_PERIOD_S, self._publish_diagnostics, clock=steady)
        self._log_timer = self.create_timer(_STREAM_LOG_PERIOD_S, self._log_stream, clock=steady)
        self._waker = self.create_guard_condition(self._log_timer.reset)
        self._graph = report.GraphWatch(self, self.get_logger().warning)

    def _refusing(self, change: Callable[..., Any]) -> Callable[..., Any]:
        """Refuse a transition that the state does not have: rclpy would end the program."""
        def change_or_refuse(request: ChangeState.Request,
                             response: ChangeState.Response) -> ChangeState.Response:
            try:
                return change(request, response)
            except RuntimeError as error:
                self.get_logger().warning(f'transition refused: {error}')
                response.success = False
                return response
        return change_or_refuse

    @property
    def settings(self) -> Settings:
        """Return the parameters as they are now."""
        return self._own_parameters.settings

    @property
    def source(self) -> Source | None:
        """Return the source, None while the node is not active."""
        return None if self._stream is None else self._stream.source

    @property
    def counters(self) -> Counters:
        """Return the numbers of frames."""
        return Counters() if self._pipeline is None else self._pipeline.counters

    def snapshot(self) -> Snapshot | None:
        """Return the last frame whose clock advanced, None before the first."""
        return None if self._pipeline is None else self._pipeline.snapshot

    def with_boxes(self) -> Snapshot | None:
        """Return the last frame with boxes, which are decoded from the first call on."""
        if self._pipeline is not None:
            self._pipeline.needs_boxes = True
        until_s = time.monotonic() + _BOXES_S
        while (found := self.snapshot()) is not None and found.frame.boxes is None \
                and time.monotonic() < until_s:
            time.sleep(_BOXES_S / 100)
        return found

    @noting
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read files, verify the message definitions, create the fixed topics."""
        settings, definitions, counters = self.settings, load_definitions(), Counters()

        def note(kind: str, text: str) -> None:
            self.log.warn(kind, text)
            if kind not in _REMARKS:
                counters.last_error.note(text)

        def encoder_of(settings: Settings) -> Encoder:
            # The topic is there, too, if it may be switched on later.
            made = Encoder(
                replace(settings, publish_clock=True), definitions, note, received.topics.encoders,
                last_command=lambda: None if self.commanding is None
                else self.commanding.last_command)
            made.reconfigure(settings)
            return made

        check_packages(settings)
        with ExitStack() as opened:
            self._input = received = opened.enter_context(closing(Input(settings, note)))
            encoder = encoder_of(settings)
            verify(encoder.type_names, definitions, sink.message_class, deserialize_message)
            qos = settings.of(ActorQos)
            self._sink = opened.enter_context(closing(sink.TopicSink(self, encoder.topics, Qos(
                reliable=qos.reliability == 'reliable', depth=qos.depth))))
            self._graph.exclusive = {topic.name for topic in encoder.topics if topic.is_exclusive}
            self._pipeline = Pipeline(
                settings, encoder_of, self._sink, report=note, on_defect=self.log.defect,
                counters=counters, ros_now_ns=lambda: self.get_clock().now().nanoseconds)
            static_frames = encode_static_frames(settings, definitions, received.topics.transforms)
            if static_frames is not None:
                opened.callback(sink.destroy_publisher, self,
                                sink.publish_static(self, static_frames[1]))
            self._opened = opened.pop_all()
        self._own_parameters.is_frozen = True
        return _SUCCESS

    @noting
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Open the source and start to publish."""
        settings, pipeline, received = self.settings, self._pipeline, self._input
        assert pipeline is not None
        assert received is not None
        source = received.open_source()
        if self._stopped is not None:
            source.health.count_on(self._stopped.source.health)
        source.health.on_error = self.wake
        self._stream = StreamThreads(
            source, pipeline, on_failure=self._fail, catch_up=self._catch_up,
            # A recording can wait: none of its frames is dropped.
            queue=FrameQueue(settings.queue_size, 'block' if settings.source == FILE
                             else settings.overflow, pipeline.counters),
            predecessor=self._stopped)
        self._report = report.StreamReport(
            self._hardware_id(), settings, self._stream, pipeline,
            use_sim_time=bool(self.get_parameter('use_sim_time').value))
        # Objects built until now stay: they are excluded from the collections during frames.
        gc.collect()
        gc.freeze()
        self._log_timer.reset()
        if settings.source != FILE:
            self.log.info(f'connecting to {self._hardware_id()} (source: {settings.source})')
        self._stream.start()
        if settings.control_input:
            self.commanding = Commanding(
                self, settings, received.open_commands(source), self.snapshot, source.health,
                self._hardware_id(), self.log)
        self._editing.begin()
        self._clock_left, self._clock_until_s = False, time.monotonic() + _DISCOVERY_S
        self._leave_clock()
        return super().on_activate(state)

    @noting
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the source and delete the markers; no frame is published afterward."""
        self._stop()
        return super().on_deactivate(state)

    @noting
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Remove the topics and the state of the actors."""
        self._tear_down()
        return _SUCCESS

    @noting
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Close the source and remove the topics, from any state."""
        self._stop()
        self._tear_down()
        if self.context.ok():
            self._diagnostics.flush()
        return _SUCCESS

    # After a failed transition, back to unconfigured.
    on_error = on_shutdown

    def shut_down(self) -> None:
        """Go to the state finalized, from any state."""
        # rclpy raises it if the node is already finalized, such as by `ros2 lifecycle set`.
        with suppress(RuntimeError):
            self.trigger_shutdown()

    def destroy_node(self) -> None:
        """Destroy what belongs to the node, also what rclpy leaves."""
        super().destroy_node()
        sink.release_state_machine(self)

    def end_soon(self) -> None:
        """Have an ego that was driven brake at once, for good, then end; from any thread."""
        self.is_ending = True
        try:
            commanding = self.commanding
            if commanding is not None:
                commanding.driver.end()
        finally:
            self.wake()

    def wake(self) -> None:
        """Log the state of the stream within 0.2 s; from any thread."""
        # The node may have been destroyed.
        with suppress(InvalidHandle):
            self._waker.trigger()

    def _catch_up(self) -> bool:
        """Do the deferred work after a frame; called by the thread of the stream."""
        commanding, pipeline, topics = self.commanding, self._pipeline, self._sink
        if commanding is not None:
            commanding.frame_arrived()
        self._editing.frame_arrived()
        return pipeline is not None and topics is not None \
            and bool(pipeline.contain(topics.catch_up))

    def _fail(self, error: BaseException) -> None:
        """Keep the exception that ended a thread: a defect, or the end of the context."""
        self.failure = error
        self.wake()

    def _stop(self) -> None:
        commanding, self.commanding = self.commanding, None
        if commanding is not None:
            # First, while there is a connection: the ego brakes.
            commanding.close()
        self._editing.end()
        if self._stream is not None and self.context.ok():
            # The numbers of the stream since the last status, which nothing else would show.
            self._publish_diagnostics()
        stream, self._stream, self._report = self._stream, None, None
        if stream is not None and self._pipeline is not None:
            self._stopped = stream
            stream.stop()
            counters = self._pipeline.counters
            counters.last_error = replace(latest(counters.last_error, stream.source.health.error))

    def _tear_down(self) -> None:
        self._opened.close()
        self._sink = self._pipeline = self._stopped = self._input = None
        self._own_parameters.is_frozen = False
        gc.unfreeze()

    def _leave_clock(self) -> None:
        """Leave /clock to another node that publishes it at activation; it is found late."""
        settings = self.settings
        if self._clock_left or not settings.publish_clock or settings.stamp_source != 'game_time' \
                or time.monotonic() > self._clock_until_s:
            return
        if others := report.other_publishers(self, '/clock'):
            self._clock_left = True
            self._reconfigure(settings)
            self.get_logger().warning(f'/clock has another publisher, {others}: it is left to it')

    def _reconfigure(self, settings: Settings) -> None:
        """Apply dynamic parameters between two frames, or at once."""
        if self._pipeline is not None:
            self._pipeline.reconfigure(replace(
                settings, publish_clock=settings.publish_clock and not self._clock_left))
        if self._stream is not None:
            self._stream.source.reconfigure(settings)
            self._stream.queue.wake()

    def _publish_diagnostics(self) -> None:
        self._log_stream()
        self._graph.search()
        statuses = {'stream': report.Status(report.Level.OK, 'not active', {})}
        if self._report is not None:
            statuses = {'stream': self._report.status(), 'truth': self._report.truth()}
        if self.commanding is not None:
            statuses['control'] = self.commanding.status()
        self._diagnostics.publish(self._hardware_id(), statuses)

    def _log_stream(self) -> None:
        stream = self._stream
        if stream is None or self._report is None or self.is_ending:
            return
        self._leave_clock()
        n_losses, self._n_losses = self._n_losses, stream.source.health.n_losses
        if self._n_losses > n_losses:
            # In a launch the simulator often ends with the node: next time, unless it is ending.
            return
        for is_warning, text in self._report.lines():
            # Two calls: rclpy refuses one that changes its severity.
            if is_warning:
                self.get_logger().warning(one_line(text))
            else:
                self.get_logger().info(one_line(text))
        # An error wakes the node; other lines can wait for the next diagnostics.
        if self._report.is_described and stream.source.health.state is SourceState.CONNECTED:
            self._log_timer.cancel()

    def _hardware_id(self) -> str:
        settings = self.settings
        return settings.trajectory_file if settings.source == FILE \
            else find_simulator(settings.source).address(settings)
