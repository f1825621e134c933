# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor synth`: synthetic traffic as a trajectory file."""

from __future__ import annotations

import argparse

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.printing import bar_type
from state_sensor_ros.commands.summary import facts_of, show_result, size_of
from state_sensor_ros.emulator.traffic.frame_generator import generate
from state_sensor_ros.emulator.traffic.json_template import encode_json
from state_sensor_ros.errors import UsageError
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.simulators.opening import trajectory_format
from state_sensor_ros.simulators.output_names import output_format


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """Write the trajectory, frame by frame; OUT is created when it is complete."""
    named = output_format(args.out)
    if named != trajectory_format():
        raise UsageError(f'OUT {args.out} is the name of {named.noun}; expected NAME.json or -: '
                         '`state_sensor convert` makes other formats of a trajectory')
    frames = generate(args.vehicles, args.objects, args.rate, args.seed, args.generation)
    with interruption.writing(lambda: WholeFile(args.out, force=args.force)) as file:
        file.handle.write(b'[')
        for i in bar_type()(range(args.frames), unit='frame', disable=args.quiet or None):
            file.handle.write(b',\n' if i else b'\n')
            file.handle.write(encode_json(next(frames)))
        file.handle.write(b'\n]\n')
    duration_s = (args.frames - 1) / args.rate
    facts = facts_of(args.frames, duration_s, args.vehicles + args.objects)
    show_result(args.out, [*facts, *size_of(args.out)], is_quiet=args.quiet)
