# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Which share of each box is seen from a point, in the plane, as boxes hide boxes.

All ends of the angles that the boxes take up cut the horizon into segments. Along the middle of a
segment the nearest box is seen, and it is seen in all of the segment unless boxes intersect::

    box   angles           segments, and the boxes there
    near  |-----|            near          far hides nothing
    far      |-------|       near, far     near is seen
                             far           far is seen: by the half of its width
"""

import numpy as np
import numpy.typing as npt

from state_sensor_ros.frame import Floats, Rows

_Complex = npt.NDArray[np.complex128]

# Half a turn, rad; an edge that a box has at least, and how far it is away at most, m.
_HALF_TURN = np.pi
_LEAST_EDGE = 1e-3
_FARTHEST = 1e9
# Changes no sum of angles but 0, rad.
_NO_ANGLE = 1e-200


def visible_shares(centers_xy: Floats, headings_xy: Floats, sizes_xy: Floats,
                   wanted: Rows | None = None) -> Floats:
    """
    Return which share of its angle is seen of each box from the origin.

    A box around the origin, and one that is too far away for an angle, is seen and hides nothing.

    :param centers_xy: (K, 2) float64, m, from the origin.
    :param headings_xy: (K, 2) float64, of unit length: directions of the lengths of the boxes.
    :param sizes_xy: (K, 2) float64, length and width, m.
    :param wanted: (W,) int64, boxes whose share is wanted, None for all. What is farther than all
        of them hides none of them; it only makes finer segments, which boxes that intersect show.
    :returns: (K,) float64, 0 to 1; of boxes that are not wanted it has no meaning.
    """
    halves = np.maximum(sizes_xy, _LEAST_EDGE) * 0.5
    centers, headings = _complex(centers_xy), _complex(headings_xy)
    # The origin in the axes of each box.
    own_origins = -centers * headings.conj()
    are_beside = np.abs(_pairs(own_origins)) > halves
    distances = np.abs(centers)
    are_used = (are_beside[:, 0] | are_beside[:, 1]) & (distances <= _FARTHEST)
    if wanted is not None and 2 * len(wanted) < len(centers):
        diagonals = np.hypot(sizes_xy[:, 0], sizes_xy[:, 1])
        are_used &= distances - diagonals <= (distances + diagonals)[wanted].max(initial=0.0)
    shares = np.ones(len(centers))
    used = are_used.nonzero()[0]
    if len(used) > 1:
        shares[used] = _shares(centers[used], headings[used], own_origins[used], halves[used])
    return shares


def _complex(vectors_xy: Floats) -> _Complex:
    return np.ascontiguousarray(vectors_xy).view(np.complex128)[:, 0]


def _pairs(numbers: _Complex) -> Floats:
    """Return (K, 2) real and imaginary parts of K numbers."""
    return numbers.view(np.float64).reshape(-1, 2)


def _ends(centers: _Complex, headings: _Complex, halves: Floats) -> Floats:
    """Return (2 K,) the angles, rad, at which K boxes begin, and then those at which they end."""
    along, across = headings * halves[:, 0], headings * (1j * halves[:, 1])
    corners = centers + np.array((along + across, along - across, across - along, -along - across))
    # From the direction of the center, which lies between the corners, less than half a turn.
    corners *= centers.conj()
    offsets = np.arctan2(corners.imag, corners.real)
    middles = np.arctan2(centers.imag, centers.real)
    ends: Floats = np.concatenate((middles + np.minimum.reduce(offsets),
                                   middles + np.maximum.reduce(offsets)))
    ends -= 2.0 * _HALF_TURN * np.floor((ends + _HALF_TURN) / (2.0 * _HALF_TURN))
    return ends


def _shares(centers: _Complex, headings: _Complex, own_origins: _Complex,
            halves: Floats) -> Floats:
    """Return the shares of K boxes that are not around the origin."""
    ends = _ends(centers, headings, halves)
    n_boxes, n_segments = len(own_origins), len(ends)
    order = np.argsort(ends, kind='stable')
    begins = ends[order]
    widths = np.diff(begins, append=begins[0] + 2.0 * _HALF_TURN)
    first, last = order.argsort().reshape(2, n_boxes)
    # If the last segment precedes the first one, the box lies across half a turn.
    counts = (last - first) % n_segments
    # All segments of each box: pairs, box by box.
    boxes = np.arange(n_boxes).repeat(counts)
    places = ((first - counts.cumsum() + counts).repeat(counts) + np.arange(len(boxes))) \
        % n_segments
    middles = begins + widths * 0.5
    rays = np.cos(middles) + 1j * np.sin(middles)
    distances = _entries(own_origins[boxes], rays[places] * headings.conj()[boxes], halves[boxes])
    nearest = np.full(n_segments, np.inf)
    np.minimum.at(nearest, places, distances)
    widths = widths[places]
    seen = np.bincount(boxes, widths * (distances <= nearest[places]), n_boxes)
    # Rounding may leave no angle: then the share is 1.
    shares: Floats = (seen + _NO_ANGLE) / (np.bincount(boxes, widths, n_boxes) + _NO_ANGLE)
    return shares


def _entries(origins: _Complex, rays: _Complex, halves: Floats) -> Floats:
    """Return the distances, m, at which rays enter their boxes; all in the axes of the boxes."""
    steps = _pairs(rays)
    # Toward the nearer one of two opposite edges; along them a ray is always between.
    with np.errstate(divide='ignore', invalid='ignore'):
        entries = (-halves - _pairs(origins) * np.sign(steps)) / np.abs(steps)
    nearest: Floats = np.fmax(entries[:, 0], entries[:, 1])
    return nearest
