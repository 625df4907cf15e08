#include "account/parameter_table.h"

#include <cmath>
#include <iterator>
#include <utility>

#include "spec/lora_targets.h"

namespace tessera::account {
namespace {

using core::Shape;

// Legend: C hidden_size, D head_dim, V vocab_size. gpt2 and llama differ in their norms' biases,
// the gate and the positions.

/// Appends parameters to a table in memory order, keeping the running offset of the open unit.
class TableWriter {
 public:
  void open_unit(const std::string& name, UnitKind kind, int64_t layer = -1) {
    Unit unit;
    unit.name = name;
    unit.kind = kind;
    unit.layer = layer;
    unit.first = static_cast<int>(table_.parameters.size());
    table_.units.push_back(unit);
  }

  /// A matrix or an embedding: random values, decayed.
  void matrix(const std::string& name, Role role, Shape shape, double std) {
    Parameter& parameter = add(name, role, shape);
    parameter.init = Init::normal;
    parameter.init_std = std;
    parameter.decay = true;
  }

  /// A matrix that starts at nothing.
  void zeros(const std::string& name, Role role, Shape shape) {
    add(name, role, shape).decay = true;
  }

  /// A bias or a norm's vector: a constant, not decayed.
  void vector(const std::string& name, Role role, int64_t size, Init init) {
    add(name, role, Shape{size}).init = init;
  }

  /// What has been written to the open unit is frozen; what follows in it is not.
  void freeze() {
    Unit& unit = table_.units.back();
    for (int i = unit.first; i < unit.first + unit.count; ++i) {
      table_.parameters[static_cast<size_t>(i)].trainable = false;
    }
    unit.trainable_begin = unit.elements;
  }

  /// The parameter of that role in the open unit, until more is written; nullptr: none.
  const Parameter* find(Role role) const {
    return table_.find(static_cast<int>(table_.units.size()) - 1, role);
  }

  /// Random values are keyed by a parameter's number, adapters counting after all others.
  ParameterTable take() {
    uint64_t next = 0;
    for (const bool adapters : {false, true}) {
      for (Parameter& parameter : table_.parameters) {
        if (parameter.is_adapter() == adapters) parameter.init_key = next++;
      }
    }
    return std::move(table_);
  }

 private:
  Parameter& add(const std::string& name, Role role, Shape shape) {
    Unit& unit = table_.units.back();
    Parameter parameter;
    parameter.name = name;
    parameter.shape = shape;
    parameter.whole = shape;
    parameter.role = role;
    parameter.unit = static_cast<int>(table_.units.size()) - 1;
    parameter.offset = unit.elements;
    unit.elements += shape.elements();
    ++unit.count;
    table_.parameters.push_back(parameter);
    return table_.parameters.back();
  }

  ParameterTable table_;
};

constexpr double kInitStd = 0.02;

/// LayerNorm's weight and bias, or RMSNorm's weight alone.
void write_norm(TableWriter& table, const spec::ModelConfig& config, const std::string& name,
                Role weight, Role bias) {
  table.vector(name + ".weight", weight, config.hidden_size, Init::ones);
  if (config.architecture == spec::Architecture::llama) return;
  table.vector(name + ".bias", bias, config.hidden_size, Init::zeros);
}

/// What goes into the products that end in the residual stream: every block adds two to it, and
/// their sum keeps the variance of one.
double residual_std(const spec::ModelConfig& config) {
  return kInitStd / std::sqrt(2.0 * static_cast<double>(config.num_hidden_layers));
}

void write_attention(TableWriter& table, const spec::ModelConfig& config, const std::string& name) {
  const int64_t C = config.hidden_size;
  const int64_t D = config.head_dim;
  const int64_t q_width = config.num_attention_heads * D;
  const int64_t kv_width = config.num_key_value_heads * D;
  table.matrix(name + "q_proj.weight", Role::q_weight, {q_width, C}, kInitStd);
  table.matrix(name + "k_proj.weight", Role::k_weight, {kv_width, C}, kInitStd);
  table.matrix(name + "v_proj.weight", Role::v_weight, {kv_width, C}, kInitStd);
  if (config.attention_bias != spec::AttentionBias::none) {
    table.vector(name + "q_proj.bias", Role::q_bias, q_width, Init::zeros);
    table.vector(name + "k_proj.bias", Role::k_bias, kv_width, Init::zeros);
    table.vector(name + "v_proj.bias", Role::v_bias, kv_width, Init::zeros);
  }
  if (config.qk_norm) {
    table.vector(name + "q_norm.weight", Role::q_norm_weight, D, Init::ones);
    table.vector(name + "k_norm.weight", Role::k_norm_weight, D, Init::ones);
  }
  table.matrix(name + "o_proj.weight", Role::o_weight, {C, q_width}, residual_std(config));
  if (config.attention_bias == spec::AttentionBias::all) {
    table.vector(name + "o_proj.bias", Role::o_bias, C, Init::zeros);
  }
}

void write_mlp(TableWriter& table, const spec::ModelConfig& config, const std::string& name) {
  const int64_t C = config.hidden_size;
  const int64_t width = config.intermediate_size;
  const bool gated = config.architecture == spec::Architecture::llama;
  if (gated) table.matrix(name + "gate_proj.weight", Role::gate_weight, {width, C}, kInitStd);
  table.matrix(name + "up_proj.weight", Role::up_weight, {width, C}, kInitStd);
  if (config.mlp_bias) {
    if (gated) table.vector(name + "gate_proj.bias", Role::gate_bias, width, Init::zeros);
    table.vector(name + "up_proj.bias", Role::up_bias, width, Init::zeros);
  }
  table.matrix(name + "down_proj.weight", Role::down_weight, {C, width}, residual_std(config));
  if (config.mlp_bias) table.vector(name + "down_proj.bias", Role::down_bias, C, Init::zeros);
}

// The weights that adapters may stand beside, in the order of their roles, from q_lora_a on.
constexpr Role kAdapted[] = {Role::q_weight,    Role::k_weight,  Role::v_weight,   Role::o_weight,
                             Role::gate_weight, Role::up_weight, Role::down_weight};
static_assert(static_cast<int>(Role::q_lora_a) + 2 * std::size(kAdapted) ==
              static_cast<int>(Role::down_lora_b) + 1);

/// A and B beside each product of the open unit that lora.targets names by the last word of its
/// name: "model.layers.0.self_attn.q_proj.weight" is "q_proj".
void write_adapters(TableWriter& table, const spec::ModelConfig& config,
                    const spec::LoraConfig& lora) {
  for (const Role role : kAdapted) {
    const Parameter* weight = table.find(role);
    if (weight == nullptr) continue;  // gpt2 has no gate
    const std::string product = weight->name.substr(0, weight->name.rfind('.'));
    const std::string target = product.substr(product.rfind('.') + 1);
    if (!spec::has_adapter(lora, config.architecture, target)) continue;
    const int64_t out = weight->shape[0];
    const int64_t in = weight->shape[1];
    const AdapterRoles roles = *adapter_of(role);
    // PEFT draws uniformly within 1 / sqrt(in): of this standard deviation.
    const double std = 1 / std::sqrt(3.0 * static_cast<double>(in));
    table.matrix(product + ".lora_A.weight", roles.a, {lora.rank, in}, std);
    table.zeros(product + ".lora_B.weight", roles.b, {out, lora.rank});
  }
}

void write_block(TableWriter& table, const spec::ModelConfig& config, const spec::LoraConfig& lora,
                 int64_t layer) {
  const std::string unit = "layers." + std::to_string(layer);
  const std::string block = "model." + unit;
  table.open_unit(unit, UnitKind::block, layer);
  write_norm(table, config, block + ".input_layernorm", Role::input_norm_weight,
             Role::input_norm_bias);
  write_attention(table, config, block + ".self_attn.");
  write_norm(table, config, block + ".post_attention_layernorm", Role::post_attention_norm_weight,
             Role::post_attention_norm_bias);
  write_mlp(table, config, block + ".mlp.");
  if (lora.rank == 0) return;
  table.freeze();
  write_adapters(table, config, lora);
}

}  // namespace

int64_t ParameterTable::num_elements() const {
  int64_t sum = 0;
  for (const Unit& unit : units) sum += unit.elements;
  return sum;
}

const Parameter* ParameterTable::find(int unit, Role role) const {
  if (unit < 0 || unit >= static_cast<int>(units.size())) return nullptr;
  const Unit& in = units[static_cast<size_t>(unit)];
  for (int i = in.first; i < in.first + in.count; ++i) {
    const Parameter& parameter = parameters[static_cast<size_t>(i)];
    if (parameter.role == role) return &parameter;
  }
  return nullptr;
}

const Parameter* ParameterTable::find(const std::string& name) const {
  for (const Parameter& parameter : parameters) {
    if (parameter.name == name) return &parameter;
  }
  return nullptr;
}

int64_t ParameterTable::begin_in_buffer(const Parameter& parameter) const {
  const Unit& of = units[static_cast<size_t>(parameter.unit)];
  return parameter.offset - (parameter.trainable ? of.trainable_begin : 0);
}

int64_t ParameterTable::num_trainable_elements() const {
  int64_t sum = 0;
  for (const Unit& unit : units) sum += unit.trainable_elements();
  return sum;
}

std::optional<AdapterRoles> adapter_of(Role weight) {
  for (size_t i = 0; i < std::size(kAdapted); ++i) {
    if (kAdapted[i] != weight) continue;
    const int a = static_cast<int>(Role::q_lora_a) + 2 * static_cast<int>(i);
    return AdapterRoles{static_cast<Role>(a), static_cast<Role>(a + 1)};
  }
  return std::nullopt;
}

ParameterTable parameter_table(const spec::ModelConfig& given, const spec::LoraConfig& lora) {
  const spec::ModelConfig config = spec::resolved(given);
  const int64_t C = config.hidden_size;
  const int64_t V = config.vocab_size;
  TableWriter table;
  table.open_unit("embed", UnitKind::embedding);
  table.matrix("model.embed_tokens.weight", Role::token_embedding, {V, C}, kInitStd);
  if (config.architecture == spec::Architecture::gpt2) {
    table.matrix("model.embed_positions.weight", Role::position_embedding,
                 {config.max_position_embeddings, C}, kInitStd);
  }
  if (lora.rank > 0) table.freeze();
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    write_block(table, config, lora, layer);
  }
  table.open_unit("head", UnitKind::head);
  write_norm(table, config, "model.norm", Role::final_norm_weight, Role::final_norm_bias);
  if (!config.tie_word_embeddings) {
    table.matrix("lm_head.weight", Role::head_weight, {V, C}, kInitStd);
  }
  if (lora.rank > 0) table.freeze();
  return table.take();
}

}  // namespace tessera::account
