# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mock server of monoDrive: its traffic is synthetic, or a recording that is read here."""

from __future__ import annotations

import argparse
import sys

from state_sensor_ros.emulator.monodrive import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.monodrive_frames import (
    EmulatedFrame,
    FrameSource,
    synthetic_source,
    TrajectorySource,
)
from state_sensor_ros.errors import no_frames, TruncatedError
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive.replay import open_whole, texts_of
from state_sensor_ros.simulators.monodrive.trajectory import strict_or_none, TrajectoryRecording
from state_sensor_ros.texts import one_line

# Frames per second of synthetic traffic unless a rate is given.
SYNTHETIC_RATE_HZ = 20.0


def open_mock_server(options: argparse.Namespace) -> MonodriveServer:
    return MonodriveServer(_playback(options), MonodriveOptions(
        port=options.port, control_port=options.control_port or None, bind=options.bind,
        rate=options.rate, n_frames=options.frames, header_size=options.header,
        on_sample=options.on_sample))


def read_recording(path: str, generation: str, options: ReadOptions) -> list[EmulatedFrame]:
    """Return the frames of a recording; those of a trajectory are sent as they are."""
    recording, lost = open_whole(path, options), dict[str, None]()
    cut, texts = None, list[bytes]()
    try:
        if isinstance(recording, TrajectoryRecording):
            texts += (json_text.strict(each.text) for each in recording.elements(strict_or_none))
        else:
            texts += (text for text, *_ in texts_of(
                recording, recording.frames(), lost, generation))
            cut = recording.cut
    except TruncatedError as error:
        cut = error
    finally:
        recording.close()
    if not texts:
        raise cut or no_frames(path)
    warnings = [cut.warning] if cut is not None else []
    if lost:
        warnings.append(f'{path}: {generation} does not carry: {", ".join(lost)}')
    sys.stderr.write(''.join(f'{one_line(f"warning: {line}")}\n' for line in warnings))
    return [EmulatedFrame(text) for text in texts]


def _playback(args: argparse.Namespace) -> FrameSource:
    if args.file is not None:
        return TrajectorySource(read_recording(args.file, args.generation,
                                               args.read_options), loop=args.loop)
    rate_hz = SYNTHETIC_RATE_HZ if isinstance(args.rate, str) else args.rate
    return synthetic_source(args.vehicles, args.objects, rate_hz, args.seed, args.generation)
