# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""All formats of the package that are written and read, by the suite that plug-ins inherit."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from state_sensor_ros.simulators.opening import formats
from state_sensor_ros.testing import equal_parts, FormatSuite, FRAMES, write_read


class TestOwnFormats(FormatSuite):
    suffixes = ('', '.mcap', '.db3', '.json', '.json.gz', '.json.zst')


class TestTables(FormatSuite):
    suffixes = ('.parquet',)
    # Those of a table may be differences of velocities.
    without = MappingProxyType({'.parquet': frozenset({'accelerations'})})


class TestTraces(FormatSuite):
    suffixes = ('.osi', '.osi.mcap')
    # A trace has ids and classes, no names and tags.
    without = MappingProxyType(dict.fromkeys(suffixes, frozenset({'names', 'tags'})))


def test_suites_have_every_format_that_is_written_and_read():
    known = {suffix for suite in (TestOwnFormats, TestTables, TestTraces)
             for suffix in suite.suffixes}
    for row in formats():
        if row.is_written and row.reader and row.name != 'dataset':
            assert known >= set(row.suffixes), row


@pytest.mark.parametrize('change', [
    lambda frame: frame.select([0]), lambda frame: replace(frame, names=('ego car', 'other')),
    lambda frame: replace(frame, game_time=9.0), lambda frame: replace(frame, boxes=None),
    lambda frame: replace(frame, ids=None), lambda frame: replace(
        frame, kinematics=frame.kinematics + np.eye(2, 13)),
    lambda frame: replace(frame, tags=(('vehicle',),) * 2)])
def test_difference_is_noticed(change, tmp_path):
    frames, _ = write_read(FRAMES['ids'], tmp_path / 'out')
    equal_parts(FRAMES['ids'][1], frames[1])
    with pytest.raises(AssertionError):
        equal_parts(FRAMES['ids'][1], change(frames[1]))
