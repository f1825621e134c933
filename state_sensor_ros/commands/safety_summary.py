# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The part of `state_sensor inspect` about the safety of the ego."""

from __future__ import annotations

from dataclasses import asdict
import math

import numpy as np

from state_sensor_ros.drawing.wording import figure, seconds
from state_sensor_ros.library.safety import Safety, SafetyEvent

# Measures by name: heading, unit, whether small numbers are the bad ones.
_MEASURES = {
    'closest_distance': ('closest', 'm', True), 'gap': ('gap', 'm', True),
    'time_headway': ('time headway', 's', True),
    'time_to_collision': ('time to collision', 's', True),
    'post_encroachment_time': ('post-encroachment time', 's', True),
    'required_deceleration': ('required deceleration', 'm/s2', False)}
_OTHERS = {'closest_distance': 'closest_actor', 'time_to_collision': 'collision_partner',
           'post_encroachment_time': 'crossing_actor'}
_UNITS = {'acceleration': 'm/s2', 'impact_speed': 'm/s', 'time_headway': 's',
          'time_to_collision': 's', 'post_encroachment_time': 's'}


def safety_rows(safety: Safety) -> list[tuple[str, str]]:
    """
    Return headings, each with a line of text.

    :param safety: measures of the ego.
    """
    rows: list[tuple[str, str]] = []
    for name, (heading, unit, _) in _MEASURES.items():
        worst = _worst(safety, name)
        if worst is None:
            continue
        value, time, other = worst
        rows.append(('' if rows else 'safety', f'{heading} {figure(value)} {unit} at '
                     f'{seconds(time)}' + (f' ({other})' if other else '')))
    events = safety.events()
    return [*(rows or [('safety', 'nothing to measure')]), *(
        ('' if i else 'events', text) for i, text in enumerate(
            [_text(event) for event in events] or ['none']))]


def safety_record(safety: Safety) -> dict[str, object]:
    """
    Return the same as JSON, with null for what is undefined in all frames.

    :param safety: measures of the ego.
    """
    worst = {name: _worst(safety, name) for name in _MEASURES}
    return {'actor': safety.name,
            'worst': {name: None if found is None else {
                'value': found[0] if math.isfinite(found[0]) else None, 'game_time': found[1],
                'actor': found[2]} for name, found in worst.items()},
            'events': [asdict(event) for event in safety.events()]}


def _worst(safety: Safety, name: str) -> tuple[float, float, str] | None:
    """Return the worst number of a measure, its game time and the other actor."""
    values = getattr(safety, name)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return None
    i = known[values[known].argmin() if _MEASURES[name][2] else values[known].argmax()]
    others: tuple[str, ...] = getattr(safety, _OTHERS.get(name, 'lead'))
    return float(values[i]), float(safety.game_time[i]), others[i]


def _text(event: SafetyEvent) -> str:
    times = seconds(event.start) if event.end == event.start \
        else f'{seconds(event.start)} to {seconds(event.end)}'
    kind, measure = event.kind.replace('_', ' '), event.measure.replace('_', ' ')
    return f'{kind}, {times}' + (f', {event.actor}' if event.actor else '') \
        + f': {measure} {figure(event.value)} {_UNITS[event.measure]}'
