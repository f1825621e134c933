# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The server of the page against proxies, other sites and clients that are not browsers."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import socket
import struct
import threading

from budgets import AWAIT_S
import pytest


class Page(BaseHTTPRequestHandler):
    """The page of a viewer, which has one file."""

    def do_GET(self):
        self.send_response(200 if self.path in ('/', '/a.js?b=%20') else 404)
        self.send_header('Content-Type', 'text/html')
        self.end_headers()
        self.wfile.write(b'the page')

    def log_message(self, *_):
        pass


@pytest.fixture
def port(monkeypatch):
    for name in ('http_proxy', 'HTTP_PROXY', 'ALL_PROXY', 'all_proxy'):
        # Nothing listens there.
        monkeypatch.setenv(name, 'http://127.0.0.1:9')
    monkeypatch.delenv('no_proxy', raising=False)
    monkeypatch.delenv('NO_PROXY', raising=False)
    with ThreadingHTTPServer(('127.0.0.1', 0), Page) as viewer:
        threading.Thread(target=viewer.serve_forever, daemon=True).start()
        # Not at the top: it loads the library of the viewer, 1 s of each worker.
        from state_sensor_ros.viewing.viewer import PageServer
        page = PageServer('127.0.0.1', viewer.server_port, 5)
        yield int(page.address.split(':')[2].partition('/')[0])
        page.close()
        viewer.shutdown()


def reply_to(port, request):
    with socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
        client.sendall(request)
        data = b''
        while part := client.recv(65536):
            data += part
    head, _, body = data.partition(b'\r\n\r\n')
    return head, body


def test_page_is_for_browsers_of_this_machine(port, capfd):
    own = f'\r\nHost: 127.0.0.1:{port}\r\n\r\n'.encode()
    for request, status, text in (
            (b'GET / HTTP/1.1' + own, b'200', b'the page'),
            (b'GET /a.js?b=%20 HTTP/1.1' + own.replace(b'127.0.0.1', b'localhost'), b'200',
             b'the page'),
            (b'HEAD / HTTP/1.1' + own, b'200', b''),
            (b'GET /none HTTP/1.1' + own, b'404', b'the page'),
            (b'POST / HTTP/1.1' + own, b'501', b'Unsupported'),
            (b'GET .evil.example/ HTTP/1.1' + own, b'400', b'path'),
            (b'GET @127.0.0.1:1/ HTTP/1.1' + own, b'400', b'path'),
            (b'GET /\x01\x7f HTTP/1.1' + own, b'400', b'path'),
            (b'GET /\xe4 HTTP/1.1' + own, b'400', b'path'),
            (b'GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n', b'403', b'host'),
            (b'GET / HTTP/1.1\r\nHost: evil.example' + own, b'403', b'host'),
            (b'GET / HTTP/1.1\r\n\r\n', b'403', b'host'),
            (b'GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n', b'403', b'host')):
        head, body = reply_to(port, request)
        assert (request, head.split(b' ')[1]) == (request, status)
        assert text in body
        assert (b"connect-src 'self'" in head) == (status in (b'200', b'404'))
        assert request[:4] != b'HEAD' or not body
    # As a client of TLS, and as none of HTTP at all.
    assert b'400' in reply_to(port, b'\x16\x03\x01\n')[0]
    # A client that resets its connection.
    with socket.create_connection(('127.0.0.1', port), AWAIT_S) as client:
        client.sendall(b'GET /')
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    assert reply_to(port, b'GET / HTTP/1.1' + own)[1] == b'the page'
    assert capfd.readouterr().err == ''
