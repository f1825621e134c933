# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A server that sends the lines of a ball that rolls along the x axis, to one client."""

from contextlib import suppress
import socket
import threading

PERIOD_S = 0.05


class ToyServer:
    """It serves in a thread until it is closed."""

    def __init__(self, port=0, speed=1.0, n_frames=1_000_000):
        self.speed, self.n_frames = speed, n_frames
        self.server = socket.create_server(('127.0.0.1', port))
        self.port = self.server.getsockname()[1]
        self.thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self):
        with suppress(OSError):
            client, _ = self.server.accept()
            with client:
                client.settimeout(PERIOD_S)
                self._send(client)

    def _send(self, client):
        x, speed, received = 0.0, self.speed, b''
        for i in range(self.n_frames):
            if self.server.fileno() < 0:
                return
            client.sendall(b'%f %f 2\n' % (i * PERIOD_S, x))
            x += speed * PERIOD_S
            try:
                chunk = client.recv(4096)
            except TimeoutError:
                continue
            if not chunk:
                return
            *commands, received = (received + chunk).split(b'\n')
            for command in commands:
                throttle, brake = map(float, command.split())
                speed = max(speed + throttle - 2 * brake, 0.0)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        with suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join()
