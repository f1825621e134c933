# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
"""The colors of pictures and of the viewer; needs no library."""

from __future__ import annotations

# Text and outlines.
DARK = '#1f2933'
QUIET = '#7b8794'
GROUND = '#f5f7fa'
FAINT = '#cbd2d9'
# Grid on white paper.
GRID = '#e4e7eb'
# Band of the speeds of many actors.
BAND = '#dde3e9'
# Lanes of the map: other lanes, lanes for vehicles, and mere lines.
ROADS = '#ebeef2', '#dde3e9', '#b3bdc7'
EGO = '#d6336c'
EGO_BED = '#f4b6cb'
OBJECT = '#f08c00'
OBJECT_EDGE = '#7a4600'
PEDESTRIAN = '#ba50ff'
UNKNOWN = '#9aa5b1'
RED, YELLOW, GREEN = '#e03131', '#ffd43b', '#2f9e44'
# A sign and its ring.
SIGN, SIGN_EDGE = '#ffffff', '#c92a2a'
# Colors of marks that may be as small as a few pixels.
MARKS = (EGO, OBJECT, PEDESTRIAN, UNKNOWN, RED, YELLOW, GREEN, SIGN_EDGE)
# Vehicles in the viewer, on a dark ground; pictures color them by speed.
VEHICLE = '#4dabf7'
# Eight colors of vehicles. These, EGO, OBJECT, PEDESTRIAN and UNKNOWN differ by a CIEDE2000 of
# at least 12 from each other, also as people with deuteranopia or protanopia see them
# (test/drawing/test_colors.py).
ACTORS = ('#8e6d0b', '#208b7e', '#3f00ff', '#86c093', '#732845', '#177a9f', '#224f00', '#2b4175')


BY_SPEED, BY_ACTOR = 'speed', 'actor'
COLORINGS = (BY_SPEED, BY_ACTOR)
