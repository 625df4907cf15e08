#include "account/flops.h"

namespace tessera::account {

int64_t matmul_parameters(const spec::ModelConfig& given) {
  const spec::ModelConfig config = spec::resolved(given);
  const int64_t C = config.hidden_size;
  const int64_t heads = config.num_attention_heads;
  const int64_t kv_heads = config.num_key_value_heads;
  // Queries and the output product have H heads each, keys and values G.
  const int64_t attention = C * config.head_dim * (2 * heads + 2 * kv_heads);
  // Up and down; llama has a gate beside up.
  const int64_t mlp_products = config.architecture == spec::Architecture::llama ? 3 : 2;
  const int64_t mlp = mlp_products * C * config.intermediate_size;
  return config.num_hidden_layers * (attention + mlp) + C * config.vocab_size;
}

double forward_flops_per_token(const spec::ModelConfig& given, int64_t seq_len) {
  const spec::ModelConfig config = spec::resolved(given);
  const int64_t attention_width = config.num_attention_heads * config.head_dim;
  return 2.0 * static_cast<double>(matmul_parameters(config)) +
         4.0 * static_cast<double>(config.num_hidden_layers * attention_width * seq_len);
}

double train_flops_per_token(const spec::ModelConfig& config, int64_t seq_len) {
  return 3.0 * forward_flops_per_token(config, seq_len);
}

}  // namespace tessera::account
