#pragma once

// The parameter table: one list that allocation, initialisation, the optimizer, sharding,
// checkpoints and Hugging Face files all visit. A fact about a parameter is here or nowhere.

#include <cstdint>
#include <string>
#include <vector>

#include "core/shape.h"
#include "spec/model_config.h"

namespace tessera::account {

enum class Init : uint8_t { zeros, ones, normal };

/// What a parameter is in its unit: the key by which a layer finds it without its name. The weights
/// of q, k and v stay neighbours in this order, and so do their biases, and those of gate and up:
/// model counts on from the first to find those that one fused product serves (model/linear.cpp,
/// Parameters::get_fused).
enum class Role : uint8_t {
  token_embedding,
  position_embedding,
  input_norm_weight,
  input_norm_bias,
  q_weight,
  k_weight,
  v_weight,
  q_bias,
  k_bias,
  v_bias,
  q_norm_weight,
  k_norm_weight,
  o_weight,
  o_bias,
  post_attention_norm_weight,
  post_attention_norm_bias,
  gate_weight,
  up_weight,
  gate_bias,
  up_bias,
  down_weight,
  down_bias,
  final_norm_weight,
  final_norm_bias,
  head_weight,
};

/// One parameter. Weights of products are [out, in].
struct Parameter {
  std::string name;   ///< canonical: "model.layers.3.self_attn.q_proj.weight"
  core::Shape shape;  ///< global
  Role role{};
  int unit = 0;        ///< index into units
  int64_t offset = 0;  ///< elements from the start of the unit's flat buffer
  Init init = Init::zeros;
  double init_std = 0;  ///< of Init::normal
  bool decay = false;   ///< weight decay applies: matrices and embeddings, not biases and norms
  int64_t elements() const { return shape.elements(); }
};

/// What is gathered, reduced and freed as one: the embeddings, a block, the final norm and head.
struct Unit {
  std::string name;  ///< "embed", "layers.3", "head"
  int first = 0;     ///< its parameters: [first, first + count) of the table
  int count = 0;
  int64_t elements = 0;  ///< without padding
  int64_t padded_elements(int64_t shards) const {
    return (elements + shards - 1) / shards * shards;
  }
};

struct ParameterTable {
  std::vector<Parameter> parameters;  ///< unit by unit; within a unit, in memory order
  std::vector<Unit> units;            ///< embed, layers.0 …, head

  int64_t num_elements() const;
  /// The parameter of that role in that unit, or nullptr.
  const Parameter* find(int unit, Role role) const;
  const Parameter* find(const std::string& name) const;
};

/// The table of a resolved config with a known vocabulary. Q, K and V lie next to each other, their
/// weights and then their biases, so that one product serves all three; so do gate and up. A tied
/// head has no parameter of its own. Initialisation is GPT-2's: normal 0.02, and 0.02 / sqrt(2 L)
/// for the two products that end in the residual stream.
ParameterTable parameter_table(const spec::ModelConfig& config);

}  // namespace tessera::account
