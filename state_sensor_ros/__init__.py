# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""
Ground truth of driving simulators on ROS 2 topics, and as a Python library.

The names in ``__all__`` are public. Each is imported at its first use, so that importing the
package loads no other library.
"""
from importlib import import_module
from pkgutil import extend_path
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from state_sensor_ros.classes import Kind
    from state_sensor_ros.errors import (
        ConfigError,
        DecodeError,
        EncodeError,
        FramingError,
        MissingFileError,
        MissingLibraryError,
        RefusalError,
        SinkError,
        StateError,
        StateSensorError,
        TrajectoryFormatError,
        TransportError,
        TruncatedError,
        UnreachableError,
    )
    from state_sensor_ros.frame import Boxes, Frame, Lanes, Wheels
    from state_sensor_ros.library.index import LaneChange, RecordedActor, RecordedActors
    from state_sensor_ros.library.notebook import Animation
    from state_sensor_ros.library.recording import open_recording, read_table, Recording
    from state_sensor_ros.library.safety import Safety, SafetyEvent
    from state_sensor_ros.library.stream import open_stream, Stream
    from state_sensor_ros.library.track import Track

# package.xml and CITATION.cff have copies.
__version__ = '0.6.0'

# Python that starts in the source folder finds this package there, and the generated messages
# in the installed one.
__path__ = extend_path(__path__, __name__)

if sys.version_info < (3, 10):  # noqa: UP036 (run from the source folder, no pip has checked it)
    raise ImportError('state_sensor_ros: found Python {}.{}; expected 3.10 or newer'.format(
        *sys.version_info[:2]))

__all__ = [
    'Animation', 'Boxes', 'ConfigError', 'DecodeError', 'EncodeError', 'Frame', 'FramingError',
    'Kind', 'LaneChange', 'Lanes', 'MissingFileError', 'MissingLibraryError', 'RecordedActor',
    'RecordedActors', 'Recording', 'RefusalError', 'Safety', 'SafetyEvent', 'SinkError',
    'StateError', 'StateSensorError', 'Stream', 'Track', 'TrajectoryFormatError',
    'TransportError', 'TruncatedError', 'UnreachableError', 'Wheels', '__version__',
    'open_recording', 'open_stream', 'read_table']
# Those that are not errors.
_MODULES = {
    **dict.fromkeys(('Boxes', 'Frame', 'Lanes', 'Wheels'), 'frame'), 'Kind': 'classes',
    **dict.fromkeys(('Recording', 'open_recording', 'read_table'), 'library.recording'),
    **dict.fromkeys(('Stream', 'open_stream'), 'library.stream'),
    **dict.fromkeys(('Safety', 'SafetyEvent'), 'library.safety'),
    **dict.fromkeys(('LaneChange', 'RecordedActor', 'RecordedActors'), 'library.index'),
    'Animation': 'library.notebook', 'Track': 'library.track'}


def __getattr__(name: str) -> object:
    """Import a name of the library at its first use."""
    if name not in __all__:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    value: object = getattr(import_module(f'{__name__}.{_MODULES.get(name, "errors")}'), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
