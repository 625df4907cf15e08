#include "spec/layer_flops.h"

namespace tessera::spec {

int64_t block_matmul_parameters(const ModelConfig& given) {
  const ModelConfig config = resolved(given);
  const int64_t C = config.hidden_size;
  const int64_t heads = config.num_attention_heads;
  const int64_t kv_heads = config.num_key_value_heads;
  // Queries and the output product have H heads each, keys and values G.
  const int64_t attention = C * config.head_dim * (2 * heads + 2 * kv_heads);
  // Up and down; llama has a gate beside up.
  const int64_t mlp_products = config.architecture == Architecture::llama ? 3 : 2;
  return attention + mlp_products * C * config.intermediate_size;
}

int64_t head_matmul_parameters(const ModelConfig& config) {
  return config.hidden_size * config.vocab_size;
}

namespace {

double attention_flops_per_token(const ModelConfig& given, int64_t seq_len) {
  const ModelConfig config = resolved(given);
  return 4.0 * static_cast<double>(config.num_attention_heads * config.head_dim * seq_len);
}
double product_flops_per_token(const ModelConfig& config) {
  return 2.0 * static_cast<double>(block_matmul_parameters(config));
}

}  // namespace

double block_flops_per_token(const ModelConfig& config, int64_t seq_len) {
  return product_flops_per_token(config) + attention_flops_per_token(config, seq_len);
}

double head_flops_per_token(const ModelConfig& config) {
  return 2.0 * static_cast<double>(head_matmul_parameters(config));
}

StepFlops block_step_flops(const ModelConfig& config, int64_t seq_len, Recompute recompute) {
  const double products = product_flops_per_token(config);
  const double attention = attention_flops_per_token(config, seq_len);
  StepFlops flops;
  flops.forward = products + attention;
  flops.backward_input = products + 2 * attention;
  flops.backward_weight = products;
  if (recompute == Recompute::full) flops.backward_input += flops.forward;
  if (recompute == Recompute::selective) flops.backward_input += attention;
  return flops;
}

StepFlops head_step_flops(const ModelConfig& config) {
  return {3 * head_flops_per_token(config), 0, 0};
}

}  // namespace tessera::spec
