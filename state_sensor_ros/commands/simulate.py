# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
`state_sensor simulate`: the stand-in simulator as a program.

May know: options, files, standard output. Must not: packets, commands, traffic models.
Source of truth: INTERFACE 2.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time

import msgspec

from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.options import count, index
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.synth import add_traffic_arguments, frame_rate
from state_sensor_ros.emulator.monodrive_server.emulated_frame import EmulatedFrame
from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.monodrive_server.frame_source import (
    CycleSource,
    FrameSource,
    IteratorSource,
    parse_trajectory,
    TrajectorySource,
)
from state_sensor_ros.emulator.monodrive_server.packet_bytes import encode_json
from state_sensor_ros.emulator.threaded_server import Rate
from state_sensor_ros.emulator.traffic.frame_generator import generate, WARM_UP_S
from state_sensor_ros.errors import ConfigError, told, TrajectoryFormatError, TruncatedError
from state_sensor_ros.monodrive.trajectory import read_payloads
from state_sensor_ros.recordings.opening import refuse_folders

NAME = 'simulate'
HELP = 'serve a trajectory or synthetic traffic over TCP as the real simulator does'
# Frames per second of synthetic traffic unless --rate is a number.
SYNTHETIC_RATE_HZ = 20.0
SENSOR_PORT = 8700
# PROTOCOL 7.1; 10 Hz is what the dataset was collected at.
CARLA_PORT = 2001
CARLA_RATE_HZ = 10.0
# Members that a closed-loop scenario has and no frame (PROTOCOL 6).
SCENARIO_KEYS = {'vehicles', 'trigger_boxes', 'tagged_actors'}


def _port(text: str) -> int:
    """Read a port; 0 has a meaning of its own."""
    value = index(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f'{text} is not 0 to 65535')
    return value


def _rate(text: str) -> Rate:
    if text == 'real' or text == 'max':
        return 'real' if text == 'real' else 'max'
    return frame_rate(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Declare the options.

    :param parser: of this sub-command.
    """
    parser.add_argument('file', metavar='FILE', nargs='?',
                        help='trajectory, - for standard input (default: synthetic traffic)')
    parser.add_argument('--protocol', choices=('monodrive', 'carla'), default='monodrive',
                        help='whose simulator to stand in for (default: monodrive)')
    parser.add_argument('--port', type=_port,
                        help='sensor port, 0 picks a free one (default: 8700; carla: its '
                        'measurements port, 2001, with its world port before it and its control '
                        'port behind it)')
    parser.add_argument('--control-port', type=_port, default=0,
                        help='control port, 8999 on the real one; 0 = none (default: 0)')
    parser.add_argument('--bind', default='127.0.0.1',
                        help='address to listen on (default: 127.0.0.1)')
    parser.add_argument('--rate', type=_rate, default='real', metavar='real|max|HZ',
                        help='pace: by game_time, as fast as read, or frames per second')
    parser.add_argument('--loop', action='store_true', help='begin FILE again at its end')
    parser.add_argument('--frames', type=count, metavar='N', help='end after N frames')
    parser.add_argument('--header', type=int, choices=(16, 12), default=16,
                        help='bytes of the packet header (default: 16)')
    parser.add_argument('--on-sample', action='store_true',
                        help='send a frame per sample or step command, not by itself')
    parser.add_argument('--reply-magic', choices=('new', 'old'), default='new',
                        help='magic of control replies (default: new)')
    parser.add_argument('--no-success', action='store_true',
                        help='leave the member success out of control replies')
    carla = parser.add_argument_group('carla')
    carla.add_argument('--synchronous', action='store_true',
                       help='wait for a command of the client after each frame')
    carla.add_argument('--episode', type=count, metavar='N', help='a new episode every N frames')
    parser.add_argument('--cycle', type=index, default=0, metavar='K',
                        help='write K synthetic frames once and repeat them (cheap at any size)')
    add_traffic_arguments(parser)


def read_trajectory(path: str) -> list[EmulatedFrame]:
    """
    Read a trajectory file.

    :param path: a file, - for standard input.
    :returns: its frames, not decoded.
    :raises TrajectoryFormatError: when there are none.
    """
    refuse_folders(path)
    try:
        if path == '-':
            text = sys.stdin.buffer.read()
        else:
            with open(path, 'rb') as file:
                text = file.read()
    except OSError as error:
        raise TrajectoryFormatError(path, told(error), 'a readable file') from error
    frames = _parsed(path, text.removeprefix(b'\xef\xbb\xbf'))
    if not frames:
        raise TrajectoryFormatError(path, 'no frames', 'an array of frames')
    if len(frames) == 1 and (scenario := SCENARIO_KEYS & set(frames[0].members or ())):
        found = ', '.join(sorted(scenario))
        raise TrajectoryFormatError(path, f'a closed-loop scenario ({found})',
                                    'an array of frames')
    return frames


def _parsed(path: str, text: bytes) -> list[EmulatedFrame]:
    """Split the text into frames; of a file that was cut, take the whole ones."""
    try:
        return parse_trajectory(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        complaint = str(error)
    try:
        for _ in read_payloads(io.BytesIO(text), path):
            pass
    except TruncatedError as cut:
        if cut.n_frames:
            print_line(f'warning: {cut.warning}')
            return _parsed(path, text[:cut.end] + b']')
    except TrajectoryFormatError:
        pass  # what is wrong is found again below, by this side's own reader
    return _read_lenient(path, text, complaint)


def _read_lenient(path: str, text: bytes, complaint: str) -> list[EmulatedFrame]:
    """Read text with NaN and Infinity, or say at which line and column it breaks."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TrajectoryFormatError(f'{path}: line {error.lineno} column {error.colno}',
                                    error.msg, 'a JSON array of frames') from error
    except (ValueError, RecursionError) as error:
        raise TrajectoryFormatError(path, str(error), 'a JSON array of frames') from error
    if not isinstance(data, list):
        raise TrajectoryFormatError(path, complaint, 'a JSON array of frames')
    return [EmulatedFrame(encode_json(element)) for element in data]


def _playback(args: argparse.Namespace) -> FrameSource:
    if args.file is not None:
        return TrajectorySource(read_trajectory(args.file), loop=args.loop)
    rate_hz = SYNTHETIC_RATE_HZ if isinstance(args.rate, str) else args.rate
    frames = generate(args.vehicles, args.objects, rate_hz, args.seed, args.generation,
                      epoch_s=int(time.time() - WARM_UP_S))
    return CycleSource(frames, args.cycle, 1.0 / rate_hz) if args.cycle else IteratorSource(frames)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Serve until everything is sent, or a signal comes: a server runs until it is stopped.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises StateSensorError: when the file or a port is not usable.
    """
    interruption.is_endless = True
    if args.protocol == 'carla':
        _run_carla(args)
        return
    options = MonodriveOptions(
        port=SENSOR_PORT if args.port is None else args.port,
        control_port=args.control_port or None, bind=args.bind, rate=args.rate,
        n_frames=args.frames, header_size=args.header, on_sample=args.on_sample,
        reply_magic=args.reply_magic, with_success=not args.no_success)
    with MonodriveServer(_playback(args), options) as simulator:
        if simulator.control_port:
            print(f'control on {args.bind}:{simulator.control_port}', flush=True)
        print(f'listening on {args.bind}:{simulator.port}', flush=True)
        simulator.wait()


def _run_carla(args: argparse.Namespace) -> None:
    """Serve CARLA's protocol; what it needs, protobuf, is loaded for it only."""
    from state_sensor_ros.emulator.carla_server.message_bytes import EpisodeSettings
    from state_sensor_ros.emulator.carla_server.town_server import CarlaOptions, CarlaServer
    if args.file is not None:
        raise ConfigError('FILE', args.file, 'none with --protocol carla: its traffic is '
                          'synthetic')
    if args.port in (1, 65535):
        raise ConfigError('--port', str(args.port), '0, or 2 to 65534: the world port lies before '
                          'it, the control port behind it')
    rate_hz = CARLA_RATE_HZ if isinstance(args.rate, str) else args.rate
    options = CarlaOptions(
        port=CARLA_PORT if args.port is None else args.port, bind=args.bind, rate=args.rate,
        period_s=1.0 / rate_hz, n_frames=args.frames, episode_frames=args.episode,
        episode=EpisodeSettings(
            is_synchronous=args.synchronous, n_vehicles=args.vehicles - 1,
            n_pedestrians=args.objects, seed=args.seed))
    with CarlaServer(options) as server:
        print(f'world on {args.bind}:{server.world_port}', flush=True)
        print(f'control on {args.bind}:{server.control_port}', flush=True)
        print(f'listening on {args.bind}:{server.port}', flush=True)
        server.wait()
