# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
rosbag2 bags: metadata.yaml, message types and quality of service, reader, writer and repair.

It may import storage/, files/, recording.py, cdr/, encode/ and the modules directly in the
package; not the playback and inspection of recordings.
"""
