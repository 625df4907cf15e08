#include <fmt/format.h>

#include "core/error.h"
#include "formats/import/entry.h"
#include "formats/toml_leaves.h"

namespace tessera::formats {

std::vector<Entry> read_toml_entries(const std::string& text, const std::string& where) {
  const TomlLeaves read = read_toml(text);
  if (read.error) {
    throw core::ConfigError(fmt::format("{}:{}:{}: is not TOML here: {}", where, read.error->line,
                                        read.error->column, read.error->why));
  }
  std::vector<Entry> entries;
  for (const TomlLeaf& leaf : read.leaves) {
    Entry entry;
    entry.key = leaf.key;
    entry.items = leaf.items;
    entry.source = leaf.key + " = " + leaf.text;
    entry.where = fmt::format("{}:{}", where, leaf.line);
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tessera::formats
