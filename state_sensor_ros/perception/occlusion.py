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

from state_sensor_ros.frame import Floats

_Complex = npt.NDArray[np.complex128]

# Half a turn, rad; an edge that a box has at least, and how far it is away at most, m.
_HALF_TURN = np.pi
_LEAST_EDGE = 1e-3
_FARTHEST = 1e9


def visible_shares(centres_xy: Floats, headings_xy: Floats, sizes_xy: Floats) -> Floats:
    """
    Return which share of its angle is seen of each box from the origin.

    A box around the origin, and one that is too far away for an angle, is seen and hides nothing.

    :param centres_xy: (K, 2) float64, m, from the origin.
    :param headings_xy: (K, 2) float64, of unit length: directions of the lengths of the boxes.
    :param sizes_xy: (K, 2) float64, length and width, m.
    :returns: (K,) float64, 0 to 1.
    """
    halves = np.maximum(sizes_xy, _LEAST_EDGE) / 2.0
    centres, headings = _complex(centres_xy), _complex(headings_xy)
    # The origin in the axes of each box, in half edges.
    own_origins = -centres * headings.conj()
    are_around = (np.abs(own_origins.real) <= halves[:, 0]) \
        & (np.abs(own_origins.imag) <= halves[:, 1])
    shares = np.ones(len(centres))
    rows = np.flatnonzero(~are_around & (np.abs(centres) <= _FARTHEST))
    if len(rows) > 1:
        shares[rows] = _shares(centres[rows], headings[rows], halves[rows], own_origins[rows])
    return shares


def _complex(vectors_xy: Floats) -> _Complex:
    return np.ascontiguousarray(vectors_xy).view(np.complex128)[:, 0]


def _shares(centres: _Complex,
            headings: _Complex, halves: Floats,
            own_origins: _Complex) -> Floats:
    """Return the shares of boxes that are not around the origin."""
    n_boxes = len(centres)
    along, across = headings * halves[:, 0], headings * (1j * halves[:, 1])
    corners = np.stack((along + across, along - across, across - along, -along - across)) + centres
    # From the direction of the centre, which lies between the corners, less than half a turn.
    offsets = np.angle(corners * centres.conj())
    middles = np.angle(centres)
    ends = np.concatenate((middles + offsets.min(axis=0), middles + offsets.max(axis=0)))
    ends -= 2.0 * _HALF_TURN * np.floor((ends + _HALF_TURN) / (2.0 * _HALF_TURN))
    order = np.argsort(ends, kind='stable')
    ranks = np.empty_like(order)
    ranks[order] = np.arange(2 * n_boxes)
    begins = ends[order]
    widths = np.diff(begins, append=begins[0] + 2.0 * _HALF_TURN)
    first, last = ranks[:n_boxes], ranks[n_boxes:]
    # Where the last segment precedes the first one, the box lies across half a turn.
    counts = (last - first) % (2 * n_boxes)
    boxes = np.repeat(np.arange(n_boxes), counts)
    # All segments of each box: pairs, box by box.
    starts = np.cumsum(counts) - counts
    places = (np.arange(len(boxes)) + (first - starts)[boxes]) % (2 * n_boxes)
    rays = np.exp(1j * (begins + widths / 2.0))
    distances = _entries(own_origins[boxes], rays[places] * headings.conj()[boxes], halves[boxes])
    nearest = np.full(2 * n_boxes, np.inf)
    np.minimum.at(nearest, places, distances)
    widths = widths[places]
    seen = np.bincount(boxes, widths * (distances <= nearest[places]), n_boxes)
    whole = np.bincount(boxes, widths, n_boxes)
    # Rounding may leave no angle.
    return np.where(whole > 0.0, seen / np.where(whole > 0.0, whole, 1.0), 1.0)


def _entries(origins: _Complex,
             rays: _Complex, halves: Floats) -> Floats:
    """Return the distances, m, at which rays enter their boxes; all in the axes of the boxes."""
    with np.errstate(divide='ignore', invalid='ignore'):
        # Towards the nearer one of two opposite edges; along them a ray is always between.
        entries: Floats = np.fmax(*(
            (-half - origin * np.sign(ray)) / np.abs(ray) for half, origin, ray in (
                (halves[:, 0], origins.real, rays.real), (halves[:, 1], origins.imag, rays.imag))))
    return entries
