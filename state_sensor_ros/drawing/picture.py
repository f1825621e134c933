# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Draw a scene as a PNG: a map, a close-up around the ego, speeds over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import BinaryIO

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
import numpy as np

from state_sensor_ros.drawing import layers, palette, tracks
from state_sensor_ros.drawing.scene import NOTHING, Scene
from state_sensor_ros.frame import Floats

DPI = 150
KPH_PER_MPS = 3.6
# The page and its margins, inches.
PAGE_WIDTH = 11.0
LEFT, RIGHT, TOP, BOTTOM, GAP = 0.75, 0.95, 0.85, 0.55, 0.65
MAP_HEIGHT = (3.0, 6.5)
STRIP_HEIGHT = 1.9
CLOSE_UP_HEIGHT = 2.6
# With a map of more height per width than this the close-up is beside it.
BESIDE_ABOVE = 0.6
# A map with fewer inches per metre has a close-up, because footprints are too small; its width, m.
CLOSE_UP_BELOW = 0.03
CLOSE_UP_M = 80.0
# Shown around all tracks: m at each side, and a fraction of their extent.
MARGIN_M, MARGIN = 8.0, 0.04
# Width of an empty map, m.
EMPTY_M = 50.0
_STYLE = {
    'font.family': 'DejaVu Sans', 'font.size': 8.5, 'axes.linewidth': 0.7,
    **dict.fromkeys(('axes.edgecolor', 'xtick.color', 'ytick.color'), palette.QUIET),
    **dict.fromkeys(('axes.labelcolor', 'xtick.labelcolor', 'ytick.labelcolor', 'text.color'),
                    palette.INK),
    # Names of files and actors may contain dollar signs.
    'text.parse_math': False,
}


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the ground: centre and extents, m."""

    x: float
    y: float
    width: float
    height: float

    @property
    def x_range(self) -> tuple[float, float]:
        """Return the limits."""
        return self.x - self.width / 2, self.x + self.width / 2

    @property
    def y_range(self) -> tuple[float, float]:
        """Return the limits."""
        return self.y - self.height / 2, self.y + self.height / 2

    def filling(self, aspect: float) -> Area:
        """Return it extended in one direction until height / width is ``aspect``."""
        return Area(self.x, self.y, max(self.width, self.height / aspect),
                    max(self.height, self.width * aspect))


def write_picture(scene: Scene, handle: BinaryIO, *, title: str, coloring: str = palette.BY_SPEED,
                  at_s: float | None = None) -> None:
    """
    Write ``scene`` as PNG.

    :param handle: open for writing.
    :param title: heading, such as the name of the recording.
    :param coloring: ``speed`` or ``actor``.
    :param at_s: instant of the footprints, s since the first frame; None for the last.
    """
    with rc_context(_STYLE):
        figure = _page(scene, title, coloring, scene.instant_at(at_s))
        figure.savefig(handle, format='png')


def _page(scene: Scene, title: str, coloring: str, instant: int) -> Figure:
    """Place the maps, the strip and the heading on the page and draw them."""
    area = _tracks_area(scene)
    full = PAGE_WIDTH - LEFT - RIGHT
    aspect = area.height / area.width
    close_up = _close_up(scene, instant) \
        if full / area.filling(MAP_HEIGHT[1] / full).width < CLOSE_UP_BELOW else None
    beside = close_up is not None and aspect > BESIDE_ABOVE
    width = 0.56 * (full - GAP) if beside else full
    height = min(max(width * aspect, MAP_HEIGHT[0]), MAP_HEIGHT[1])
    below = CLOSE_UP_HEIGHT + GAP if close_up is not None and not beside else 0.0
    page_height = TOP + height + below + GAP + STRIP_HEIGHT + BOTTOM
    figure = Figure((PAGE_WIDTH, page_height), dpi=DPI, facecolor='white')
    FigureCanvasAgg(figure)

    def place(left: float, bottom: float, width: float, height: float) -> Axes:
        return figure.add_axes((left / PAGE_WIDTH, bottom / page_height, width / PAGE_WIDTH,
                                height / page_height))

    bottom = BOTTOM + STRIP_HEIGHT + GAP
    area = area.filling(height / width)
    axes = place(LEFT, bottom + below, width, height)
    _draw_map(axes, scene, area, instant, coloring, width / area.width)
    if close_up is not None:
        size = (full - GAP - width, height) if beside else (full, CLOSE_UP_HEIGHT)
        part = close_up.filling(size[1] / size[0])
        layers.frame_rectangle(axes, part.x_range, part.y_range)
        detail = place(PAGE_WIDTH - RIGHT - size[0] if beside else LEFT, bottom, *size)
        _draw_map(detail, scene, part, instant, coloring, size[0] / part.width, detailed=True)
    _draw_strip(place(LEFT, BOTTOM, full, STRIP_HEIGHT), scene, instant, coloring)
    if coloring == palette.BY_SPEED:
        _draw_color_bar(place(PAGE_WIDTH - RIGHT + 0.15, bottom + below, 0.14, height), scene)
    _draw_head(figure, scene, title, instant, page_height)
    return figure


def _tracks_area(scene: Scene) -> Area:
    """Return the area of the tracks of all moving actors, or of all actors if none moves."""
    moving = tracks.actors_in_motion(scene)[scene.actor]
    points = scene.position_xy[moving] if moving.any() else scene.position_xy
    if not len(points):
        return Area(0.0, 0.0, EMPTY_M, EMPTY_M / 2)
    low, high = points.min(axis=0).astype(float), points.max(axis=0).astype(float)
    (x, y), (width, height) = (low + high) / 2, (1 + MARGIN) * (high - low) + 2 * MARGIN_M
    return Area(x, y, width, height)


def _close_up(scene: Scene, instant: int) -> Area | None:
    """Return the surroundings of the ego, else of the first vehicle; None without vehicles."""
    samples = scene.samples_at(instant)
    actor = scene.actor[samples]
    rows = np.flatnonzero(scene.is_ego[actor])
    if not len(rows):
        rows = np.flatnonzero(scene.is_vehicle[actor])
    if not len(rows):
        return None
    x, y = scene.position_xy[samples][rows[0]].tolist()
    return Area(x, y, CLOSE_UP_M, CLOSE_UP_M / 8)


def _draw_map(axes: Axes, scene: Scene, area: Area, instant: int, coloring: str,
              inches_per_m: float, *, detailed: bool = False) -> None:
    axes.set(xlim=area.x_range, ylim=area.y_range, facecolor=palette.GROUND)
    axes.set_aspect('equal')
    axes.grid(color='white', linewidth=1.0)
    axes.set_axisbelow(True)
    layers.draw_tracks(axes, scene, coloring, 2.2 if detailed else 1.4)
    layers.draw_lane_changes(axes, scene, 1.3 if detailed else 1.0)
    layers.draw_road_users(axes, scene, instant, coloring, inches_per_m=inches_per_m)
    if detailed:
        layers.draw_names(axes, scene, instant)
    else:
        axes.set(xlabel='x (m)', ylabel='y (m)')
    layers.draw_scale(axes, scene, inches_per_m)
    if not len(scene.actor):
        axes.text(0.5, 0.5, NOTHING, transform=axes.transAxes,
                  ha='center', va='center', color=palette.QUIET, fontsize=12)


def _draw_strip(axes: Axes, scene: Scene, instant: int, coloring: str) -> None:
    """Draw the speeds of all moving actors over time, the ego's on top."""
    begin, end = tracks.segments(scene, tracks.actors_in_motion(scene))
    time_s = scene.time_s[tracks.instants_of_samples(scene)]
    lines = np.stack([np.stack([time_s[row], scene.speed[row]], axis=-1)
                      for row in (begin, end)], axis=1)
    is_ego = scene.is_ego[scene.actor[begin]]
    others: Floats | str = palette.colors_of(scene, end[~is_ego], palette.BY_ACTOR) \
        if coloring == palette.BY_ACTOR else palette.QUIET
    for rows, colors, width, alpha in (
            (~is_ego, others, 0.8, 0.6), (is_ego, palette.EGO, 2.0, 1.0)):
        axes.add_collection(LineCollection(list(lines[rows]), colors=colors, linewidths=width,
                                           alpha=alpha), autolim=False)
    if instant >= 0:
        axes.axvline(scene.time_s[instant], color=palette.INK, linewidth=0.9,
                     linestyle=(0, (3, 2)))
    axes.set(xlim=(0.0, scene.duration_s or 1.0), xlabel='time since the first frame (s)',
             ylim=palette.speed_range(scene), ylabel='speed (m/s)', facecolor=palette.GROUND)
    axes.grid(color='white', linewidth=1.0)
    axes.set_axisbelow(True)
    kph = axes.twinx()
    low, high = palette.speed_range(scene)
    kph.set(ylim=(low * KPH_PER_MPS, high * KPH_PER_MPS), ylabel='km/h')


def _draw_color_bar(axes: Axes, scene: Scene) -> None:
    mappable = ScalarMappable(Normalize(*palette.speed_range(scene)), palette.SPEEDS)
    axes.figure.colorbar(mappable, cax=axes, label='speed (m/s)').ax.set_frame_on(False)


def _draw_head(figure: Figure, scene: Scene, title: str, instant: int, page_height: float) -> None:
    """Write the title, the facts of the recording and the legend."""
    def at(inches: float) -> float:
        return 1.0 - inches / page_height

    figure.text(LEFT / PAGE_WIDTH, at(0.32), title, fontsize=13, fontweight='bold')
    facts = scene.facts()
    if instant >= 0:
        facts.append(f'boxes at {scene.time_s[instant]:.2f} s')
    figure.text(LEFT / PAGE_WIDTH, at(0.58), '  ·  '.join(facts),
                fontsize=9, color=palette.QUIET)
    figure.legend(handles=_legend(scene), loc='upper right', ncols=5, frameon=False,
                  bbox_to_anchor=(1.0 - RIGHT / PAGE_WIDTH, at(0.36)), fontsize=8.5,
                  borderaxespad=0.0, handletextpad=0.5, columnspacing=1.3)


def _legend(scene: Scene) -> list[Patch | Line2D]:
    """Return an entry for each kind of mark in the scene."""
    entries: list[Patch | Line2D] = []
    if scene.is_ego.any():
        entries.append(Patch(facecolor=palette.EGO, edgecolor=palette.INK, label='ego'))
    if (scene.is_vehicle & ~scene.is_ego).any():
        entries.append(Patch(facecolor=palette.FAINT, edgecolor=palette.INK, label='vehicle'))
    if not scene.is_vehicle.all():
        entries.append(Patch(facecolor=palette.OBJECT, edgecolor=palette.INK, label='object'))
    if not scene.has_box.all():
        entries.append(Patch(facecolor='white', edgecolor=palette.INK, linestyle=(0, (2.0, 1.2)),
                             label='no box: size assumed'))
    if scene.lane_changes:
        entries.append(Line2D([], [], marker='>', color='none', markerfacecolor='white',
                              markeredgecolor=palette.INK, label='lane change begins'))
    return entries
