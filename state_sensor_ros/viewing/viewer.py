# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The process of the viewer and its page, which listen on this machine only.

The page that the viewer serves reports its use and loads from other machines, and has no option
to prevent it: it is passed on with a header by which browsers refuse that.
"""

from __future__ import annotations

from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import threading
import time
from urllib.error import HTTPError
from urllib.request import build_opener, ProxyHandler

import rerun as rr
import rerun_cli  # type: ignore[import-untyped]

from state_sensor_ros.connections.connection import free_port, is_listening
from state_sensor_ros.errors import TransportError
from state_sensor_ros.texts import one_line

DEFAULT_PORT = 9876
_HOST = '127.0.0.1'
# The viewer starts in a second or two; a busy machine takes longer. Without a display, the program
# of the window listens for a moment before it ends.
_START_S, _SETTLED_S, _POLL_S, _STOP_S, _REPLY_S = 30.0, 0.5, 0.05, 1.0, 10.0
_POLICY = ("default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
           "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob: http://{}:{}")


class Viewer:
    """A viewer: its window, or the server of its page."""

    # port: port on which it receives data; None for a free one (page) or DEFAULT_PORT.

    def __init__(self, port: int | None, *, is_page: bool) -> None:
        self._port = port or (free_port(_HOST) if is_page else DEFAULT_PORT)
        self._page_port = free_port(_HOST) if is_page else 0
        self._server: ThreadingHTTPServer | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        page = ['--serve-web', '--web-viewer-port', str(self._page_port)] if is_page else []
        program = Path(rerun_cli.__file__).with_name(
            'rerun.exe' if sys.platform == 'win32' else 'rerun')
        # Not by rr.spawn, which has no address to listen on. A recording that is served is kept
        # in memory as a whole. The window stays open after this process has ended.
        self._process = subprocess.Popen(
            [str(program), '--bind', _HOST, '--port', str(self._port), '--hide-welcome-screen',
             '--server-memory-limit', '50%', *page],
            # The viewer sends usage reports unless CI is set; RUST_LOG is its log level.
            env={**os.environ, 'CI': '1', 'RUST_LOG': 'error', 'NO_COLOR': '1',
                 'RERUN_APP_ONLY': 'true'},
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            # A signal from the terminal is handled by the command.
            start_new_session=True)

    @property
    def is_over(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def connect(self, stream: rr.RecordingStream) -> None:
        end_s = time.monotonic() + _START_S
        # If another viewer has this port, the new process ends without an error.
        while not is_listening(_HOST, self._port):
            if self.is_over or time.monotonic() > end_s:
                raise self._failure()
            time.sleep(_POLL_S)
        try:
            _connect(stream, self._port)
        finally:
            with suppress(subprocess.TimeoutExpired):
                if self._process.wait(_SETTLED_S):
                    raise self._failure()

    def _failure(self) -> TransportError:
        self._log.seek(0)
        lines = self._log.read().decode(errors='replace').strip().splitlines()
        reason = one_line(lines[-1].removeprefix('Error: ')).rstrip('.') if lines else \
            f'exit code {self._process.poll()}'
        return TransportError('viewer', f'cannot start: {reason}; without a display, use --web '
                              'for a browser or --save OUT.rrd for a file')

    def serve_page(self) -> str:
        """Serve the page to browsers of this machine; return its URL."""
        page, policy = f'http://{_HOST}:{self._page_port}', _POLICY.format(_HOST, self._port)
        opener = build_opener(ProxyHandler({}))

        class Handler(BaseHTTPRequestHandler):
            """Replies with a file of the page, and the policy."""

            def do_GET(self) -> None:
                try:
                    with opener.open(page + self.path, timeout=_REPLY_S) as reply:
                        kind, content = reply.headers['Content-Type'], reply.read()
                except (OSError, ValueError) as error:
                    self.send_error(error.code if isinstance(error, HTTPError) else 502)
                    return
                self.send_response(200)
                self.send_header('Content-Type', kind)
                self.send_header('Content-Security-Policy', policy)
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer((_HOST, 0), Handler)
        threading.Thread(target=self._server.serve_forever, name='page', daemon=True).start()
        return (f'http://{_HOST}:{self._server.server_port}/?url=rerun%2Bhttp%3A%2F%2F'
                f'{_HOST}%3A{self._port}%2Fproxy')

    def wait(self) -> None:
        """Wait until the viewer has ended."""
        if self._process.wait():
            raise self._failure()

    def stop(self) -> None:
        """End the viewer, and the server of its page."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


def connect_to_open(stream: rr.RecordingStream, port: int) -> None:
    """Connect a stream to a viewer that is already open."""
    if not is_listening(_HOST, port):
        raise TransportError(f'{_HOST}:{port}', 'no viewer is open; without --no-spawn the '
                             'command opens one')
    _connect(stream, port)


def _connect(stream: rr.RecordingStream, port: int) -> None:
    stream.connect_grpc(f'rerun+http://{_HOST}:{port}/proxy')
    try:
        # A flush of nothing succeeds; the first may, before the other program ends the connection.
        for _ in range(2):
            stream.log('world', rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True, strict=True)
            stream.flush(timeout_sec=_REPLY_S)
    except RuntimeError as error:
        raise TransportError(f'{_HOST}:{port}', 'the program on this port is not a viewer; choose '
                             'another --viewer-port') from error
