# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
"""
Frames as datasets: tables in Parquet and CSV, and traces of ASAM OSI.

It may import cdr/, encode/, pipeline/, recordings/, outputs/ and the modules directly in the
package; no simulator and no command. The libraries of the formats are imported where a file is
written or read.
"""
