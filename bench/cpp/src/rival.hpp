// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
// in compliance with the License. You may obtain a copy of the License at
// http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
// writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
// WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.
//
// The same driver in idiomatic C++: rclcpp, message objects, publish(message).
//
// Its outputs equal those of bench/rival.py: test/ros/test_rival.py compares them. It reads only
// v2 frames with the 16-byte header, checks no input, and has no life cycle and no diagnostics.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "builtin_interfaces/msg/time.hpp"
#include "geometry_msgs/msg/quaternion.hpp"
#include "geometry_msgs/msg/transform_stamped.hpp"
#include "geometry_msgs/msg/vector3.hpp"
#include "nav_msgs/msg/odometry.hpp"
#include "rclcpp/rclcpp.hpp"
#include "state_sensor_ros/msg/actor_array.hpp"
#include "state_sensor_ros/msg/control_state_array.hpp"
#include "state_sensor_ros/msg/control_state_stamped.hpp"
#include "std_msgs/msg/color_rgba.hpp"
#include "tf2_msgs/msg/tf_message.hpp"
#include "visualization_msgs/msg/marker_array.hpp"

namespace rival
{

using builtin_interfaces::msg::Time;
using geometry_msgs::msg::Quaternion;
using geometry_msgs::msg::TransformStamped;
using geometry_msgs::msg::Vector3;
using nav_msgs::msg::Odometry;
using state_sensor_ros::msg::Actor;
using state_sensor_ros::msg::ActorArray;
using state_sensor_ros::msg::ControlStateArray;
using state_sensor_ros::msg::ControlStateStamped;
using std_msgs::msg::ColorRGBA;
using tf2_msgs::msg::TFMessage;
using visualization_msgs::msg::Marker;
using visualization_msgs::msg::MarkerArray;

constexpr char GLOBAL_FRAME[] = "map";
constexpr std::uint32_t HEADER_BYTES = 16;
// Small, so that nearly all sent frames have been processed.
constexpr int RECEIVE_BUFFER_BYTES = 256 * 1024;
constexpr double VARIANCE = 1e-9;
// Behind a payload; simdjson reads up to 64 bytes beyond its end.
constexpr std::size_t PADDING_BYTES = 64;

// Rotate a vector by the inverse of a quaternion.
inline Vector3 rotated_back(const Quaternion & q, double x, double y, double z)
{
  const double tx = 2.0 * (q.z * y - q.y * z);
  const double ty = 2.0 * (q.x * z - q.z * x);
  const double tz = 2.0 * (q.y * x - q.x * y);
  Vector3 rotated;
  rotated.x = x + q.w * tx + q.z * ty - q.y * tz;
  rotated.y = y + q.w * ty + q.x * tz - q.z * tx;
  rotated.z = z + q.w * tz + q.y * tx - q.x * ty;
  return rotated;
}

inline ColorRGBA color(int r, int g, int b, float a)
{
  ColorRGBA message;
  message.r = static_cast<float>(r / 255.0);
  message.g = static_cast<float>(g / 255.0);
  message.b = static_cast<float>(b / 255.0);
  message.a = a;
  return message;
}

// Publish odometry, TF, lane states and markers of every actor.
//
// `Json` is a JSON library: `Value`, `parse(bytes, size)`, and functions that read a Value.
template<class Json>
class Driver : public rclcpp::Node
{
  using Value = typename Json::Value;

public:
  // With `is_durable` late subscribers receive all messages, which is how a test takes them.
  explicit Driver(bool is_durable)
  : Node("rival"), is_durable_(is_durable)
  {
    tf_ = create_publisher<TFMessage>("/tf", qos(100));
    ego_odometry_ = create_publisher<Odometry>("~/ego/odometry", qos(10));
    ego_control_state_ = create_publisher<ControlStateStamped>("~/ego/control_state", qos(10));
    control_states_ = create_publisher<ControlStateArray>("~/control_states", qos(10));
    markers_ = create_publisher<MarkerArray>("~/markers", qos(10));
    actors_ = create_publisher<ActorArray>("~/actors", qos(1).transient_local());
    covariance_.fill(0.0);
    for (std::size_t i = 0; i < 6; ++i) {
      covariance_[7 * i] = VARIANCE;
    }
  }

  // Publish one frame; PADDING_BYTES behind `payload` are readable.
  void process(const char * payload, std::size_t size)
  {
    const auto & document = json_.parse(payload, size);
    const double game_time = Json::number(document["game_time"]);
    stamp_.sec = static_cast<std::int32_t>(game_time);
    stamp_.nanosec = static_cast<std::uint32_t>(std::nearbyint((game_time - stamp_.sec) * 1e9));
    const auto & frame = document["frame"];
    const std::size_t n_actors =
      Json::size(frame["objects"]) + Json::size(frame["vehicles"]);

    TFMessage tf;
    tf.transforms.reserve(n_actors);
    ControlStateArray lanes;
    set_header(lanes.header, GLOBAL_FRAME);
    lanes.control_states.reserve(n_actors);
    MarkerArray markers;
    markers.markers.reserve(n_actors + 1);
    if (is_first_) {
      markers.markers.push_back(make_removal(Marker::DELETEALL));
      is_first_ = false;
    }
    Drawn now_drawn;
    ActorArray registry;
    registry.actors.reserve(n_actors);

    for (const auto & state : Json::items(frame["objects"])) {
      add_state(state, 0, tf, markers, now_drawn, registry);
    }
    for (const auto & vehicle : Json::items(frame["vehicles"])) {
      const std::string & name =
        add_state(vehicle["state"], 1, tf, markers, now_drawn, registry);
      if (Json::has(vehicle, "control_state")) {
        add_control_state(vehicle["control_state"], name, lanes);
      }
    }
    for (const auto & [id, space] : drawn_) {
      const auto found = now_drawn.find(id);
      if (found == now_drawn.end() || found->second != space) {
        Marker removal = make_removal(Marker::DELETE);
        removal.ns = space;
        removal.id = id;
        markers.markers.push_back(std::move(removal));
      }
    }
    drawn_ = std::move(now_drawn);
    tf_->publish(tf);
    if (!lanes.control_states.empty()) {
      control_states_->publish(lanes);
    }
    markers_->publish(markers);
    if (registry.actors != published_actors_) {
      published_actors_ = registry.actors;
      set_header(registry.header, GLOBAL_FRAME);
      actors_->publish(registry);
    }
  }

private:
  // The namespace of each marker by its id.
  using Drawn = std::unordered_map<std::int32_t, std::string_view>;

  struct Output
  {
    std::uint32_t id;
    bool is_ego;
    rclcpp::Publisher<Odometry>::SharedPtr odometry;
    rclcpp::Publisher<ControlStateStamped>::SharedPtr control_state;
  };

  rclcpp::QoS qos(std::size_t depth) const
  {
    return is_durable_ ? rclcpp::QoS(1000).transient_local() : rclcpp::QoS(depth);
  }

  template<class Header>
  void set_header(Header & header, const std::string & frame_id) const
  {
    header.stamp = stamp_;
    header.frame_id = frame_id;
  }

  // Mirror a quaternion at the xz plane and scale it to unit length.
  template<class Source>
  static Quaternion to_rep103(const Source & source)
  {
    Quaternion q;
    q.x = -Json::number(source["x"]);
    q.y = Json::number(source["y"]);
    q.z = -Json::number(source["z"]);
    q.w = Json::number(source["w"]);
    const double norm = std::sqrt(q.x * q.x + q.y * q.y + q.z * q.z + q.w * q.w);
    q.x /= norm;
    q.y /= norm;
    q.z /= norm;
    q.w /= norm;
    return q;
  }

  // Publish the odometry of one actor and add it to the messages of the frame; return its name.
  template<class State>
  const std::string & add_state(
    const State & state, std::uint8_t kind, TFMessage & tf, MarkerArray & markers,
    Drawn & now_drawn, ActorArray & registry)
  {
    Actor actor;
    actor.name = Json::text(state["name"]);
    actor.topic_name = actor.frame_id = actor.name;
    actor.kind = kind;
    bool is_ego = false;
    for (const auto & tag : Json::items(state["tags"])) {
      actor.tags.emplace_back(Json::text(tag));
      is_ego = is_ego || actor.tags.back() == "ego";
    }
    const auto [found, is_new] = outputs_.try_emplace(actor.name);
    auto & [name, output] = *found;
    if (is_new) {
      output.id = static_cast<std::uint32_t>(outputs_.size());
      output.odometry =
        create_publisher<Odometry>("~/actors/" + name + "/odometry", qos(10));
    }
    output.is_ego = is_ego;
    actor.id = output.id;

    const Odometry odometry = make_odometry(state["odometry"], name);
    tf.transforms.push_back(make_transform(odometry));
    output.odometry->publish(odometry);
    if (is_ego) {
      ego_odometry_->publish(odometry);
    }
    const std::string_view space = is_ego ? "ego" : kind ? "vehicles" : "objects";
    const ColorRGBA & shade = is_ego ? EGO : kind ? VEHICLE : OBJECT;
    std::int32_t id = static_cast<std::int32_t>(output.id * 16);
    for (const auto & box : Json::items(state["oriented_bounding_box"])) {
      markers.markers.push_back(make_marker(box, space, id, shade));
      now_drawn.emplace(id++, space);
    }
    registry.actors.push_back(std::move(actor));
    return name;
  }

  // Convert a state to REP 103, with the twist in the child frame.
  template<class Source>
  Odometry make_odometry(const Source & source, const std::string & name) const
  {
    Odometry message;
    set_header(message.header, GLOBAL_FRAME);
    message.child_frame_id = name;
    const auto & p = source["pose"]["position"];
    auto & position = message.pose.pose.position;
    position.x = Json::number(p["x"]) / 100.0;
    position.y = -Json::number(p["y"]) / 100.0;
    position.z = Json::number(p["z"]) / 100.0;
    const Quaternion orientation = to_rep103(source["pose"]["orientation"]);
    message.pose.pose.orientation = orientation;
    const auto & v = source["linear_velocity"];
    message.twist.twist.linear = rotated_back(
      orientation, Json::number(v["x"]) / 100.0, -Json::number(v["y"]) / 100.0,
      Json::number(v["z"]) / 100.0);
    const auto & r = source["angular_velocity"];
    message.twist.twist.angular = rotated_back(
      orientation, -Json::number_or_zero(r["x"]), Json::number_or_zero(r["y"]),
      -Json::number_or_zero(r["z"]));
    message.pose.covariance = message.twist.covariance = covariance_;
    return message;
  }

  // Return the pose of an odometry as a transform.
  TransformStamped make_transform(const Odometry & odometry) const
  {
    TransformStamped message;
    message.header = odometry.header;
    message.child_frame_id = odometry.child_frame_id;
    const auto & position = odometry.pose.pose.position;
    message.transform.translation.x = position.x;
    message.transform.translation.y = position.y;
    message.transform.translation.z = position.z;
    message.transform.rotation = odometry.pose.pose.orientation;
    return message;
  }

  // Publish the lane state of one vehicle and add it to the message of the frame.
  template<class Source>
  void add_control_state(
    const Source & source, const std::string & name, ControlStateArray & lanes)
  {
    ControlStateStamped message;
    set_header(message.header, name);
    message.name = name;
    auto & state = message.control_state;
    state.lane_change_left = Json::flag(source["lane_change_left"]);
    state.lane_change_right = Json::flag(source["lane_change_right"]);
    state.road_id = static_cast<std::int32_t>(Json::integer(source["road_id"]));
    state.section_id = static_cast<std::int32_t>(Json::integer(source["section_id"]));
    state.lane_id = static_cast<std::int32_t>(Json::integer(source["lane_id"]));
    state.s = Json::number(source["s"]) / 100.0;
    Output & output = outputs_.find(name)->second;
    if (!output.control_state) {
      output.control_state = create_publisher<ControlStateStamped>(
        "~/actors/" + name + "/control_state", qos(10));
    }
    output.control_state->publish(message);
    if (output.is_ego) {
      ego_control_state_->publish(message);
    }
    lanes.control_states.push_back(std::move(message));
  }

  // Return the marker of an oriented box.
  template<class Source>
  Marker make_marker(
    const Source & box, std::string_view space, std::int32_t id, const ColorRGBA & shade) const
  {
    Marker marker;
    set_header(marker.header, GLOBAL_FRAME);
    marker.ns = space;
    marker.id = id;
    marker.type = Marker::CUBE;
    marker.action = Marker::ADD;
    const auto & c = box["center"];
    marker.pose.position.x = Json::number(c["x"]) / 100.0;
    marker.pose.position.y = -Json::number(c["y"]) / 100.0;
    marker.pose.position.z = Json::number(c["z"]) / 100.0;
    marker.pose.orientation = to_rep103(box["orientation"]);
    const auto & e = box["extents"];
    const auto & s = box["scale"];
    marker.scale.x = Json::number(e["x"]) / 100.0 * Json::number(s["x"]);
    marker.scale.y = Json::number(e["y"]) / 100.0 * Json::number(s["y"]);
    marker.scale.z = Json::number(e["z"]) / 100.0 * Json::number(s["z"]);
    marker.color = shade;
    return marker;
  }

  // Return the marker that deletes one marker, or all.
  Marker make_removal(std::int32_t action) const
  {
    Marker marker;
    set_header(marker.header, GLOBAL_FRAME);
    marker.action = action;
    return marker;
  }

  inline static const ColorRGBA EGO = color(214, 51, 108, 0.9f);
  inline static const ColorRGBA VEHICLE = color(33, 143, 141, 0.8f);
  inline static const ColorRGBA OBJECT = color(240, 140, 0, 0.8f);

  const bool is_durable_;
  Json json_;
  Time stamp_;
  Odometry::_pose_type::_covariance_type covariance_;
  rclcpp::Publisher<TFMessage>::SharedPtr tf_;
  rclcpp::Publisher<Odometry>::SharedPtr ego_odometry_;
  rclcpp::Publisher<ControlStateStamped>::SharedPtr ego_control_state_;
  rclcpp::Publisher<ControlStateArray>::SharedPtr control_states_;
  rclcpp::Publisher<MarkerArray>::SharedPtr markers_;
  rclcpp::Publisher<ActorArray>::SharedPtr actors_;
  std::unordered_map<std::string, Output> outputs_;
  std::vector<Actor> published_actors_;
  Drawn drawn_;
  bool is_first_ = true;
};

// A TCP connection.
class Connection
{
public:
  Connection(const char * host, std::uint16_t port)
  : socket_(::socket(AF_INET, SOCK_STREAM, 0))
  {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::setsockopt(
      socket_, SOL_SOCKET, SO_RCVBUF, &RECEIVE_BUFFER_BYTES, sizeof(RECEIVE_BUFFER_BYTES));
    if (::inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
      ::connect(socket_, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0)
    {
      throw std::system_error(errno, std::generic_category(), "connect");
    }
  }
  Connection(const Connection &) = delete;
  Connection & operator=(const Connection &) = delete;
  ~Connection() {::close(socket_);}

  // Read `size` bytes; return false at the end of the stream.
  bool read(char * bytes, std::size_t size)
  {
    return ::recv(socket_, bytes, size, MSG_WAITALL) == static_cast<ssize_t>(size);
  }

private:
  int socket_;
};

// Read packets and publish them until the connection ends.
template<class Json>
void receive(Driver<Json> & driver, const char * host, std::uint16_t port)
{
  Connection connection(host, port);
  char header[HEADER_BYTES];
  std::vector<char> payload;
  while (connection.read(header, HEADER_BYTES)) {
    std::uint32_t length;
    std::memcpy(&length, header, sizeof(length));
    const std::size_t size = ntohl(length) - HEADER_BYTES;
    if (payload.size() < size + PADDING_BYTES) {
      payload.resize(size + PADDING_BYTES);
    }
    if (!connection.read(payload.data(), size)) {
      break;
    }
    driver.process(payload.data(), size);
  }
  rclcpp::shutdown();
}

// Run until the connection ends; arguments: host, port, and `durable` for the test.
template<class Json>
int run(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const auto driver = std::make_shared<Driver<Json>>(
    argc > 3 && std::string_view(argv[3]) == "durable");
  std::thread receiver(
    [&] {receive(*driver, argv[1], static_cast<std::uint16_t>(std::stoi(argv[2])));});
  rclcpp::spin(driver);
  receiver.join();
  return 0;
}

}  // namespace rival
