# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""A server of the monoDrive protocol that sends any source of frames; imports no traffic model."""
