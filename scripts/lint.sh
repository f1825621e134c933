#!/bin/sh
# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
#
# Runs every linter, and fails if one of them finds a fault or is missing, except those that only a full ROS 2 has: these are named.
cd "$(dirname "$0")/.." || exit 1
status=0

lint() {
  if ! command -v "$1" >/dev/null && [ "${1#ament_}" != "$1" ]; then
    echo "lint: $1 skipped: not on PyPI, part of a full ROS 2"
  elif found=$("$@" 2>&1); then
    echo "lint: $1 clean"
  else
    # Two of them list each file that they check.
    printf '%s\n' "$found" | grep -vE '^(checking |\* )'
    echo "lint: $1 failed"
    status=1
  fi
}

python_folders=$(for folder in state_sensor_ros launch test bench scripts examples; do [ -d "$folder" ] && echo "$folder"; done)

lint ruff check --output-format concise .
lint mypy --strict state_sensor_ros
lint check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/ci.yml
lint ament_flake8 $python_folders setup.py
lint ament_pep257 state_sensor_ros launch
lint ament_copyright $python_folders cmake LICENSE CONTRIBUTING.md
lint ament_xmllint package.xml
lint ament_lint_cmake CMakeLists.txt

lint_manifest() {
  python3 -c 'from catkin_pkg.package import parse_package; parse_package("package.xml")'
}
lint lint_manifest

exit "$status"
