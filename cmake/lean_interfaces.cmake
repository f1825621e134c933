# Copyright 2026 The state_sensor_ros maintainers
# SPDX-License-Identifier: Apache-2.0
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
# in compliance with the License. You may obtain a copy of the License at
# http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
# writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the specific
# language governing permissions and limitations under the License.
#
# Less work for interface packages that only this machine uses: `make setup` with the pinned wheels, whose generators these
# two measures are tested with. Elsewhere every type support is built as usual.
option(LEAN_INTERFACES "Build only the type supports that rclpy loads, in few translation units" OFF)

# Call after find_package(rosidl_default_generators): only rclcpp loads what is generated for C++, and the wheels have no
# rclcpp. The introspection for C stays: Fast DDS registers types by it.
macro(lean_generators)
  if(LEAN_INTERFACES)
    list(FILTER AMENT_EXTENSIONS_rosidl_generate_idl_interfaces EXCLUDE REGEX "_cpp:")
  endif()
endmacro()

# Call after rosidl_generate_interfaces(TARGET): one translation unit for each library reads the headers once. The
# descriptions are compiled one by one, since each defines the same static names.
function(lean_libraries target)
  if(NOT LEAN_INTERFACES)
    return()
  endif()
  foreach(generator generator_c generator_py typesupport_c typesupport_fastrtps_c typesupport_introspection_c)
    set(library ${target}__rosidl_${generator})
    if(NOT TARGET ${library})
      continue()
    endif()
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    get_target_property(sources ${library} SOURCES)
    list(FILTER sources INCLUDE REGEX "__description\\.c$")
    set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endforeach()
endfunction()
