# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The mock server of monoDrive: its traffic is synthetic, or a trajectory that is read here."""

from __future__ import annotations

import argparse
import io
import json
import sys

import msgspec

from state_sensor_ros.emulator.monodrive_server.frame_server import (
    MonodriveOptions,
    MonodriveServer,
)
from state_sensor_ros.emulator.monodrive_server.frame_source import (
    EmulatedFrame,
    frames_of,
    FrameSource,
    parse_trajectory,
    synthetic_source,
    TrajectorySource,
)
from state_sensor_ros.simulators import (
    no_frames,
    one_line,
    ReadOptions,
    reason_of,
    TrajectoryFormatError,
    TruncatedError,
)
from state_sensor_ros.simulators.monodrive.recording import (
    check_no_table,
    is_trajectory,
    JsonRecording,
)
from state_sensor_ros.simulators.monodrive.trajectory import read_payloads
from state_sensor_ros.simulators.recordings import compression_of, READ_DEFAULTS

# Frames per second of synthetic traffic unless a rate is given.
SYNTHETIC_RATE_HZ = 20.0
SENSOR_PORT = 8700
# Members of a closed-loop scenario, which no frame has.
SCENARIO_KEYS = {'vehicles', 'trigger_boxes', 'tagged_actors'}


def open_mock_server(options: argparse.Namespace) -> MonodriveServer:
    """
    Start a server.

    :param options: options of the command `simulate`.
    :raises StateSensorError: if the file or a port is not usable.
    """
    return MonodriveServer(_playback(options), MonodriveOptions(
        port=SENSOR_PORT if options.port is None else options.port,
        control_port=options.control_port or None, bind=options.bind, rate=options.rate,
        n_frames=options.frames, header_size=options.header, on_sample=options.on_sample,
        reply_magic=options.reply_magic, with_success=not options.no_success))


def read_trajectory(path: str) -> list[EmulatedFrame]:
    """
    Read a trajectory file.

    :param path: a file, - for standard input.
    :returns: its frames, not decoded.
    :raises TrajectoryFormatError: when there are none.
    """
    try:
        if path == '-':
            text = sys.stdin.buffer.read()
        else:
            with open(path, 'rb') as file:
                text = file.read()
    except OSError as error:
        raise TrajectoryFormatError(path, reason_of(error)) from error
    frames = _parsed(path, _plain(path, text).removeprefix(b'\xef\xbb\xbf'))
    if not frames:
        raise no_frames(path)
    if len(frames) == 1 and (scenario := SCENARIO_KEYS & set(frames[0].members or ())):
        found = ', '.join(sorted(scenario))
        raise TrajectoryFormatError(path, f'a closed-loop scenario ({found})',
                                    'an array of frames')
    return frames


def _plain(path: str, text: bytes) -> bytes:
    """Decompress the content of a file, up to a missing end; return other content as it is."""
    compression = compression_of(text[:4])
    if not compression:
        return text
    # Loaded for compressed files only.
    from state_sensor_ros.simulators.recordings import decompress
    plain, fault = decompress(text, compression, sys.maxsize - 1)
    if fault and not fault.endswith('cut'):
        raise TrajectoryFormatError(path, fault, 'undamaged compressed data')
    return plain


def read_recording(path: str, generation: str,
                   options: ReadOptions = READ_DEFAULTS) -> list[EmulatedFrame]:
    """
    Read a recording of any format.

    :param path: a trajectory, - for one on standard input, or a bag or a dataset.
    :param generation: to write frames of other simulators in.
    :param options: options of the reader of another format than a trajectory.
    :returns: its frames; those of a trajectory are not decoded.
    :raises TrajectoryFormatError: when there are none.
    """
    check_no_table(path)
    if is_trajectory(path):
        return read_trajectory(path)
    recording = JsonRecording(path, generation, options)
    try:
        frames = [EmulatedFrame(bytes(recorded.packet.payload)) for recorded in recording.frames()]
    finally:
        recording.close()
    if not frames:
        raise no_frames(path)
    if recording.lost:
        sys.stderr.write(one_line(f'warning: {path}: {generation} does not carry: '
                                  f'{", ".join(recording.lost)}') + '\n')
    return frames


def _parsed(path: str, text: bytes) -> list[EmulatedFrame]:
    """Split the text into frames; of a file that was cut, take the whole ones."""
    if not text.strip():
        raise TrajectoryFormatError(path, 'an empty file', 'a JSON array of frames')
    try:
        return parse_trajectory(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        complaint = str(error)
    try:
        for _ in read_payloads(io.BytesIO(text), path):
            pass
    except TruncatedError as cut:
        if cut.n_frames:
            sys.stderr.write(f'{one_line(f"warning: {cut.warning}")}\n')
            return _parsed(path, text[:cut.end] + b']')
    except TrajectoryFormatError:
        pass  # what is wrong is found again below, by this side's own reader
    return _read_lenient(path, text, complaint)


def _read_lenient(path: str, text: bytes, complaint: str) -> list[EmulatedFrame]:
    """Read text with NaN and Infinity, or raise an error with the line and column."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise TrajectoryFormatError(f'{path}: line {error.lineno} column {error.colno}',
                                    f'no JSON ({error.msg})', 'a JSON array of frames') from error
    except (ValueError, RecursionError) as error:
        raise TrajectoryFormatError(path, str(error), 'a JSON array of frames') from error
    if not isinstance(data, list):
        raise TrajectoryFormatError(path, complaint, 'a JSON array of frames')
    return frames_of(data)


def _playback(args: argparse.Namespace) -> FrameSource:
    if args.file is not None:
        return TrajectorySource(read_recording(args.file, args.generation,
                                               args.read_options), loop=args.loop)
    rate_hz = SYNTHETIC_RATE_HZ if isinstance(args.rate, str) else args.rate
    return synthetic_source(args.vehicles, args.objects, rate_hz, args.seed, args.generation,
                            n_cycle=args.cycle)
