# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Frames are equal in all that they hold."""

from dataclasses import fields, is_dataclass

import numpy as np


def assert_equal(found, expected, where='frame'):
    assert type(found) is type(expected), where
    if is_dataclass(found):
        for field in fields(found):
            # Those of a frame that are private are computed when they are used.
            if not field.name.startswith('_'):
                assert_equal(getattr(found, field.name), getattr(expected, field.name),
                             f'{where}.{field.name}')
    elif isinstance(found, tuple):
        assert len(found) == len(expected), where
        for pair in zip(found, expected, strict=True):
            assert_equal(*pair, where)
    elif isinstance(found, float | np.ndarray):
        # Bits: NaN equals NaN, and -0.0 is not 0.0.
        assert np.shape(found) == np.shape(expected), where
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes(), where
    else:
        assert found == expected, where
