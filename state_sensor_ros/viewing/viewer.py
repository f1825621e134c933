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

The page that the viewer serves reports its use, looks for newer versions and loads fonts from
other machines, and has no option to prevent it. The server here forwards the page with a content
security policy that makes the browser refuse all of that.
"""

from __future__ import annotations

from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import rerun as rr
import rerun_cli  # type: ignore[import-untyped]

from state_sensor_ros.connections.connection import free_port, is_listening
from state_sensor_ros.errors import TransportError
from state_sensor_ros.texts import one_line

DEFAULT_PORT = 9876
_HOST = '127.0.0.1'
# The viewer starts in a second or two; a busy machine takes longer.
_START_S, _SETTLED_S, _POLL_S = 30.0, 0.5, 0.05
_STOP_S, _REPLY_S = 1.0, 10.0
# Program of Linux: runs another one that gets a signal when its parent ends.
_SETPRIV = 'setpriv'
# A recording that is served is kept in memory as a whole.
_SERVER_MEMORY = '50%'
_POLICY = ("default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
           "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob: {data}")
_TIMEOUT_S = 10.0
# Place in the source code of a library in an error text.
_SOURCE_PLACE = re.compile(r'[\w ]*: os error at \S+: ')


class Viewer:
    """A viewer: its window, or the server of its page."""

    # port: port on which it receives data; None for a free one (page) or DEFAULT_PORT.

    def __init__(self, port: int | None, *, is_page: bool) -> None:
        self._port = port or (free_port(_HOST) if is_page else DEFAULT_PORT)
        self._page_port = free_port(_HOST) if is_page else 0
        self._page: PageServer | None = None
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        page = ['--serve-web', '--web-viewer-port', str(self._page_port)] if is_page else []
        # The window stays open after this process has ended. The server of a page ends with this
        # process, even if that is killed.
        tied = [_SETPRIV, '--pdeathsig', 'TERM'] if is_page and shutil.which(_SETPRIV) else []
        self._process = subprocess.Popen(
            [*tied, str(_executable()), '--bind', _HOST, '--port', str(self._port),
             '--hide-welcome-screen', '--server-memory-limit', _SERVER_MEMORY, *page],
            env=_environment(), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
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
            if self._process.poll() is not None or time.monotonic() > end_s:
                raise self._failure()
            time.sleep(_POLL_S)
        try:
            _connect(stream, self._port)
        finally:
            # Without a display, the program of the window listens for a moment before it ends.
            with suppress(subprocess.TimeoutExpired):
                if self._process.wait(_SETTLED_S):
                    raise self._failure()

    def _failure(self) -> TransportError:
        self._log.seek(0)
        lines = self._log.read().decode(errors='replace').strip().splitlines()
        reason = one_line(lines[-1].removeprefix('Error: ')) if lines else \
            f'exit code {self._process.poll()}'
        reason = _SOURCE_PLACE.sub('', reason).rstrip('.')
        return TransportError('viewer', f'cannot start: {reason}; without a display, use --web '
                              'for a browser or --save OUT.rrd for a file')

    def serve_page(self) -> str:
        """Serve the page to browsers of this machine; return its URL."""
        self._page = PageServer(_HOST, self._page_port, self._port)
        return self._page.address

    def wait(self) -> None:
        """Wait until the viewer has ended."""
        if self._process.wait():
            raise self._failure()

    def stop(self) -> None:
        """End the viewer, and the server of its page."""
        if self._page is not None:
            self._page.close()
        with suppress(ProcessLookupError):
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


def _environment() -> dict[str, str]:
    # The viewer sends usage reports unless CI is set; RUST_LOG is its log level.
    return {**os.environ, 'CI': '1', 'RUST_LOG': 'error', 'NO_COLOR': '1',
            'RERUN_APP_ONLY': 'true'}


def _executable() -> Path:
    """Return the path of the viewer's program, which its library contains."""
    folder = Path(rerun_cli.__file__).parent
    return folder / ('rerun.exe' if sys.platform == 'win32' else 'rerun')


class PageServer:
    """Serves the page until it is closed."""

    def __init__(self, host: str, page_port: int, data_port: int) -> None:
        policy = _POLICY.format(data=f'http://{host}:{data_port}')

        class Handler(BaseHTTPRequestHandler):
            """Forwards one request."""

            timeout = _TIMEOUT_S

            def do_GET(self) -> None:
                """Reply with the page, or a file of it, and the policy."""
                if _is_own(self):
                    _pass_on(self, (host, page_port), policy)

            def do_HEAD(self) -> None:
                """Reply as to GET, without the body."""
                self.do_GET()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = _Server((host, 0), Handler)
        self.address = (f'http://{host}:{self._server.server_port}/?url=rerun%2Bhttp%3A%2F%2F'
                        f'{host}%3A{data_port}%2Fproxy')
        threading.Thread(target=self._server.serve_forever, name='page', daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Serves each request in a thread that does not keep the program running."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a connection that the browser has closed, or left open without a request."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            raise error


def _is_own(handler: BaseHTTPRequestHandler) -> bool:
    """
    Return whether a request is for this server; reply with an error otherwise.

    A name of another site that resolves to this machine would let that site read the page.
    """
    address, port = handler.connection.getsockname()[:2]
    hosts = (f'{address}:{port}', f'localhost:{port}')
    if handler.headers.get_all('Host', []) not in ([hosts[0]], [hosts[1]]):
        handler.send_error(403, f'The host of the page is {hosts[0]}')
    elif not (handler.path.startswith('/') and handler.path.isascii()
              and handler.path.isprintable()):
        handler.send_error(400, 'The path is not valid')
    else:
        return True
    return False


def _pass_on(handler: BaseHTTPRequestHandler, source: tuple[str, int], policy: str) -> None:
    """Reply to a request with the reply of the viewer, to which no proxy is asked."""
    viewer = HTTPConnection(*source, timeout=_TIMEOUT_S)
    try:
        viewer.request('GET', handler.path)
        reply = viewer.getresponse()
    except (OSError, HTTPException, ValueError):
        handler.send_error(502)
    else:
        handler.send_response(reply.status)
        handler.send_header('Content-Type', reply.headers.get('Content-Type', 'text/plain'))
        handler.send_header('Content-Security-Policy', policy)
        handler.end_headers()
        if handler.command != 'HEAD':
            shutil.copyfileobj(reply, handler.wfile)
    finally:
        viewer.close()
