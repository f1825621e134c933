# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Payloads of monoDrive decoded, and frames encoded, in one call."""

import json

from paths import GOOD

from state_sensor_ros.simulators.monodrive.encoding import encode
from state_sensor_ros.simulators.monodrive.frames import Decoder, NO_HEAD

SAMPLES = ['minimal_v0', 'minimal_v1', 'minimal_v1t', 'minimal_v2', 'sample_v1', 'sample_v2']


def sample(name):
    return json.loads((GOOD / f'{name}.json').read_bytes())


def with_faults(payload, head=NO_HEAD, decoder=None, **options):
    """Return the frames of a payload, text or a value, and their faults."""
    decoder = decoder or Decoder(**options)
    text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    frames = list(decoder.frames(text, head))
    for frame in frames:
        # They are decoded now.
        assert frame.wheels is None or len(frame.wheels) >= 0
    return frames, decoder.faults.take()


def frame_of(payload, *args, **options):
    """Return the frame of a payload without faults."""
    [frame], faults = with_faults(payload, *args, **options)
    assert faults == ()
    return frame


def written(frame, *args):
    return json.loads(encode(frame, *args))
