#include "cli/mesh_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "spec/mesh.h"
#include "spec/schedule.h"
#include "spec/stages.h"

namespace tessera::cli {

namespace {

using spec::Coordinate;
using spec::Mesh;

constexpr size_t kMostGroups = 8;
constexpr int64_t kMostRows = 32;

/// "stage 1: blocks 6–11, head".
std::string stage_text(const std::vector<spec::StageLayers>& layers, size_t stage) {
  const spec::StageLayers& of = layers[stage];
  std::vector<std::string> parts;
  if (stage == 0) parts.emplace_back("embedding");
  if (of.num_layers == 1) parts.push_back(fmt::format("block {}", of.first_layer));
  if (of.num_layers > 1) {
    parts.push_back(
        fmt::format("blocks {}–{}", of.first_layer, of.first_layer + of.num_layers - 1));
  }
  if (stage + 1 == layers.size()) parts.emplace_back("head");
  return fmt::format("stage {}: {}", stage, fmt::join(parts, ", "));
}

/// "tp  0 1 | 2 3", the groups that `key` tells apart, in the order of their first ranks.
std::string groups_text(const Mesh& mesh, const std::string& name,
                        const std::function<Coordinate(Coordinate)>& first_of) {
  std::vector<std::vector<int64_t>> groups;
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    const int64_t first = mesh.rank_of(first_of(mesh.at(rank)));
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [first](const auto& group) { return group[0] == first; });
    if (same != groups.end()) {
      same->push_back(rank);
    } else if (groups.size() <= kMostGroups) {
      groups.push_back({rank});
    }
  }
  std::string text = fmt::format("  {:<10}", name);
  for (size_t i = 0; i < std::min(groups.size(), kMostGroups); ++i) {
    text += fmt::format("{}{}", i > 0 ? " | " : "", fmt::join(groups[i], " "));
  }
  return text + (groups.size() > kMostGroups ? " | …\n" : "\n");
}

/// Ranks of the first and last stage that hold copies of one embedding.
std::string embedding_text(const Mesh& mesh, int64_t first, int64_t last) {
  std::string text = fmt::format("  {:<10}", "embedding");
  size_t shown = 0;
  for (int64_t dp = 0; dp < mesh.dp; ++dp) {
    for (int64_t tp = 0; tp < mesh.tp; ++tp, ++shown) {
      if (shown == kMostGroups) return text + " | …\n";
      text += fmt::format("{}{} {}", shown > 0 ? " | " : "", mesh.rank_of({first, dp, 0, tp}),
                          mesh.rank_of({last, dp, 0, tp}));
    }
  }
  return text + "\n";
}

std::string rows_text(const spec::RunConfig& config, const Mesh& mesh,
                      const spec::Schedule& schedule) {
  const std::vector<spec::StageLayers> layers = spec::stage_layers(config);
  std::string text =
      fmt::format("  {:>4} {:>4}  {}\n", "pp", "dp", mesh.tp > 1 ? "ranks by tp" : "rank");
  for (int64_t row = 0; row < std::min(mesh.pp * mesh.dp, kMostRows); ++row) {
    const Coordinate at = mesh.at(row * mesh.tp);
    std::vector<int64_t> ranks;
    for (int64_t tp = 0; tp < mesh.tp; ++tp) ranks.push_back(row * mesh.tp + tp);
    text += fmt::format("  {:>4} {:>4}  {}", at.pp, at.dp, fmt::join(ranks, " "));
    if (at.dp == 0) {
      std::vector<std::string> stages;
      for (const int64_t stage : schedule.stages_of(at.pp)) {
        stages.push_back(stage_text(layers, static_cast<size_t>(stage)));
      }
      text += fmt::format("   {}", fmt::join(stages, "; "));
    }
    text += "\n";
  }
  return text + (mesh.pp * mesh.dp > kMostRows ? "  …\n" : "");
}

}  // namespace

bool has_mesh(const spec::RunConfig& config) {
  return spec::ranks_of_replica(config.parallelism) > 1;
}

std::string mesh_table(const spec::RunConfig& config) {
  const Mesh mesh = spec::mesh_of(config.parallelism);
  const spec::Schedule schedule = spec::schedule_of(config);
  std::string text = fmt::format("mesh of {} ranks: pp {} × dp {} × tp {}\n", mesh.size(), mesh.pp,
                                 mesh.dp, mesh.tp);
  text += rows_text(config, mesh, schedule);
  text += "groups:\n";
  if (mesh.tp > 1) {
    text += groups_text(mesh, "tp", [](Coordinate at) { return at.tp = 0, at; });
  }
  if (mesh.dp > 1) {
    text += groups_text(mesh, "dp", [](Coordinate at) { return at.dp = 0, at; });
  }
  if (mesh.pp > 1) {
    text += groups_text(mesh, "pp", [](Coordinate at) { return at.pp = 0, at; });
  }
  const int64_t first = schedule.rank_of_stage.front(), last = schedule.rank_of_stage.back();
  if (config.model.tie_word_embeddings && first != last) text += embedding_text(mesh, first, last);
  return text;
}

}  // namespace tessera::cli
