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
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
import os
from pathlib import Path
import sys
import time
from typing import TYPE_CHECKING, TypeAlias

from state_sensor_ros import texts
from state_sensor_ros.commands import options, reading, terminal
from state_sensor_ros.errors import reason_of, SinkError, TransportError
from state_sensor_ros.files import output, output_format, STANDARD_INPUT, VIEW
from state_sensor_ros.files.recording import RecordingReader
from state_sensor_ros.frame import LaneChangeFinder
from state_sensor_ros.library.stream import FrameLoop
from state_sensor_ros.settings import Settings
from state_sensor_ros.simulators import find_simulator, opening

if TYPE_CHECKING:
    import rerun as rr

_EPILOG = """Without IN, the viewer shows a live stream until --frames, --seconds or Ctrl-C.

examples:
  state_sensor view drive.json
  state_sensor view --web
  state_sensor view drive_bag --save drive.rrd --start 10 --end 20"""
_DEFAULT_PORT = 9876
# A viewer that was closed during a live stream is detected within this time.
_LIVE_FLUSH_S, _FLUSH_LIMIT_S = 1.0, 60.0
_PROBE = bytes(4096)
# Sends all frames; its argument is called after each group of them.
_Send: TypeAlias = Callable[[Callable[[], None]], terminal.Summary]


def add_view(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments to ``parser``."""
    parser.epilog = _EPILOG
    options.add_input(parser, 'input', metavar='IN', nargs='?')
    target = parser.add_mutually_exclusive_group()
    target.add_argument('--web', action='store_true',
                        help='serve the viewer to a browser on this machine')
    target.add_argument('--save', metavar='OUT',
                        help='write NAME.rrd, which `rerun NAME.rrd` opens')
    target.add_argument('--no-spawn', action='store_true',
                        help='use a viewer that is already open')
    parser.add_argument('--viewer-port', type=options.port, metavar='N', help='port of the '
                        f'viewer (default: {_DEFAULT_PORT}; --web: a free one)')
    options.add(parser, 'output')
    parser.add_argument('--names', action=argparse.BooleanOptionalAction, default=False,
                        help='show all names (default: only under the pointer)')
    parser.add_argument('--map', default='', metavar='FILE',
                        help='map to draw, .xodr or .net.xml (default: that of IN)')
    options.add(parser, 'bag', 'stream', 'selection')


def run_view(args: argparse.Namespace) -> None:
    """Show the frames in a window, on a page or in a viewer that is open, or write a file."""
    if args.save is not None:
        output_format(args.save, command=VIEW)
    # The command reports the errors itself.
    os.environ.setdefault('RUST_LOG', 'off')
    import rerun as rr
    # Otherwise the library prints a warning instead of raising an error.
    rr.set_strict_mode(True)
    stream = rr.RecordingStream('state_sensor')
    settings, reader = reading.open_frames(args, args.input)
    with closing(FrameLoop(reader, selection=options.selection_of(args))) as recording:
        title = texts.one_line(recording.name if args.input in (None, STANDARD_INPUT)
                               else Path(args.input).resolve().name)
        stream.send_recording_name(title)
        send = partial(_send, args, settings, reader, recording, stream)
        if args.save is None:
            _in_viewer(args, stream, title, send)
        else:
            _to_file(args, stream, send)


def _in_viewer(args: argparse.Namespace, stream: rr.RecordingStream, title: str,
               send: _Send) -> None:
    """Show the frames in a viewer: one that is open, a new window, or a page."""
    from state_sensor_ros.viewing import viewer
    if args.no_spawn:
        viewer.connect_to_open(stream, args.viewer_port or _DEFAULT_PORT)
        _show(args, stream, title, send, lambda: False)
        return
    opened = viewer.Viewer(args.viewer_port, is_page=args.web)
    try:
        opened.connect(stream)
        if args.web:
            terminal.print_output(f'the page of the viewer: {opened.serve_page()}')
        is_complete = _show(args, stream, title, send, lambda: opened.is_over)
        if args.web and is_complete:
            # The page gets the frames from this process.
            with suppress(KeyboardInterrupt):
                opened.wait()
    finally:
        if args.web:
            opened.stop()


class _ViewerClosedError(Exception):
    """The viewer was closed while frames were sent to it."""


def _show(args: argparse.Namespace, stream: rr.RecordingStream, title: str, send: _Send,
          is_closed: Callable[[], bool]) -> bool:
    """Send the frames to a viewer; return whether it stayed open until the last one."""
    last_s = time.monotonic()

    def flush(*, is_last: bool = False) -> None:
        nonlocal last_s
        if args.input is None and not is_last and time.monotonic() < last_s + _LIVE_FLUSH_S:
            return
        last_s = time.monotonic()
        try:
            stream.flush(timeout_sec=_FLUSH_LIMIT_S)
        except RuntimeError as error:
            if is_closed() or 'severed' in str(error):
                raise _ViewerClosedError from error
            raise TransportError('viewer', str(error), 'one that takes the frames') from error

    try:
        summary = send(flush)
        flush(is_last=True)
    except _ViewerClosedError:
        terminal.print_line('the viewer was closed')
        return False
    terminal.show_result(title, [*summary.facts, 'in the viewer'], is_quiet=args.quiet)
    return True


def _to_file(args: argparse.Namespace, stream: rr.RecordingStream, send: _Send) -> None:
    """Write the frames to a file, which appears when it is complete."""
    with output.WholeFile(args.save, force=args.force) as file:
        part = file.part
        if part is None:
            raise SinkError(args.save, 'a pipe or a device', 'the name of a file')
        # The library takes text in UTF-8 only.
        is_text = args.save.isprintable() or sys.platform == 'win32'
        try:
            stream.save(part if is_text else f'/dev/fd/{file.handle.fileno()}')
            summary = send(lambda: stream.flush(timeout_sec=_FLUSH_LIMIT_S))
            stream.disconnect()
        except RuntimeError as error:
            raise _failed_write(args.save, part, error) from error
    terminal.show_result(args.save, [*summary.facts, *terminal.size_of(args.save)],
                         is_quiet=args.quiet)


def _failed_write(name: str, part: Path, error: RuntimeError) -> SinkError:
    """Return the error for a file that the library could not write."""
    try:
        # The library does not pass on the reason of the operating system.
        with part.open('ab', buffering=0) as file:
            file.write(_PROBE)
    except OSError as reason:
        return SinkError(name, reason_of(reason))
    return SinkError(name, str(error), 'a file that can be written')


def _send(args: argparse.Namespace, settings: Settings, reader: RecordingReader,
          recording: FrameLoop, stream: rr.RecordingStream,
          flush: Callable[[], None]) -> terminal.Summary:
    """Send all frames; ``flush`` is called after each group of them."""
    from state_sensor_ros.viewing import scene
    is_live, faults, summary = args.input is None, recording.faults, terminal.Summary()
    log = scene.FrameLog(
        stream, ego_tag=settings.ego_tag, names=args.names, is_live=is_live,
        map_lines=opening.read_map(args.map) if args.map else ())
    images_of = find_simulator(reader.simulator).sensor_reader(
        settings, lambda kind, text: log.note(text), None if is_live else reader)
    finder, n_faults = LaneChangeFinder(), 0
    try:
        for frame in reading.read_frames(recording, 'view', is_quiet=args.quiet):
            summary.add(frame)
            log.add(frame, () if images_of is None else images_of(frame))
            for fault in faults[n_faults:]:
                log.note(str(fault))
            n_faults = len(faults)
            for row, last, lane, direction in finder.changes(frame):
                log.note(f'{frame.names[row]} changes to the {direction}, from lane {last} to '
                         f'{lane}', scene.INFO)
            # A viewer that is slower than the recording does not fill the memory.
            if is_live or summary.n_frames % 64 == 0:
                flush()
    except KeyboardInterrupt:
        # The ordinary end.
        if not summary.n_frames:
            raise
    for fault in faults[n_faults:]:
        log.note(str(fault))
    if not is_live:
        recording.reader.check(summary.n_frames)
    flush()
    return summary
