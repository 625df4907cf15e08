#include "account/parameter_table.h"

#include <cmath>
#include <utility>

namespace tessera::account {
namespace {

using core::Shape;

// Legend: C hidden_size, D head_dim, V vocab_size.

/// Appends parameters to a table in memory order, keeping the running offset of the open unit.
class TableWriter {
 public:
  void open_unit(const std::string& name) {
    Unit unit;
    unit.name = name;
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

  /// A bias or a norm's vector: a constant, not decayed.
  void vector(const std::string& name, Role role, int64_t size, Init init) {
    add(name, role, Shape{size}).init = init;
  }

  ParameterTable take() { return std::move(table_); }

 private:
  Parameter& add(const std::string& name, Role role, Shape shape) {
    Unit& unit = table_.units.back();
    Parameter parameter;
    parameter.name = name;
    parameter.shape = shape;
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

void write_block(TableWriter& table, const spec::ModelConfig& config, int64_t layer) {
  const int64_t C = config.hidden_size;
  const int64_t D = config.head_dim;
  const int64_t q_width = config.num_attention_heads * D;
  const int64_t kv_width = config.num_key_value_heads * D;
  const int64_t mlp_width = config.intermediate_size;
  // Every block adds two products to the residual stream; their sum keeps the variance of one.
  const double residual_std =
      kInitStd / std::sqrt(2.0 * static_cast<double>(config.num_hidden_layers));

  const std::string unit = "layers." + std::to_string(layer);
  const std::string block = "model." + unit;
  const std::string attention = block + ".self_attn.";
  const std::string norm1 = block + ".input_layernorm.";
  const std::string norm2 = block + ".post_attention_layernorm.";
  table.open_unit(unit);
  table.vector(norm1 + "weight", Role::input_norm_weight, C, Init::ones);
  table.vector(norm1 + "bias", Role::input_norm_bias, C, Init::zeros);
  table.matrix(attention + "q_proj.weight", Role::q_weight, {q_width, C}, kInitStd);
  table.matrix(attention + "k_proj.weight", Role::k_weight, {kv_width, C}, kInitStd);
  table.matrix(attention + "v_proj.weight", Role::v_weight, {kv_width, C}, kInitStd);
  table.vector(attention + "q_proj.bias", Role::q_bias, q_width, Init::zeros);
  table.vector(attention + "k_proj.bias", Role::k_bias, kv_width, Init::zeros);
  table.vector(attention + "v_proj.bias", Role::v_bias, kv_width, Init::zeros);
  table.matrix(attention + "o_proj.weight", Role::o_weight, {C, q_width}, residual_std);
  table.vector(attention + "o_proj.bias", Role::o_bias, C, Init::zeros);
  table.vector(norm2 + "weight", Role::post_attention_norm_weight, C, Init::ones);
  table.vector(norm2 + "bias", Role::post_attention_norm_bias, C, Init::zeros);
  table.matrix(block + ".mlp.up_proj.weight", Role::up_weight, {mlp_width, C}, kInitStd);
  table.vector(block + ".mlp.up_proj.bias", Role::up_bias, mlp_width, Init::zeros);
  table.matrix(block + ".mlp.down_proj.weight", Role::down_weight, {C, mlp_width}, residual_std);
  table.vector(block + ".mlp.down_proj.bias", Role::down_bias, C, Init::zeros);
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

ParameterTable parameter_table(const spec::ModelConfig& given) {
  const spec::ModelConfig config = spec::resolved(given);
  const int64_t C = config.hidden_size;
  const int64_t V = config.vocab_size;
  TableWriter table;
  table.open_unit("embed");
  table.matrix("model.embed_tokens.weight", Role::token_embedding, {V, C}, kInitStd);
  table.matrix("model.embed_positions.weight", Role::position_embedding,
               {config.max_position_embeddings, C}, kInitStd);
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    write_block(table, config, layer);
  }
  table.open_unit("head");
  table.vector("model.norm.weight", Role::final_norm_weight, C, Init::ones);
  table.vector("model.norm.bias", Role::final_norm_bias, C, Init::zeros);
  if (!config.tie_word_embeddings) {
    table.matrix("lm_head.weight", Role::head_weight, {V, C}, kInitStd);
  }
  return table.take();
}

}  // namespace tessera::account
