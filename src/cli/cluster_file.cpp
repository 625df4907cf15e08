#include "cli/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cli/flag_reader.h"
#include "core/file.h"
#include "formats/toml_leaves.h"
#include "spec/nearest.h"

namespace tessera::cli {

namespace {

using formats::TomlLeaf;
using plan::Cluster;
using spec::Violation;

/// A key of a cluster file, and the field that it sets.
struct Field {
  std::string_view key;
  std::function<double*(Cluster&)> number;
  std::function<int64_t*(Cluster&)> count;
  std::function<std::string*(Cluster&)> text;
  double least = 0;
};

Field number(std::string_view key, std::function<double*(Cluster&)> field) {
  Field made;
  made.key = key;
  made.number = std::move(field);
  return made;
}

/// One that is divided by.
Field rate(std::string_view key, std::function<double*(Cluster&)> field) {
  Field made = number(key, std::move(field));
  made.least = kLeastRate;
  return made;
}

Field count(std::string_view key, std::function<int64_t*(Cluster&)> field) {
  Field made;
  made.key = key;
  made.count = std::move(field);
  made.least = 1;
  return made;
}

Field text(std::string_view key, std::function<std::string*(Cluster&)> field) {
  Field made;
  made.key = key;
  made.text = std::move(field);
  return made;
}

const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      text("cluster.name", [](Cluster& c) { return &c.name; }),
      text("cluster.source", [](Cluster& c) { return &c.source; }),
      count("cluster.devices_per_node", [](Cluster& c) { return &c.devices_per_node; }),
      number("cluster.usd_per_device_hour", [](Cluster& c) { return &c.usd_per_device_hour; }),
      text("device.name", [](Cluster& c) { return &c.device.name; }),
      number("device.fp32_flops", [](Cluster& c) { return &c.device.fp32_flops; }),
      rate("device.bf16_flops", [](Cluster& c) { return &c.device.bf16_flops; }),
      number("device.fp8_flops", [](Cluster& c) { return &c.device.fp8_flops; }),
      number("device.fp4_flops", [](Cluster& c) { return &c.device.fp4_flops; }),
      count("device.memory_bytes", [](Cluster& c) { return &c.device.memory_bytes; }),
      rate("device.memory_bytes_per_s", [](Cluster& c) { return &c.device.memory_bytes_per_s; }),
      count("device.units", [](Cluster& c) { return &c.device.units; }),
      rate("intra.bytes_per_s", [](Cluster& c) { return &c.intra.bytes_per_s; }),
      number("intra.latency_s", [](Cluster& c) { return &c.intra.latency_s; }),
      rate("inter.bytes_per_s", [](Cluster& c) { return &c.inter.bytes_per_s; }),
      number("inter.latency_s", [](Cluster& c) { return &c.inter.latency_s; }),
  };
  return all;
}
constexpr double kMostCounted = 1e18;  // fits in 64 bits
constexpr std::string_view kBase = "cluster.base", kFamily = "device.family";

/// Presets that begin like the name, or the nearest, or all.
std::string nearest_preset(std::string_view name) {
  std::vector<std::string_view> names;
  std::vector<std::string> all, alike;
  for (const Cluster& preset : plan::cluster_presets()) {
    names.push_back(preset.name);
    all.push_back(preset.name);
    if (!name.empty() && preset.name.starts_with(name)) alike.push_back(preset.name);
  }
  if (!alike.empty()) return spec::join_or(alike);
  const std::string_view nearest = spec::nearest_name(name, names);
  return nearest.empty() ? spec::join_or(all) + ", or the path of a TOML file"
                         : std::string(nearest);
}

/// The number that a leaf holds; nothing where it holds none.
std::optional<double> number_of(const TomlLeaf& leaf) {
  if (!leaf.value) return std::nullopt;
  if (const auto* whole = std::get_if<int64_t>(&*leaf.value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&*leaf.value)) return *real;
  return std::nullopt;
}

std::optional<plan::Family> family_of(std::string_view name) {
  for (size_t i = 0; i < plan::kNumFamilies; ++i) {
    if (name == plan::name_of(static_cast<plan::Family>(i))) return static_cast<plan::Family>(i);
  }
  return std::nullopt;
}

class ClusterReader {
 public:
  ClusterReader(const std::string& where, std::vector<Violation>& violations)
      : where_(where), violations_(violations) {}

  Cluster read(const std::vector<TomlLeaf>& leaves) {
    read_base(leaves);
    for (const TomlLeaf& leaf : leaves) {
      if (leaf.table || leaf.key == kBase) continue;
      if (leaf.key == kFamily) {
        read_family(leaf);
      } else {
        read_field(leaf);
      }
    }
    return std::move(cluster_);
  }

 private:
  void add(const TomlLeaf& leaf, std::string why, std::string suggest) {
    violations_.push_back({leaf.key, leaf.text, std::move(why), std::move(suggest),
                           fmt::format("{}:{}", where_, leaf.line)});
  }

  void read_base(const std::vector<TomlLeaf>& leaves) {
    cluster_ = *plan::find_cluster("h100-80g");
    cluster_.name = where_;
    cluster_.source = where_;
    const auto leaf = std::find_if(leaves.begin(), leaves.end(),
                                   [](const TomlLeaf& each) { return each.key == kBase; });
    if (leaf == leaves.end()) {
      violations_.push_back({std::string(kBase), "", "is missing: keys left out come from a preset",
                             nearest_preset(""), where_});
      return;
    }
    const std::string name = leaf->items.empty() ? "" : leaf->items.front();
    const Cluster* preset = plan::find_cluster(name);
    if (preset == nullptr) return add(*leaf, "is no cluster preset", nearest_preset(name));
    cluster_ = *preset;
    cluster_.name = where_;
    cluster_.source = where_ + ", else " + preset->source;
  }

  void read_family(const TomlLeaf& leaf) {
    const auto family = family_of(leaf.items.empty() ? "" : leaf.items.front());
    if (family) {
      cluster_.device.family = *family;
      return;
    }
    std::vector<std::string> names;
    for (size_t i = 0; i < plan::kNumFamilies; ++i) {
      names.emplace_back(plan::name_of(static_cast<plan::Family>(i)));
    }
    add(leaf, "is no family of devices whose constants there are", spec::join_or(names));
  }

  void read_field(const TomlLeaf& leaf) {
    const auto field = std::find_if(fields().begin(), fields().end(),
                                    [&](const Field& each) { return each.key == leaf.key; });
    if (field == fields().end()) {
      std::vector<std::string_view> keys = {kBase, kFamily};
      for (const Field& each : fields()) keys.push_back(each.key);
      return add(leaf, "is no key of a cluster", std::string(spec::nearest_name(leaf.key, keys)));
    }
    if (field->text) {
      if (!leaf.value || !std::holds_alternative<std::string>(*leaf.value)) {
        return add(leaf, "is not a text", "\"…\"");
      }
      *field->text(cluster_) = leaf.items.front();
      return;
    }
    const std::optional<double> value = number_of(leaf);
    const double most = field->count ? kMostCounted : kMostOfAnything;
    if (!value || !(*value >= field->least) || *value > most) {
      return add(leaf, "is not a number " + range_text(field->least, most), "");
    }
    if (field->count) {
      *field->count(cluster_) = static_cast<int64_t>(*value);
    } else {
      *field->number(cluster_) = *value;
    }
  }

  const std::string& where_;
  std::vector<Violation>& violations_;
  Cluster cluster_;
};

/// The leaves of a text; none, and a violation, where it is not TOML.
std::vector<TomlLeaf> leaves_of(const std::string& toml, const std::string& where,
                                std::vector<Violation>& violations) {
  formats::TomlLeaves read = formats::read_toml(toml);
  if (!read.error) return std::move(read.leaves);
  violations.push_back({where, "", "is not TOML here: " + read.error->why, "",
                        fmt::format("{}:{}:{}", where, read.error->line, read.error->column)});
  return {};
}

std::optional<std::string> text_of(const std::string& path, std::vector<Violation>& violations) {
  try {
    return core::read_file(path);
  } catch (const core::FileError& error) {
    violations.push_back({path, "", error.what(), "", ""});
    return std::nullopt;
  }
}

/// The links inside a node, and between nodes, by the names of what carries messages.
plan::Link* link_of(Cluster& cluster, std::string_view name) {
  if (name == "intra" || name == "shm" || name == "thread") return &cluster.intra;
  if (name == "inter" || name == "mpi") return &cluster.inter;
  return nullptr;
}

}  // namespace

Cluster parse_cluster(const std::string& toml, const std::string& where,
                      std::vector<Violation>& violations) {
  const size_t before = violations.size();
  const std::vector<TomlLeaf> leaves = leaves_of(toml, where, violations);
  if (violations.size() > before) return *plan::find_cluster("h100-80g");
  return ClusterReader(where, violations).read(leaves);
}

Cluster read_cluster(const std::string& name_or_path, std::vector<Violation>& violations) {
  if (const Cluster* preset = plan::find_cluster(name_or_path)) return *preset;
  std::error_code unknown;
  if (name_or_path.ends_with(".toml") || std::filesystem::exists(name_or_path, unknown)) {
    if (const auto text = text_of(name_or_path, violations)) {
      return parse_cluster(*text, name_or_path, violations);
    }
  } else {
    violations.push_back({"cluster", name_or_path, "is neither a preset nor a file",
                          nearest_preset(name_or_path), "--cluster"});
  }
  return *plan::find_cluster("h100-80g");
}

void parse_links(const std::string& toml, const std::string& where, Cluster& cluster,
                 std::vector<Violation>& violations) {
  const size_t before = violations.size();
  size_t links = 0;
  for (const TomlLeaf& leaf : leaves_of(toml, where, violations)) {
    if (leaf.key != "link") {
      violations.push_back({leaf.key, leaf.text, "is no key of a file of links", "link", where});
      continue;
    }
    for (const std::string& item : leaf.items) {
      std::string name;
      plan::Link read;
      for (const TomlLeaf& part : leaves_of(item, where, violations)) {
        if (part.key == "name" && !part.items.empty()) name = part.items.front();
        if (part.key == "latency_s") read.latency_s = number_of(part).value_or(-1);
        if (part.key == "bytes_per_s") read.bytes_per_s = number_of(part).value_or(0);
      }
      plan::Link* link = link_of(cluster, name);
      if (link == nullptr) {
        violations.push_back({"link.name", name, "does not say where the link is",
                              "intra, shm, thread, inter or mpi", where});
      } else if (!(read.latency_s >= 0) || !(read.bytes_per_s >= kLeastRate) ||
                 read.latency_s > kMostOfAnything || read.bytes_per_s > kMostOfAnything) {
        violations.push_back(
            {"link", name, "needs a latency_s from 0 up and bytes_per_s " + range_text(kLeastRate),
             "the file that tessera bench comm --links writes", where});
      } else {
        *link = read;
        ++links;
      }
    }
  }
  if (links == 0 && violations.size() == before) {
    violations.push_back({"link", "", "is missing: the file names no link",
                          "the file that tessera bench comm --links writes", where});
  }
}

void read_links(const std::string& path, Cluster& cluster, std::vector<Violation>& violations) {
  if (const auto text = text_of(path, violations)) parse_links(*text, path, cluster, violations);
}

}  // namespace tessera::cli
