#include "account/machine_times.h"

#include <algorithm>
#include <set>

#include "account/head_chunks.h"
#include "account/sharding.h"
#include "spec/mesh.h"

namespace tessera::account {

spec::ModelConfig tensor_part(const spec::RunConfig& config) {
  const int64_t tp = config.parallelism.tensor_parallel_degree;
  spec::ModelConfig part = config.model;
  part.num_attention_heads /= tp;
  part.num_key_value_heads = std::max<int64_t>(part.num_key_value_heads / tp, 1);
  part.intermediate_size /= tp;
  part.vocab_size = vocabulary_rows(part.vocab_size, tp);
  return part;
}

namespace {

std::string number(const char* letter, int64_t value) {
  return " " + (letter + std::to_string(value));
}

/// Of a block; the ends of the model have but the width and the vocabulary.
std::string block_shape(const spec::RunConfig& config, const spec::ModelConfig& part) {
  std::string shape = number("I", part.intermediate_size) + number("H", part.num_attention_heads) +
                      number("G", part.num_key_value_heads) + number("D", part.head_dim);
  if (part.qk_norm) shape += " qk_norm";
  if (part.dropout > 0) shape += " dropout";
  if (config.activation_checkpoint.mode == spec::Recompute::full) shape += " full";
  if (config.activation_checkpoint.mode == spec::Recompute::selective) shape += " selective";
  if (config.lora.rank > 0) {
    shape += number("R", config.lora.rank);
    for (const std::string& target : config.lora.targets) shape += " " + target;
  }
  return shape;
}

}  // namespace

std::string unit_shape(const spec::RunConfig& config, UnitKind kind, int64_t batch) {
  const spec::ModelConfig part = tensor_part(config);
  std::string shape = part.architecture == spec::Architecture::llama ? "llama" : "gpt2";
  shape += number("C", part.hidden_size);
  shape += kind == UnitKind::block ? block_shape(config, part) : number("V", part.vocab_size);
  shape += number("T", config.data.seq_len) + number("B", batch);
  if (config.data.document_mask) shape += " documents";
  if (config.training.numerics == spec::Numerics::invariant) shape += " invariant";
  return shape + " " + state_shape(config.training);
}

std::string state_shape(const spec::TrainingConfig& training) {
  return std::string(core::name_of(spec::dtype_of(training.precision))) + "/" +
         core::name_of(spec::gradient_storage(training));
}

std::vector<int64_t> micro_batch_sizes(const spec::RunConfig& config) {
  const int64_t most = config.training.micro_batch_size;
  std::vector<int64_t> sizes;
  const auto add = [&](int64_t size) {
    if (size > 0 && std::find(sizes.begin(), sizes.end(), size) == sizes.end()) {
      sizes.push_back(size);
    }
  };
  const int64_t ranks = config.parallelism.data_parallel_degree;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const int64_t share = spec::batch_share(config.training.global_batch_size, ranks, rank).count;
    if (share >= most) add(most);
    add(share % most);
  }
  return sizes;
}

std::vector<int64_t> group_sizes(const spec::RunConfig& config) {
  const spec::Mesh mesh = spec::mesh_of(config.parallelism);
  const Sharding sharding = sharding_of(config.parallelism);
  std::set<int64_t> sizes = {mesh.tp,         mesh.pp,           mesh.dp,
                             sharding.shards, sharding.replicas, mesh.size()};
  sizes.erase(1);
  return {sizes.begin(), sizes.end()};
}

CollectiveCost collective_cost(const Message& message, int64_t ranks) {
  const auto n = static_cast<double>(ranks);
  // Of an all-gather one rank's part, of the others all of it.
  const auto bytes = static_cast<double>(message.elements * message.element_bytes);
  switch (message.collective) {
    case Collective::all_reduce:
      return {2 * (n - 1), 2 * (n - 1) / n * bytes};
    case Collective::reduce_scatter:
      return {n - 1, (n - 1) / n * bytes};
    case Collective::all_gather:
      return {n - 1, (n - 1) * bytes};
    case Collective::broadcast:
      return {1, bytes};
  }
  return {};
}

const char* name_of(Collective collective) {
  constexpr const char* names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  return names[static_cast<int>(collective)];
}

const char* name_of(UnitKind kind) {
  constexpr const char* names[] = {"embedding", "block", "head"};
  return names[static_cast<int>(kind)];
}

namespace {

template <class Entries, class Matches>
auto find(const Entries& entries, const Matches& matches) {
  const auto found = std::find_if(entries.begin(), entries.end(), matches);
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

const UnitTimes* find_unit(const MachineTimes& machine, UnitKind kind, const std::string& shape,
                           const Company& company) {
  return find(machine.units, [&](const UnitTimes& unit) {
    return unit.kind == kind && unit.shape == shape && unit.company == company;
  });
}

const StateTimes* find_state(const MachineTimes& machine, const std::string& shape,
                             const Company& company) {
  return find(machine.states, [&](const StateTimes& state) {
    return state.shape == shape && state.company == company;
  });
}

const LinkTimes* find_link(const MachineTimes& machine, const std::string& collective,
                           int64_t ranks) {
  const auto of = [&](const std::string& name) {
    return find(machine.links, [&](const LinkTimes& link) {
      return link.collective == name && link.ranks == ranks;
    });
  };
  const LinkTimes* own = of(collective);
  return own != nullptr ? own : of("");
}

std::string missing_times(const spec::RunConfig& config, const Company& company,
                          const MachineTimes& machine) {
  for (const int64_t batch : micro_batch_sizes(config)) {
    for (const UnitKind kind : kUnitKinds) {
      const std::string shape = unit_shape(config, kind, batch);
      if (find_unit(machine, kind, shape, company) == nullptr) return shape;
    }
  }
  const std::string state = state_shape(config.training);
  if (find_state(machine, state, company) == nullptr) return "the optimizer, " + state;
  for (const int64_t size : group_sizes(config)) {
    if (find_link(machine, kLinkCollectives[0], size) == nullptr) {
      return "collectives of " + std::to_string(size) + " ranks";
    }
  }
  return "";
}

}  // namespace tessera::account
