#include "formats/strict_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace tessera::formats {

using nlohmann::json;

nlohmann::json parse_json_object(std::string_view text, const std::string& where) {
  constexpr int kMaxDepth = 64;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) throw core::ConfigError(where + ": its JSON is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) {
        throw core::ConfigError(fmt::format(
            "{}: \"{}\" stands there twice; which value is meant is not known", where, key));
      }
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, watch);
  } catch (const json::exception& error) {
    // The library's own words tell line and column: "… parse error at line 3, column 5: …".
    throw core::ConfigError(fmt::format("{}: not JSON: {}", where, error.what()));
  }
  if (!value.is_object()) throw core::ConfigError(where + ": not a JSON object, {…}");
  return value;
}

nlohmann::json read_json_object(const std::string& path) {
  std::string text;
  try {
    text = core::read_file(path);
  } catch (const core::RunError& error) {
    throw core::ConfigError(error.what());
  }
  return parse_json_object(text, path);
}

}  // namespace tessera::formats
