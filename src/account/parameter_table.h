#pragma once

// The parameter table: one list that allocation, initialisation, the optimizer, sharding,
// checkpoints and Hugging Face files all visit. A fact about a parameter is here or nowhere.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.h"
#include "spec/run_config.h"

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
  // Adapters, in pairs, in the order of the weights that they stand beside (see adapter_of).
  q_lora_a,
  q_lora_b,
  k_lora_a,
  k_lora_b,
  v_lora_a,
  v_lora_b,
  o_lora_a,
  o_lora_b,
  gate_lora_a,
  gate_lora_b,
  up_lora_a,
  up_lora_b,
  down_lora_a,
  down_lora_b,
};

/// The two parameters of an adapter.
struct AdapterRoles {
  Role a{}, b{};
};
/// Those of the adapter beside a product; none where `weight` is none of a block's products.
std::optional<AdapterRoles> adapter_of(Role weight);

/// One parameter, or the part of it that a rank holds. Weights of products are [out, in].
struct Parameter {
  std::string name;   ///< canonical: "model.layers.3.self_attn.q_proj.weight"
  core::Shape shape;  ///< what is held here: `whole`, or a part of it
  core::Shape whole;  ///< the parameter's own
  Role role{};
  int unit = 0;        ///< index into units
  int64_t offset = 0;  ///< elements from the start of the unit's flat buffer
  Init init = Init::zeros;
  double init_std = 0;    ///< of Init::normal
  uint64_t init_key = 0;  ///< of its random values: the same with adapters beside it or without
  bool decay = false;     ///< weight decay applies: matrices and embeddings, not biases and norms
  bool trainable = true;  ///< false: frozen, as everything but the adapters where there are some

  // How tensor parallelism cuts it (account/model_part.h); the defaults are those of what is whole.
  int cut = -1;         ///< the dimension in which this is a part; -1: none
  int64_t begin = 0;    ///< in that dimension of `whole`: where the part begins
  int64_t padding = 0;  ///< the last so many of shape[cut] lie beyond the parameter: always zero
  int64_t copies = 1;   ///< neighbouring tensor-parallel ranks that hold the same values
  bool partial_gradient = false;  ///< the copies' gradients are summands of the true one
  bool counted = true;  ///< this rank answers for it (norm, checkpoints), not another copy

  int64_t elements() const { return shape.elements(); }
  bool is_adapter() const { return role >= Role::q_lora_a; }
};

enum class UnitKind : uint8_t { embedding, block, head };
constexpr size_t kNumUnitKinds = 3;

/// What is gathered, reduced and freed as one: the embeddings, a block, the final norm and head.
struct Unit {
  std::string name;  ///< "embed", "layers.3", "head"
  UnitKind kind = UnitKind::block;
  int64_t layer = -1;      ///< of a block: its number in the model
  int chunk = 0;           ///< which of the rank's pipeline stages it belongs to, from 0
  bool tied_copy = false;  ///< an embedding that is here for the head alone; another rank embeds
  int first = 0;           ///< its parameters: [first, first + count) of the table
  int count = 0;
  int64_t elements = 0;  ///< without padding
  /// Frozen parameters come first; from this element on all are trained.
  int64_t trainable_begin = 0;

  int64_t frozen_elements() const { return trainable_begin; }
  int64_t trainable_elements() const { return elements - trainable_begin; }
};

struct ParameterTable {
  std::vector<Parameter> parameters;  ///< unit by unit; within a unit, in memory order
  std::vector<Unit> units;            ///< embed, layers.0 …, head; of a part, those that it has

  int64_t num_elements() const;
  int64_t num_trainable_elements() const;
  /// The parameter of that role in that unit, or nullptr.
  const Parameter* find(int unit, Role role) const;
  const Parameter* find(const std::string& name) const;
  /// Elements before the parameter in a buffer of what of its unit is frozen, or trained, as it is.
  int64_t begin_in_buffer(const Parameter& parameter) const;
};

/// The table of a resolved config with a known vocabulary. Q, K and V lie next to each other, their
/// weights and then their biases, so that one product serves all three; so do gate and up. A tied
/// head has no parameter of its own. Initialisation is GPT-2's: normal 0.02, and 0.02 / sqrt(2 L)
/// for the two products that end in the residual stream. Where lora.rank is not 0, every target of
/// a block has A [rank, in], random with the variance of PEFT's initialisation, and B [out, rank],
/// zeros, at the end of the block's unit, and nothing else is trainable.
ParameterTable parameter_table(const spec::ModelConfig& config, const spec::LoraConfig& lora = {});

/// Calls f(first in the whole parameter, first in the part, count) for the runs of elements
/// [first, first + count) of a rank's part, row-major, that are neighbours in the whole parameter
/// too, in ascending order; padding is left out.
template <class F>
void for_each_run(const Parameter& parameter, int64_t first, int64_t count, const F& f) {
  const int64_t end = first + count;
  if (parameter.cut <= 0) {
    const int64_t rows = parameter.shape.dims() == 0 ? 1 : parameter.shape[0];
    const int64_t width = parameter.elements() / (rows > 0 ? rows : 1);
    const int64_t real = parameter.elements() - parameter.padding * width;
    const int64_t last = end < real ? end : real;
    if (first < last) f(parameter.begin * width + first, first, last - first);
    return;
  }
  // Columns of a matrix: a run for each row.
  const int64_t width = parameter.shape.last();
  for (int64_t at = first; at < end;) {
    const int64_t row = at / width;
    const int64_t stop = (row + 1) * width < end ? (row + 1) * width : end;
    f(row * parameter.whole.last() + parameter.begin + at - row * width, at, stop - at);
    at = stop;
  }
}

}  // namespace tessera::account
