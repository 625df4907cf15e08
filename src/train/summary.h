#pragma once

#include <array>
#include <string>
#include <vector>

#include "comm/traffic.h"
#include "core/memory.h"
#include "spec/run_config.h"

namespace tessera::train {

/// Bytes by category, in core::Category's order.
using CategoryBytes = std::array<int64_t, core::kNumCategories>;

/// What `account` says before step 1, for every rank.
struct Prediction {
  std::vector<CategoryBytes> memory_bytes;  ///< [ranks]: peaks
  std::vector<int64_t> dp_bytes_per_step;   ///< [ranks]: sent in one step
  double flops_per_step = 0;                ///< of the whole world
};

/// Predicts a run. `config` is resolved; `communication_bytes` is what the communicator holds a
/// rank.
Prediction predict(const spec::RunConfig& config, int64_t communication_bytes);

/// What so many ranks of a run take together, at most.
int64_t most_bytes(const spec::RunConfig& config, int64_t communication_bytes, int num_ranks);

/// Throws MemoryError when `ranks_on_host` ranks of the run do not fit this machine together, with
/// the lowest ZeRO stage in which they would. `config` is resolved.
void check_run_fits(const spec::RunConfig& config, int64_t communication_bytes, int ranks_on_host,
                    const std::string& what);

/// The predicted peak of a rank's activation arena: what it is made with.
int64_t expected_activation_bytes(const spec::RunConfig& config);

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
  double exposed_communication_fraction = 0;  ///< of the step time, waited for it on rank 0
  double hidden_communication_fraction = 0;   ///< of what it took there: computation hid it
  double checkpoint_seconds = 0;
  double validation_seconds = 0;
  std::string layout;   ///< "dp=4"
  std::string backend;  ///< "shm"
  std::string device;   ///< kernels::describe_device()
  int world_size = 1;
  int num_hosts = 1;
  std::vector<CategoryBytes> memory_measured;  ///< [ranks], the ledgers' peaks
  std::vector<int64_t> process_memory_bytes;   ///< [ranks], what the system says, less the start
  std::vector<comm::Traffic> dp_traffic_measured;  ///< [ranks], sent in a step, counted
  Prediction predicted;
  std::string weights_hash;
  bool stopped_early = false;
  bool nothing_to_do = false;  ///< the checkpoint was at training.steps already: all else is empty
  std::string run_dir;
  std::string last_checkpoint;

  /// [ranks], of all collectives.
  std::vector<int64_t> dp_bytes_measured() const;
};

/// summary.json: the keys of the interface.
std::string to_json(const Summary& summary);

}  // namespace tessera::train
