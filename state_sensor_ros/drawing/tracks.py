# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Tracks of actors as lines of vertices, interrupted if an actor was absent or jumped."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from state_sensor_ros.drawing.track_builder import Tracks
from state_sensor_ros.frame import Bools, Floats, Rows

Values = Floats | npt.NDArray[np.float32]

# Value in a row of vertices at which the line is interrupted.
BREAK = -1


def segments(tracks: Tracks, chosen: Bools) -> tuple[Rows, Rows]:
    """
    Return the straight segments of the tracks of some actors.

    :param chosen: (A,) bool, the actors.
    :returns: vertices at the begin and at the end of each segment, (S,) int64 each.
    """
    end = np.flatnonzero(tracks.is_joined & chosen[tracks.actor])
    return end - 1, end


def polylines(tracks: Tracks, chosen: Bools) -> Rows:
    """
    Return the tracks of some actors as vertices with BREAK between them.

    :param chosen: (A,) bool, the actors.
    """
    rows = np.flatnonzero(chosen[tracks.actor])
    begins = np.flatnonzero(~tracks.is_joined[rows])
    lines: Rows = np.insert(rows, begins[1:], BREAK)
    return lines


def along(values: Values, lines: Rows) -> Floats:
    """
    Return the values of the vertices of :func:`polylines`.

    :param values: (V,) values of all vertices.
    :returns: (len(lines),) float64, NaN at each BREAK.
    """
    taken = values[lines].astype(np.float64)
    taken[lines == BREAK] = np.nan
    return taken
