# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Files of recordings: opening, compressed files, MCAP, outputs that appear when complete."""

from state_sensor_ros.fields import parts_of
from state_sensor_ros.files.bags.bag_repair import can_repair
from state_sensor_ros.files.frame_selection import FrameSelector
from state_sensor_ros.files.recording import (
    PERIOD_S,
    STANDARD_INPUT,
)
from state_sensor_ros.files.storage.input_file import (
    check_regular,
    closed_on_failure,
    compression_of,
    copy_beginning,
    decompressed,
    DecompressedFile,
    open_positioned,
    opened_beside,
    read_range,
    reopened,
)
from state_sensor_ros.files.storage.mcap_reader import McapReader, PROFILE, profile_of
from state_sensor_ros.files.storage.storage_file import BagError, BagLimits, DEFAULT_LIMITS
from state_sensor_ros.files.whole.output import sink_error
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.files.whole.whole_folder import Own, WholeFolder
from state_sensor_ros.pipeline.published_actors import TagRule
from state_sensor_ros.share import share_file
from state_sensor_ros.simulators.opening import (
    format_of,
    format_of_name,
    open_any,
    READ_DEFAULTS,
)
from state_sensor_ros.source import MAX_GAP_S

__all__ = [
    'DEFAULT_LIMITS', 'MAX_GAP_S',
    'PERIOD_S', 'PROFILE', 'READ_DEFAULTS', 'STANDARD_INPUT', 'BagError', 'BagLimits',
    'DecompressedFile', 'FrameSelector', 'McapReader', 'Own', 'TagRule',
    'WholeFile', 'WholeFolder', 'can_repair', 'check_regular',
    'closed_on_failure', 'compression_of', 'copy_beginning', 'decompressed', 'format_of',
    'format_of_name', 'open_any', 'open_positioned', 'opened_beside', 'parts_of', 'profile_of',
    'read_range', 'reopened', 'share_file', 'sink_error',
]
