#pragma once

// What a machine was measured to take for the parts that a training step is made of: units of the
// model (a block, the embedding, the head), the optimizer's passes over the parameters, and
// collectives. `tessera bench kernels` measures them, each by itself; plan/engine_step.h puts a
// step together from them.

#include <cstdint>
#include <string>
#include <vector>

#include "account/parameter_table.h"
#include "account/traffic.h"
#include "spec/run_config.h"

namespace tessera::account {

inline constexpr UnitKind kUnitKinds[] = {UnitKind::embedding, UnitKind::block, UnitKind::head};
/// Collectives that a step needs, as `bench comm` calls them.
inline constexpr const char* kLinkCollectives[] = {"all_reduce", "reduce_scatter", "all_gather",
                                                   "sendrecv"};

/// How many compute at once while something is timed: ranks share caches, memory and the clock.
struct Company {
  int64_t ranks = 1;    ///< on the machine, all at work
  int64_t threads = 1;  ///< of each

  bool operator==(const Company&) const = default;
};

/// One unit and one micro-batch, in seconds: the mean over the ranks.
struct UnitTimes {
  UnitKind kind = UnitKind::block;
  std::string shape;  ///< unit_shape()
  Company company;
  double forward_s = 0;   ///< of the head in training, its backward among it
  double backward_s = 0;  ///< what the config computes again among it
  double backward_input_s = 0, backward_weight_s = 0;  ///< the backward's halves
  /// Of a block: what of the above is done on every row of the residual stream by each
  /// tensor-parallel rank, and which sequence parallelism therefore shares out: norms and sums.
  double stream_forward_s = 0, stream_backward_s = 0;
};

/// Passes over the state of a rank, in seconds an element.
struct StateTimes {
  std::string shape;  ///< state_shape()
  Company company;
  double zero_s = 0;       ///< a gradient set to zero
  double norm_s = 0;       ///< its square added up
  double optimizer_s = 0;  ///< AdamW
  double copy_s = 0;       ///< a gradient copied
};

/// A collective over the groups of `ranks` ranks that the company falls into, all at the same time:
/// it takes hops · latency_s + bytes / bytes_per_s, with hops and bytes as collective_cost() says.
struct LinkTimes {
  std::string collective;  ///< "all_reduce", as `bench comm` has it; "": of any
  std::string name;        ///< what carries it: "shm"
  int64_t ranks = 0;
  double latency_s = 0;
  double bytes_per_s = 0;
};

struct MachineTimes {
  std::string device;  ///< kernels::describe_device()
  int64_t cores = 0;   ///< that all ranks together may use
  std::vector<UnitTimes> units;
  std::vector<StateTimes> states;
  std::vector<LinkTimes> links;
};

/// The model as one of the tensor-parallel ranks computes it: with its heads, its part of the
/// MLP's width and of the vocabulary, and nobody to talk to. `config` is resolved.
spec::ModelConfig tensor_part(const spec::RunConfig& config);

/// All that decides how long a unit takes, as one text: "llama C256 I704 H8 G4 D32 V256 T128 B4
/// bf16 …". Units of the same shape take the same. `batch`: sequences of the micro-batch.
std::string unit_shape(const spec::RunConfig& config, UnitKind kind, int64_t batch);
/// The same of the state: dtypes of weights and gradients.
std::string state_shape(const spec::TrainingConfig& training);

/// Sizes that the micro-batches of some rank have: one, or two where the batch does not divide.
std::vector<int64_t> micro_batch_sizes(const spec::RunConfig& config);

/// Sizes of the groups in which the ranks of a run talk, ascending, the world among them; no 1.
std::vector<int64_t> group_sizes(const spec::RunConfig& config);

/// Hops one after the other, and bytes through the link of a rank, of a collective of `ranks`: as
/// in a ring, though what is measured need not be one.
struct CollectiveCost {
  double hops = 0;
  double bytes = 0;
};
CollectiveCost collective_cost(const Message& message, int64_t ranks);
/// "all_reduce", …
const char* name_of(Collective collective);
/// "embedding", "block", "head".
const char* name_of(UnitKind kind);

/// The entry; nullptr where that was not measured. Of links the one of the collective itself, else
/// of any, with as many ranks.
const UnitTimes* find_unit(const MachineTimes& machine, UnitKind kind, const std::string& shape,
                           const Company& company);
const StateTimes* find_state(const MachineTimes& machine, const std::string& shape,
                             const Company& company);
const LinkTimes* find_link(const MachineTimes& machine, const std::string& collective,
                           int64_t ranks);

/// What a step of the config takes that was not measured in that company, the first of it in words;
/// "" where nothing is missing. `config` is resolved.
std::string missing_times(const spec::RunConfig& config, const Company& company,
                          const MachineTimes& machine);

}  // namespace tessera::account
