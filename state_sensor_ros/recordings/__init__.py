# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Recordings as a source of packets: bags, their playback and their inspection.

It may import pipeline/, cdr/, encode/ and the modules directly in the package; no simulator's
folder, no command and no rclpy. Its folders are layers: bags/ imports storage/, files/ and
recording.py; storage/ and files/ import nothing else of this folder.
"""
