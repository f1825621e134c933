# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
The interface of a simulator, and the opening of streams and recordings of any simulator.

It may import cdr/, encode/, pipeline/, recordings/, outputs/, exports/ and the modules directly in
the package, but no simulator by name: ``opening`` imports one where its stream or recording is
opened.
"""
