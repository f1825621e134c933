# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""`state_sensor simulate` and `synth`: the mock server of monoDrive, and its traffic as a file."""

from __future__ import annotations

import argparse
from contextlib import closing, suppress

import msgspec

from state_sensor_ros.commands import options, terminal
from state_sensor_ros.emulator import monodrive_frames as mock_frames
from state_sensor_ros.emulator.monodrive import MonodriveOptions, MonodriveServer
from state_sensor_ros.emulator.traffic.frame_generator import (
    GENERATIONS,
    MAX_RATE_HZ,
    TrafficFrames,
)
from state_sensor_ros.errors import no_frames, TruncatedError, UsageError
from state_sensor_ros.files import output, output_format, ReadOptions, TRAJECTORY
from state_sensor_ros.simulators import json_text
from state_sensor_ros.simulators.monodrive.replay import open_whole, texts_of
from state_sensor_ros.simulators.monodrive.trajectory import TrajectoryRecording

# Frames per second of synthetic traffic unless a rate is given.
SYNTHETIC_RATE_HZ = 20.0
_SIMULATE_EPILOG = """examples:
  state_sensor simulate drive.json --loop --control-port 8999
  state_sensor simulate --vehicles 100 --rate max"""
_SYNTH_EPILOG = """examples:
  state_sensor synth drive.json --vehicles 50 --frames 400
  state_sensor synth - --frames 5 --generation v1"""


def add_simulate(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `simulate` to ``parser``."""
    parser.epilog = _SIMULATE_EPILOG
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='recording to serve, - is standard input (default: traffic)')
    parser.add_argument('--port', type=options.port_or_0, default=8700,
                        help='sensor port; 0: a free one (default: 8700)')
    parser.add_argument('--control-port', type=options.port_or_0, default=0, metavar='PORT',
                        help='control port (8999 on the real simulator); 0 = none (default: 0)')
    parser.add_argument('--bind', default='127.0.0.1', metavar='ADDRESS',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='real time (default), as fast as possible, or frames per second')
    parser.add_argument('--frames', type=options.count, metavar='N', help='end after N frames')
    parser.add_argument('--loop', action='store_true', help='repeat FILE endlessly')
    parser.add_argument('--on-sample', action='store_true',
                        help='send a frame only in reply to a sample or step command')
    parser.add_argument('--header', type=int, choices=(16, 12), default=16,
                        help='size of the packet header, bytes (default: 16)')
    options.add_quiet(parser, 'do not print the addresses')
    _add_traffic(parser)


def add_synth(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `synth` to ``parser``."""
    parser.epilog = _SYNTH_EPILOG
    parser.add_argument('output', metavar='OUT', help='trajectory to write, - for standard output')
    parser.add_argument('--frames', type=options.count, default=200, metavar='N',
                        help='number of frames to write (default: 200)')
    parser.add_argument('--rate', type=_frame_rate, default=20.0, metavar='HZ',
                        help='frames per second (default: 20)')
    options.add(parser, 'output')
    _add_traffic(parser)


def _add_traffic(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group('synthetic traffic')
    group.add_argument('--vehicles', type=options.count, default=12, metavar='N',
                       help='number of vehicles, including the ego (default: 12)')
    group.add_argument('--objects', type=options.index, default=9, metavar='N',
                       help='number of cones and signs (default: 9)')
    group.add_argument('--seed', type=options.index, default=1, metavar='N',
                       help='random seed; the same seed gives the same traffic (default: 1)')
    group.add_argument('--generation', choices=GENERATIONS, default='v2',
                       help='JSON generation of the frames (default: v2)')


_frame_rate = options.number_from(float, 1e-3, MAX_RATE_HZ)


def _rate(text: str) -> str | float:
    return text if text in ('real', 'max') else float(_frame_rate(text))


def run_simulate(args: argparse.Namespace) -> None:
    """Serve until everything is sent; a server of samples on request, until a signal."""
    if args.on_sample and not args.control_port:
        raise UsageError('--on-sample: found no --control-port; expected one: it is for its '
                         'commands')
    rate_hz = SYNTHETIC_RATE_HZ if isinstance(args.rate, str) else args.rate
    playback = mock_frames.synthetic_source(
        args.vehicles, args.objects, rate_hz, args.seed, args.generation,
    ) if args.file is None else mock_frames.TrajectorySource(_recorded(args), loop=args.loop)
    server_options = MonodriveOptions(
        port=args.port, control_port=args.control_port or None, bind=args.bind, rate=args.rate,
        n_frames=args.frames, header_size=args.header, on_sample=args.on_sample)
    with suppress(KeyboardInterrupt), MonodriveServer(playback, server_options) as server:
        for name, port in server.addresses():
            if not args.quiet:
                terminal.print_output(f'{name} on {args.bind}:{port}')
        server.wait()


def _recorded(args: argparse.Namespace) -> list[mock_frames.EmulatedFrame]:
    """Return the frames of a recording; those of a trajectory are sent as they are."""
    read_options = ReadOptions(options.settings_of(args))
    lost, cut, texts = dict[str, None](), None, list[bytes]()
    with closing(open_whole(args.file, read_options)) as recording:
        try:
            if isinstance(recording, TrajectoryRecording):
                texts += (json_text.strict(each.text)
                          for each in recording.elements(json_text.is_strict))
            else:
                texts += (text for text, *_ in texts_of(
                    recording, recording.frames(), lost, args.generation))
                cut = recording.cut
        except TruncatedError as error:
            cut = error
    if not texts:
        raise cut or no_frames(args.file)
    if cut is not None:
        terminal.print_line(f'warning: {cut.warning}')
    if lost:
        terminal.print_warnings(args.file,
                                [f'{args.generation} does not carry: {", ".join(lost)}'])
    return [mock_frames.EmulatedFrame(text) for text in texts]


def run_synth(args: argparse.Namespace) -> None:
    """Write the trajectory, frame by frame; OUT is created when it is complete."""
    named = output_format(args.output)
    if named != TRAJECTORY:
        raise UsageError(f'OUT {args.output} is the name of {named.noun}; expected NAME.json or '
                         '-: `state_sensor convert` makes other formats of a trajectory')
    frames = TrafficFrames(args.vehicles, args.objects, args.rate, args.seed, args.generation)
    with output.WholeFile(args.output, force=args.force) as file:
        file.handle.write(b'[')
        for i in terminal.bar_type()(range(args.frames), unit='frame', disable=args.quiet or None):
            file.handle.write(b',\n' if i else b'\n')
            file.handle.write(msgspec.json.encode(next(frames)))
        file.handle.write(b'\n]\n')
    facts = terminal.facts_of(args.frames, (args.frames - 1) / args.rate, args.vehicles
                              + args.objects)
    terminal.show_result(args.output, [*facts, *terminal.size_of(args.output)],
                         is_quiet=args.quiet)
