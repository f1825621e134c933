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

from state_sensor_ros.commands.format_options import refuse_unused, SELECTION, selection_of
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import LIVE_OPTIONS, open_frames, refuse_unused_live
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files.formats import VIEW
from state_sensor_ros.library.frame_recording import Recording
from state_sensor_ros.simulators.opening import format_of
from state_sensor_ros.simulators.output_names import output_format


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """Show the frames."""
    _check_options(args)
    # The command reports the errors itself.
    os.environ.setdefault('RUST_LOG', 'off')
    from state_sensor_ros.commands.scene_show import SceneShow
    settings, reader = open_frames(args, args.input, interruption)
    with Recording(reader, selection=selection_of(args)) as recording:
        show = SceneShow(args, settings, recording, reader)
        if args.save is None:
            show.in_viewer(interruption)
        else:
            show.to_file(interruption)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that are not used for the input or the target."""
    uses = {**dict.fromkeys(LIVE_OPTIONS, 'the live stream, without IN'), 'force': '--save OUT',
            'viewer_port': 'a viewer', 'start': 'a recording', 'end': 'a recording',
            'topic': 'reading a bag'}
    used = {'names', 'map', 'web', 'save', 'no_spawn', 'ego_tag'} | SELECTION
    what = 'the viewer gets the frames'
    if args.save is None:
        used |= {'viewer_port'}
    else:
        output = output_format(args.save, command=VIEW)
        what = f'OUT {args.save} is {output.noun}'
    if args.input is None:
        refuse_unused_live(args, used, 'there is no IN', uses)
    else:
        read = format_of(args.input)
        refuse_unused(args, used | read.reads,
                      f'IN {args.input} is {read.noun}, {what}', uses)
    if 'force' in getattr(args, 'given', ()) and args.save is None:
        raise UsageError('--force is for --save OUT')
