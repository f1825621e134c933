# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: A003
"""
The synthetic road as a map of OpenDRIVE, with the signals of its traffic lights.

OpenDRIVE has y to the left: a heading, a curvature and a distance to the right change their sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from state_sensor_ros.emulator.traffic.road import (
    FloatArray,
    LANE_WIDTH_M,
    Road,
    SECTIONS_PER_ROAD,
)

# An arc of this length is off the road by a millimeter at most, m.
_ARC_M = 10.0
# Pieces of the elevation, m: a cubic each.
_HILL_M = 20.0
SPEED_LIMIT_KMH = 90
# Type of a traffic light, of the German catalog as in CARLA's towns.
_LIGHT_TYPE = '1000001'

_HEADER = ('<?xml version="1.0" encoding="UTF-8"?>\n<OpenDRIVE><header revMajor="1" revMinor="4" '
           'name="mock" version="1.00"><geoReference>'
           '<![CDATA[+proj=tmerc +lat_0=0 +lon_0=0 +k=1 +x_0=0 +y_0=0 +datum=WGS84]]>'
           '</geoReference></header>\n')
# A map without roads.
NO_ROADS = f'{_HEADER}</OpenDRIVE>\n'


@dataclass(frozen=True, slots=True)
class Signal:
    """A traffic light on the road."""

    id: str  # id, s: of its stop line along the loop
    s: float
    offset: float  # of its pole to the right of the reference line, m
    lanes: tuple[int, int]  # first and last lane that it is for, 0 is the leftmost


def open_drive(road: Road, signals: Sequence[Signal]) -> str:
    """
    Return the text of the map.

    Roads and sections are those of :meth:`Road.ids`; lane -1 is the leftmost.
    """
    n_roads = road.n_roads
    parts = [_HEADER]
    length = road.length_m / n_roads
    for number in range(n_roads):
        on_road = [signal for signal in signals
                   if number * length <= signal.s < (number + 1) * length]
        parts.append(
            f'<road name="ring {number}" length="{length:.6f}" id="{number}" junction="-1"><link>'
            f'<predecessor elementType="road" elementId="{(number - 1) % n_roads}" '
            'contactPoint="end"/><successor elementType="road" '
            f'elementId="{(number + 1) % n_roads}" contactPoint="start"/></link>'
            f'<type s="0" type="town"><speed max="{SPEED_LIMIT_KMH}" unit="km/h"/></type>'
            f'{_plan(road, number * length, length)}{_elevation(road, number * length, length)}'
            f'{_lanes(road, length)}{_signals(on_road, number * length)}</road>\n')
    return ''.join([*parts, '</OpenDRIVE>\n'])


def _bounds(length: float, longest: float) -> FloatArray:
    """Return the bounds of equal pieces of a road, none longer than ``longest``, m."""
    bounds: FloatArray = np.linspace(
        0.0, length, int(np.ceil(length / longest)) + 1, dtype=np.float64)
    return bounds


def _plan(road: Road, begin: float, length: float) -> str:
    bounds = _bounds(length, _ARC_M)
    middle = begin + (bounds[:-1] + bounds[1:]) / 2
    surface = road.surface(begin + bounds[:-1], np.zeros(len(bounds) - 1))
    headings = np.arctan2(surface.along[:, 1], surface.along[:, 0])
    return '<planView>' + ''.join(
        f'<geometry s="{s:.6f}" x="{x:.6f}" y="{-y:.6f}" hdg="{-heading:.9f}" '
        f'length="{step:.6f}"><arc curvature="{-curvature:.9f}"/></geometry>'
        for s, (x, y, _), heading, step, curvature in zip(
            bounds[:-1], surface.point, headings, np.diff(bounds), road.curvature(middle),
            strict=True)) + '</planView>'


def _elevation(road: Road, begin: float, length: float) -> str:
    bounds = _bounds(length, _HILL_M)
    surface = road.surface(begin + bounds, np.zeros(len(bounds)))
    heights, slopes = surface.point[:, 2], surface.along[:, 2]
    step, rise = bounds[1], np.diff(heights)
    squares = (3 * rise / step - 2 * slopes[:-1] - slopes[1:]) / step
    cubes = (slopes[:-1] + slopes[1:] - 2 * rise / step) / step**2
    return '<elevationProfile>' + ''.join(
        f'<elevation s="{s:.6f}" a="{a:.6f}" b="{b:.9f}" c="{c:.9g}" d="{d:.9g}"/>'
        for s, a, b, c, d in zip(bounds[:-1], heights[:-1], slopes[:-1], squares, cubes,
                                 strict=True)) + '</elevationProfile>'


def _lanes(road: Road, length: float) -> str:
    """Return the sections; the last one of a road leads to the first one of the next."""
    def lane(number: int) -> str:
        mark = 'solid' if number == -road.n_lanes else 'broken'
        return (f'<lane id="{number}" type="driving" level="false"><link><predecessor '
                f'id="{number}"/><successor id="{number}"/></link><width sOffset="0" '
                f'a="{LANE_WIDTH_M}" b="0" c="0" d="0"/><roadMark sOffset="0" type="{mark}" '
                'weight="standard" color="white" width="0.12" laneChange="'
                f'{"none" if mark == "solid" else "both"}"/></lane>')
    walk = -road.n_lanes - 1
    right = ''.join(lane(-1 - k) for k in range(road.n_lanes)) + (
        f'<lane id="{walk}" type="sidewalk" level="false"><link><predecessor id="{walk}"/>'
        f'<successor id="{walk}"/></link><width sOffset="0" a="5" b="0" c="0" d="0"/></lane>')
    return '<lanes>' + ''.join(
        f'<laneSection s="{length * section / SECTIONS_PER_ROAD:.6f}"><center>'
        '<lane id="0" type="none" level="false"><roadMark sOffset="0" type="solid" '
        'weight="standard" color="white" width="0.12" laneChange="none"/></lane></center>'
        f'<right>{right}</right></laneSection>'
        for section in range(SECTIONS_PER_ROAD)) + '</lanes>'


def _signals(signals: Sequence[Signal], begin: float) -> str:
    return '<signals>' + ''.join(
        f'<signal name="Signal_3Light_Post01" id="{signal.id}" s="{signal.s - begin:.6f}" '
        f't="{-signal.offset:.6f}" zOffset="0" hOffset="0" roll="0" pitch="0" orientation="+" '
        f'dynamic="yes" country="OpenDRIVE" type="{_LIGHT_TYPE}" subtype="-1" value="-1" '
        f'text="" height="1" width="1"><validity fromLane="{-1 - signal.lanes[1]}" '
        f'toLane="{-1 - signal.lanes[0]}"/></signal>' for signal in signals) + '</signals>'
