# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""Folders of the repository that tests use."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / 'test' / 'data'
GOOD = DATA / 'good'
CARLA = ROOT / 'resource' / 'carla'
SAMPLE = ROOT / 'resource' / 'sample.v2.json'
