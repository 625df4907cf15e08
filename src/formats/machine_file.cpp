#include "formats/machine_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/strict_json.h"
#include "formats/toml_leaves.h"

namespace tessera::formats {

namespace {

using account::LinkTimes;
using account::MachineTimes;
using account::StateTimes;
using account::UnitKind;
using account::UnitTimes;
using core::ConfigError;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

/// A field of an entry and its key: one list for reading and writing.
template <class Entry>
struct Seconds {
  const char* key;
  double Entry::* value;
};
constexpr Seconds<UnitTimes> kUnitSeconds[] = {
    {"forward_s", &UnitTimes::forward_s},
    {"backward_s", &UnitTimes::backward_s},
    {"backward_input_s", &UnitTimes::backward_input_s},
    {"backward_weight_s", &UnitTimes::backward_weight_s},
    {"stream_forward_s", &UnitTimes::stream_forward_s},
    {"stream_backward_s", &UnitTimes::stream_backward_s}};
constexpr Seconds<StateTimes> kStateSeconds[] = {
    {"zero_s_per_element", &StateTimes::zero_s},
    {"norm_s_per_element", &StateTimes::norm_s},
    {"optimizer_s_per_element", &StateTimes::optimizer_s},
    {"copy_s_per_element", &StateTimes::copy_s}};
constexpr Seconds<LinkTimes> kLinkSeconds[] = {{"latency_s", &LinkTimes::latency_s},
                                               {"bytes_per_s", &LinkTimes::bytes_per_s}};

/// One entry of a file, and how messages call it.
class Reader {
 public:
  Reader(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw ConfigError(where_ + " is no JSON object");
  }

  std::string text(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_string()) throw refusal(key, "a text");
    return value.get<std::string>();
  }
  int64_t count(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < 0) throw refusal(key, "a count");
    return value.get<int64_t>();
  }
  double seconds(const char* key) const {
    const nlohmann::json& value = at(key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!(number >= 0) || !std::isfinite(number)) throw refusal(key, "a number of 0 or more");
    return number;
  }
  /// The entries of a list, each with its place.
  std::vector<Reader> entries(const char* key) const {
    const nlohmann::json& list = at(key);
    if (!list.is_array()) throw refusal(key, "a list");
    std::vector<Reader> entries;
    for (size_t i = 0; i < list.size(); ++i) {
      entries.emplace_back(list[i], fmt::format("{}: {}[{}]", where_, key, i));
    }
    return entries;
  }
  template <class Entry, size_t N>
  void read(Entry& entry, const Seconds<Entry> (&fields)[N]) const {
    for (const Seconds<Entry>& field : fields) entry.*field.value = seconds(field.key);
  }
  ConfigError refusal(const char* key, const char* expected) const {
    return ConfigError(
        fmt::format("{}: {} = {} is not {}; `tessera bench kernels --out` writes such a file",
                    where_, key, json_.at(key).dump(), expected));
  }

 private:
  const nlohmann::json& at(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) {
      throw ConfigError(fmt::format(
          "{} has no \"{}\"; `tessera bench kernels --out` writes a whole file", where_, key));
    }
    return *found;
  }

  const nlohmann::json& json_;
  std::string where_;
};

template <class Entry, size_t N>
void add(Json& json, const Entry& entry, const Seconds<Entry> (&fields)[N]) {
  for (const Seconds<Entry>& field : fields) json[field.key] = entry.*field.value;
}

UnitTimes unit_of(const Reader& entry) {
  UnitTimes unit;
  const std::string kind = entry.text("kind");
  const auto known = std::find_if(std::begin(account::kUnitKinds), std::end(account::kUnitKinds),
                                  [&](UnitKind each) { return kind == account::name_of(each); });
  if (known == std::end(account::kUnitKinds)) {
    throw entry.refusal("kind", "embedding, block or head");
  }
  unit.kind = *known;
  unit.shape = entry.text("shape");
  unit.company = {entry.count("ranks"), entry.count("threads")};
  entry.read(unit, kUnitSeconds);
  return unit;
}

StateTimes state_of(const Reader& entry) {
  StateTimes state;
  state.shape = entry.text("shape");
  state.company = {entry.count("ranks"), entry.count("threads")};
  entry.read(state, kStateSeconds);
  return state;
}

LinkTimes link_of(const Reader& entry) {
  LinkTimes link;
  link.collective = entry.text("collective");
  link.name = entry.text("name");
  link.ranks = entry.count("ranks");
  entry.read(link, kLinkSeconds);
  return link;
}

}  // namespace

std::string to_json(const MachineTimes& machine) {
  Json units = Json::array(), states = Json::array(), links = Json::array();
  for (const UnitTimes& unit : machine.units) {
    units.push_back({{"kind", account::name_of(unit.kind)},
                     {"shape", unit.shape},
                     {"ranks", unit.company.ranks},
                     {"threads", unit.company.threads}});
    add(units.back(), unit, kUnitSeconds);
  }
  for (const StateTimes& state : machine.states) {
    states.push_back({{"shape", state.shape},
                      {"ranks", state.company.ranks},
                      {"threads", state.company.threads}});
    add(states.back(), state, kStateSeconds);
  }
  for (const LinkTimes& link : machine.links) {
    links.push_back({{"collective", link.collective}, {"name", link.name}, {"ranks", link.ranks}});
    add(links.back(), link, kLinkSeconds);
  }
  const Json json = {{"tessera_kernels", kVersion},
                     {"device", machine.device},
                     {"cores", machine.cores},
                     {"units", units},
                     {"states", states},
                     {"collectives", links}};
  return json.dump(2) + "\n";
}

MachineTimes parse_machine_times(const std::string& text, const std::string& where) {
  const nlohmann::json json = parse_json_object(text, where);
  const Reader file(json, where);
  if (file.count("tessera_kernels") != kVersion) {
    throw file.refusal("tessera_kernels", "the version of this program's kernels files, 1");
  }
  MachineTimes machine;
  machine.device = file.text("device");
  machine.cores = file.count("cores");
  for (const Reader& entry : file.entries("units")) machine.units.push_back(unit_of(entry));
  for (const Reader& entry : file.entries("states")) machine.states.push_back(state_of(entry));
  for (const Reader& entry : file.entries("collectives")) {
    machine.links.push_back(link_of(entry));
  }
  return machine;
}

std::vector<LinkTimes> parse_links(const std::string& text, const std::string& where) {
  const TomlTables read = read_toml_tables(text, "link");
  if (read.error) {
    throw ConfigError(
        fmt::format("{}:{}:{}: {}", where, read.error->line, read.error->column, read.error->why));
  }
  std::vector<LinkTimes> links;
  for (const std::vector<TomlLeaf>& table : read.tables) {
    nlohmann::json json = {{"collective", ""}};
    for (const TomlLeaf& leaf : table) {
      if (!leaf.value) continue;
      if (const auto* name = std::get_if<std::string>(&*leaf.value)) json[leaf.key] = *name;
      if (const auto* count = std::get_if<int64_t>(&*leaf.value)) json[leaf.key] = *count;
      if (const auto* real = std::get_if<double>(&*leaf.value)) json[leaf.key] = *real;
    }
    links.push_back(link_of(Reader(json, fmt::format("{}: [[link]] {}", where, links.size() + 1))));
  }
  if (links.empty()) {
    throw ConfigError(where + " has no [[link]]; `tessera bench comm --links` writes one");
  }
  return links;
}

}  // namespace tessera::formats
