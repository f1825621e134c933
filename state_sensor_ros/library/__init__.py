# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The public Python library: the frames of a recording, and those of a live stream.

The package exports its names, and imports them at their first use. It may import any folder but
ros/, commands/ and drawing/.
"""
