#!/usr/bin/env python3
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Draw the folders of the package and what they import, as doc/design/rooms.svg.

A folder is above all that it imports; an arrow that follows from others is omitted.
``scripts/draw_rooms.py PACKAGE OUT`` draws the folders of another checkout.
"""

import ast
from graphlib import TopologicalSorter
from pathlib import Path
import sys

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / 'doc' / 'design' / 'rooms.svg'
# The folder whose folders are drawn, too.
SIMULATORS = 'simulators'
WIDTH, BOX_HEIGHT, ROW_HEIGHT = 980, 30, 74
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
  font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">
<title>{n_rooms} folders, {n_imports} imports</title>
<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"
  orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker></defs>
<rect width="{width}" height="{height}" fill="#ffffff"/>"""
ARROW = """\
<path d="M{x:.0f} {y:.0f} C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
  fill="none" stroke="#777" stroke-width="1.2" marker-end="url(#head)">
  <title>{room} imports {other}</title></path>"""
BOX = """\
<rect x="{left:.0f}" y="{top:.0f}" width="{width}" height="{height}" rx="6" fill="#dcebf7"
  stroke="#555"/>
<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle">{room}/</text>"""


def imports(package: Path) -> dict[str, set[str]]:
    """
    Return which folders import which, with the imports inside functions.

    :param package: folder of the package.
    """
    paths = sorted(package.rglob('*.py'))
    rooms = {_room(path.relative_to(package).parts[:-1]) for path in paths} - {''}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for path in paths:
        room = _room(path.relative_to(package).parts[:-1])
        if not room:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            for name in _names(node):
                parts = name.split('.')
                if parts[0] != package.name or not parts[1:]:
                    continue
                other = _room(tuple(parts[1:]))
                # A module of the folder, or a name in it, is no folder.
                other = other if other in rooms else parts[1]
                if other in rooms - {room}:
                    found[room].add(other)
    return found


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f'{node.module}.{alias.name}' for alias in node.names]
    return []


def _room(parts: tuple[str, ...]) -> str:
    return '/'.join(parts[:2] if parts[0] == SIMULATORS else parts[:1]) if parts else ''


def _width(room: str) -> int:
    return 7 * len(room) + 24


def _shown(found: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the imports that do not follow from others, the lowest folders first."""
    shown: dict[str, set[str]] = {}
    below: dict[str, set[str]] = {}
    for room in TopologicalSorter(found).static_order():
        implied = {far for other in found[room] for far in below[other]}
        shown[room] = found[room] - implied
        below[room] = found[room] | implied
    return shown


def draw(found: dict[str, set[str]]) -> str:
    """
    Return the drawing as SVG.

    :param found: as of :func:`imports`.
    :raises graphlib.CycleError: if folders import each other.
    """
    shown = _shown(found)
    rows: dict[str, int] = {}
    for room, others in shown.items():
        rows[room] = max((rows[other] + 1 for other in others), default=0)
    n_rows = max(rows.values()) + 1
    place: dict[str, tuple[float, float]] = {}
    for row in range(n_rows):
        rooms = sorted(room for room in found if rows[room] == row)
        if row:
            # Above the folders that they import.
            rooms.sort(key=lambda room: sum(place[other][0] for other in sorted(shown[room]))
                       / len(shown[room]))
        gap = (WIDTH - sum(map(_width, rooms))) / len(rooms)
        x = -gap / 2
        for room in rooms:
            x += gap + _width(room) / 2
            place[room] = x, ROW_HEIGHT * (n_rows - 1 - row + 0.5)
            x += _width(room) / 2
    lines = [HEAD.format(width=WIDTH, height=ROW_HEIGHT * n_rows, n_rooms=len(found),
                         n_imports=sum(map(len, found.values())))]
    for room in sorted(shown):
        for other in sorted(shown[room]):
            (x, y), (to_x, to_y) = place[room], place[other]
            lines.append(ARROW.format(
                room=room, other=other, x=x, y=y + BOX_HEIGHT / 2, middle=(y + to_y) / 2,
                to_x=to_x, to_y=to_y - BOX_HEIGHT / 2))
    for room, (x, y) in sorted(place.items()):
        lines.append(BOX.format(x=x, y=y + 4, left=x - _width(room) / 2, top=y - BOX_HEIGHT / 2,
                                width=_width(room), height=BOX_HEIGHT, room=room))
    return '\n'.join([*lines, '</svg>', ''])


def main() -> int:
    """
    Write the drawing.

    :returns: exit code.
    """
    package, out = map(Path, sys.argv[1:]) if sys.argv[1:] else (ROOT / 'state_sensor_ros', OUT)
    out.write_text(draw(imports(package)))
    return 0


if __name__ == '__main__':
    sys.exit(main())
