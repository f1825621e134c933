# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""JSON text as the stand-ins send and write it."""

from __future__ import annotations

import json

import msgspec


def encode_json(value: object) -> bytes:
    """
    Encode compact JSON; not-a-number becomes `null`, as in the simulator's C++ library.

    :param value: plain JSON data.
    :returns: UTF-8 text.
    """
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError, msgspec.MsgspecError):
        # msgspec refuses integers beyond 64 bits and lone surrogates, which JSON allows.
        return json.dumps(value, separators=(',', ':')).encode('ascii')
