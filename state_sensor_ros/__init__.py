# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Ground truth of a driving simulator's State sensor on ROS 2 topics."""
from pkgutil import extend_path
import sys

# Python that starts in the source folder finds this package there, and the generated messages
# in the installed one.
__path__ = extend_path(__path__, __name__)

# setup.cfg reads it from here; package.xml repeats it, as ROS tools read only a literal there.
__version__ = '0.2.0'

if sys.version_info < (3, 10):  # noqa: UP036 (run from the source folder, no pip has checked it)
    raise ImportError('state_sensor_ros: found Python {}.{}; expected 3.10 or newer'.format(
        *sys.version_info[:2]))
