# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A scene of the viewer, read back from its file by the viewer's own library."""

from dataclasses import dataclass, field

import numpy as np


@dataclass
class Entity:
    """Rows of an entity by the number of their frame: each component as a list of instances."""

    times: dict = field(default_factory=dict)
    rows: dict = field(default_factory=dict)
    static: dict = field(default_factory=dict)


def read_scene(path):
    """Return the entities of a file by their path."""
    from rerun.chunk import RrdReader
    reader = RrdReader(path)
    [recording] = reader.recordings()
    return _entities(reader, recording)


def read_layout(path):
    """Return the entities of the layout that comes last in a file."""
    from rerun.chunk import RrdReader
    reader = RrdReader(path)
    return _entities(reader, reader.blueprints()[-1])


def _entities(reader, store):
    found = {}
    for chunk in reader.stream(store=store):
        entity = found.setdefault(chunk.entity_path, Entity())
        batch = chunk.to_record_batch()
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names
                   if ':' in name}
        for i in range(batch.num_rows):
            values = {name: column[i] for name, column in columns.items()
                      if column[i] is not None}
            if 'frame' not in batch.schema.names:
                entity.static |= values
                continue
            number = batch.column('frame')[i].as_py()
            # One chunk may have the pose of a frame, and another one its box.
            entity.rows.setdefault(number, {}).update(values)
            entity.times[number] = batch.column('game_time')[i].value / 1e9
    return found


def array_of(row, name, width=3):
    """Return the instances of a component of a row, (K, width)."""
    return np.array(row[name], float).reshape(-1, width)
