#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/import/entry.h"

namespace tessera::formats {
namespace {

using nlohmann::ordered_json;

std::string item_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Entry entry_of(const std::string& key, const ordered_json& value, const std::string& where) {
  Entry entry;
  entry.key = key;
  entry.where = where;
  entry.source = key + " = " + value.dump();
  if (value.is_array()) {
    for (const ordered_json& element : value) entry.items.push_back(item_of(element));
  } else if (!value.is_object()) {
    entry.items.push_back(item_of(value));
  }
  return entry;
}

/// `prefix` is the way to the object, with a dot at its end.
void flatten(const ordered_json& object, const std::string& prefix, const std::string& where,
             std::vector<Entry>& entries) {
  for (const auto& item : object.items()) {
    if (item.value().is_object() && !item.value().empty()) {
      flatten(item.value(), prefix + item.key() + ".", where, entries);
    } else {
      entries.push_back(entry_of(prefix + item.key(), item.value(), where));
    }
  }
}
}  // namespace

std::vector<Entry> read_json_entries(const std::string& text, const std::string& where) {
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, ordered_json::parse_event_t event, ordered_json& parsed) {
    if (depth > kMaxImportDepth) {
      throw core::ConfigError(where + ": is nested too deeply for a configuration");
    }
    if (event == ordered_json::parse_event_t::object_start) names.emplace_back();
    if (event == ordered_json::parse_event_t::object_end) names.pop_back();
    if (event == ordered_json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!names.back().insert(name).second) {
        throw core::ConfigError(
            fmt::format("{}: names \"{}\" twice in one object; remove one of them", where, name));
      }
    }
    return true;
  };
  ordered_json document;
  try {
    document = ordered_json::parse(text, watch);
  } catch (const ordered_json::exception& error) {
    throw core::ConfigError(fmt::format("{}: is not JSON: {}", where, error.what()));
  }
  if (!document.is_object()) throw core::ConfigError(where + ": is not a JSON object");
  std::vector<Entry> entries;
  flatten(document, "", where, entries);
  return entries;
}

}  // namespace tessera::formats
