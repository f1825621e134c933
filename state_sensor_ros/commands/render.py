# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor render`: a recording as a picture, an animation for a browser, or a film."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, TypeAlias

from state_sensor_ros import errors, texts
from state_sensor_ros.commands import options, reading
from state_sensor_ros.commands.terminal import facts_of, show_result, size_of
from state_sensor_ros.drawing import style
from state_sensor_ros.drawing.scene import Scene, SceneBuilder
from state_sensor_ros.files import output_format, RENDER, STANDARD_INPUT
from state_sensor_ros.files.output import WholeFile
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.simulators.opening import read_map

_MAX_PIXELS = 1e8
_Writer: TypeAlias = Callable[[Scene, BinaryIO], None]
_EPILOG = """examples:
  state_sensor render drive.json drive.png
  state_sensor render drive.json figure.pdf --style paper --no-names
  state_sensor render drive_bag drive.html --start 10 --desired-tags vehicle"""


def add_render(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    options.add_input(parser, 'input', metavar='IN')
    parser.add_argument('output', metavar='OUT',
                        help='NAME.png, .svg or .pdf for a picture, .html for an interactive '
                        'animation, .gif or .mp4 for a video')
    options.add(parser, 'output')
    parser.add_argument('--color', choices=style.COLORINGS, default=style.BY_SPEED,
                        help='what the colors show; actor: each vehicle, or each class if there '
                        f'are more than eight (default: {style.BY_SPEED})')
    parser.add_argument('--at', type=options.number, metavar='S',
                        help='time of the boxes, or start of the animation, s after the first '
                        'drawn frame (default: the last one with the ego; animation: the first)')
    parser.add_argument('--style', choices=('screen', 'paper'), default='screen',
                        help=f'paper: {style.PAPER.width:g} inches wide, 8 pt, without header and '
                        'statistics')
    parser.add_argument('--size', type=_page_size, metavar='W[xH]',
                        help='width and height in inches (default: 11 and what the map needs; '
                        f'video: {style.FILM_SIZE.width:g}x{style.FILM_SIZE.height:g})')
    parser.add_argument('--dpi', type=options.number_from(float, 10.0, 1200.0), metavar='N',
                        help='pixels per inch (default: 150; video: 100)')
    parser.add_argument('--names', action=argparse.BooleanOptionalAction, default=True,
                        help='show the names of the actors (default: yes)')
    parser.add_argument('--legend', action=argparse.BooleanOptionalAction, default=True,
                        help='show the legend (default: yes)')
    parser.add_argument('--map', default='', metavar='FILE',
                        help='map to draw, .xodr or .net.xml (default: that of IN)')
    parser.add_argument('--title', help="title; '' for none (default: the name of IN; none with "
                        '--style paper)')
    options.add(parser, 'bag', 'selection')


def _page_size(text: str) -> tuple[float, float | None]:
    """Return width and height, inches, the height None if it follows from the content."""
    width, separator, height = text.partition('x')
    try:
        size = float(width), float(height) if separator else None
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not W or WxH, such as 3.5x3') from error
    if not style.is_page_size(*size):
        raise argparse.ArgumentTypeError(
            f'{text} is not between {style.LEAST_WIDTH:g}x{style.LEAST_HEIGHT:g} and '
            f'{style.MOST_INCHES:g}x{style.MOST_INCHES:g}')
    return size


def run_render(args: argparse.Namespace) -> None:
    """Draw the recording; OUT is created when it is complete."""
    # Before IN is read, which can take minutes: the options are wrong, or the library is missing.
    write = {'animation': _animation_writer, 'film': _film_writer}.get(
        output_format(args.output, command=RENDER).name, _picture_writer)(args)
    with WholeFile(args.output, force=args.force) as file:
        scene = _scene(args)
        write(scene, file.handle)
    show_result(args.output, [*facts_of(scene.n_frames, scene.duration_s, len(scene.names)),
                              *size_of(args.output)], is_quiet=args.quiet)


def _scene(args: argparse.Namespace) -> Scene:
    """Read the whole recording."""
    settings, reader = reading.open_frames(args, args.input)
    builder = SceneBuilder(settings.ego_tag, read_map(args.map) if args.map else ())
    with closing(FrameLoop(reader, selection=options.selection_of(args))) as recording:
        for frame in reading.read_frames(recording, 'render', is_quiet=args.quiet):
            builder.add(frame)
        scene = builder.finish()
        recording.reader.check(len(scene.time_s))
    scene.check_time(args.at, '--at', recording.name)
    return scene


def _title(args: argparse.Namespace) -> str:
    if args.title is not None:
        return str(args.title)
    if args.style == 'paper':
        return ''
    return 'standard input' if args.input == STANDARD_INPUT \
        else texts.one_line(Path(args.input).resolve().name)


def _style(args: argparse.Namespace, size: style.PageSize) -> style.PictureStyle:
    """Return the style of the pages; ``size`` is the size without options."""
    if args.size is not None:
        size = replace(size, width=args.size[0], height=args.size[1])
    if args.dpi is not None:
        size = replace(size, dpi=args.dpi)
    # Pages of .svg and .pdf have no pixels.
    width, height = (each * size.dpi for each in (size.width, size.height or size.width))
    if not args.output.lower().endswith(('.svg', '.pdf')) and width * height > _MAX_PIXELS:
        raise errors.ConfigError('--size, --dpi', f'{width * height / 1e6:.0f} million pixels',
                                 f'at most {_MAX_PIXELS / 1e6:.0f} million')
    return style.PictureStyle(_title(args), args.color, args.names, size, has_legend=args.legend)


# Each function imports its own plotting library only.
def _picture_writer(args: argparse.Namespace) -> _Writer:
    from state_sensor_ros.drawing.picture import write_picture
    page = style.PAPER if args.style == 'paper' else style.ORDINARY
    return partial(write_picture, style=_style(args, page), at_s=args.at,
                   format_=Path(args.output).suffix.lower()[1:])


def _animation_writer(args: argparse.Namespace) -> _Writer:
    from state_sensor_ros.drawing.animation import write_animation
    return partial(write_animation, title=_title(args), coloring=args.color, at_s=args.at,
                   names=args.names)


def _film_writer(args: argparse.Namespace) -> _Writer:
    from state_sensor_ros.drawing.film import write_gif, write_mp4
    is_gif = args.output.lower().endswith('.gif')
    import_module('PIL.Image' if is_gif else 'av')
    return partial(write_gif if is_gif else write_mp4, style=_style(args, style.FILM_SIZE))
