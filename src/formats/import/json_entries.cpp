#include <nlohmann/json.hpp>

#include "formats/import/entry.h"
#include "formats/strict_json.h"

namespace tessera::formats {
namespace {

using nlohmann::json;

std::string item_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

Entry entry_of(const std::string& key, const json& value, const std::string& where) {
  Entry entry;
  entry.key = key;
  entry.where = where;
  entry.source = key + " = " + value.dump();
  if (value.is_array()) {
    for (const json& element : value) entry.items.push_back(item_of(element));
  } else if (!value.is_object()) {
    entry.items.push_back(item_of(value));
  }
  return entry;
}

/// `prefix` is the way to the object, with a dot at its end.
void flatten(const json& object, const std::string& prefix, const std::string& where,
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
  std::vector<Entry> entries;
  flatten(parse_json_object(text, where), "", where, entries);
  return entries;
}

}  // namespace tessera::formats
