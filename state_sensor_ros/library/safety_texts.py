# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Measures of safety as texts: of commands, pages and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
import math
from typing import TYPE_CHECKING

import numpy as np

from state_sensor_ros.texts import figure, seconds

if TYPE_CHECKING:
    from state_sensor_ros.library.safety import Safety, SafetyEvent

MEASURES = {
    'closest_distance': ('closest distance', 'm', True), 'gap': ('gap', 'm', True),
    'time_headway': ('time headway', 's', True),
    'time_to_collision': ('time to collision', 's', True),
    'post_encroachment_time': ('post-encroachment time', 's', True),
    'required_deceleration': ('required deceleration', 'm/s2', False)}
_OTHERS = {'closest_distance': 'closest_actor', 'time_to_collision': 'collision_partner',
           'post_encroachment_time': 'crossing_actor'}
_UNITS = {'acceleration': 'm/s2', 'impact_speed': 'm/s', 'time_headway': 's',
          'time_to_collision': 's', 'post_encroachment_time': 's'}


def safety_rows(safety: Safety) -> list[tuple[str, str]]:
    """Return headings, each with a line of text."""
    rows = [('' if i else 'safety',
             f'{heading} {value} at {time}' + (f' ({other})' if other else ''))
            for i, (heading, value, time, other) in enumerate(worst_rows(safety))]
    rows += [('', line) for line in safety.assumptions]
    events = safety.events()
    return [*(rows or [('safety', 'nothing to measure')]), *(
        ('' if i else 'events', text) for i, text in enumerate(
            [_text(event) for event in events] or ['none']))]


def worst_rows(safety: Safety) -> Iterator[tuple[str, str, str, str]]:
    """Yield heading, worst value, its time and the other actor of each measure that has one."""
    for name, (heading, unit, _) in MEASURES.items():
        worst = _worst(safety, name)
        if worst is not None:
            value, time, other = worst
            yield heading, f'{figure(value)} {unit}', seconds(time), other


def event_texts(event: SafetyEvent) -> tuple[str, str, str, str]:
    """Return kind, times, the other actor, and the worst value of an event."""
    times = seconds(event.start) if event.end == event.start \
        else f'{seconds(event.start)} to {seconds(event.end)}'
    return event.kind.replace('_', ' '), times, event.actor, \
        f'{event.measure.replace("_", " ")} {figure(event.value)} {_UNITS[event.measure]}' + (
            ', size assumed' if event.is_size_assumed else '')


def safety_record(safety: Safety) -> dict[str, object]:
    """Return measures and events for JSON, None for what is undefined in all frames."""
    worst = {name: _worst(safety, name) for name in MEASURES}
    return {'actor': safety.name,
            'worst': {name: None if found is None else {
                'value': found[0] if math.isfinite(found[0]) else None, 'game_time': found[1],
                'actor': found[2]} for name, found in worst.items()},
            'events': [asdict(event) for event in safety.events()],
            'assumptions': list(safety.assumptions)}


def _worst(safety: Safety, name: str) -> tuple[float, float, str] | None:
    """Return the worst number of a measure, its game time and the other actor."""
    values = getattr(safety, name)
    known = np.flatnonzero(~np.isnan(values))
    if not len(known):
        return None
    i = known[values[known].argmin() if MEASURES[name][2] else values[known].argmax()]
    others: tuple[str, ...] = getattr(safety, _OTHERS.get(name, 'lead'))
    return float(values[i]), float(safety.game_time[i]), others[i]


def _text(event: SafetyEvent) -> str:
    kind, times, actor, value = event_texts(event)
    return f'{kind}, {times}' + (f', {actor}' if actor else '') + f': {value}'
