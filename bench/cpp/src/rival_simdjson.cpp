// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
// Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except
// in compliance with the License. You may obtain a copy of the License at
// http://www.apache.org/licenses/LICENSE-2.0 Unless required by applicable law or agreed to in
// writing, software distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
// WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
// specific language governing permissions and limitations under the License.
//
// The driver with the document object model of simdjson.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rival.hpp"
#include "simdjson.h"

namespace
{

using simdjson::dom::element;

class Simdjson
{
public:
  using Value = element;

  element parse(const char * payload, std::size_t size)
  {
    static_assert(rival::PADDING_BYTES >= simdjson::SIMDJSON_PADDING);
    return parser_.parse(payload, size, false);
  }

  static double number(element value) {return value.get_double();}
  static double number_or_zero(element value)
  {
    return value.is_null() ? 0.0 : value.get_double().value();
  }
  static std::int64_t integer(element value) {return value.get_int64();}
  static bool flag(element value) {return value.get_bool();}
  static std::string_view text(element value) {return value.get_string();}
  static bool has(element value, const char * key)
  {
    return value.at_key(key).error() == simdjson::SUCCESS;
  }
  static simdjson::dom::array items(element value) {return value.get_array();}
  static std::size_t size(element value) {return items(value).size();}

private:
  simdjson::dom::parser parser_;
};

}  // namespace

int main(int argc, char ** argv)
{
  return rival::run<Simdjson>(argc, argv);
}
