// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
// in compliance with the License. You may obtain a copy of the License at
// http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
// writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
// WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.
//
// The driver with the JSON library of Niels Lohmann.
#include <cstddef>
#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"
#include "rival.hpp"

namespace
{

class Nlohmann
{
public:
  using Value = nlohmann::json;

  const Value & parse(const char * payload, std::size_t size)
  {
    document_ = Value::parse(payload, payload + size);
    return document_;
  }

  static double number(const Value & value) {return value.get<double>();}
  static double number_or_zero(const Value & value)
  {
    return value.is_null() ? 0.0 : value.get<double>();
  }
  static std::int64_t integer(const Value & value) {return value.get<std::int64_t>();}
  static bool flag(const Value & value) {return value.get<bool>();}
  static const std::string & text(const Value & value)
  {
    return value.get_ref<const std::string &>();
  }
  static bool has(const Value & value, const char * key) {return value.contains(key);}
  static const Value & items(const Value & value) {return value;}
  static std::size_t size(const Value & value) {return value.size();}

private:
  Value document_;
};

}  // namespace

int main(int argc, char ** argv)
{
  return rival::run<Nlohmann>(argc, argv);
}
