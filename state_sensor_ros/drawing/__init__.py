# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Pictures and animations of a recording, seen from above.

It may import the modules directly in the package, numpy, matplotlib and plotly; no other folder.
"""
