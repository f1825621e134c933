# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The layout with which the viewer opens: scene, plots, images and notes."""

from __future__ import annotations

from dataclasses import dataclass

import rerun as rr
import rerun.blueprint as rrb

from state_sensor_ros.viewing.columns import FRAME, GAME_TIME
from state_sensor_ros.viewing.ego_log import (
    ACCELERATION,
    COLLISION,
    EGO,
    GAP,
    HEADWAY,
    LANE,
    SPEED,
    STEERING,
    STEERING_ANGLE,
)

# Entities that show the last seconds only.
TRAILS, EGO_TRAIL, TRAIL_S = 'world/trails', 'world/ego_trail', 5.0
# Plots that share a view.
_VIEWS = {'Speed (m/s)': (SPEED,), 'Acceleration (m/s²)': (ACCELERATION,),
          'Steering (+ = left)': (STEERING, STEERING_ANGLE), 'Lane': (LANE,),
          'Gap (m)': (GAP,), 'Time headway, time to collision (s)': (HEADWAY, COLLISION)}
_GROUND, _GRID = [31, 41, 51], [62, 76, 89]
# Vector from the ego to the eye, m, axes of the global frame.
_EYE_M = (-25.0, -18.0, 18.0)


@dataclass(frozen=True, slots=True)
class Content:
    """The content that the layout has views for."""

    start_xyz: tuple[float, ...] | None  # first position of the ego, m, None without an ego
    plots: frozenset[str]  # names of the plots that have a number
    cameras: frozenset[str]
    has_notes: bool
    is_live: bool  # whether the viewer follows the newest frame


def layout(content: Content) -> rrb.Blueprint:
    """Return the layout: the scene on the left, the other views on the right."""
    plots = [rrb.TimeSeriesView(
        origin='plots', contents=[f'$origin/{name}' for name in names], name=title,
        plot_legend=rrb.PlotLegend(visible=len(names) > 1))
        for title, names in _VIEWS.items() if content.plots.intersection(names)]
    cameras = [rrb.Spatial2DView(origin=f'camera/{name}', name=name)
               for name in sorted(content.cameras)]
    notes = [rrb.TextLogView(
        origin='notes', name='Faults and lane changes', columns=rrb.TextLogColumns(
            text_log_columns=['loglevel', 'body']))] if content.has_notes else []
    side: list[rrb.View | rrb.Container] = [*notes]
    if plots:
        side.insert(0, rrb.Vertical(*plots, name='Ego'))
    if cameras:
        side.insert(0, rrb.Grid(*cameras, name='Cameras'))
    parts: list[rrb.View | rrb.Container] = [_scene(content)]
    if side:
        shares = [1.0 if part in notes else 2.0 for part in side]
        parts.append(rrb.Vertical(*side, row_shares=shares))
    return rrb.Blueprint(
        rrb.Horizontal(*parts, column_shares=[2.2, 1.0][:len(parts)]),
        rrb.TimePanel(state='collapsed', timeline=GAME_TIME,
                      play_state='following' if content.is_live else 'playing',
                      loop_mode='off' if content.is_live else 'all'),
        rrb.SelectionPanel(state='hidden'), rrb.BlueprintPanel(state='collapsed'),
        auto_views=False)


def _scene(content: Content) -> rrb.Spatial3DView:
    trail = rrb.VisibleTimeRanges(
        [rrb.VisibleTimeRange(GAME_TIME, start=rrb.TimeRangeBoundary.cursor_relative(
            seconds=-TRAIL_S), end=rrb.TimeRangeBoundary.cursor_relative()),
         rrb.VisibleTimeRange(FRAME, start=rrb.TimeRangeBoundary.cursor_relative(seq=-100),
                              end=rrb.TimeRangeBoundary.cursor_relative())])
    eye = None
    if content.start_xyz is not None:
        x, y, z = content.start_xyz
        back, left, up = _EYE_M
        eye = rrb.EyeControls3D(
            kind=rrb.Eye3DKind.Orbital, tracking_entity=EGO, look_target=(x, y, z),
            position=(x + back, y + left, z + up), eye_up=(0.0, 0.0, 1.0))
    return rrb.Spatial3DView(
        origin='world', name='Scene', background=_GROUND, eye_controls=eye,
        line_grid=rrb.LineGrid3D(spacing=10.0, color=_GRID, stroke_width=0.5,
                                 plane=rr.components.Plane3D.XY),
        overrides={TRAILS: trail, EGO_TRAIL: trail})
