# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor render`: a recording as a picture, or as an animation for a browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from state_sensor_ros.commands.format_options import (
    add_selection,
    refuse_unused,
    SELECTION,
    selection_of,
)
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import add_bag_limit, add_quiet, number
from state_sensor_ros.commands.parameter_options import add_parameters, settings_of
from state_sensor_ros.commands.reading import clock_shown, read_frames
from state_sensor_ros.commands.summary import facts_of, show_result, size_of
from state_sensor_ros.drawing.colorings import BY_SPEED, COLORINGS
from state_sensor_ros.drawing.scene import Scene
from state_sensor_ros.drawing.scene_builder import SceneBuilder
from state_sensor_ros.drawing.wording import seconds
from state_sensor_ros.errors import ConfigError, one_line, TrajectoryFormatError
from state_sensor_ros.files.formats import ANIMATION, ReadOptions, RENDER
from state_sensor_ros.files.recording import STANDARD_INPUT
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.library.frame_recording import FrameRecording
from state_sensor_ros.rep103 import Units
from state_sensor_ros.simulators.opening import format_of, open_any
from state_sensor_ros.simulators.output_names import output_format

# A duration that is copied from what the programs print is rounded.
_AT_TOLERANCE_S = 0.05
_EPILOG = """examples:
  state_sensor render drive.json drive.png
  state_sensor render drive_bag drive.html --start 10 --end 20 --desired-tags vehicle"""
# The parameters of the node that change the scene.
_PARAMETERS = ('ego_tag', 'obb_extents')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options.

    :param parser: of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('input', metavar='IN', help='trajectory (- for standard '
                        'input), bag, table or dataset of CARLA')
    parser.add_argument('output', metavar='OUT',
                        help='NAME.png for a picture, NAME.html for an animation in one file')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)
    parser.add_argument('--color', choices=COLORINGS, default=BY_SPEED,
                        help=f'what colours mean (default: {BY_SPEED})')
    parser.add_argument('--at', type=number, metavar='S',
                        help='when the boxes are drawn, or the animation begins, s since the '
                        'first frame (default: at the end, or at the start)')
    parser.add_argument('--title', help='written above (default: the name of IN)')
    parser.add_argument('--topic', default='', help='of a bag with several ~/frame topics')
    add_bag_limit(parser)
    add_selection(parser)
    add_parameters(parser, _PARAMETERS)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Draw the recording; OUT is created when it is complete.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises StateSensorError: when IN cannot be read or has no frames, ``--at`` is outside of it,
        or OUT cannot be written.
    """
    output, read = output_format(args.output, command=RENDER), format_of(args.input)
    refuse_unused(args, SELECTION | output.writes | read.reads,
                  f'IN {args.input} is {read.noun}, OUT {args.output} {output.noun}')
    with interruption.writing(lambda: WholeFile(args.output, force=args.force)) as file:
        scene = _scene(args)
        write = _write_animation if output is ANIMATION else _write_picture
        with clock_shown('draw', is_quiet=args.quiet):
            write(scene, args, file)
    facts = facts_of(scene.n_frames, scene.duration_s, len(scene.names))
    show_result(args.output, [*facts, *size_of(args.output)], is_quiet=args.quiet)


def _scene(args: argparse.Namespace) -> Scene:
    """Read the whole recording."""
    settings = settings_of(args, _PARAMETERS)
    builder = SceneBuilder(settings.ego_tag)
    options = ReadOptions(Units(settings.obb_extents), args.topic, args.max_bag_bytes)
    with FrameRecording(open_any(args.input, options),
                        selection=selection_of(args)) as recording:
        for frame in read_frames(recording, 'render', is_quiet=args.quiet):
            builder.add(frame)
        name = recording.name
    scene = builder.finish()
    if not len(scene.time_s):
        raise TrajectoryFormatError(name, 'no frames', 'at least one frame')
    if args.at is not None and args.at > scene.duration_s + _AT_TOLERANCE_S:
        raise ConfigError('--at', f'{args.at:g} s', f'0 to {seconds(scene.duration_s)}, the '
                          f'duration of {name}')
    return scene


def _title(args: argparse.Namespace) -> str:
    if args.title is not None:
        return str(args.title)
    if args.input == STANDARD_INPUT:
        return 'standard input'
    return one_line(Path(args.input).resolve().name)


# Each function imports its own plotting library only.
def _write_picture(scene: Scene, args: argparse.Namespace, file: WholeFile) -> None:
    from state_sensor_ros.drawing.picture import PictureStyle, write_picture
    write_picture(scene, file.handle, PictureStyle(_title(args), args.color), at_s=args.at)


def _write_animation(scene: Scene, args: argparse.Namespace, file: WholeFile) -> None:
    from state_sensor_ros.drawing.animation import write_animation
    write_animation(scene, file.handle, title=_title(args), coloring=args.color, at_s=args.at)
