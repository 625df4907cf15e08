#pragma once

// The model of a plan: a spec::ModelConfig, which the engine runs, and beside it what is planned
// for alone so far: mixtures of experts and multi-head latent attention. Everything else follows
// from the config by the formulas of spec and account, so that a dense model is the same object
// here and in a run.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_config.h"

namespace tessera::plan {

/// A mixture of experts in place of the MLP (Shazeer et al. 2017; Fedus et al. 2021): a router
/// sends every token to top_k of the experts, and to the shared ones besides.
struct Experts {
  int64_t count = 0;         ///< E, routed experts of a layer
  int64_t top_k = 1;         ///< of them, those that a token goes to
  int64_t width = 0;         ///< intermediate size of one routed expert
  int64_t shared = 0;        ///< experts that every token goes to
  int64_t shared_width = 0;  ///< intermediate size of one of those; 0: as `width`
  int64_t dense_layers = 0;  ///< the first so many layers have the dense MLP of the config

  friend bool operator==(const Experts&, const Experts&) = default;
};

/// Multi-head latent attention (DeepSeek-V2, 2024): queries, and keys with values, come out of a
/// narrow vector each.
struct LatentAttention {
  int64_t q_rank = 0;      ///< of the queries' vector; 0: queries come straight from the stream
  int64_t kv_rank = 0;     ///< of the keys' and values' vector
  int64_t nope_dim = 128;  ///< of a head of Q and K, without positions
  int64_t rope_dim = 64;   ///< of a head of Q and K, rotated; of K one for all heads
  int64_t value_dim = 128;

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

struct Model {
  std::string name;
  spec::ModelConfig dense;  ///< resolved, with its vocabulary; MLP of the dense layers
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;
  int64_t window = 0;  ///< keys that a query sees in every second layer; 0: all of them everywhere

  /// What the engine of this version cannot run yet ("experts", "latent attention"); empty: it can.
  std::vector<std::string> not_run_yet() const;
  int64_t layers_with_experts() const;
};

/// How many parameters there are, by what they do. Norms and biases are in `total` alone.
struct ParameterCounts {
  int64_t total = 0;
  int64_t without_norms = 0;   ///< matrices and embeddings
  int64_t matmul = 0;          ///< that one token is multiplied with, the head's among them
  int64_t active = 0;          ///< total, of the routed experts only those that a token goes to
  int64_t attention = 0;       ///< of one layer, matrices alone
  int64_t mlp = 0;             ///< of one dense layer, matrices alone
  int64_t expert = 0;          ///< of one routed expert
  int64_t shared_experts = 0;  ///< of one layer with experts, with its router
  int64_t embedding = 0;       ///< V · C; once more for a head that is not tied
  int64_t head = 0;            ///< 0 where it is tied
};
ParameterCounts count_parameters(const Model& model);

/// Forward FLOPs of one token in one layer, a multiply and an add being two; attention over all
/// keys, as account/flops.h counts.
struct LayerFlops {
  double attention_products = 0;  ///< Q, K, V, output
  double attention_scores = 0;    ///< 4 · H · D · T, of full attention
  double mlp = 0;                 ///< or the routed and shared experts of a token
};
LayerFlops layer_flops(const Model& model, int64_t seq_len, bool with_experts);
/// Forward and backward of a token through everything: 6 · matmul + 12 · L · H · D · T.
double train_flops_per_token(const Model& model, int64_t seq_len);

/// Presets beyond those of spec that can be planned for: mixtures of experts.
struct PlannedPreset {
  std::string_view name;
  Model model;
  std::string_view about;
};
const std::vector<PlannedPreset>& planned_presets();
/// Of spec's presets or of these. None: the name is of neither.
std::optional<Model> find_model(std::string_view name);

}  // namespace tessera::plan
