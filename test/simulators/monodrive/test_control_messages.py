# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Messages of the control port, against bytes written by hand."""

import json
import struct

from hypothesis import given, strategies
import pytest

from state_sensor_ros.errors import RefusalError, TransportError
from state_sensor_ros.simulators.monodrive.wire import (
    encode_request,
    MAX_REFERENCE,
    Missing,
    OLD_REPLY_MAGIC,
    parse_reply,
    REQUEST_MAGIC,
)

ENVELOPE = {'type': 'GetVersion', 'reference': 7, 'message': 'complete', 'success': True}


def reply_bytes(body, magic=REQUEST_MAGIC, extra=8):
    if isinstance(body, dict):
        body = json.dumps(body).encode()
    return struct.pack('>II', magic, len(body) + extra) + body


def read(data, size=None):
    """Pass ``data`` in parts of ``size``; return the reply, or what is missing."""
    end = 0
    while isinstance(reply := parse_reply(data[:end], 'peer'), Missing) and end < len(data):
        end += min(reply.n_bytes, size or reply.n_bytes)
    return reply


@pytest.mark.parametrize('reference', [1, 2 ** 53 + 1, MAX_REFERENCE])
def test_control_reference_keeps_all_64_bits(reference):
    assert json.loads(encode_request('X', None, reference)[8:])['reference'] == reference
    assert read(reply_bytes(ENVELOPE | {'reference': reference})).reference == reference


@pytest.mark.parametrize('magic', [REQUEST_MAGIC, OLD_REPLY_MAGIC])
@pytest.mark.parametrize('extra', [8, 0], ids=['with header', 'without header'])
def test_control_reply_has_either_magic_and_length_in_any_parts(magic, extra):
    for size in (None, 1, 3, 7):
        reply = read(reply_bytes(ENVELOPE, magic, extra), size)
        assert (reply.reference, reply.message, reply.success) == (7, 'complete', True)


def test_control_reply_length_may_cut_a_character():
    body = ENVELOPE | {'message': 'é' * 20}
    data = json.dumps(body, ensure_ascii=False).encode()[:-1] + b'   }'
    assert read(reply_bytes(data, extra=0)).message == 'é' * 20


@pytest.mark.parametrize('reference', ['7', True, 7.5, []])
def test_control_reference_of_another_kind_is_an_error(reference):
    with pytest.raises(TransportError, match=r'peer: reference: found .*; expected'):
        read(reply_bytes(ENVELOPE | {'reference': reference}))


@pytest.mark.parametrize('message', [
    'complete', 'simulator configuration mode = 1', 'Successfully configured scenario.',
    'Successfully spawned vehicle.', 'simulator_version: 1.12, api_version: 1.12', '', None, {},
    True, ['failed'],
])
def test_control_reply_without_success_means_success(message):
    assert read(reply_bytes({'type': 'X', 'reference': 1, 'message': message})).success


@pytest.mark.parametrize('message', [
    'invalid map specified', 'Failed to configure scenario. No actors spawned.',
    'no ego vehicle found', 'unable to sample sensors, no ego vehicle is registered',
    'Error: no such sensor', 'Could not open port', 'ego vehicle not registered',
    'FAILED to spawn vehicle',
])
def test_control_reply_without_success_fails_by_its_text(message):
    reply = read(reply_bytes({'type': 'X', 'reference': 1, 'message': message}))
    assert not reply.success
    with pytest.raises(RefusalError) as caught:
        reply.check('peer', 'X')
    assert message in caught.value.found


def test_control_success_decides_where_it_is_sent():
    assert read(reply_bytes(ENVELOPE | {'message': 'failed'})).success
    assert not read(reply_bytes(ENVELOPE | {'success': False})).success
    assert read(reply_bytes(ENVELOPE | {'success': 'yes'})).success


def test_control_refusal_is_one_short_line():
    reply = read(reply_bytes(ENVELOPE | {'message': 'a\nb' * 1000, 'success': False}))
    with pytest.raises(RefusalError) as caught:
        reply.check('peer', 'X')
    assert '\n' not in str(caught.value)
    assert len(str(caught.value)) < 300


@given(strategies.binary(max_size=200), strategies.integers(1, 50))
def test_control_reader_raises_only_its_errors_for_any_bytes(data, size):
    try:
        reply = read(data, size)
    except TransportError:
        return
    assert not isinstance(reply, Missing) or reply.n_bytes > 0
