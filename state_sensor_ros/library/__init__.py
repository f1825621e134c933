# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The public Python library: the frames of a recording, and those of a live stream.

The package exports its names, and imports them at their first use. It may import pipeline/,
connections/, recordings/, exports/, simulators/, monodrive/ and the modules directly in the
package; not ros/, commands/ or drawing/.
"""
