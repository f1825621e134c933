# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The arguments of `state_sensor render`."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.arguments.shared import (
    add_bag_options,
    add_ego_tag,
    add_input,
    add_quiet,
    add_selection,
    number,
)
from state_sensor_ros.drawing.style import (
    BY_SPEED,
    COLORINGS,
    FILM_SIZE,
    is_page_size,
    LEAST_HEIGHT,
    LEAST_WIDTH,
    MOST_INCHES,
    PAPER,
)

_DPI = (10.0, 1200.0)
_FILM_SIZE = f'{FILM_SIZE.width:g}x{FILM_SIZE.height:g}'
_EPILOG = """examples:
  state_sensor render drive.json drive.png
  state_sensor render drive.json figure.pdf --style paper --no-names
  state_sensor render drive_bag drive.html --start 10 --end 20 --desired-tags vehicle"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    add_input(parser, 'input', metavar='IN')
    parser.add_argument('output', metavar='OUT',
                        help='NAME.png, .svg or .pdf for a picture, .html for an interactive '
                        'animation, .gif or .mp4 for a video')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    parser.add_argument('--color', choices=COLORINGS, default=BY_SPEED,
                        help='what the colors show; actor: each vehicle, or each class if there '
                        f'are more than eight (default: {BY_SPEED})')
    parser.add_argument('--at', type=number, metavar='S',
                        help='time of the boxes, or start of the animation, s after the first '
                        'drawn frame (default: the last one with the ego; animation: the first)')
    parser.add_argument('--style', choices=('screen', 'paper'), default='screen',
                        help=f'paper: {PAPER.width:g} inches wide, 8 pt, without header and '
                        'statistics')
    parser.add_argument('--size', type=_page_size, metavar='W[xH]',
                        help='width and height in inches (default: 11 and what the map needs; '
                        f'video: {_FILM_SIZE})')
    parser.add_argument('--dpi', type=_resolution, metavar='N',
                        help='pixels per inch (default: 150; video: 100)')
    parser.add_argument('--names', action=argparse.BooleanOptionalAction, default=True,
                        help='show the names of the actors (default: yes)')
    parser.add_argument('--legend', action=argparse.BooleanOptionalAction, default=True,
                        help='show the legend (default: yes)')
    parser.add_argument('--map', default='', metavar='FILE',
                        help='map to draw, .xodr or .net.xml (default: that of IN)')
    parser.add_argument('--title', help="title; '' for none (default: the name of IN; none with "
                        '--style paper)')
    add_bag_options(parser)
    add_selection(parser)
    add_ego_tag(parser)


def _page_size(text: str) -> tuple[float, float | None]:
    """Return width and height, inches, the height None if it follows from the content."""
    width, separator, height = text.partition('x')
    try:
        size = float(width), float(height) if separator else None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not W or WxH, such as 3.5x3') from error
    if not is_page_size(*size):
        raise argparse.ArgumentTypeError(
            f'{text} is not between {LEAST_WIDTH:g}x{LEAST_HEIGHT:g} and '
            f'{MOST_INCHES:g}x{MOST_INCHES:g}')
    return size


def _resolution(text: str) -> float:
    """Return the pixels per inch in ``text``; raise ArgumentTypeError if out of range."""
    dpi = number(text)
    if not _DPI[0] <= dpi <= _DPI[1]:
        raise argparse.ArgumentTypeError(f'{text} is not between {_DPI[0]:g} and {_DPI[1]:g}')
    return dpi
