# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""An ego that is not in new frames brakes, with each kind of input and each simulator."""

from itertools import count
import math

from commands_rig import (
    controls,
    driven,
    FAST,
    is_brake,
    pedals,
    Stack,
)
from rig import Remote, statuses
from scripted_simulator import frame

STALE_S = 0.5
# One command counts for the whole test: what brakes is not its time-out.
LONG = {'stale_after': STALE_S, 'control.timeout': 60.0, **FAST}
OLD, ABSENT = 'its last new frame is', 'it is not in the frames'


class Faults:
    """The payloads of a simulator, which a test spoils."""

    def __init__(self):
        self.kind, self._last = '', b''

    def spoiled(self, payload):
        """Return what is sent in place of a payload."""
        if self.kind == 'damaged':
            return payload[:-5] + b'\xff' * 5
        if self.kind == 'repeated':
            return self._last
        self._last = payload
        if self.kind == 'absent':
            return payload.replace(b'"ego"', b'"other"')
        if self.kind == 'dropped':
            return payload.replace(b'"position": [100.0', b'"position": ["far"')
        return payload


def brakes_and_says(stack, node, text, is_braking):
    """Wait for the brake, the status and the line of the log."""
    n_reports = len(stack.diagnostics)
    stack.listener.until(is_braking, what='the brake')
    # The first one: an ego that is long not seen to slow is an error, too.
    found = stack.listener.until(lambda: [
        each for each in statuses(stack.diagnostics[n_reports:], 'control')
        if text in each['message']], what=text)[0]
    assert (found['level'], found['state']) == (1, 'stale')
    line = (f'no new frame with the ego and its speed for {STALE_S:g} s (stale_after): '
            'the ego brakes')
    stack.listener.until(lambda: line in node.log, what='the line of the log')


def test_pedals_of_monodrive(domain, listener):
    faults = Faults()
    payloads = (faults.spoiled(frame(i / 20)) for i in count())
    with driven(domain, payloads=payloads, **LONG) as (peer, node):
        stack = Stack(listener).matched()
        stack.publish_until(pedals(throttle=0.5), lambda: controls(peer)
                            and not is_brake(controls(peer)[-1]))
        for kind, text in (('damaged', OLD), ('repeated', OLD), ('absent', ABSENT),
                           ('dropped', ABSENT)):
            faults.kind = kind
            brakes_and_says(stack, node, text, lambda: is_brake(controls(peer)[-1]))
            # Commands go on while the ego is not seen; the newest counts once it is.
            stack.publisher.publish(pedals(throttle=0.75))
            stack.publisher.publish(pedals(throttle=0.25))
            faults.kind = ''
            listener.until(lambda: controls(peer)[-1]['forward_amount'] == 0.25,
                           what=f'commands after {kind} frames')
        # Tags that leave it out; limits cannot change while it is driven.
        remote = Remote(listener)
        for name in ('control.max_speed', 'control.max_acceleration', 'control.timeout',
                     'stale_after'):
            refused = remote.set(name, 1.0)
            assert not refused.successful
            assert f'{name}: found a change while the node is configured' in refused.reason
        assert not remote.set('control.max_deceleration', math.nan).successful
        # The frames also stop where the test waits for a core.
        listener.until(lambda: controls(peer)[-1]['forward_amount'] == 0.25, what='commands')
        assert remote.set('undesired_tags', ['ego']).successful
        brakes_and_says(stack, node, ABSENT, lambda: is_brake(controls(peer)[-1]))
        assert remote.set('undesired_tags', ['nothing']).successful
        listener.until(lambda: controls(peer)[-1]['forward_amount'] == 0.25, what='commands')
        assert node.end()[0] == 0
        listener.until(lambda: is_brake(controls(peer)[-1]), what='the last brake')
