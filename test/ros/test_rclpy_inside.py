# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""What is taken from inside rclpy, and what replaces it where a version does not have it."""

from __future__ import annotations

import threading
import time

from budgets import AWAIT_S
from lifecycle_msgs.srv import ChangeState
import pytest
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.duration import Duration
from rclpy.serialization import serialize_message
from std_msgs.msg import Bool, String

from state_sensor_ros.ros import sink as sinks  # noqa: I100
from state_sensor_ros.ros.main import NodeExecutor
from state_sensor_ros.ros.report import GraphWatch, rival_publishers


class Without:
    """An object of rclpy that lacks some names."""

    def __init__(self, whole, *names):
        self.__dict__.update(_whole=whole, _names=names)

    def __getattr__(self, name):
        if name in self._names:
            raise AttributeError(name)
        return getattr(self._whole, name)


@pytest.fixture
def node(domain):
    context = rclpy.Context()
    rclpy.init(args=['x', '--ros-args', '-p', 'given:=3'], context=context, domain_id=domain)
    made = rclpy.create_node('inside', context=context)
    yield made
    made.destroy_node()
    context.try_shutdown()


@pytest.mark.parametrize('hidden', [(), ('handle',)])
def test_publishers_work_without_the_handle(node, listener, hidden):
    received = listener.subscribe('/text', 'std_msgs/String')
    publisher = Without(node.create_publisher(String, '/text', 10), *hidden)
    count = sinks.fast(publisher, 'get_subscription_count', publisher.get_subscription_count)
    listener.until(count, what='the subscriber')
    publish = sinks.fast(publisher, 'publish_raw', publisher.publish)
    publish(serialize_message(String(data='whole')))
    listener.until(lambda: received, what='the message')
    assert received[0].data == 'whole'


def test_publishers_whose_messages_are_not_received_are_named(node, listener):
    lines = []
    watch = GraphWatch(node, lines.append)
    subscriptions = [node.create_subscription(String, name, print, 10)
                     for name in ('/right', '/other')]
    made = [listener.node.create_publisher(String, '/right', 10),
            listener.node.create_publisher(Bool, '/other', 10)]
    listener.until(lambda: watch.find_unread() or lines, what='a warning')
    watch.find_unread()
    reasons = [line.removesuffix(': its messages are not received') for line in sorted(lines)]
    assert reasons == [
        '/other: /listener publishes std_msgs/msg/Bool; expected std_msgs/msg/String']
    # One of another type is no rival: its messages cannot arrive.
    made.append(node.create_publisher(String, '/other', 10))
    listener.until(lambda: rival_publishers(node, {'/other': ''}), what='both')
    assert rival_publishers(node, {'/other': 'std_msgs/msg/String'}) == []
    assert len(made) > len(subscriptions)


def test_service_that_waits_delays_no_other_callback(node):
    node.service_group = MutuallyExclusiveCallbackGroup()
    began, timed = threading.Event(), threading.Event()

    def answer(request, response):
        began.set()
        response.success = timed.wait(AWAIT_S)
        return response

    node.create_service(ChangeState, '/wait', answer, callback_group=node.service_group)
    client, executor = node.create_client(ChangeState, '/wait'), NodeExecutor(node)
    assert client.wait_for_service(AWAIT_S)
    future = client.call_async(ChangeState.Request())
    while not began.is_set():
        executor.spin_once(AWAIT_S)
    node.create_timer(0.01, timed.set)
    while not future.done():
        executor.spin_once(AWAIT_S)
    assert future.result().success
    executor.shutdown()


class AtOnce:
    """A publisher of a middleware that does not wait for acknowledgments."""

    def __init__(self, n_subscribers, error=None):
        self._n_subscribers, self._error = n_subscribers, error

    def publish(self, data):
        pytest.fail('nothing is published')

    def get_subscription_count(self):
        return self._n_subscribers

    def wait_for_all_acked(self, timeout):
        assert isinstance(timeout, Duration)
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(('identifier', 'n_subscribers', 'waits'), [
    ('rmw_zenoh_cpp', 1, True), ('rmw_zenoh_cpp', 0, False), ('rmw_fastrtps_cpp', 1, False)])
def test_last_messages_do_not_depend_on_acknowledgments(monkeypatch, identifier, n_subscribers,
                                                        waits):
    monkeypatch.setattr(rclpy, 'get_rmw_implementation_identifier', lambda: identifier)
    slept = []
    monkeypatch.setattr(time, 'sleep', slept.append)
    sinks.await_delivery(
        [AtOnce(0), AtOnce(n_subscribers, RuntimeError('not implemented'))], 0.5)
    assert bool(slept) is waits
    assert all(0.0 < seconds <= 0.1 for seconds in slept)
