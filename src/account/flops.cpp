#include "account/flops.h"

#include "spec/layer_flops.h"

namespace tessera::account {

int64_t matmul_parameters(const spec::ModelConfig& config) {
  return config.num_hidden_layers * spec::block_matmul_parameters(config) +
         spec::head_matmul_parameters(config);
}

double forward_flops_per_token(const spec::ModelConfig& config, int64_t seq_len) {
  return static_cast<double>(config.num_hidden_layers) *
             spec::block_flops_per_token(config, seq_len) +
         spec::head_flops_per_token(config);
}

double train_flops_per_token(const spec::ModelConfig& config, int64_t seq_len) {
  return 3.0 * forward_flops_per_token(config, seq_len);
}

}  // namespace tessera::account
