# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
The page of the viewer, which may connect to this machine only.

The page that the viewer serves reports its use, looks for newer versions and loads fonts from
other machines, and has no option to prevent it. This server forwards the page with a content
security policy that makes the browser refuse all of that.
"""

from __future__ import annotations

from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import shutil
import sys
import threading

_POLICY = ("default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; "
           "style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob: {data}")
_TIMEOUT_S = 10.0


class PageServer:
    """
    Serves the page until it is closed.

    :param host: address of this machine.
    :param page_port: port on which the viewer serves its page.
    :param data_port: port from which the page reads its data.
    :ivar address: URL of the page.
    """

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
        """End the server."""
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

    :param handler: handler of the request.
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
    """
    Reply to a request with the reply of the viewer, to which no proxy is asked.

    :param handler: handler of the request.
    :param source: host and port of the viewer's page.
    :param policy: content security policy.
    """
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
