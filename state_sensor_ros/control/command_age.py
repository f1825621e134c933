# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The age of a command when it is used: how long it has waited, in the middleware and before it.

The middleware stamps a message when it is published and when it is received, with the clocks of
both machines, which may differ. While this process was stopped (SIGSTOP) a message waits in the
transport, and is received afterwards: its way then takes longer than that of others::

    published ------ way ------> received --- queue --> used
    clock of the publisher       own clock              now

    age = (now - received) + (way - shortest way)

The shortest way includes the difference of the clocks. It grows slowly, because clocks drift. If
one of the clocks was set, all ways are longer: it is measured anew after some seconds.
"""

from __future__ import annotations

import math

_DRIFT = 1e-3
_NEW_CLOCK_S = 5.0
_SPREAD_S = 0.1


class CommandAge:
    """
    Ages of the messages of one topic.

    :param too_old_s: age from which a message counts as old, s.
    """

    def __init__(self, too_old_s: float) -> None:
        # A clock that is set on this machine changes only one of the two ways.
        self._ways = (_ShortestWay(too_old_s), _ShortestWay(too_old_s))

    def age_s(self, published_s: float, received_s: float, now_s: float,
              steady_s: float) -> float:
        """
        Return the age of a message, s.

        :param published_s: stamp of the publisher's middleware, s; 0 if it has none.
        :param received_s: stamp of the own middleware, s of the system's clock; 0 if none.
        :param now_s: system's clock, s.
        :param steady_s: steady clock, s.
        """
        queue_s = max(now_s - received_s, 0.0) if received_s else 0.0
        if not published_s:
            return queue_s
        received_steady_s = steady_s - queue_s
        way_s = (received_s or now_s) - published_s, received_steady_s - published_s
        return queue_s + min(shortest.excess_s(way, received_steady_s)
                             for shortest, way in zip(self._ways, way_s, strict=True))


class _ShortestWay:
    """
    Minimum of a way in time, which follows a clock that was set.

    :param too_old_s: see :class:`CommandAge`.
    """

    def __init__(self, too_old_s: float) -> None:
        self._too_old_s = too_old_s
        self._shortest_s, self._at_s = math.inf, 0.0
        # The first of the long ways that are equal, and when it was measured, s.
        self._long_s, self._long_since_s = math.inf, 0.0

    def excess_s(self, way_s: float, at_s: float) -> float:
        """
        Return by how much a way is longer than the shortest.

        :param way_s: difference of two clocks, s.
        :param at_s: steady time, s.
        """
        shortest_s = self._shortest_s + _DRIFT * max(at_s - self._at_s, 0.0)
        self._shortest_s, self._at_s = min(shortest_s, way_s), at_s
        excess_s = way_s - self._shortest_s
        if excess_s < self._too_old_s:
            self._long_s = math.inf
        elif not abs(way_s - self._long_s) < _SPREAD_S:
            self._long_s, self._long_since_s = way_s, at_s
        elif at_s - self._long_since_s > _NEW_CLOCK_S:
            self._shortest_s, self._long_s, excess_s = way_s, math.inf, 0.0
        return excess_s
