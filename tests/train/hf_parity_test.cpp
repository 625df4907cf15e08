// Folders that transformers wrote, read by our reader and run by our model, against the logits that
// transformers itself computed (tests/fixtures).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/arena.h"
#include "formats/safetensors.h"
#include "model/layer_factory.h"
#include "model/transformer.h"
#include "train/start_weights.h"

namespace tessera::train {
namespace {

using core::ConstView;
using core::DType;
using core::View;

const std::string kFixtures = TESSERA_TESTS_DIR "/fixtures/";

/// A tensor of a fixture; safetensors aligns them.
template <class T>
std::vector<T> tensor(const formats::SafetensorsFile& file, const std::string& name,
                      core::Shape* shape = nullptr) {
  const formats::SafetensorsEntry* entry = file.find(name);
  EXPECT_NE(entry, nullptr) << name;
  std::vector<T> values(static_cast<size_t>(entry->shape.elements()));
  std::memcpy(values.data(), file.data(*entry), values.size() * sizeof(T));
  if (shape != nullptr) *shape = entry->shape;
  return values;
}

/// Logits [B, T, V] of the tokens [B, T], one position after the other.
std::vector<float> logits_of(const spec::RunConfig& config, parallel::ModelState& state,
                             const std::vector<int32_t>& tokens, int64_t B, int64_t T) {
  core::MemoryLedger ledger;
  core::Arena arena(ledger, core::Category::activations, 0);
  const model::DenseFactory factory;
  model::UnitHooks hooks;
  model::Transformer transformer(config.model, state.parameters(), factory, hooks, {});
  const int64_t V = config.model.vocab_size;
  std::vector<int64_t> samples(static_cast<size_t>(B));
  std::vector<float> row(static_cast<size_t>(B * V));
  std::vector<float> all(static_cast<size_t>(B * T * V));
  for (int64_t t = 0; t < T; ++t) {
    const std::vector<int32_t> positions(static_cast<size_t>(B), static_cast<int32_t>(t));
    model::Pass pass{arena, {}};
    pass.training = false;
    pass.batch.inputs = ConstView{tokens.data(), DType::i32, {B, T}};
    pass.batch.samples = ConstView{samples.data(), DType::i64, {B}};
    transformer.logits(pass, ConstView{positions.data(), DType::i32, {B}},
                       View{row.data(), DType::f32, {B, V}});
    for (int64_t b = 0; b < B; ++b) {
      std::copy_n(row.begin() + b * V, V, all.begin() + (b * T + t) * V);
    }
  }
  return all;
}

struct Fixture {
  const char* folder;
  const char* computed;
};

class HfParity : public testing::TestWithParam<Fixture> {};

TEST_P(HfParity, GivesTheLogitsOfTransformers) {
  const WeightsPath weights = find_weights(kFixtures + "hf/" + GetParam().folder);
  ASSERT_EQ(weights.kind, WeightsKind::hf);
  const spec::RunConfig config = config_of(weights);
  core::MemoryLedger ledger;
  const account::ParameterTable table = account::parameter_table(config.model);
  parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
  EXPECT_TRUE(load_weights(weights, config, state).empty());

  const formats::SafetensorsFile file(kFixtures + GetParam().computed);
  core::Shape shape;
  const std::vector<float> expected = tensor<float>(file, "logits", &shape);
  std::vector<int32_t> tokens = tensor<int32_t>(file, "inputs");
  tokens.resize(static_cast<size_t>(shape[0] * shape[1]));  // the first batch
  const std::vector<float> logits = logits_of(config, state, tokens, shape[0], shape[1]);

  double largest = 0;
  double error = 0;
  ASSERT_EQ(logits.size(), expected.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    largest = std::max(largest, std::abs(double{expected[i]}));
    error = std::max(error, std::abs(double{logits[i]} - double{expected[i]}));
  }
  EXPECT_LE(error, 1e-5 * largest) << "largest logit " << largest;
}

INSTANTIATE_TEST_SUITE_P(Families, HfParity,
                         testing::Values(Fixture{"gpt2_tiny", "gpt2_tiny/gpt2_tiny.safetensors"},
                                         Fixture{"llama_tiny", "llama/llama_tiny.safetensors"},
                                         Fixture{"llama_biased", "llama/llama_biased.safetensors"},
                                         Fixture{"qwen3_tiny", "llama/qwen3_tiny.safetensors"}),
                         [](const auto& test) { return std::string(test.param.folder); });

}  // namespace
}  // namespace tessera::train
