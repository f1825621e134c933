// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
// in compliance with the License. You may obtain a copy of the License at
// http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
// writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
// WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.
#include <cstdio>

#include "rosidl_typesupport_cpp/message_type_support.hpp"
#include "state_sensor_ros/msg/state_frame.hpp"

int main()
{
  state_sensor_ros::msg::StateFrame frame;
  frame.actors.resize(2);
  frame.actors[1].kind = state_sensor_ros::msg::ActorState::KIND_VEHICLE;
  // Linking this proves the library, not only the header.
  const auto * support =
    rosidl_typesupport_cpp::get_message_type_support_handle<state_sensor_ros::msg::StateFrame>();
  std::printf("%zu %d %s\n", frame.actors.size(), frame.actors[1].kind, support->typesupport_identifier);
  return 0;
}
