#include "train/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "kernels/adamw.h"
#include "kernels/elementwise.h"
#include "kernels/fixed_point.h"
#include "parallel/whole_state.h"
#include "train/checkpoint.h"
#include "train/copy_hashes.h"
#include "train/start_weights.h"
#include "train/summary.h"
#include "train/train_step.h"

namespace tessera::train {

namespace {

using core::ConstView;
using core::DType;
using core::View;

std::vector<float> as_floats(ConstView values) {
  std::vector<float> copy(static_cast<size_t>(values.elements()));
  const core::Shape flat{values.elements()};
  const View out{copy.data(), DType::f32, flat};
  if (values.dtype == DType::i64) {
    kernels::from_fixed_point(out, values);
  } else if (values.dtype == DType::f32) {
    std::memcpy(out.data, values.data, static_cast<size_t>(values.bytes()));
  } else {
    kernels::cast(out, values.reshaped(flat));
  }
  return copy;
}

/// The norm of every gradient of the model `table`, and at the first step the gradients; nothing of
/// what is frozen. On rank 0, while all take part.
void record_gradients(const account::ParameterTable& table, parallel::Replica& replica,
                      parallel::MeshGroups& groups, bool first_step, VerifyRecord& record) {
  std::map<std::string, double> norms;
  std::map<std::string, std::vector<float>> gradients;
  parallel::visit_whole(replica.state(), groups, parallel::StateKind::gradients,
                        [&](const account::Parameter& parameter, ConstView values) {
                          norms[parameter.name] = std::sqrt(kernels::sum_of_squares(values));
                          if (first_step) gradients[parameter.name] = as_floats(values);
                        });
  if (groups.world().rank() != 0) return;
  for (const account::Parameter& parameter : table.parameters) {
    record.tensor_norms.push_back(norms[parameter.name]);
    if (first_step) record.gradients.push_back(gradients[parameter.name]);
  }
}

/// Neighbouring tensor-parallel ranks that hold the same key-value heads.
int64_t kv_copies_of(const spec::RunConfig& config) {
  const int64_t kv_heads = spec::resolved(config.model).num_key_value_heads;
  return std::max<int64_t>(1, config.parallelism.tensor_parallel_degree / kv_heads);
}

}  // namespace

VerifyRecord record_run(const spec::RunConfig& config, const data::Dataset& dataset,
                        comm::Communicator& comm, int64_t steps) {
  parallel::MeshGroups groups(comm, config);
  check_run_fits(config, groups.memory_bytes(), comm.size(), "this layout");
  core::MemoryLedger ledger;
  parallel::Replica replica(config, groups, ledger, expected_arena_bytes(config, comm.rank()));
  if (!config.training.load.empty()) {
    load_weights(find_weights(config.training.load), config, replica.state(), LoadWhat::base);
    replica.share_weights();
  }
  TrainStep train_step(config, replica);
  const BatchLoader loader(dataset, config.training, static_cast<int>(groups.mesh().dp),
                           static_cast<int>(groups.coordinate().dp), SampleOrigin{});

  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  VerifyRecord record;
  for (int64_t step = 1; step <= steps; ++step) {
    const StepResult result = train_step.compute_gradients(loader, step);
    record.losses.push_back(result.loss);
    record.grad_norms.push_back(result.grad_norm);
    record_gradients(table, replica, groups, step == 1, record);
    train_step.update(result);
  }

  const std::vector<CopyHashes> hashes =
      gather_copy_hashes(hash_copies(replica.state(), groups), groups);
  record.differing_copy = find_differing_copy(hashes, groups.mesh(), kv_copies_of(config));
  parallel::visit_whole(replica.state(), groups, parallel::StateKind::master,
                        [&](const account::Parameter&, ConstView values) {
                          record.weights.push_back(as_floats(values));
                        });
  return record;
}

Tolerance close_tolerance(const spec::RunConfig& config, int64_t steps) {
  Tolerance tolerance;
  if (config.parallelism.tensor_parallel_degree > 1) tolerance.loss *= 10;
  if (config.training.precision == spec::Precision::bf16) {
    // bf16 rounds every product's result to 8 bits: weights say little then, losses still do.
    tolerance = {5e-3, 5e-2, 5e-2, 5e-2};
  }
  constexpr double kUsualWalk = 20 * 3e-4;  // 20 steps at a usual learning rate
  tolerance.walk *= std::max(1.0, static_cast<double>(steps) * config.optimizer.lr / kUsualWalk);
  return tolerance;
}

Tolerance default_tolerance(const spec::RunConfig& config, int64_t steps) {
  if (config.training.numerics == spec::Numerics::invariant) return {0, 0, 0, 0};
  return close_tolerance(config, steps);
}

namespace {

/// The larger, where not-a-number is the largest of all.
double worse(double a, double b) {
  return std::isnan(a) || b <= a ? a : b;
}

double relative(double value, double reference) {
  const double difference = std::abs(value - reference);
  return reference == 0 ? difference : difference / std::abs(reference);
}

/// ‖a − b‖ / ‖b‖; ‖a − b‖ when `absolute`, or when b is zero.
double relative_l2(const std::vector<float>& a, const std::vector<float>& b, bool absolute) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0;
  double reference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - b[i];
    difference += d * d;
    reference += static_cast<double>(b[i]) * b[i];
  }
  return absolute || reference == 0 ? std::sqrt(difference) : std::sqrt(difference / reference);
}

/// The softmax does not see a constant added to all scores of a query, so the true gradient of a
/// key bias is zero, and what is computed is rounding: it is compared absolutely. (Where keys are
/// rotated little of it is left, with the same rounding.)
bool has_no_true_gradient(const std::string& name) {
  return name.ends_with("k_proj.bias");
}

/// So is an adapter's B, which starts at zero: after a few steps its size is what AdamW has walked,
/// and elements whose gradient is small have walked by the sign of rounding.
bool is_all_walk(const std::string& name) {
  return has_no_true_gradient(name) || name.ends_with("lora_B.weight");
}

/// Step and tensor where the records part first: the first step whose loss or norm is off, and the
/// tensor whose gradient is off most there.
void find_first_divergence(const VerifyRecord& reference, const VerifyRecord& record,
                           const std::vector<std::string>& names, const Tolerance& tolerance,
                           LayoutVerdict& verdict) {
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    double worst = 0;
    size_t tensor = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      const size_t at = step * names.size() + i;
      const double off = relative(record.tensor_norms[at], reference.tensor_norms[at]);
      if (!has_no_true_gradient(names[i]) && off > worst) worst = off, tensor = i;
    }
    if (relative(record.losses[step], reference.losses[step]) > tolerance.loss ||
        relative(record.grad_norms[step], reference.grad_norms[step]) > tolerance.norm ||
        worst > tolerance.norm) {
      verdict.first_divergence_step = static_cast<int64_t>(step) + 1;
      verdict.first_divergence_tensor = names[tensor];
      return;
    }
  }
  verdict.first_divergence_step = static_cast<int64_t>(reference.losses.size());
  verdict.first_divergence_tensor = verdict.worst_tensor;
}

std::string explain(const LayoutVerdict& verdict, const Tolerance& tolerance) {
  if (!(verdict.loss_max_relative <= tolerance.loss)) {
    return fmt::format("losses differ by {:.2e} (at most {:.0e})", verdict.loss_max_relative,
                       tolerance.loss);
  }
  if (!(verdict.grad_norm_max_relative <= tolerance.norm)) {
    return fmt::format("gradient norms differ by {:.2e} (at most {:.0e})",
                       verdict.grad_norm_max_relative, tolerance.norm);
  }
  if (!(verdict.weights_max_relative_l2 <= tolerance.weights)) {
    return fmt::format("{} differs by {:.2e} (at most {:.0e})", verdict.worst_tensor,
                       verdict.weights_max_relative_l2, tolerance.weights);
  }
  return "";
}

}  // namespace

LayoutVerdict compare(const VerifyRecord& reference, const VerifyRecord& record,
                      const std::vector<std::string>& names, const Tolerance& tolerance) {
  LayoutVerdict verdict;
  for (size_t step = 0; step < reference.losses.size(); ++step) {
    verdict.loss_max_relative =
        worse(verdict.loss_max_relative, relative(record.losses[step], reference.losses[step]));
    verdict.grad_norm_max_relative =
        worse(verdict.grad_norm_max_relative,
              relative(record.grad_norms[step], reference.grad_norms[step]));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const bool absolute = is_all_walk(names[i]);
    verdict.gradients_max_relative_l2 = worse(
        verdict.gradients_max_relative_l2,
        relative_l2(record.gradients[i], reference.gradients[i], has_no_true_gradient(names[i])));
    double off = relative_l2(record.weights[i], reference.weights[i], absolute);
    // So that one limit serves both.
    if (absolute && tolerance.walk > 0) off *= tolerance.weights / tolerance.walk;
    const double before = verdict.weights_max_relative_l2;
    verdict.weights_max_relative_l2 = worse(before, off);
    if (verdict.weights_max_relative_l2 != before) {
      verdict.worst_tensor = names[i];
    }
  }
  verdict.bitwise = record.losses == reference.losses &&
                    record.grad_norms == reference.grad_norms &&
                    record.weights == reference.weights;
  verdict.why = explain(verdict, tolerance);
  if (!record.differing_copy.empty()) verdict.why = record.differing_copy;
  verdict.ok = verdict.why.empty();
  if (!verdict.ok) find_first_divergence(reference, record, names, tolerance, verdict);
  return verdict;
}

}  // namespace tessera::train
