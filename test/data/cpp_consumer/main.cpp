// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
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
