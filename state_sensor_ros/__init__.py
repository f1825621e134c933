# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Ground truth of a driving simulator's State sensor on ROS 2 topics."""
from pkgutil import extend_path

# Python that starts in the source folder finds this package there, and the generated messages
# in the installed one.
__path__ = extend_path(__path__, __name__)
