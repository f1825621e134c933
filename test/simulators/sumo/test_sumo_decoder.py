# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The steps of FCD output in blocks of any length, and in text that was made to be slow."""

import io
import time

from budgets import AWAIT_S
import pytest

from state_sensor_ros.simulators.sumo.decoder import StepScanner

STEPS = [b'<timestep time="0"/>', b'<timestep time="1"></timestep >',
         b'<timestep\ntime="2"><vehicle id="a>/&lt;timestep" x="1"/></timestep>']
TEXT = (b'<?xml version="1.0"?>\n<!-- <timestep time="9"/> - -- > -->\n<fcd-export a="b">'
        + b' \n'.join(STEPS) + b'</fcd-export >\n')


class Blocks(io.BytesIO):
    """Content that is read in blocks of the same length."""

    def __init__(self, text, n_bytes):
        super().__init__(text)
        self._n_bytes = n_bytes

    def read(self, size=-1):
        return super().read(self._n_bytes)


@pytest.mark.parametrize('n_bytes', [1, 2, 7, 19, 64, 4096])
def test_steps_are_found_in_blocks_of_any_length(n_bytes):
    scanner = StepScanner(Blocks(TEXT, n_bytes), 'a.xml')
    assert list(scanner.steps()) == STEPS
    assert (scanner.n_steps, scanner.is_in_step, scanner.is_over) == (3, False, True)


def test_steps_of_text_that_was_cut_are_the_whole_ones():
    ends = [TEXT.index(step) + len(step) for step in STEPS]
    begins = [TEXT.index(step) + len(b'<timestep ') for step in STEPS]
    for n_bytes in range(len(TEXT) - len('</fcd-export >\n')):
        scanner = StepScanner(io.BytesIO(TEXT[:n_bytes]), 'a.xml')
        assert list(scanner.steps()) == [
            step for step, end in zip(STEPS, ends, strict=True) if end <= n_bytes]
        assert not scanner.is_over
        assert scanner.is_in_step == any(
            begin <= n_bytes < end for begin, end in zip(begins, ends, strict=True))


def test_steps_of_a_second_document_follow():
    scanner = StepScanner(io.BytesIO(TEXT + TEXT[:TEXT.index(STEPS[1])]), 'a.xml')
    assert list(scanner.steps()) == [*STEPS, STEPS[0]]
    assert not scanner.is_over


@pytest.mark.parametrize('text', [b'<timestep ', b'<fcd-export ', b'<timestep></timestep ',
                                  b'<timestep><timestep />', b'<!-- <timestep>', b'<timestep>'])
def test_steps_are_searched_in_linear_time(text):
    # A search that begins again at each tag takes minutes.
    begin_s = time.monotonic()
    list(StepScanner(io.BytesIO(text * (1_000_000 // len(text))), 'a.xml').steps())
    assert time.monotonic() - begin_s < AWAIT_S
