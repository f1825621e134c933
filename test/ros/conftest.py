# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A ROS domain for each test; without a ROS environment these tests are skipped."""

import itertools
import os
import socket

from domains import is_empty, MAX_DOMAIN
import pytest

pytest.importorskip('rclpy', reason='needs a ROS 2: run `make test`, or source one')
pytest.importorskip('state_sensor_ros.msg', reason='needs the built messages: run `make test`')

from rig import Bench, listening, ScriptedSimulator

_DOMAINS = (number % MAX_DOMAIN + 1 for number in itertools.count(os.getpid()))


@pytest.fixture
def domain():
    """Provide a ROS domain that no other node on this machine, nor another run of tests, uses."""
    for number in itertools.islice(_DOMAINS, MAX_DOMAIN):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(f'\0state_sensor_ros test {number}')
            except OSError:
                continue
            if is_empty(number):
                yield number
                return
    pytest.fail('found nodes in every ROS domain')


@pytest.fixture
def listener(domain):
    """Provide a listener in the test's domain."""
    with listening(domain) as found:
        yield found


@pytest.fixture
def simulator():
    """Provide a scripted simulator."""
    with ScriptedSimulator() as found:
        yield found


@pytest.fixture
def bench(domain, listener, simulator):
    """Provide a function that starts a node with parameters; returns its :class:`Bench`."""
    made = []

    def make(**parameters):
        made.append(Bench(domain, listener, simulator, **parameters))
        return made[-1]

    yield make
    for each in made:
        with each.node:
            pass
