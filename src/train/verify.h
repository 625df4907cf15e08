#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "data/dataset.h"
#include "spec/layout.h"

// `tessera verify`: the proof that a layout is invisible. The same steps are trained on one rank
// and in each layout, and what every step made is compared.

namespace tessera::train {

/// What one run of the steps left to compare: rank 0's record. Everything in fp64 or as trained.
struct VerifyRecord {
  std::vector<double> losses;                 ///< [steps]
  std::vector<double> grad_norms;             ///< [steps], before clipping
  std::vector<double> tensor_norms;           ///< [steps, parameters]: L2 of each reduced gradient
  std::vector<std::vector<float>> gradients;  ///< [parameters][elements]: the first step's
  std::vector<std::vector<float>> weights;    ///< [parameters][elements]: masters after the last
  std::string differing_copy;  ///< which ranks end with other copies of weights; empty: none
};

/// Trains `steps` steps of `config` (resolved for comm's world) and records them. Collective; the
/// record is complete on rank 0.
VerifyRecord record_run(const spec::RunConfig& config, const data::Dataset& dataset,
                        comm::Communicator& comm, int64_t steps);

/// A record as a file, for ranks that are processes.
void save_record(const std::filesystem::path& path, const VerifyRecord& record);
VerifyRecord load_record(const std::filesystem::path& path);

/// How close is close enough. All 0 for the invariant numerics: every bit.
struct Tolerance {
  double loss = 5e-7;     ///< relative, of every step's loss
  double norm = 5e-5;     ///< relative, of every step's gradient norm
  double weights = 1e-5;  ///< relative L2 of every tensor after the last step
  /// L2 of tensors whose true gradient is zero (key biases), of whose rounding AdamW makes steps of
  /// up to lr, and of those that start at zero (an adapter's B), which are nothing but such steps:
  /// what counts is how far they may have walked.
  double walk = 1e-5;
};
/// For `steps` steps of `config` beside one rank, whatever the numerics: products that are cut sum
/// in another order than whole ones do.
Tolerance close_tolerance(const spec::RunConfig& config, int64_t steps);
/// The same but with the invariant numerics, where there is none.
Tolerance default_tolerance(const spec::RunConfig& config, int64_t steps);

/// What a layout came to beside the reference.
struct LayoutVerdict {
  std::string layout;
  bool ok = false;
  bool failed = false;   ///< it did not run to its end: nothing was compared
  bool bitwise = false;  ///< losses, norms and weights equal to the last bit
  double loss_max_relative = 0;
  double grad_norm_max_relative = 0;
  double gradients_max_relative_l2 = 0;  ///< over tensors, at the first step
  double weights_max_relative_l2 = 0;    ///< over tensors, after the last step
  std::string worst_tensor;              ///< whose weights differ most
  int64_t first_divergence_step = 0;     ///< 0: none
  std::string first_divergence_tensor;
  std::string why;  ///< empty when ok
};

/// Compares a layout's record with the reference's. `names`: the parameters, in table order.
LayoutVerdict compare(const VerifyRecord& reference, const VerifyRecord& record,
                      const std::vector<std::string>& names, const Tolerance& tolerance);

}  // namespace tessera::train
