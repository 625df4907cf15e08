#include "account/memory.h"

#include <algorithm>

namespace tessera::account {
StateBytes state_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const Sharding& sharding) {
  const int64_t shards = sharding.shards;
  int64_t frozen = 0;
  int64_t trained = 0;
  for (const Unit& unit : table.units) {
    frozen += sharding.shards_weights() ? padded(unit.frozen_elements(), shards) / shards
                                        : unit.frozen_elements();
    trained += padded(unit.trainable_elements(), shards);
  }
  const core::DType dtype = spec::dtype_of(training.precision);
  StateBytes bytes;
  bytes.weights =
      (frozen + (sharding.shards_weights() ? trained / shards : trained)) * core::size_of(dtype);
  bytes.gradients = (sharding.shards_gradients() ? trained / shards : trained) *
                    core::size_of(spec::gradient_storage(training));
  // Two moments, and a master where the weights are not fp32 themselves.
  bytes.optimizer = trained / shards * (dtype == core::DType::f32 ? 8 : 12);
  return bytes;
}

int64_t gathered_bytes(const ParameterTable& table, const spec::TrainingConfig& training,
                       const spec::ParallelismConfig& parallelism) {
  const Sharding sharding = sharding_of(parallelism);
  int64_t blocks = 0;
  int64_t weights = 0, gradients = 0;  // elements outside blocks
  int64_t block_weights = 0, block_gradients = 0;
  for (const Unit& unit : table.units) {
    const int64_t trained = padded(unit.trainable_elements(), sharding.shards);
    const int64_t all = padded(unit.frozen_elements(), sharding.shards) + trained;
    if (unit.kind == UnitKind::block) {
      ++blocks;
      block_weights = std::max(block_weights, all);
      block_gradients = std::max(block_gradients, trained);
    } else {
      weights += all;
      gradients += trained;
    }
  }
  weights += gathered_blocks(blocks, parallelism.prefetch) * block_weights;
  gradients += gradient_blocks(blocks, parallelism.bucket_bytes > 0) * block_gradients;
  int64_t bytes = 0;
  if (sharding.shards_weights()) {
    bytes += weights * core::size_of(spec::dtype_of(training.precision));
  }
  if (sharding.shards_gradients()) {
    bytes += gradients * core::size_of(spec::gradient_storage(training));
  }
  return bytes;
}

}  // namespace tessera::account
