# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate`: the mock server of monoDrive as a program."""

from __future__ import annotations

import argparse
from contextlib import suppress
import sys

from state_sensor_ros.commands.options import add_quiet, count, port_or_0, settings_of
from state_sensor_ros.commands.synth import add_traffic_options, frame_rate
from state_sensor_ros.commands.terminal import print_output
from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.monodrive_frames import (
    EmulatedFrame,
    FrameSource,
    synthetic_source,
    TrajectorySource,
)
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.emulator.traffic.frame_generator import GENERATIONS
from state_sensor_ros.errors import no_frames, TruncatedError, UsageError
from state_sensor_ros.files import ReadOptions
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive.replay import open_whole, texts_of
from state_sensor_ros.simulators.monodrive.trajectory import strict_or_none, TrajectoryRecording
from state_sensor_ros.texts import one_line

# Frames per second of synthetic traffic unless a rate is given.
SYNTHETIC_RATE_HZ = 20.0

_EPILOG = """examples:
  state_sensor simulate drive.json --loop --control-port 8999
  state_sensor simulate --vehicles 100 --rate max"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='recording to serve, - is standard input (default: traffic)')
    parser.add_argument('--port', type=port_or_0, default=8700,
                        help='sensor port; 0: a free one (default: 8700)')
    parser.add_argument('--control-port', type=port_or_0, default=0, metavar='PORT',
                        help='control port (8999 on the real simulator); 0 = none (default: 0)')
    parser.add_argument('--bind', default='127.0.0.1', metavar='ADDRESS',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='real time (default), as fast as possible, or frames per second')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    parser.add_argument('--loop', action='store_true', help='repeat FILE endlessly')
    parser.add_argument('--on-sample', action='store_true',
                        help='send a frame only in reply to a sample or step command')
    parser.add_argument('--header', type=int, choices=(16, 12), default=16,
                        help='size of the packet header, bytes (default: 16)')
    add_quiet(parser, 'do not print the addresses')
    traffic = parser.add_argument_group('synthetic traffic')
    add_traffic_options(traffic.add_argument)
    traffic.add_argument('--generation', choices=GENERATIONS, default='v2',
                         help='JSON generation of synthetic frames and datasets (default: v2)')


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def run(args: argparse.Namespace) -> None:
    """Serve until everything is sent; a server of samples on request, until a signal."""
    if args.on_sample and not args.control_port:
        raise UsageError('--on-sample: found no --control-port; expected one: it is for its '
                         'commands')
    server_options = MonodriveOptions(
        port=args.port, control_port=args.control_port or None, bind=args.bind, rate=args.rate,
        n_frames=args.frames, header_size=args.header, on_sample=args.on_sample)
    with suppress(KeyboardInterrupt), MonodriveServer(_playback(args), server_options) as server:
        for name, port in server.addresses():
            if not args.quiet:
                print_output(f'{name} on {args.bind}:{port}')
        server.wait()


def _recorded(path: str, generation: str, options: ReadOptions) -> list[EmulatedFrame]:
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
        return TrajectorySource(_recorded(args.file, args.generation,
                                          ReadOptions(settings_of(args))), loop=args.loop)
    rate_hz = SYNTHETIC_RATE_HZ if isinstance(args.rate, str) else args.rate
    return synthetic_source(args.vehicles, args.objects, rate_hz, args.seed, args.generation)
