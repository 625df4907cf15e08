#include "formats/hf_names.h"

#include "core/error.h"

namespace tessera::formats {
namespace {

using account::Role;
using core::Shape;
using spec::Architecture;

constexpr std::string_view kHead = "lm_head.";

/// What all names but the head's begin with.
std::string_view prefix_of(Architecture architecture) {
  return architecture == Architecture::gpt2 ? "transformer." : "model.";
}

/// What stands for a role in GPT-2's files; nullptr where the family has no such parameter.
const char* gpt2_name(Role role) {
  switch (role) {
    case Role::token_embedding:
      return "wte.weight";
    case Role::position_embedding:
      return "wpe.weight";
    case Role::input_norm_weight:
      return "ln_1.weight";
    case Role::input_norm_bias:
      return "ln_1.bias";
    case Role::q_weight:
    case Role::k_weight:
    case Role::v_weight:
      return "attn.c_attn.weight";
    case Role::q_bias:
    case Role::k_bias:
    case Role::v_bias:
      return "attn.c_attn.bias";
    case Role::o_weight:
      return "attn.c_proj.weight";
    case Role::o_bias:
      return "attn.c_proj.bias";
    case Role::post_attention_norm_weight:
      return "ln_2.weight";
    case Role::post_attention_norm_bias:
      return "ln_2.bias";
    case Role::up_weight:
      return "mlp.c_fc.weight";
    case Role::up_bias:
      return "mlp.c_fc.bias";
    case Role::down_weight:
      return "mlp.c_proj.weight";
    case Role::down_bias:
      return "mlp.c_proj.bias";
    case Role::final_norm_weight:
      return "ln_f.weight";
    case Role::final_norm_bias:
      return "ln_f.bias";
    case Role::gate_weight:
    case Role::gate_bias:
    case Role::q_norm_weight:
    case Role::k_norm_weight:
    case Role::head_weight:
    default:  // adapters have files of their own
      return nullptr;
  }
}

bool is_product(Role role) {
  return role == Role::q_weight || role == Role::k_weight || role == Role::v_weight ||
         role == Role::o_weight || role == Role::up_weight || role == Role::down_weight;
}

/// Q, K and V follow each other among the outputs of c_attn.
void place_in_fused(const spec::ModelConfig& model, const account::Parameter& parameter,
                    HfPlace& place) {
  const int64_t q = model.num_attention_heads * model.head_dim;
  const int64_t kv = model.num_key_value_heads * model.head_dim;
  int64_t first = 0;
  switch (parameter.role) {
    case Role::q_weight:
    case Role::q_bias:
      break;
    case Role::k_weight:
    case Role::k_bias:
      first = q;
      break;
    case Role::v_weight:
    case Role::v_bias:
      first = q + kv;
      break;
    default:
      return;
  }
  place.first = first;
  place.shape =
      parameter.shape.dims() == 1 ? Shape{q + 2 * kv} : Shape{q + 2 * kv, parameter.shape[1]};
}

}  // namespace

HfPlace hf_place(const spec::ModelConfig& model, const account::Parameter& parameter) {
  HfPlace place;
  place.tensor = parameter.name;
  place.shape = parameter.shape;
  if (model.architecture == Architecture::llama || parameter.role == Role::head_weight) {
    return place;
  }
  const char* name = gpt2_name(parameter.role);
  CHECK(name != nullptr, "a parameter that GPT-2 does not have: " + parameter.name);
  // Units are the embeddings, the blocks, and what follows them.
  const bool in_block = parameter.unit > 0 && parameter.unit <= model.num_hidden_layers;
  place.tensor = (in_block ? hf_block(model.architecture, parameter.unit - 1)
                           : std::string(prefix_of(model.architecture))) +
                 name;
  place_in_fused(model, parameter, place);
  if (is_product(parameter.role)) {
    place.transposed = true;
    place.shape = Shape{place.shape[1], place.shape[0]};
  }
  return place;
}

std::string hf_block(Architecture architecture, int64_t layer) {
  const char* blocks = architecture == Architecture::gpt2 ? "h." : "layers.";
  return std::string(prefix_of(architecture)) + blocks + std::to_string(layer) + ".";
}

std::string hf_full_name(Architecture architecture, const std::string& name) {
  const std::string_view prefix = prefix_of(architecture);
  if (name.starts_with(prefix) || name.starts_with(kHead)) return name;
  return std::string(prefix) + name;
}

bool is_hf_buffer(std::string_view name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with("rotary_emb.inv_freq");
}

}  // namespace tessera::formats
