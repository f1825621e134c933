# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""A Python without some of the modules that are installed."""

import os

from paths import ROOT

BLOCKER = """
import importlib.util
import os
import sys

blocked = os.environ['BLOCKED'].split()
find_spec = importlib.util.find_spec


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name in blocked:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)


sys.meta_path.insert(0, Blocker())
importlib.util.find_spec = lambda name, package=None: (
    None if name in blocked else find_spec(name, package))
"""


def environment_without(modules, folder):
    """
    Return the environment of a Python that finds the package, but not some modules.

    :param modules: full names, separated by spaces.
    :param folder: to write a file into.
    """
    (folder / 'sitecustomize.py').write_text(BLOCKER)
    return os.environ | {'BLOCKED': modules, 'PYTHONPATH':
                         f'{folder}:{ROOT}:{os.environ.get("PYTHONPATH", "")}'}
