# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Layers of a map in matplotlib: tracks, lane changes, outlines of road users, names, scale."""

from __future__ import annotations

from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import Rectangle
from matplotlib.transforms import Affine2D, Bbox
import numpy as np

from state_sensor_ros.drawing import palette, tracks
from state_sensor_ros.drawing.footprints import DEFAULT_OBJECT_M, DEFAULT_VEHICLE_M
from state_sensor_ros.drawing.scene import LEFT, Scene
from state_sensor_ros.frame import Floats

# A mark of a lane change: an arrow head that points along x, in points.
_ARROW_PT = 0.9 * np.array([(5.0, 0.0), (-2.5, 3.2), (-1.2, 0.0), (-2.5, -3.2)])
# Road users shorter than this on paper are also marked with a dot.
_MIN_LENGTH_PT = 5.0
_NAME_PT = 6.5
# Mean width of a character in heights of the font, for DejaVu Sans.
_NAME_EM = 0.6
HALO = [patheffects.withStroke(linewidth=2.2, foreground='white')]


def draw_tracks(axes: Axes, scene: Scene, coloring: str, width_pt: float = 1.6) -> None:
    """
    Draw the tracks of the moving actors, the ego's on a wider line.

    :param axes: of the map: x and y in m, global frame.
    :param scene: the recording.
    :param coloring: one of ``palette.COLORINGS``.
    :param width_pt: width of a line, points; that of the bed under the ego's line is 3.2 times as
        large.
    """
    begin, end = tracks.segments(scene, tracks.actors_in_motion(scene))
    lines = np.stack([scene.position_xy[begin], scene.position_xy[end]], axis=1)
    colors = palette.colors_of(scene, end, coloring)
    is_ego = scene.is_ego[scene.actor[begin]]
    for rows, color, width, order in (
            (~is_ego, colors[~is_ego], width_pt, 2),
            (is_ego, palette.EGO_BED, 3.2 * width_pt, 2.5), (is_ego, colors[is_ego], width_pt, 3)):
        axes.add_collection(LineCollection(
            list(lines[rows]), colors=color, linewidths=width, capstyle='round', zorder=order),
            autolim=False)


def draw_lane_changes(axes: Axes, scene: Scene, size: float = 1.0) -> None:
    """
    Draw an arrow head to the left or right at the begin of each lane change.

    :param axes: of the map: x and y in m, global frame.
    :param scene: the recording.
    :param size: factor of the size of the arrow heads.
    """
    if not scene.lane_changes:
        return
    marks, offsets = [], []
    for change in scene.lane_changes:
        heading = change.yaw + (np.pi / 2 if change.side == LEFT else -np.pi / 2)
        marks.append(Affine2D().rotate(heading).transform(size * _ARROW_PT))
        offsets.append(change.position_xy)
    points = Affine2D().scale(axes.figure.dpi / 72.0)
    axes.add_collection(PolyCollection(
        marks, offsets=offsets, offset_transform=axes.transData, transform=points,
        facecolors='white', edgecolors=palette.INK, linewidths=0.9, zorder=5), autolim=False)


def draw_road_users(axes: Axes, scene: Scene, instant: int, coloring: str, *,
                    inches_per_m: float) -> None:
    """
    Draw the footprints of all actors at one instant, the ego's last, with marked fronts.

    :param axes: of the map: x and y in m, global frame.
    :param scene: the recording.
    :param instant: index of the instant; -1 draws nothing.
    :param coloring: of the vehicles, one of ``palette.COLORINGS``.
    :param inches_per_m: scale of the map; a small one adds dots to the footprints.
    """
    samples = np.arange(scene.samples_at(instant).start, scene.samples_at(instant).stop)
    actor = scene.actor[samples]
    is_ego, is_vehicle = scene.is_ego[actor], scene.is_vehicle[actor]
    for chosen, face, edge, order, length in (
            (~(is_vehicle | is_ego), palette.OBJECT, palette.OBJECT_EDGE, 6, DEFAULT_OBJECT_M[0]),
            (is_vehicle & ~is_ego, None, palette.INK, 7, DEFAULT_VEHICLE_M[0]),
            (is_ego, palette.EGO, palette.INK, 8, DEFAULT_VEHICLE_M[0])):
        rows = samples[chosen]
        if not len(rows):
            continue
        colors = face if face is not None else palette.colors_of(scene, rows, coloring)
        outlines = scene.outlines(rows)
        known = scene.has_box[scene.actor[rows]]
        for boxed, style in ((known, 'solid'), (~known, (0, (2.0, 1.2)))):
            axes.add_collection(PolyCollection(
                list(outlines[boxed]), facecolors=colors if face is not None else colors[boxed],
                edgecolors=edge, linewidths=0.7, linestyles=style, zorder=order), autolim=False)
        if inches_per_m * 72.0 * length < _MIN_LENGTH_PT:
            x, y = scene.position_xy[rows].T
            axes.scatter(x, y, s=26.0 if order == 8 else 9.0, c=colors, edgecolors=edge,
                         linewidths=0.5, zorder=order)
        elif order > 6:
            _draw_fronts(axes, outlines, order)


def _draw_fronts(axes: Axes, outlines: Floats, order: int) -> None:
    """Draw a light arrow head on each outline, in the direction of the actor's x axis."""
    centre = outlines.mean(axis=1)
    forward = 0.5 * (outlines[:, 0] + outlines[:, 1]) - centre
    left = 0.5 * (outlines[:, 0] + outlines[:, 3]) - centre
    heads = np.stack([centre + 0.75 * forward, centre + 0.2 * forward + 0.6 * left,
                      centre + 0.2 * forward - 0.6 * left], axis=1)
    axes.add_collection(PolyCollection(list(heads), facecolors='white', alpha=0.9,
                                       linewidths=0.0, zorder=order), autolim=False)


def draw_names(axes: Axes, scene: Scene, instant: int) -> None:
    """
    Write the names of the vehicles in view where they cover no vehicle and no other name.

    :param axes: of the map: x and y in m, global frame; their limits must be final.
    :param scene: the recording.
    :param instant: index of the instant; -1 draws nothing.
    """
    figure = axes.figure
    point = figure.dpi / 72.0
    view = axes.get_window_extent()
    samples = scene.samples_at(instant)
    rows = samples.start + np.flatnonzero(scene.is_vehicle[scene.actor[samples]])
    rows = rows[np.argsort(~scene.is_ego[scene.actor[rows]], kind='stable')]
    centres = axes.transData.transform(scene.position_xy[rows].astype(np.float64))
    taken = [Bbox.from_bounds(x - 7 * point, y - 7 * point, 14 * point, 14 * point)
             for x, y in centres]
    for row, (x, y) in zip(rows, centres, strict=True):
        actor = int(scene.actor[row])
        width = _NAME_EM * _NAME_PT * len(scene.names[actor]) * point
        height = 1.3 * _NAME_PT * point
        for dx, dy in ((0.0, 1.0), (0.0, -1.0), (1.0, 0.0), (-1.0, 0.0)):
            at = (x + dx * (width / 2 + 9 * point), y + dy * (height / 2 + 9 * point))
            box = Bbox.from_bounds(at[0] - width / 2, at[1] - height / 2, width, height)
            if all(view.contains(*corner) for corner in ((x, y), box.p0, box.p1)) \
                    and not any(box.overlaps(other) for other in taken):
                taken.append(box)
                axes.annotate(scene.names[actor], at, xycoords='figure pixels', ha='center',
                              va='center', fontsize=_NAME_PT, zorder=9, path_effects=HALO,
                              color=palette.EGO if scene.is_ego[actor] else palette.INK)
                break


def draw_scale(axes: Axes, scene: Scene, inches_per_m: float) -> None:
    """
    Draw a bar of a round length, about an inch, in the lower corner with fewer actors.

    :param axes: of the map: x and y in m, global frame; their limits must be final.
    :param scene: the recording; the corner is chosen by its samples of all instants.
    :param inches_per_m: scale of the map.
    """
    length = round_length(1.1 / inches_per_m)
    margin, thick = 0.14 / inches_per_m, 0.05 / inches_per_m
    (left, right), y = axes.get_xlim(), axes.get_ylim()[0] + margin
    at_x, at_y = scene.position_xy.T
    is_low = (y - margin <= at_y) & (at_y <= y + 3 * margin)
    x = min(left + margin, right - margin - length, key=lambda x: np.count_nonzero(
        is_low & (x - margin <= at_x) & (at_x <= x + length + margin)))
    for k in range(4):
        axes.add_patch(Rectangle(
            (x + k * length / 4, y), length / 4, thick, linewidth=0.6, edgecolor=palette.INK,
            facecolor=palette.INK if k % 2 == 0 else 'white', zorder=10))
    axes.text(x + length / 2, y + 1.6 * thick, f'{length:g} m', ha='center', va='bottom',
              fontsize=8, color=palette.INK, zorder=10, path_effects=HALO)


def round_length(longest: float) -> float:
    """
    Return the largest of 1, 2, 5, 10, 20 … and their tenths that is not above ``longest``.

    >>> round_length(37.0), round_length(0.3)
    (20.0, 0.2)
    """
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(step for step in (1.0, 2.0, 5.0) if step * power <= longest))


def frame_rectangle(axes: Axes, x: tuple[float, float], y: tuple[float, float]) -> None:
    """
    Outline the area that another map shows enlarged.

    :param axes: of the map: x and y in m, global frame.
    :param x: lowest and highest x of the area, m.
    :param y: lowest and highest y of the area, m.
    """
    axes.add_patch(Rectangle(
        (x[0], y[0]), x[1] - x[0], y[1] - y[0], facecolor='none', edgecolor=palette.QUIET,
        linewidth=0.9, linestyle=(0, (4, 2)), zorder=4))
