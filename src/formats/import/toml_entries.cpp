#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>

#include "core/error.h"
#include "formats/import/entry.h"
#include "spec/options.h"

namespace tessera::formats {
namespace {

std::string written(const toml::node& node) {
  // toml++ writes seventeen digits of a real.
  if (const auto* real = node.as_floating_point()) return spec::to_text(spec::Value{real->get()});
  std::ostringstream out;
  node.visit([&out](const auto& concrete) { out << concrete; });
  return out.str();
}

std::string item_of(const toml::node& node) {
  const auto* text = node.as_string();
  return text != nullptr ? text->get() : written(node);
}

void flatten(const toml::table& table, const std::string& prefix, const std::string& path,
             std::vector<std::pair<uint32_t, Entry>>& found) {
  for (const auto& pair : table) {
    const std::string key = prefix + std::string(pair.first.str());
    const toml::node& node = pair.second;
    const toml::table* inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      flatten(*inner, key + ".", path, found);
      continue;
    }
    const uint32_t line = node.source().begin.line;
    Entry entry;
    entry.key = key;
    entry.where = fmt::format("{}:{}", path, line);
    entry.source = key + " = " + written(node);
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& element : *array) entry.items.push_back(item_of(element));
    } else if (inner == nullptr) {
      entry.items.push_back(item_of(node));
    }
    found.emplace_back(line, std::move(entry));
  }
}

}  // namespace

std::vector<Entry> read_toml_entries(const std::string& text, const std::string& where) {
  std::vector<std::pair<uint32_t, Entry>> found;
  try {
    flatten(toml::parse(text), "", where, found);
  } catch (const toml::parse_error& error) {
    throw core::ConfigError(fmt::format("{}:{}:{}: is not TOML here: {}", where,
                                        error.source().begin.line, error.source().begin.column,
                                        error.description()));
  }
  // A table is in the order of its names.
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Entry> entries;
  for (auto& item : found) entries.push_back(std::move(item.second));
  return entries;
}

}  // namespace tessera::formats
