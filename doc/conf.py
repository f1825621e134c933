# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Configuration of the site, for `make docs` and for rosdoc2.

rosdoc2 executes a copy of this file elsewhere, with the package on the path.
"""
from pathlib import Path
import sys

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import generated  # noqa: E402

import state_sensor_ros  # noqa: E402

project = 'state_sensor_ros'
author = 'The state_sensor_ros maintainers'
copyright = f'2026, {author}'  # noqa: A001
release = version = state_sensor_ros.__version__

extensions = ['myst_parser', 'sphinx.ext.autodoc']
exclude_patterns = ['build']
myst_enable_extensions = ['colon_fence', 'deflist']
myst_heading_anchors = 3

html_theme = 'furo'
html_title = f'{project} {release}'
html_css_files = ['site.css']
html_static_path = ['static']
html_show_sourcelink = False

autodoc_mock_imports = list(generated.MISSING)
autodoc_member_order = 'bysource'
autodoc_typehints = 'description'
add_module_names = False
# numpy's own definition fills half a page.
autodoc_type_aliases = {'npt.ArrayLike': 'ArrayLike', 'ArrayLike': 'ArrayLike'}
# Of annotations only the names of this package are pages here.
nitpick_ignore_regex = [('py:.*', '.*')]

rosdoc2_settings = {'override_theme': False}

setup = generated.setup
