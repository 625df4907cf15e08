#include "data/json_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "core/file.h"

namespace tessera::data {

using Json = nlohmann::json;

void JsonFile::refuse(const std::string& why) const {
  throw core::ConfigError(fmt::format("The tokenizer \"{}\" {}", where_, why));
}

Json JsonFile::object(std::string_view text, std::string_view name) const {
  const std::string subject = name.empty() ? "" : fmt::format("has a {} that ", name);
  if (core::is_lfs_pointer(text)) {
    refuse(subject + "is a Git LFS pointer, not the file itself: run git lfs pull in its folder.");
  }
  // Of a key that is there twice the last would win in silence: another id for a token.
  std::vector<std::unordered_set<std::string>> keys;
  const auto watch = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second) {
        refuse(fmt::format("{}names {} twice.", subject, shown(key)));
      }
    }
    return true;
  };
  Json value = Json::parse(text, watch, false);
  if (value.is_discarded()) {
    refuse(subject + "is not valid JSON. It may be cut off: copy it again.");
  }
  if (!value.is_object()) refuse(subject + "is JSON, but not an object.");
  return value;
}

const Json& JsonFile::at(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string JsonFile::text(const Json& object, const char* key) const {
  const Json& value = at(object, key);
  if (value.is_null()) return {};
  if (!value.is_string()) refuse(fmt::format("has {} = {}, which is no text.", key, shown(value)));
  return value.get<std::string>();
}

bool JsonFile::flag(const Json& object, const char* key, bool otherwise) const {
  const Json& value = at(object, key);
  if (value.is_null()) return otherwise;
  if (!value.is_boolean()) {
    refuse(fmt::format("has {} = {}, which is neither true nor false.", key, shown(value)));
  }
  return value.get<bool>();
}

int64_t JsonFile::id(const Json& value, const std::string& token) const {
  if (value.is_number_unsigned() && value.get<uint64_t>() <= INT32_MAX) return value.get<int64_t>();
  refuse(fmt::format("gives token {} the id {}, which is no whole number from 0 to 2147483647.",
                     shown(token), shown(value)));
}

std::string JsonFile::shown(const std::string& text) {
  return shown(Json(text));
}

std::string JsonFile::shown(const Json& value, int depth) {
  constexpr size_t kLong = 120;
  if (!value.is_structured()) {
    std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() > kLong ? text.substr(0, kLong) + "…" : text;
  }
  std::string text(1, value.is_object() ? '{' : '[');
  bool first = true;
  for (const auto& [key, member] : value.items()) {
    if (!first) text += ", ";
    first = false;
    if (depth == 0 || text.size() > kLong) {
      text += "…";
      break;
    }
    if (value.is_object()) text += shown(key) + ": ";
    text += shown(member, depth - 1);
  }
  return text + (value.is_object() ? '}' : ']');
}

}  // namespace tessera::data
