# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Feeds bytes to a framer, as a connection does."""


def fed(framer, data, cut=lambda n_bytes: n_bytes):
    """Return the packets of data in pieces of ``cut(room in the buffer)`` bytes, at least one."""
    packets = []
    while data:
        room = framer.buffer()
        assert len(room)
        n_bytes = min(max(cut(len(room)), 1), len(room), len(data))
        room[:n_bytes] = data[:n_bytes]
        data = data[n_bytes:]
        packet = framer.advance(n_bytes)
        if packet is not None:
            packets.append(packet)
    return packets
