# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
#
# Puts state_sensor_node, state_sensor and the messages into this shell, after `make setup`:
#     . scripts/env.sh                             from bash, zsh or another sh, from any folder
#     ROS_DISTRO_WHEELS=kilted; . scripts/env.sh   the environment that `ROS_DISTRO_WHEELS=kilted make setup` made
# Sourced again, it replaces its earlier changes.

# The name of a sourced file is in a variable of the shell, if at all.
if [ -n "${BASH_SOURCE:-}" ]; then
  _ssr_root=${BASH_SOURCE}
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_ssr_root=${(%):-%x}'
else
  # dash, ash: this file is still open in the shell.
  _ssr_root=$(for _ssr_fd in "/proc/$$/fd"/*; do readlink "$_ssr_fd"; done 2>/dev/null | grep '/scripts/env\.sh$' | tail -n 1)
  [ -n "$_ssr_root" ] || _ssr_root=scripts/env.sh
fi
_ssr_root=$(cd "$(dirname "$_ssr_root")/.." 2>/dev/null && pwd -P)

if [ -n "${ROS_DISTRO:-}" ]; then
  _ssr_name=ros-$ROS_DISTRO
else
  _ssr_name=${ROS_DISTRO_WHEELS:-jazzy}
fi
_ssr_venv=$_ssr_root/.venv-$_ssr_name
_ssr_prefix=$_ssr_root/install/$_ssr_name/state_sensor_ros
_ssr_site=$(find "$_ssr_prefix" -path '*/state_sensor_ros/msg/__init__.py' 2>/dev/null | head -n 1)
_ssr_site=${_ssr_site%/state_sensor_ros/msg/__init__.py}

# Prints the colon list $1 without entries under this folder, those of $2 in front.
_ssr_list() {
  printf '%s' "$2"
  printf '%s' "$1" | SSR_ROOT="$_ssr_root/" awk -v RS=: '$0 != "" && index($0, ENVIRON["SSR_ROOT"]) != 1 { printf ":%s", $0 }'
}

if [ -z "$_ssr_site" ] || [ ! -x "$_ssr_venv/bin/python3" ]; then
  echo "error: env.sh: found no finished set-up of ${_ssr_name} in ${_ssr_root}; expected \`make setup\` to have run" >&2
  unset _ssr_root _ssr_name _ssr_venv _ssr_prefix _ssr_site _ssr_fd
  unset -f _ssr_list
  false
else
  if [ -n "${ROS_DISTRO:-}" ]; then
    _ssr_base=$_ssr_prefix
  else
    _ssr_base=$_ssr_prefix:$_ssr_venv
    # Set by the Python of another environment, it prevents this one's Python from finding its libraries.
    unset _ROS_WHEELS_BOOTSTRAP_COMPLETE
  fi
  AMENT_PREFIX_PATH=$(_ssr_list "${AMENT_PREFIX_PATH:-}" "$_ssr_base")
  CMAKE_PREFIX_PATH=$(_ssr_list "${CMAKE_PREFIX_PATH:-}" "$_ssr_base")
  LD_LIBRARY_PATH=$(_ssr_list "${LD_LIBRARY_PATH:-}" "$_ssr_prefix/lib")
  PYTHONPATH=$(_ssr_list "${PYTHONPATH:-}" "$_ssr_site")
  PATH=$(_ssr_list "$PATH" "$_ssr_prefix/lib/state_sensor_ros:$_ssr_venv/bin")
  VIRTUAL_ENV=$_ssr_venv
  export AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH PATH VIRTUAL_ENV
  hash -r 2>/dev/null
  unset _ssr_root _ssr_name _ssr_venv _ssr_prefix _ssr_site _ssr_base _ssr_fd
  unset -f _ssr_list
  true
fi
