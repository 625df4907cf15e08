#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "core/error.h"
#include "formats/import/entry.h"

namespace tessera::formats {
namespace {

/// Documents may nest this deep; deeper is refused, like aliases that lead in a circle.
constexpr int kMaxDepth = 32;
/// And have so many keys, however they are repeated by aliases.
constexpr size_t kMaxEntries = 20'000;

class Flattener {
 public:
  Flattener(const std::string& path, std::vector<Entry>& entries)
      : path_(path), entries_(entries) {}

  /// `prefix` is the way to the mapping, with a dot at its end.
  void add_all(const YAML::Node& mapping, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) refuse(mapping, "is nested too deeply, or an alias holds itself");
    for (const auto& pair : mapping) {
      if (!pair.first.IsScalar()) refuse(pair.first, "has a key that is no text");
      const std::string key = prefix + pair.first.Scalar();
      if (pair.second.IsMap() && pair.second.size() > 0) {
        add_all(pair.second, key + ".", depth + 1);
      } else {
        add(pair.second, key);
      }
    }
  }

 private:
  void add(const YAML::Node& node, const std::string& key) {
    if (entries_.size() >= kMaxEntries) refuse(node, "has too many keys for a configuration");
    Entry entry;
    entry.key = key;
    entry.where = place(node);
    if (node.IsSequence()) {
      for (const YAML::Node& element : node) entry.items.push_back(item_of(element));
    } else if (!node.IsMap()) {
      entry.items.push_back(item_of(node));
    }
    entry.source = key;
    for (const std::string& item : entry.items) {
      entry.source += (&item == &entry.items.front() ? ": " : ", ") + item;
    }
    entries_.push_back(std::move(entry));
  }

  std::string place(const YAML::Node& node) const {
    const int line = node.Mark().line;
    return line < 0 ? path_ : fmt::format("{}:{}", path_, line + 1);
  }

  [[noreturn]] void refuse(const YAML::Node& node, const char* why) const {
    throw core::ConfigError(place(node) + ": " + why);
  }

  static std::string item_of(const YAML::Node& node) {
    if (node.IsScalar()) return node.Scalar();
    if (node.IsNull() || !node.IsDefined()) return "null";
    return node.IsMap() ? "{…}" : "[…]";
  }

  const std::string& path_;
  std::vector<Entry>& entries_;
};

}  // namespace

std::vector<Entry> read_yaml_entries(const std::string& text, const std::string& where) {
  std::vector<Entry> entries;
  try {
    const YAML::Node document = YAML::Load(text);
    if (!document.IsMap()) throw core::ConfigError(where + ": is not a YAML mapping");
    Flattener(where, entries).add_all(document, "", 0);
  } catch (const YAML::DeepRecursion& error) {
    throw core::ConfigError(
        fmt::format("{}:{}: is nested too deeply", where, std::max(error.mark.line, 0) + 1));
  } catch (const YAML::Exception& error) {
    throw core::ConfigError(fmt::format("{}:{}: is not YAML here: {}", where,
                                        error.mark.line < 0 ? 1 : error.mark.line + 1, error.msg));
  }
  return entries;
}

}  // namespace tessera::formats
