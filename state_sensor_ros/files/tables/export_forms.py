# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Names of the files of tables and traces, and the classes of a trace; this imports no library."""

from state_sensor_ros.classes import CLASSES, UNKNOWN
from state_sensor_ros.files.recording import TABLE_SUFFIX

CSV = '.csv'
TABLE_SUFFIXES = (TABLE_SUFFIX, CSV, f'{CSV}.gz', f'{CSV}.zst')
OSI_MCAP, OSI_PLAIN = '.osi.mcap', '.osi'
OSI_SUFFIXES = (OSI_MCAP, OSI_PLAIN)
# Of actors of a trace whose tags name no class.
OTHER = 'other'
DEFAULT_CLASSES = (*(each.name for each in CLASSES[:UNKNOWN]), OTHER)
