# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Budgets of all tests, the number of workers, ROS domains, and missing libraries."""

import gc
import itertools
import os
import signal

import budgets
from domains import claim, is_empty, MAX_DOMAIN
from hypothesis import HealthCheck, settings
from missing_libraries import MissingLibraries
import pytest
import real_recordings
from stopwatch import until
import surroundings

_DOMAINS = (number % MAX_DOMAIN + 1 for number in itertools.count(os.getpid()))
# More than one process per core: many tests wait for other processes. Each may use a ROS domain
# of its own, of which there are about 100.
_MAX_WORKERS = 16


def pytest_addoption(parser):
    parser.addoption('--budget', type=float, default=1.0, metavar='N',
                     help='try N times as many random inputs; above 1 also run thorough tests')


# After pytest itself, whose own output may have colors.
@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    surroundings.make_plain(os.environ)
    budgets.set_budget(config.getoption('budget'))
    config.pluginmanager.register(MissingLibraries())
    # The same inputs in each run. No limits of time: they would measure the load of the machine.
    settings.register_profile('tests', derandomize=True, deadline=None,
                              suppress_health_check=[HealthCheck.too_slow],
                              max_examples=budgets.tries(40))
    settings.load_profile('tests')


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """
    Collect tests without garbage collections, a quarter of the time: all that is made stays.

    A command that a test runs in this process would have them look through all of that again.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.freeze = gc.unfreeze = lambda: None
    gc.enable()


def pytest_collection_modifyitems(config, items):
    base = config.invocation_params.dir
    named = {(base / word.partition('::')[0]).resolve() for word in config.args}
    excluded = [item for item in items if real_recordings.needs_absent(item) or (
        not budgets.is_large() and item.path not in named
        and item.get_closest_marker('thorough'))]
    if excluded:
        items[:] = [item for item in items if item not in set(excluded)]
        config.hook.pytest_deselected(items=excluded)
    if hasattr(config, 'workerinput'):
        items[:] = _spread(items)


def _spread(items):
    """
    Distribute the files of ros/ evenly among the others.

    Each worker starts with an equal part of the list. The tests with ROS mostly wait, the others
    mostly compute: with some of both in each part, neither waits for the other at the end.
    """
    placed = []
    for is_ros in (False, True):
        own = [item for item in items if (item.path.parent.name == 'ros') is is_ros]
        first = {}
        for i, item in enumerate(own):
            # Tests of one file stay together, for its fixtures.
            placed.append((first.setdefault(item.path, i / len(own)), is_ros, i, item))
    return [item for *_, item in sorted(placed, key=lambda entry: entry[:3])]


@pytest.fixture(autouse=True)
def _default_signals():
    """Have SIGHUP and SIGINT end the programs of a test; in the background both may be ignored."""
    handlers = {signal.SIGHUP: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def domain():
    """Provide a ROS domain without other nodes on this machine, reserved for the test."""
    for number in itertools.islice(_DOMAINS, MAX_DOMAIN):
        holder = claim(number)
        if holder is None:
            continue
        with holder:
            if is_empty(number):
                yield number
                return
    pytest.fail('found nodes in every ROS domain')


@pytest.fixture
def refusal(capsys):
    """Return a function that runs a command that fails; it returns its one line of errors."""
    from state_sensor_ros.commands.cli import main

    def refused(*words, code=1):
        capsys.readouterr()
        assert main([*map(str, words)]) == code
        [line] = capsys.readouterr().err.splitlines()
        return line

    return refused


@pytest.fixture
def hold_end(monkeypatch):
    """Return a function: --seconds end a live recording only when a condition of it holds."""
    from state_sensor_ros.commands import reading
    timer = reading._timer

    def hold(condition):
        monkeypatch.setattr(reading, '_timer', lambda wait_s, call: timer(
            wait_s, lambda: (until(lambda: condition(call.__self__)), call())))

    return hold


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return the number of workers for ``-n auto``: tests wait, but each worker has a start."""
    return min(len(os.sched_getaffinity(0)) + 1, _MAX_WORKERS)
