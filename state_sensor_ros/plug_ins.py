# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
What other packages add, and what is named by its module.

Another package adds a simulator, formats or both by an entry point of the group
``state_sensor_ros.simulators``, named as the parameter ``source`` is to name it: a class such as
:class:`state_sensor_ros.simulators.Simulator`, see ``doc/design/extending.md``.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any
import warnings

from state_sensor_ros.texts import one_line

GROUP = 'state_sensor_ros.simulators'


class PlugInWarning(RuntimeWarning):
    """A plug-in cannot be used."""


def imported(text: str) -> Any:  # noqa: ANN401
    """Return what is named ``module:name``; a module of this package begins with a dot."""
    module, _, name = text.partition(':')
    return getattr(import_module(module, __package__), name)


@cache
def plug_ins() -> dict[str, Any]:
    """Return what the plug-ins are by name; one that cannot be loaded is a PlugInWarning."""
    found: dict[str, Any] = {}
    # The search takes 0.02 to 0.1 s.
    for entry in entry_points(group=GROUP):
        try:
            found[entry.name] = entry.load()()
        except Exception as error:  # noqa: BLE001 - whatever another package raises
            warnings.warn(f'the plug-in {entry.name} ({entry.value}) is skipped: '
                          f'{one_line(f"{type(error).__name__}: {error}")}',
                          PlugInWarning, stacklevel=2)
    return found
