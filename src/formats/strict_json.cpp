#include "formats/strict_json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace tessera::formats {

using nlohmann::json;

json parse_json(std::string_view text, int max_depth, const Refuse& refuse) {
  if (core::is_lfs_pointer(text)) {
    refuse("a Git LFS pointer, not the file itself: run git lfs pull in its folder");
  }
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > max_depth) refuse("its JSON is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!keys.back().insert(key).second) {
        refuse("\"" + key + "\" stands there twice; which value is meant is not known");
      }
    }
    return true;
  };
  try {
    return json::parse(text, watch);
  } catch (const json::exception& error) {
    // The library's own words tell line and column: "… parse error at line 3, column 5: …".
    refuse(std::string("not JSON: ") + error.what());
  }
  return {};
}

json parse_json_object(std::string_view text, const std::string& where) {
  constexpr int kMaxDepth = 64;
  json value = parse_json(text, kMaxDepth, [&](const std::string& why) {
    throw core::ConfigError(where + ": " + why);
  });
  if (!value.is_object()) throw core::ConfigError(where + ": not a JSON object, {…}");
  return value;
}

json read_json_object(const std::string& path) {
  std::string text;
  try {
    text = core::read_file(path);
  } catch (const core::RunError& error) {
    throw core::ConfigError(error.what());
  }
  return parse_json_object(text, path);
}

}  // namespace tessera::formats
