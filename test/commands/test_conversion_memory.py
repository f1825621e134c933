# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The memory of a conversion depends neither on the length nor on the actors that left."""

import gc
import tracemalloc

from budgets import one_of
import pytest

from state_sensor_ros.commands.cli import main
from state_sensor_ros.files import actor_rows, bag_writer, table
from state_sensor_ros.library import stream
from state_sensor_ros.simulators.sumo import fcd

STEP = ('<timestep time="{i}"><vehicle id="car_{i}" x="{i}" y="0" angle="90" type="my" speed="9"/>'
        '</timestep>')
# Of each actor: its name, for the number of actors, and in a table its id. Frames that are kept
# would be thousands, a fault that is kept hundreds.
GROWTH_BYTES = {'bag': 400, 'table.parquet': 2400}


def peak_bytes(folder, name, n_steps):
    """Convert steps, each with another vehicle of an undeclared type; return Python's memory."""
    steps = ''.join(STEP.format(i=i) for i in range(n_steps))
    (folder / 'a.fcd.xml').write_text(f'<fcd-export>{steps}</fcd-export>')
    gc.collect()
    tracemalloc.start()
    try:
        assert main(['convert', '-q', str(folder / 'a.fcd.xml'), str(folder / name), '--force',
                     '-p', 'max_actor_topics:=4']) == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize('name', one_of(GROWTH_BYTES, n_always=0))
def test_memory_of_a_conversion_does_not_grow(tmp_path, monkeypatch, name):
    monkeypatch.setattr(fcd, '_BLOCK_BYTES', 1024)
    monkeypatch.setattr(stream, 'MAX_KEPT', 4)
    monkeypatch.setattr(bag_writer, '_CHUNK_BYTES', 16 * 1024)
    monkeypatch.setattr(table, 'GROUP_ROWS', 600)
    monkeypatch.setattr(actor_rows, '_MAX_BLOCK_FRAMES', 16)
    # The first one imports what it uses.
    _, short, long = (peak_bytes(tmp_path, name, n_steps) for n_steps in (60, 60, 360))
    assert long < short + 300 * GROWTH_BYTES[name], (short, long)
