#include "train/copy_hashes.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/hash.h"
#include "parallel/whole_state.h"

namespace tessera::train {

namespace {

using core::ConstView;
using core::DType;

/// A hash of some parameters.
class Hash {
 public:
  void add(ConstView values) {
    hash_.update(values.data, values.bytes());
    empty_ = false;
  }
  int64_t value() const {
    if (empty_) return 0;
    return static_cast<int64_t>(std::stoull(hash_.hex().substr(0, 16), nullptr, 16));
  }

 private:
  formats::Xxh3 hash_;
  bool empty_ = true;
};

std::string describe(int64_t rank, int64_t other, const char* why) {
  return fmt::format("rank {} ends with other weights than rank {}: {}", rank, other, why);
}

}  // namespace

CopyHashes hash_copies(parallel::ModelState& state, parallel::MeshGroups& groups) {
  const account::ParameterTable& table = state.table();
  const int64_t tp = groups.mesh().tp;
  const bool tied = groups.embedding().size() > 1;
  Hash part, replicated, key_values, embedding;
  const auto add = [&](const account::Parameter& parameter, ConstView values) {
    part.add(values);
    if (parameter.copies > 1) (parameter.copies == tp ? replicated : key_values).add(values);
    const account::Unit& unit = table.units[static_cast<size_t>(parameter.unit)];
    if (tied && unit.kind == account::UnitKind::embedding) embedding.add(values);
  };
  if (state.sharding().shards_weights()) {
    parallel::visit_part(state, groups.data_parallel(), parallel::StateKind::weights, add);
  } else {
    for (const account::Parameter& parameter : table.parameters) {
      add(parameter, state.parameters().get(parameter).value);
    }
  }
  return {part.value(), replicated.value(), key_values.value(), embedding.value()};
}

std::vector<CopyHashes> gather_copy_hashes(const CopyHashes& mine, parallel::MeshGroups& groups) {
  constexpr int64_t kNumbers = sizeof(CopyHashes) / sizeof(int64_t);
  const int64_t size = groups.world().size();
  std::vector<CopyHashes> all(static_cast<size_t>(size));
  groups.world().all_gather(core::View{all.data(), DType::i64, {size * kNumbers}},
                            ConstView{&mine, DType::i64, {kNumbers}});
  return all;
}

std::string find_differing_copy(const std::vector<CopyHashes>& ranks, const spec::Mesh& mesh,
                                int64_t kv_copies) {
  const auto of = [&](int64_t rank) { return ranks[static_cast<size_t>(rank)]; };
  for (int64_t rank = 0; rank < mesh.size(); ++rank) {
    const spec::Coordinate at = mesh.at(rank);
    spec::Coordinate first = at;
    first.dp = 0;
    if (of(rank).part != of(mesh.rank_of(first)).part) {
      return describe(rank, mesh.rank_of(first), "data-parallel ranks of one part differ");
    }
    first = at;
    first.tp = 0;
    if (of(rank).replicated != of(mesh.rank_of(first)).replicated) {
      return describe(rank, mesh.rank_of(first),
                      "what tensor parallelism keeps whole on every rank differs");
    }
    first.tp = at.tp - at.tp % std::max<int64_t>(kv_copies, 1);
    if (of(rank).key_values != of(mesh.rank_of(first)).key_values) {
      return describe(rank, mesh.rank_of(first), "copies of the same key-value heads differ");
    }
    for (first = at, first.pp = 0; of(rank).tied != 0 && first.pp < at.pp; ++first.pp) {
      const int64_t other = of(mesh.rank_of(first)).tied;
      if (other == 0 || other == of(rank).tied) continue;
      return describe(rank, mesh.rank_of(first), "the two copies of the tied embedding differ");
    }
  }
  return "";
}

}  // namespace tessera::train
