# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Text in place of a packet's length: the port is that of a server of another kind."""

from __future__ import annotations

from state_sensor_ros.errors import FramingError


def bad_length(where: str, data: bytes, found: str, expected: str) -> FramingError:
    """
    Return the error about an impossible length; it names the kind of server if data is text.

    :param where: ``host:port``.
    :param data: first bytes of the packet.
    :param found: description of the length.
    :param expected: allowed lengths.
    """
    text = data.decode('ascii', errors='replace').partition('\r')[0].partition('\n')[0]
    if len(text) < 4 or not (text.isascii() and text.isprintable()):
        return FramingError(where, found, expected)
    kind = 'a web server' if text.startswith(('HTTP/', '<htm', '<!DO')) else 'another server'
    return FramingError(where, f'text ({text!r}), as {kind} sends it', 'the packets of a '
                        'simulator: check that host and port are those of its sensor')
