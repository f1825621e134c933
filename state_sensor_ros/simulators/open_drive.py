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

A line, an arc and a spiral of the plan view have a curvature that changes evenly with the
distance; their places are integrals of the heading, by Gaussian quadrature with an error below
1e-9 m. Polynomials are given in axes of their own, with the origin at the start of the piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
import math
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
from numpy.polynomial import Polynomial

from state_sensor_ros.errors import ConfigError
from state_sensor_ros.frame import Floats, MapLine
from state_sensor_ros.rotations import plane_rotations
from state_sensor_ros.small_files import read_limited

# Distance between points, m: a chord deviates from an arc of 20 m radius by 0.03 m at most.
_STEP = 2.0
# Largest file: while it is read, it takes ten times as much memory.
_MAX_BYTES = 256 * 1024 * 1024
# Lanes that are nowhere wider than this are omitted, m.
_NARROW = 0.05
# Tolerance of distances along the road, m: shorter sections are omitted.
_SHORT = 1e-6
# Largest number of a lane: an int32 in messages.
_MAX_LANE_ID = 2**31 - 1
_JUNCTION, _NO_JUNCTION, _NO_LANE = 'junction', '-1', 'none'
_Curve = Callable[[Floats], Floats]
# Returns for (K,) distances from the beginning of a piece, m, (K, 2) x and y, m, and (K,)
# headings, rad, in the axes of its beginning.
_Places = Callable[[Floats], tuple[Floats, Floats]]


def read_lanes(path: str) -> Sequence[MapLine]:
    """
    Read the middles of the lanes of a map.

    :param path: `NAME.xodr`.
    :raises ConfigError: if it cannot be read.
    """
    text = read_limited(path, _MAX_BYTES, 'an OpenDRIVE map')
    try:
        return parse_lanes(text)
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
    # Some maps have a default namespace, of which there are several.
    for element in root.iter():
        element.tag = element.tag.rpartition('}')[2]
    if root.tag != 'OpenDRIVE':
        raise ValueError(f'an element <{root.tag}>')
    # Numbers that become too large are found in the points.
    with np.errstate(all='ignore'):
        lines = [line for road in root.iterfind('road') for line in _lines_of(road)]
    if not lines:
        raise ValueError('no lanes')
    return lines


def _lines_of(road: Element) -> Iterator[MapLine]:
    name = road.get('id', '')
    try:
        pieces = sorted(map(_piece, road.iterfind('planView/geometry')), key=lambda piece: piece.s)
        if not pieces:
            raise ValueError('no geometry')
        length = _number(road, 'length')
        if not 0.0 <= length <= _MAX_LENGTH:
            raise ValueError(f'a length of {length:g} m')
        elevation = _cubic(road.findall('elevationProfile/elevation'), 's')
        offset = _cubic(road.findall('lanes/laneOffset'), 's')
        sections = sorted(road.iterfind('lanes/laneSection'),
                          key=lambda section: _number(section, 's'))
        begins = [_number(section, 's') for section in sections]
        is_junction = road.get('junction', _NO_JUNCTION) != _NO_JUNCTION
        for section, (begin, end) in zip(sections, pairwise([*begins, length]), strict=True):
            if end - begin > _SHORT:
                yield from _section_lines(section, name, end, pieces, elevation, offset,
                                          is_junction=is_junction)
    except ValueError as error:
        # What an error of this package says is in its text twice.
        raise ValueError(f'road {name}: {getattr(error, "found", error)}') from error


def _section_lines(section: Element, road: str, end: float, pieces: Sequence[_RoadPiece],
                   elevation: _Curve, offset: _Curve, *,
                   is_junction: bool) -> Iterator[MapLine]:
    """Yield the lanes of a section that ends at ``end``, m along the road."""
    begin = _number(section, 's')
    # They are drawn at the ends, at those of geometries, and between.
    s: Floats = np.unique(np.concatenate((
        np.linspace(begin, end, max(2, math.ceil((end - begin) / _STEP)) + 1),
        [piece.s for piece in pieces if begin < piece.s < end])))
    xy, headings = _places_at(pieces, s)
    left = np.stack((-np.sin(headings), np.cos(headings)), 1)
    heights, middle = elevation(s), offset(s)
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
    value = _number(lane, 'id')
    if abs(value) > _MAX_LANE_ID:
        raise ValueError(f'a lane {value:g}')
    return int(value)


def _outer_border(lane: Element, s: Floats, inner: Floats) -> Floats:
    """Return the distance of the outer border of a lane from the middle of the road."""
    # s: (K,) float64, m from the beginning of the section.
    # inner: (K,) float64, of its inner border, m.
    widths, borders = lane.findall('width'), lane.findall('border')
    outer: Floats = np.abs(_cubic(borders, 'sOffset')(s)) if borders and not widths \
        else inner + np.maximum(_cubic(widths, 'sOffset')(s), 0.0)
    return outer


def _cubic(records: Sequence[Element], begin: str) -> _Curve:
    """Return a function given by cubic polynomials, each from its beginning on; 0 without any."""
    rows = np.array(sorted([_number(record, begin), *(_number(record, name) for name in 'abcd')]
                           for record in records) or [[0.0] * 5])

    def values(s: Floats) -> Floats:
        i = np.clip(np.searchsorted(rows[:, 0], s + _SHORT, side='right') - 1, 0, None)
        ds = s - rows[i, 0]
        value: Floats = rows[i, 1] + ds * (rows[i, 2] + ds * (rows[i, 3] + ds * rows[i, 4]))
        return value

    return values


# Integrals along the reference line are split into pieces of this length, m.
_INTEGRAL_STEP = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Longer than any road; a map that says otherwise is wrong.
_MAX_LENGTH = 1e6


class _RoadPiece(NamedTuple):
    """One geometry of a plan view."""

    s: float  # distance along the road at which it begins, m
    x: float
    y: float
    heading: float
    places: _Places


def _number(element: Element, name: str) -> float:
    text = element.get(name)
    if text is None:
        raise ValueError(f'<{element.tag}> without {name}')
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f'<{element.tag}> with {name} {text}')
    return value


def _places_at(pieces: Sequence[_RoadPiece], s: Floats) -> tuple[Floats, Floats]:
    """Return places and headings of a reference line."""
    # s: (K,) float64, ascending, m along the road.
    # Returns (K, 2) x and y, m, and (K,) headings, rad, both in the axes of the map.
    xy, headings = np.empty((len(s), 2)), np.empty(len(s))
    index = np.searchsorted([piece.s for piece in pieces[1:]], s, side='right')
    for i in np.unique(index).tolist():
        piece, mask = pieces[i], index == i
        local, turned = piece.places(s[mask] - piece.s)
        [rotation] = plane_rotations(np.array([piece.heading]))
        xy[mask] = (piece.x, piece.y) + local @ rotation.T
        headings[mask] = piece.heading + turned
    return xy, headings


def _piece(geometry: Element) -> _RoadPiece:
    length = _number(geometry, 'length')
    if not 0.0 <= length <= _MAX_LENGTH:
        raise ValueError(f'a geometry of {length:g} m')
    shape = next((child for child in geometry if child.tag in _SHAPES), None)
    if shape is None:
        tags = ', '.join(child.tag for child in geometry) or 'nothing'
        raise ValueError(f'a geometry of {tags}')
    return _RoadPiece(_number(geometry, 's'), _number(geometry, 'x'), _number(geometry, 'y'),
                      _number(geometry, 'hdg'), _SHAPES[shape.tag](shape, length))


def _curve(begin: float, end: float, length: float) -> _Places:
    """Return the places of a piece whose curvature changes from ``begin`` to ``end``, 1/m."""
    change = (end - begin) / length if length else 0.0

    def headings(s: Floats) -> Floats:
        return begin * s + change / 2.0 * s * s

    def moved(first: Floats, last: Floats) -> Floats:
        """Return the displacements between places at most a step apart, (K, 2)."""
        half = (last - first) / 2.0
        angles = headings((first + half)[:, None] + half[:, None] * _NODES)
        ways: Floats = np.stack((np.cos(angles) @ _WEIGHTS, np.sin(angles) @ _WEIGHTS), 1) \
            * half[:, None]
        return ways

    n_steps = max(1, math.ceil(length / _INTEGRAL_STEP))
    bounds: Floats = np.linspace(0.0, length, n_steps + 1, dtype=np.float64)
    knots: Floats = np.zeros((n_steps + 1, 2))
    np.cumsum(moved(bounds[:-1], bounds[1:]), axis=0, out=knots[1:])

    def places(s: Floats) -> tuple[Floats, Floats]:
        i = np.clip(np.searchsorted(bounds, s, side='right') - 1, 0, n_steps)
        return knots[i] + moved(bounds[i], s), headings(s)

    return places


def _polynomials(x: Polynomial, y: Polynomial, parameters: _Curve) -> _Places:
    """Return the places of a piece given by two polynomials of a parameter."""
    dx, dy = x.deriv(), y.deriv()

    def places(s: Floats) -> tuple[Floats, Floats]:
        p = parameters(s)
        return np.stack((x(p), y(p)), 1), np.arctan2(dy(p), dx(p))

    return places


def _poly3(shape: Element, length: float) -> _Places:
    y = Polynomial([_number(shape, name) for name in 'abcd'])
    # The distance along the curve by x: the sum of chords of 0.1 m and less.
    grid = np.linspace(0.0, length, min(max(16, math.ceil(length * 10.0)), 100_000) + 1)
    chords = np.hypot(np.diff(grid), np.diff(y(grid)))
    distances = np.concatenate(([0.0], np.cumsum(chords)))
    return _polynomials(Polynomial([0.0, 1.0]), y, lambda s: np.interp(s, distances, grid))


def _param_poly3(shape: Element, length: float) -> _Places:
    x, y = (Polynomial([_number(shape, f'{name}{axis}') for name in 'abcd']) for axis in 'UV')
    is_normalized = shape.get('pRange', 'normalized') != 'arcLength'
    scale = 1.0 / length if is_normalized and length else 1.0
    return _polynomials(x, y, lambda s: s * scale)


_SHAPES: dict[str, Callable[[Element, float], _Places]] = {
    'line': lambda _, length: _curve(0.0, 0.0, length),
    'arc': lambda arc, length: _curve(
        _number(arc, 'curvature'), _number(arc, 'curvature'), length),
    'spiral': lambda spiral, length: _curve(
        _number(spiral, 'curvStart'), _number(spiral, 'curvEnd'), length),
    'poly3': _poly3, 'paramPoly3': _param_poly3}
