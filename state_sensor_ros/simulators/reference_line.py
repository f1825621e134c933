# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The reference lines of roads in OpenDRIVE: places and headings by the distance along the road.

A line, an arc and a spiral have a curvature that changes evenly with the distance; their places
are integrals of the heading, by Gaussian quadrature with an error below 1e-9 m. Polynomials are
given in axes of their own, with the origin at the start of the piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import math
from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.simulators.frame_arrays import Floats

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

# Integrals are split into pieces of this length, m.
_STEP = 1.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(5)
# Longer than any road; a map that says otherwise is wrong.
MAX_LENGTH = 1e6
# A circle of a millimeter, 1/m.
_MAX_CURVATURE = 1e3


@dataclass(frozen=True, slots=True)
class RoadPiece:
    """
    One geometry of a plan view.

    ``s`` distance along the road at which it begins, m; ``places`` returns for (K,) distances from
    there, m, (K, 2) x and y, m, and (K,) headings, rad, in the axes of its beginning.
    """

    s: float
    x: float
    y: float
    heading: float
    length: float
    places: Callable[[Floats], tuple[Floats, Floats]]


def number(element: Element, name: str) -> float:
    """
    Return a number of an element.

    :param element: element of OpenDRIVE.
    :param name: name of the attribute.
    :raises ValueError: if there is none, or it is not finite.
    """
    text = element.get(name)
    if text is None:
        raise ValueError(f'<{element.tag}> without {name}')
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f'<{element.tag}> with {name} {text}')
    return value


def read_pieces(road: Element) -> list[RoadPiece]:
    """
    Return the geometries of a road in their order.

    :param road: an element `<road>`.
    :raises ValueError: if one of them cannot be read.
    """
    pieces = [_piece(geometry) for geometry in road.iterfind('planView/geometry')]
    if not pieces:
        raise ValueError('no geometry')
    return sorted(pieces, key=lambda piece: piece.s)


def places_at(pieces: Sequence[RoadPiece], s: Floats) -> tuple[Floats, Floats]:
    """
    Return places and headings of a reference line.

    :param pieces: pieces of the road.
    :param s: (K,) float64, ascending, m along the road.
    :returns: (K, 2) x and y, m, and (K,) headings, rad, both in the axes of the map.
    """
    xy, headings = np.empty((len(s), 2)), np.empty(len(s))
    begins = np.array([piece.s for piece in pieces])
    owners = np.clip(np.searchsorted(begins, s, side='right') - 1, 0, None)
    for i in np.unique(owners):
        mask, piece = owners == i, pieces[i]
        local, turned = piece.places(s[mask] - piece.s)
        cosine, sine = math.cos(piece.heading), math.sin(piece.heading)
        xy[mask, 0] = piece.x + cosine * local[:, 0] - sine * local[:, 1]
        xy[mask, 1] = piece.y + sine * local[:, 0] + cosine * local[:, 1]
        headings[mask] = piece.heading + turned
    return xy, headings


def _piece(geometry: Element) -> RoadPiece:
    length = number(geometry, 'length')
    if not 0.0 <= length <= MAX_LENGTH:
        raise ValueError(f'a geometry of {length:g} m')
    shape = next((child for child in geometry if child.tag in _SHAPES), None)
    if shape is None:
        tags = ', '.join(child.tag for child in geometry) or 'nothing'
        raise ValueError(f'a geometry of {tags}')
    return RoadPiece(number(geometry, 's'), number(geometry, 'x'), number(geometry, 'y'),
                     number(geometry, 'hdg'), length, _SHAPES[shape.tag](shape, length))


def _curve(begin: float, end: float, length: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return the places of a piece whose curvature changes from ``begin`` to ``end``, 1/m."""
    if max(abs(begin), abs(end)) > _MAX_CURVATURE:
        raise ValueError(f'a curvature of {max(begin, end, key=abs):g} /m')
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

    n_steps = max(1, math.ceil(length / _STEP))
    bounds: Floats = np.linspace(0.0, length, n_steps + 1, dtype=np.float64)
    knots: Floats = np.zeros((n_steps + 1, 2))
    np.cumsum(moved(bounds[:-1], bounds[1:]), axis=0, out=knots[1:])

    def places(s: Floats) -> tuple[Floats, Floats]:
        i = np.clip(np.searchsorted(bounds, s, side='right') - 1, 0, n_steps)
        xy: Floats = knots[i] + moved(bounds[i], s)
        return xy, headings(s)

    return places


def _arc(shape: Element, length: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    curvature = number(shape, 'curvature')
    return _curve(curvature, curvature, length)


def _spiral(shape: Element, length: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    return _curve(number(shape, 'curvStart'), number(shape, 'curvEnd'), length)


def _polynomials(u: Floats, v: Floats, parameters: Callable[[Floats], Floats],
                 ) -> Callable[[Floats], tuple[Floats, Floats]]:
    """
    Return the places of a piece given by two cubic polynomials.

    :param u: (4,) coefficients of x from the lowest power, m.
    :param v: (4,) of y.
    :param parameters: the parameter of the polynomials by the distance.
    """
    powers = np.polynomial.polynomial

    def places(s: Floats) -> tuple[Floats, Floats]:
        p = parameters(s)
        xy: Floats = np.stack((powers.polyval(p, u), powers.polyval(p, v)), 1)
        angles: Floats = np.arctan2(powers.polyval(p, powers.polyder(v)),
                                    powers.polyval(p, powers.polyder(u)))
        return xy, angles

    return places


def _poly3(shape: Element, length: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    v = np.array([number(shape, name) for name in 'abcd'])
    # The distance along the curve by u: the sum of chords of 0.1 m and less.
    grid = np.linspace(0.0, length, min(max(16, math.ceil(length * 10.0)), 100_000) + 1)
    chords = np.hypot(np.diff(grid), np.diff(np.polynomial.polynomial.polyval(grid, v)))
    distances = np.concatenate(([0.0], np.cumsum(chords)))
    return _polynomials(np.array([0.0, 1.0, 0.0, 0.0]), v,
                        lambda s: np.interp(s, distances, grid))


def _param_poly3(shape: Element, length: float) -> Callable[[Floats], tuple[Floats, Floats]]:
    u, v = (np.array([number(shape, f'{name}{axis}') for name in 'abcd']) for axis in 'UV')
    is_normalised = shape.get('pRange', 'normalized') != 'arcLength'
    scale = 1.0 / length if is_normalised and length else 1.0
    return _polynomials(u, v, lambda s: s * scale)


_SHAPES: dict[str, Callable[[Element, float], Callable[[Floats], tuple[Floats, Floats]]]] = {
    'line': lambda _, length: _curve(0.0, 0.0, length), 'arc': _arc, 'spiral': _spiral,
    'poly3': _poly3, 'paramPoly3': _param_poly3}
