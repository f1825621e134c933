# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
# flake8: noqa: I100
"""
`state_sensor record`: the live stream to a trajectory file, each frame with the bytes received.

The stream of another simulator becomes a recording of its own form: of CARLA, a dataset. A thread
receives and writes; the main thread completes the file between two packets.
"""

from __future__ import annotations

import argparse
import math
import threading
import time

from state_sensor_ros.commands.frame_recorder import FrameRecorder
from state_sensor_ros.commands.interruption import Interruption
from state_sensor_ros.commands.live import (
    add_live_arguments,
    check_options_of_others,
    LiveStream,
)
from state_sensor_ros.commands.options import add_quiet, check_output_name
from state_sensor_ros.commands.printing import print_line
from state_sensor_ros.commands.progress import tqdm
from state_sensor_ros.commands.recorder import Recorder
from state_sensor_ros.commands.summary import show_result, size_of
from state_sensor_ros.commands.trajectory_recorder import TrajectoryRecorder
from state_sensor_ros.commands.waiting import waiting_named
from state_sensor_ros.errors import ConfigError, counted, failed_stream
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.simulators.simulator_list import default_simulator, find_simulator

_EPILOG = (
    'Recording ends with --frames, --seconds or Ctrl-C; where the simulator closes the connection '
    'or is restarted, the recorder connects again (see --once). OUT is created at the end; until '
    'then, and after a crash, the frames received are beside it in .OUT.part.')
_REFRESH_S = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """
    Add the options.

    :param parser: of this sub-command.
    """
    parser.epilog = _EPILOG
    parser.add_argument('out', metavar='OUT', help='trajectory to write, - for standard output; '
                        'of another simulator, a recording in its own format')
    add_live_arguments(parser)
    parser.add_argument('--once', action='store_true',
                        help='end when the simulator closes the connection')
    parser.add_argument('--desired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='keep only actors with one of these tags')
    parser.add_argument('--undesired-tags', nargs='+', action='extend', default=[], metavar='TAG',
                        help='leave out actors with one of these tags')
    parser.add_argument('--force', action='store_true', help='overwrite OUT')
    add_quiet(parser)


def run(args: argparse.Namespace, interruption: Interruption) -> None:
    """
    Record until the end set by the options, or a signal; the frames received are kept.

    :param args: the parsed options.
    :param interruption: of the program.
    :raises SinkError: where OUT exists or cannot be written.
    :raises TransportError: where no frame was received.
    :raises KeyboardInterrupt: where a signal came before the end set by the options.
    """
    recorder = _recorder(args, interruption)
    interruption.stopped_by(recorder.stop, recorder.remains)
    # A daemon: the look-up of a host's name cannot be interrupted.
    threading.Thread(target=recorder.run, name='record', daemon=True).start()
    with waiting_named(recorder.where, lambda: recorder.n_frames > 0,
                       lambda: recorder.health.last_error, is_quiet=args.quiet):
        _watch(recorder, args)
    _warn(recorder, args.out)
    recorder.save(interruption)
    _conclude(recorder, args, interruption)


def _recorder(args: argparse.Namespace, interruption: Interruption) -> Recorder:
    check_output_name(args.out)
    simulator = find_simulator(args.source)
    if simulator is not default_simulator():
        if args.desired_tags or args.undesired_tags:
            raise ConfigError('--desired-tags', 'tags', f'none with --source {args.source}: a '
                              'recording of it has every actor')
        stream = LiveStream(args, ends=args.once)
        writer = interruption.made(
            lambda: simulator.new_writer(args.out, stream.settings, force=args.force))
        return FrameRecorder(args, stream, writer)
    check_options_of_others(args)
    file = interruption.made(lambda: WholeFile(args.out, force=args.force))
    for part in file.left_behind:
        print_line(f'warning: {args.out}: found {part}, left by a program that was killed; '
                   '`state_sensor repair` makes a recording of it')
    return TrajectoryRecorder(args, file)


def _watch(recorder: Recorder, args: argparse.Namespace) -> None:
    """Wait for the end of the recording, and show its progress."""
    end_s = math.inf if args.seconds is None else time.monotonic() + args.seconds
    with tqdm(total=args.frames, unit='frame', disable=args.quiet or None, leave=False) as bar:
        period_s = threading.TIMEOUT_MAX if bar.disable else _REFRESH_S
        while not recorder.over.wait(min(max(end_s - time.monotonic(), 0.0), period_s)):
            if time.monotonic() >= end_s:
                recorder.is_complete = True
                return
            bar.update(recorder.n_frames - bar.n)
            bar.set_postfix_str(_state(recorder))


def _state(recorder: Recorder) -> str:
    health = recorder.health
    if health.state == 'connected':
        return tqdm.format_sizeof(recorder.n_bytes, 'B')
    return f'{health.state}: {health.last_error}' if health.last_error else health.state


def _warn(recorder: Recorder, out: str) -> None:
    """Print what may be missing in the recording."""
    if recorder.n_skipped:
        n_skipped = counted(recorder.n_skipped, 'payload')
        print_line(f'warning: {out}: left out {n_skipped} without a frame; the last: '
                   f'{recorder.last_skipped}')
    for note in recorder.notes:
        print_line(f'warning: {out}: {note}')
    if recorder.health.n_reconnects:
        print_line(f'warning: {out}: the stream was interrupted '
                   f'{counted(recorder.health.n_reconnects, "time")}')


def _conclude(recorder: Recorder, args: argparse.Namespace,
              interruption: Interruption) -> None:
    """
    Print the result.

    :raises TransportError: where there is no frame, and no signal has ended the recording.
    :raises KeyboardInterrupt: where a signal came before the end set by the options.
    """
    last_error = recorder.health.last_error
    has_end = args.once or (args.frames, args.seconds) != (None, None)
    if interruption.number and has_end and not recorder.is_complete:
        raise KeyboardInterrupt
    if recorder.n_frames:
        show_result(args.out, [*recorder.summary.facts, *size_of(args.out)], is_quiet=args.quiet)
    elif interruption.number:
        print_line(f'{args.out}: no frame was received, nothing was written')
    else:
        raise failed_stream(recorder.where, last_error, 'no frame', 'a stream of them')
