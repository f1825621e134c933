# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
`state_sensor view`: a recording or the live stream in the 3D viewer Rerun.

========== ==================================== ===============================================
option     the frames go to                     the command ends
========== ==================================== ===============================================
(none)     the window of a viewer that it opens with the last frame; the window stays
--no-spawn a viewer that is open                with the last frame
--web      a page, which it serves              with Ctrl-C
--save     a file                               with the last frame
========== ==================================== ===============================================
"""

from __future__ import annotations

import argparse
import os

from state_sensor_ros.commands.live import open_frames
from state_sensor_ros.commands.options import (
    add_bag_options,
    add_force,
    add_input,
    add_quiet,
    add_selection,
    add_stream_options,
    port,
    selection_of,
)
from state_sensor_ros.files import output_format, VIEW
from state_sensor_ros.library.frame_recording import Recording

_EPILOG = """Without IN, the viewer shows a live stream until --frames, --seconds or Ctrl-C.

examples:
  state_sensor view drive.json
  state_sensor view --web
  state_sensor view drive_bag --save drive.rrd --start 10 --end 20"""
_DEFAULT_PORT = 9876


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    add_input(parser, 'input', metavar='IN', nargs='?')
    target = parser.add_mutually_exclusive_group()
    target.add_argument('--web', action='store_true',
                        help='serve the viewer to a browser on this machine')
    target.add_argument('--save', metavar='OUT',
                        help='write NAME.rrd, which `rerun NAME.rrd` opens')
    target.add_argument('--no-spawn', action='store_true',
                        help='use a viewer that is already open')
    parser.add_argument('--viewer-port', type=port, metavar='N', help='port of the viewer '
                        f'(default: {_DEFAULT_PORT}; --web: a free one)')
    add_force(parser)
    add_quiet(parser)
    parser.add_argument('--names', action=argparse.BooleanOptionalAction, default=False,
                        help='show all names (default: only under the pointer)')
    parser.add_argument('--map', default='', metavar='FILE',
                        help='map to draw, .xodr or .net.xml (default: that of IN)')
    add_bag_options(parser)
    add_stream_options(parser)
    add_selection(parser)


def run(args: argparse.Namespace) -> None:
    """Show the frames."""
    if args.save is not None:
        output_format(args.save, command=VIEW)
    # The command reports the errors itself.
    os.environ.setdefault('RUST_LOG', 'off')
    from state_sensor_ros.commands.scene_show import SceneShow
    settings, reader = open_frames(args, args.input)
    with Recording(reader, selection=selection_of(args)) as recording:
        show = SceneShow(args, settings, recording, reader)
        if args.save is None:
            show.in_viewer()
        else:
            show.to_file()
