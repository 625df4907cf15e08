#pragma once

// A small model with its buffers, for the tests of src/model.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "account/parameter_table.h"
#include "core/arena.h"
#include "core/memory.h"
#include "core/rng.h"
#include "model/transformer.h"

namespace tessera::model::testing {

/// Elements of any floating dtype as fp64, and back.
std::vector<double> to_doubles(ConstView view);
void from_doubles(View view, const std::vector<double>& values);

/// C=16, 2 layers, 4 heads, V=19, P=12.
spec::ModelConfig tiny_config();

/// A Llama of that size: 4 heads of width 6 and 2 key-value heads, an MLP of 20.
spec::ModelConfig tiny_llama();

/// A config and what there is about it.
struct NamedConfig {
  const char* about;
  spec::ModelConfig config;
};

/// Every kind of block: GPT-2's, and Llama's with the pieces that it may have or not.
std::vector<NamedConfig> tiny_configs();

/// One micro-batch, owned. Token ids, labels (some −1, rows unequal) and documents by a pattern
/// of `seed`; sample numbers count from first_sample.
class Tokens {
 public:
  Tokens(int64_t batch, int64_t seq_len, int64_t vocab_size, uint64_t seed,
         int64_t first_sample = 0);
  MicroBatch view() const;
  /// The sequences [first, first + count).
  Tokens rows(int64_t first, int64_t count) const;
  int64_t valid() const;

  int64_t batch = 0;
  int64_t seq_len = 0;
  std::vector<int32_t> inputs, labels, doc_start;  ///< [batch, seq_len]; doc_start may be empty
  std::vector<int64_t> samples;                    ///< [batch]

 private:
  Tokens() = default;
};

/// What a Pass is made of, apart from the tokens.
struct PassOptions {
  bool training = true;
  float grad_scale = 1;
  int64_t step = 1;
};

/// A model with weights of noise (`seed`), large enough that every part matters, and zero
/// gradients. Gradients are fp32, or fp64 in an fp64 model.
class TinyModel {
 public:
  TinyModel(const spec::ModelConfig& config, core::DType dtype,
            spec::Recompute recompute = spec::Recompute::none, UnitHooks* hooks = nullptr,
            uint64_t seed = 1);

  LossResult forward(const Tokens& tokens, const PassOptions& options = {});
  /// forward, then backward.
  LossResult train(const Tokens& tokens, const PassOptions& options = {});
  /// Logits [B, V] at `positions`.
  std::vector<float> logits(const Tokens& tokens, const std::vector<int32_t>& positions);

  void zero_gradients();
  /// Every gradient, in the order of the table.
  std::vector<double> gradients() const;
  BoundParameter parameter(const std::string& name) const;
  Transformer& transformer() { return *transformer_; }

  spec::ModelConfig config;
  account::ParameterTable table;
  core::MemoryLedger ledger;
  core::Arena arena;

 private:
  Pass pass(const Tokens& tokens, const PassOptions& options);

  UnitHooks no_hooks_;
  DenseFactory factory_;
  std::vector<core::Tensor> weights_;
  std::vector<core::Tensor> gradients_;
  Parameters parameters_;
  std::unique_ptr<Transformer> transformer_;
};

/// |a − b| / |b| in the 2-norm; |a − b| where b is zero.
double relative_l2(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tessera::model::testing
