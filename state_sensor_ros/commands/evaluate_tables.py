# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The matches of `state_sensor evaluate` as a table in a Parquet file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

from state_sensor_ros.evaluation.evaluator import TopicResult
from state_sensor_ros.evaluation.matches import ERROR_NAMES
from state_sensor_ros.evaluation.object_set import EVALUATED_CLASSES

_STATES = ('x', 'y', 'z', 'yaw', 'vx', 'vy', 'length', 'width', 'height')


def write_matches(topic_results: Sequence[TopicResult], file: BinaryIO) -> int:
    """
    Write a row for each match at 2 m: the truth, the detection and the errors.

    :param topic_results: topic_results of the topics.
    :param file: file to write to.
    :returns: number of matches.
    """
    import pyarrow as pa
    from pyarrow import parquet
    tables = []
    for topic_result in topic_results:
        matches = topic_result.matches
        if matches is None:
            continue
        n_matches = len(matches.frames)
        columns = {
            'topic': pa.array([topic_result.topic] * n_matches, pa.string()),
            'stamp_ns': pa.array(matches.stamps_ns), 'frame': pa.array(matches.frames),
            'class': pa.array([EVALUATED_CLASSES[number] for number in matches.classes.tolist()],
                              pa.string()),
            'truth_id': pa.array(matches.truth_ids, pa.string()),
            'stack_id': pa.array(matches.stack_ids, pa.string()),
            'score': pa.array(matches.scores), 'ego_distance': pa.array(matches.distances)}
        columns |= {name: pa.array(matches.errors[:, i]) for i, name in enumerate(ERROR_NAMES)}
        for prefix, states in (('truth', matches.truth), ('stack', matches.stack)):
            columns |= {f'{prefix}_{name}': pa.array(states[:, i])
                        for i, name in enumerate(_STATES)}
        tables.append(pa.table(columns))
    table = pa.concat_tables(tables) if tables else pa.table({'topic': pa.array([], pa.string())})
    parquet.write_table(table, file)
    return int(table.num_rows)
