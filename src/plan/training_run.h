#pragma once

// How long a training run takes and what it costs, from one step: tokens that are given, or those
// that a scaling law asks for to reach a loss.

#include <cstdint>
#include <optional>
#include <string_view>

namespace tessera::plan {

/// Loss of a model of N parameters after D tokens, in nats a token: E + A / N^alpha + B / D^beta.
/// Fitted on one family of models, data and tokenizer; losses of others compare in their
/// differences at best.
struct ScalingLaw {
  std::string_view name;
  std::string_view source;
  double irreducible = 0;                           ///< E
  double parameter_scale = 0, parameter_power = 0;  ///< A, alpha
  double token_scale = 0, token_power = 0;          ///< B, beta

  double loss(double parameters, double tokens) const;
  /// Tokens after which a model of that size has that loss; none, where it never has:
  /// E + A / N^alpha is as much already.
  std::optional<double> tokens_for(double parameters, double target_loss) const;
  /// The least loss that a model of that size comes to, with tokens without end.
  double floor_of(double parameters) const;
};

/// "Chinchilla", Hoffmann et al., "Training Compute-Optimal Large Language Models", 2022, eq. 10.
inline constexpr ScalingLaw kHoffmann{"hoffmann",
                                      "Hoffmann et al. 2022, approach 3: E 1.69, A 406.4, "
                                      "alpha 0.34, B 410.7, beta 0.28",
                                      1.69,
                                      406.4,
                                      0.34,
                                      410.7,
                                      0.28};
/// The same data fitted anew: Besiroglu et al., "Chinchilla Scaling: A Replication Attempt", 2024.
inline constexpr ScalingLaw kBesiroglu{"besiroglu",
                                       "Besiroglu et al. 2024, refit of Hoffmann et al.'s data: "
                                       "E 1.8172, A 482.01, alpha 0.3478, B 2085.43, beta 0.3658",
                                       1.8172,
                                       482.01,
                                       0.3478,
                                       2085.43,
                                       0.3658};
/// The law of that name; nullptr: none.
const ScalingLaw* find_scaling_law(std::string_view name);

/// Which model reaches the least loss with so many FLOPs, at 6 a parameter and token.
struct ComputeOptimal {
  double parameters = 0;
  double tokens = 0;
  double loss = 0;
};
ComputeOptimal compute_optimal(const ScalingLaw& law, double flops);

/// A run of many equal steps.
struct RunInput {
  double tokens = 0;           ///< to train on
  double tokens_per_step = 0;  ///< global batch · sequence length; > 0
  double step_s = 0;           ///< > 0
  double goodput = 1;          ///< finished work's part of the time (plan/goodput.h); > 0
  int64_t num_gpus = 1;
  double usd_per_gpu_hour = 0;  ///< 0: not known
};

struct RunCost {
  double steps = 0;   ///< whole ones
  double work_s = 0;  ///< steps alone
  double wall_s = 0;  ///< with saving, failures and what they lose
  double gpu_hours = 0;
  double usd = 0;
  double days() const { return wall_s / 86400; }
};
RunCost run_cost(const RunInput& input);

}  // namespace tessera::plan
