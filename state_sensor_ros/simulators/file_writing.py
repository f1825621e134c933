# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""Files and folders that appear when they are complete, and the selection of their frames."""

from state_sensor_ros.files.frame_selection import FrameSelector
from state_sensor_ros.files.frame_writer import LANES, parts_of
from state_sensor_ros.files.whole.output import sink_error
from state_sensor_ros.files.whole.whole_file import WholeFile
from state_sensor_ros.files.whole.whole_folder import Own, WholeFolder
from state_sensor_ros.pipeline.tag_rule import TagRule

__all__ = [
    'LANES', 'FrameSelector', 'Own', 'TagRule', 'WholeFile', 'WholeFolder', 'parts_of',
    'sink_error',
]
