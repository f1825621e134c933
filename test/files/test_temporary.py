# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Temporary folders are removed whenever an exception is raised."""

from contextlib import ExitStack
import gc
import secrets  # noqa: F401 - not to be interrupted while it is imported
import sys
import tempfile

import pytest

from state_sensor_ros.files.whole.output import remove_folders, temporary_folder


@pytest.fixture(autouse=True)
def _in_test_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, 'tempdir', str(tmp_path))


def interrupt(at_event):
    """Raise KeyboardInterrupt at an event of Python's profiler."""
    n_events = 0

    def count(*_):
        nonlocal n_events
        n_events += 1
        if n_events == at_event:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(count)


@pytest.fixture
def _uncollected():
    """Collect no garbage: a callback of the collector only prints an exception."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures('_uncollected')
def test_temporary_folder_interrupted_anywhere_is_removed(tmp_path):
    for at_event in range(1, 1000):
        try:
            with ExitStack() as stack:
                interrupt(at_event)
                (stack.enter_context(temporary_folder()) / 'file').touch()
            sys.setprofile(None)
        except (KeyboardInterrupt, OSError):
            # Where the removal was interrupted, maybe between the use and the closing of a
            # descriptor, the end of the program removes the rest.
            remove_folders()
            assert list(tmp_path.iterdir()) == [], at_event
        else:
            break
    assert at_event > 50
    assert list(tmp_path.iterdir()) == []


def test_temporary_folders_are_removed_while_in_use(tmp_path):
    with temporary_folder() as folder:
        (folder / 'file').touch()
        assert folder.stat().st_mode & 0o777 == 0o700
        remove_folders()
        assert list(tmp_path.iterdir()) == []
