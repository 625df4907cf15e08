#pragma once

#include <array>
#include <string>
#include <tuple>
#include <vector>

#include "account/rank_plan.h"
#include "comm/traffic.h"
#include "core/memory.h"
#include "parallel/mesh_groups.h"
#include "parallel/pipeline/pipeline.h"
#include "spec/run_config.h"

namespace tessera::train {

/// Bytes by category, in core::Category's order.
using account::CategoryBytes;

/// Bytes by axis along which ranks talk, in parallel::Axis's order.
using account::AxisBytes;
static_assert(std::tuple_size_v<AxisBytes> == parallel::kNumAxes);

/// What `account` says before step 1, for every rank.
struct Prediction {
  std::vector<CategoryBytes> memory_bytes;  ///< [ranks]: peaks
  std::vector<AxisBytes> bytes_per_step;    ///< [ranks]: sent in one step
  double flops_per_step = 0;                ///< of the whole world
  double bubble_fraction = 0;  ///< idle share of the step in a pipeline, by the costs of its stages
};

/// Predicts a run. `config` is resolved; `communication_bytes` [ranks] is what the communicators
/// hold.
Prediction predict(const spec::RunConfig& config, const std::vector<int64_t>& communication_bytes);

/// What so many ranks of a run, those of one host, take together at most. `communication_bytes`: of
/// each.
int64_t most_bytes(const spec::RunConfig& config, int64_t communication_bytes, int num_ranks);

/// Throws MemoryError when `ranks_on_host` ranks of the run do not fit this machine together, with
/// the lowest ZeRO stage in which they would. `config` is resolved.
void check_run_fits(const spec::RunConfig& config, int64_t communication_bytes, int ranks_on_host,
                    const std::string& what);

/// The predicted sizes of a rank's arenas: what they are made with.
parallel::ArenaBytes expected_arena_bytes(const spec::RunConfig& config, int64_t rank);

/// plan.json.
std::string to_json(const Prediction& prediction);

/// summary.json, filled by the trainer.
struct Summary {
  int64_t steps = 0;
  double loss_first = 0;
  double loss_last = 0;
  double validation_loss = 0;  ///< at the end
  bool has_validation = false;
  double unigram_entropy = 0;
  double tokens_per_s = 0;  ///< of the world, over the steps of this start
  double tflops_per_rank = 0;
  double mfu = 0;
  double train_seconds = 0;
  /// By axis: of the step time, waited for it on rank 0; of what it took there, what computation
  /// hid.
  std::array<double, parallel::kNumAxes> exposed_communication_fraction{};
  std::array<double, parallel::kNumAxes> hidden_communication_fraction{};
  double checkpoint_seconds = 0;
  double validation_seconds = 0;
  std::string layout;   ///< "dp=4"
  std::string backend;  ///< "shm"
  std::string device;   ///< kernels::describe_device()
  int num_hosts = 1;
  std::vector<CategoryBytes> memory_measured;  ///< [ranks], the ledgers' peaks
  std::vector<int64_t> process_memory_bytes;   ///< [ranks], what the system says, less the start
  /// [ranks], sent in a step, counted.
  std::vector<std::array<comm::Traffic, parallel::kNumAxes>> traffic_measured;
  spec::Mesh mesh;
  /// The idle share of the step in a pipeline, by the times of its actions and as it was: over the
  /// steps of this start but its first, where there are others.
  double bubble_simulated = 0;
  double bubble_measured = 0;
  Prediction predicted;
  std::string weights_hash;
  bool stopped_early = false;
  bool nothing_to_do = false;  ///< the checkpoint was at training.steps already: all else is empty
  std::string run_dir;
  std::string last_checkpoint;

  /// [ranks], of all collectives.
  std::vector<AxisBytes> bytes_measured() const;
};

/// summary.json: the keys of the interface.
std::string to_json(const Summary& summary);

}  // namespace tessera::train
