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

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import shutil
import threading
from urllib.error import URLError
from urllib.request import urlopen

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
        source = f'http://{host}:{page_port}'
        policy = _POLICY.format(data=f'http://{host}:{data_port}')

        class Handler(BaseHTTPRequestHandler):
            """Forwards one request."""

            def do_GET(self) -> None:
                """Reply with the page, or a file of it, and the policy."""
                _pass_on(self, source, policy)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer((host, 0), Handler)
        # A thread that serves a closed page must not keep the program running.
        self._server.daemon_threads = True
        self.address = (f'http://{host}:{self._server.server_port}/?url=rerun%2Bhttp%3A%2F%2F'
                        f'{host}%3A{data_port}%2Fproxy')
        threading.Thread(target=self._server.serve_forever, name='page', daemon=True).start()

    def close(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


def _pass_on(handler: BaseHTTPRequestHandler, source: str, policy: str) -> None:
    """
    Reply to a request with the reply of the viewer.

    :param handler: handler of the request.
    :param source: URL of the viewer's page.
    :param policy: content security policy.
    """
    try:
        with urlopen(f'{source}{handler.path}', timeout=_TIMEOUT_S) as reply:
            handler.send_response(reply.status)
            handler.send_header('Content-Type', reply.headers['Content-Type'])
            handler.send_header('Content-Security-Policy', policy)
            handler.end_headers()
            shutil.copyfileobj(reply, handler.wfile)
    except ConnectionError:
        # The browser has closed the connection.
        return
    except (URLError, ValueError, TimeoutError):
        handler.send_error(502)
