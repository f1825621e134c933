# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Fonts for the texts of a page, the settings of matplotlib for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.font_manager import FontEntry, fontManager, get_font

from state_sensor_ros.drawing.colors import DARK, GRID, GROUND, QUIET
from state_sensor_ros.drawing.page_style import PageSize, TEXT_PT

# Part of matplotlib: Latin, Greek, Cyrillic, Arabic, Hebrew and more.
DEFAULT_FAMILY = 'DejaVu Sans'
# Part of matplotlib 3.11; has a symbol of the script instead of each character.
_LAST_RESORT = 'Last Resort'
_PLAIN = ('normal', '400', 'regular', '350')


class Fonts:
    """
    The families that a picture needs, in order of preference.

    Of all fonts on this machine, matplotlib draws each character with the first family that has
    it. Only fonts that add a character are used.

    :param texts: all names and titles.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        wanted = {ord(char) for text in texts for char in text if char.isprintable()}
        self.families = [DEFAULT_FAMILY]
        self._missing = wanted - _characters(DEFAULT_FAMILY)
        for entry in _other_fonts():
            if not self._missing:
                break
            try:
                found = self._missing & set(get_font(entry.fname).get_charmap())
            except (OSError, RuntimeError):
                continue  # A font that was uninstalled or that FreeType cannot read.
            if found:
                self.families.append(entry.name)
                self._missing -= found

    def drawable(self, text: str) -> str:
        """Return ``text`` with characters that no font has as in Python string literals."""
        return ''.join(
            char if char.isprintable() and ord(char) not in self._missing else ascii(char)[1:-1]
            for char in text)


def _characters(family: str) -> set[int]:
    return set(get_font(fontManager.findfont(family)).get_charmap())


def _other_fonts() -> list[FontEntry]:
    """Return one upright font of each other installed family, sans serif first."""
    of_family: dict[str, FontEntry] = {}
    for entry in fontManager.ttflist:
        is_plain = entry.style == 'normal' and str(entry.weight) in _PLAIN
        if is_plain and entry.name != DEFAULT_FAMILY and _LAST_RESORT not in entry.name:
            of_family.setdefault(entry.name, entry)
    return sorted(of_family.values(), key=lambda entry: ('Sans' not in entry.name, entry.name))


def style_of(fonts: Fonts, size: PageSize) -> dict[Any, Any]:
    """
    Return the settings of matplotlib for a page.

    :param fonts: fonts of the page.
    :param size: size of the page.
    :returns: argument of rc_context, whose keys only matplotlib 3.11 has a type for.
    """
    text_pt = TEXT_PT * size.text_scale
    # White grids on a gray ground; on white paper, gray grids.
    ground, grid, line_pt = ('white', GRID, 0.4) if size.is_paper else (GROUND, 'white', 1.0)
    return {
        'font.family': fonts.families, 'axes.linewidth': 0.7,
        **dict.fromkeys(('font.size', 'legend.fontsize', 'axes.labelsize', 'xtick.labelsize',
                         'ytick.labelsize'), text_pt),
        **dict.fromkeys(('axes.edgecolor', 'xtick.color', 'ytick.color'), QUIET),
        **dict.fromkeys(('axes.labelcolor', 'xtick.labelcolor', 'ytick.labelcolor', 'text.color'),
                        DARK),
        'axes.facecolor': ground, 'axes.grid': True, 'axes.axisbelow': True, 'grid.color': grid,
        'grid.linewidth': line_pt,
        **dict.fromkeys(('xtick.major.pad', 'ytick.major.pad'), 2.0 if size.is_paper else 3.5),
        'axes.labelpad': 2.0 if size.is_paper else 4.0,
        'legend.handletextpad': 0.5, 'legend.handlelength': 1.4 if size.is_paper else 2.0,
        'legend.columnspacing': 0.9 if size.is_paper else 1.4,
        # Names of files and actors may contain dollar signs.
        'text.parse_math': False, 'svg.hashsalt': 'state_sensor_ros',
        # Venues refuse Type 3 fonts: TrueType fonts are embedded as they are.
        'pdf.fonttype': 42, 'ps.fonttype': 42}
