# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The lanes of an OpenDRIVE map: plan view, elevation, lane offsets and widths.

Superelevation and shapes of the road are not read: heights are those of the reference line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from state_sensor_ros.simulators import ConfigError, MapLine, reason_of, StateError
from state_sensor_ros.simulators.frame_arrays import Floats
from state_sensor_ros.simulators.reference_line import (
    MAX_LENGTH,
    number,
    places_at,
    read_pieces,
    RoadPiece,
)

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

__all__ = ['parse_lanes', 'read_lanes']

# Distance between points, m: a chord deviates from an arc of 20 m radius by 0.03 m at most.
_STEP = 2.0
# Largest file: while it is read, it takes ten times as much memory.
_MAX_BYTES = 256 * 1024 * 1024
_MAX_POINTS = 10_000_000
# Lanes that are nowhere wider than this are omitted, m.
_NARROW = 0.05
# Tolerance of distances along the road, m: shorter sections are omitted.
_SHORT = 1e-6
# Largest number of a lane: an int32 in messages.
_MAX_LANE_ID = 2**31 - 1
_JUNCTION, _NO_JUNCTION, _NO_LANE = 'junction', '-1', 'none'
_Curve = Callable[[Floats], Floats]


def read_lanes(path: str) -> Sequence[MapLine]:
    """
    Read the middles of the lanes of a map.

    :param path: `NAME.xodr`.
    :raises ConfigError: if it cannot be read.
    """
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise ValueError(f'more than {_MAX_BYTES} bytes')
        with open(path, 'rb') as file:
            return parse_lanes(file.read())
    except OSError as error:
        raise ConfigError(path, reason_of(error)) from error
    except ValueError as error:
        raise ConfigError(path, str(error), 'an OpenDRIVE map') from error


def parse_lanes(text: str | bytes) -> Sequence[MapLine]:
    """
    Return the middles of the lanes of a map.

    :param text: an OpenDRIVE document.
    :raises ValueError: if it is none, or has no lanes.
    """
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, LookupError) as error:
        # An encoding that Python does not have is a LookupError.
        raise ValueError(str(error)) from error
    if root.tag != 'OpenDRIVE':
        raise ValueError(f'an element <{root.tag}>')
    lines: list[MapLine] = []
    n_points = 0
    # Numbers that become too large are found in the points.
    with np.errstate(all='ignore'):
        for road in root.iterfind('road'):
            for line in _lines_of(road):
                lines.append(line)
                n_points += len(line.points_xyz)
                if n_points > _MAX_POINTS:
                    raise ValueError(f'more than {_MAX_POINTS} points')
    if not lines:
        raise ValueError('no lanes')
    return lines


def _lines_of(road: Element) -> Iterator[MapLine]:
    name = road.get('id', '')
    try:
        pieces, length = read_pieces(road), number(road, 'length')
        if not 0.0 <= length <= MAX_LENGTH:
            raise ValueError(f'a length of {length:g} m')
        elevation = _cubic(road.findall('elevationProfile/elevation'), 's')
        offset = _cubic(road.findall('lanes/laneOffset'), 's')
        sections = sorted(road.iterfind('lanes/laneSection'),
                          key=lambda section: number(section, 's'))
        begins = [number(section, 's') for section in sections]
        is_junction = road.get('junction', _NO_JUNCTION) != _NO_JUNCTION
        for section, (begin, end) in zip(sections, pairwise([*begins, length]), strict=True):
            if end - begin > _SHORT:
                yield from _section_lines(
                    section, name, _samples(pieces, begin, end), pieces, elevation, offset,
                    is_junction=is_junction)
    except StateError as error:
        raise ValueError(f'road {name}: {error.found}') from error
    except ValueError as error:
        raise ValueError(f'road {name}: {error}') from error


def _samples(pieces: Sequence[RoadPiece], begin: float, end: float) -> Floats:
    """Return the distances at which a section is drawn: its ends, those of geometries, steps."""
    n_steps = max(2, int(np.ceil((end - begin) / _STEP)))
    bounds = [piece.s for piece in pieces if begin < piece.s < end]
    samples: Floats = np.unique(np.concatenate((np.linspace(begin, end, n_steps + 1), bounds)))
    return samples


def _section_lines(section: Element, road: str, s: Floats, pieces: Sequence[RoadPiece],
                   elevation: _Curve, offset: _Curve, *,
                   is_junction: bool) -> Iterator[MapLine]:
    """
    Yield the lanes of a section.

    :param s: (K,) float64, m along the road.
    """
    xy, headings = places_at(pieces, s)
    left = np.stack((-np.sin(headings), np.cos(headings)), 1)
    heights, middle = elevation(s), offset(s)
    begin = number(section, 's')
    for side in (1, -1):
        lanes = sorted((lane for lane in section.iterfind('*/lane') if _id_of(lane) * side > 0),
                       key=lambda lane: abs(_id_of(lane)))
        inner: Floats = np.zeros(len(s))
        for lane in lanes:
            outer = _outer_border(lane, s - begin, inner)
            width = outer - inner
            kind = lane.get('type', _NO_LANE)
            if kind != _NO_LANE and width.max() > _NARROW:
                t = middle + side * (inner + outer) / 2.0
                points = np.column_stack((xy + left * t[:, None], heights))
                yield MapLine(_JUNCTION if is_junction and kind == 'driving' else kind, points,
                              float(np.median(width)), road, _id_of(lane))
            inner = outer


def _id_of(lane: Element) -> int:
    value = number(lane, 'id')
    if abs(value) > _MAX_LANE_ID:
        raise ValueError(f'a lane {value:g}')
    return int(value)


def _outer_border(lane: Element, s: Floats, inner: Floats) -> Floats:
    """
    Return the distance of the outer border of a lane from the middle of the road.

    :param s: (K,) float64, m from the beginning of the section.
    :param inner: (K,) float64, of its inner border, m.
    """
    widths = lane.findall('width')
    borders = lane.findall('border')
    if borders and not widths:
        border: Floats = np.abs(_cubic(borders, 'sOffset')(s))
        return border
    outer: Floats = inner + np.maximum(_cubic(widths, 'sOffset')(s), 0.0)
    return outer


def _cubic(records: Sequence[Element], begin: str) -> _Curve:
    """
    Return a function given by cubic polynomials, each from its beginning on; 0 without any.

    :param begin: name of the attribute with the beginning.
    """
    rows = np.array(sorted([number(record, begin), *(number(record, name) for name in 'abcd')]
                           for record in records)).reshape(-1, 5)

    def values(s: Floats) -> Floats:
        if not len(rows):
            return np.zeros(len(s))
        i = np.clip(np.searchsorted(rows[:, 0], s + _SHORT, side='right') - 1, 0, None)
        ds = s - rows[i, 0]
        value: Floats = rows[i, 1] + ds * (rows[i, 2] + ds * (rows[i, 3] + ds * rows[i, 4]))
        return value

    return values
