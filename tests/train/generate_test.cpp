#include "train/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "core/error.h"
#include "formats/config_io.h"
#include "test_folder.h"
#include "toy_run.h"
#include "train/checkpoint.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

using testing::HasSubstr;

/// A model of bytes with random weights.
class GenerateTest : public testing::Test {
 protected:
  void save(const std::string& name, spec::ModelConfig model, int64_t lora_rank = 0) const {
    spec::RunConfig config;
    config.model = std::move(model);
    config.model.vocab_size = 257;
    config.training.precision = spec::Precision::fp32;
    config.lora.rank = lora_rank;
    config = spec::resolved(config, 1);
    core::MemoryLedger ledger;
    const account::ParameterTable table = account::parameter_table(config.model, config.lora);
    parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
    state.initialise(5);
    // Larger weights, so that the text does not hang on rounding.
    for (const account::Parameter& parameter : table.parameters) {
      if (parameter.shape.dims() < 2) continue;
      const core::View values = state.whole(parallel::StateKind::weights, parameter);
      for (int64_t i = 0; i < values.elements(); ++i) values.as<float>()[i] *= 5;
    }
    parallel::MeshGroups alone;
    save_checkpoint(path(name), state, alone, {1, 5, 0, formats::to_toml(config), "dp=1"});
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  static SamplingOptions options(double temperature) {
    SamplingOptions options;
    options.max_new_tokens = 24;
    options.temperature = temperature;
    return options;
  }
  std::string alone(const std::string& name, double temperature) const {
    return Generator(path(name)).generate("tiles", options(temperature), {});
  }
  /// What rank 0 hears piece by piece; every rank returns it.
  std::string on_ranks(const std::string& name, int64_t tp, int64_t pp, double temperature) const {
    std::string heard;
    std::vector<std::string> texts;
    std::mutex mutex;
    const auto ranks = static_cast<int>(tp * pp);
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      Generator generator(path(name), "", comm, tp, pp);
      const std::string text = generator.generate(
          "tiles", options(temperature), [&](const std::string& piece) { heard += piece; });
      const std::lock_guard lock(mutex);
      texts.push_back(text);
    });
    for (const std::string& text : texts) EXPECT_EQ(text, heard);
    return heard;
  }

  TestFolder folder_;
};

TEST_F(GenerateTest, SaysOnSeveralRanksWhatOneRankSays) {
  save("gpt2", toy_config("").model);
  save("llama", toy_llama());
  save("adapted", toy_llama(), 3);
  for (const char* name : {"gpt2", "llama", "adapted"}) {
    for (const double temperature : {0.0, 0.8}) {
      const std::string text = alone(name, temperature);
      EXPECT_GE(text.size(), 10u) << name;
      EXPECT_EQ(on_ranks(name, 2, 1, temperature), text) << name;
      EXPECT_EQ(on_ranks(name, 1, 2, temperature), text) << name;
      EXPECT_EQ(on_ranks(name, 2, 2, temperature), text) << name;
    }
  }
  EXPECT_EQ(on_ranks("llama", 4, 1, 0), alone("llama", 0)) << "two key-value heads, copied";
}

TEST_F(GenerateTest, RefusesALayoutOfAnotherNumberOfRanks) {
  save("llama", toy_llama());
  std::string refusal;
  try {
    run_thread_ranks({2, 2}, {}, [&](comm::Communicator& comm) {
      Generator generator(path("llama"), "", comm, 2, 2);
    });
  } catch (const core::ConfigError& error) {
    refusal = error.what();
  }
  EXPECT_THAT(refusal, HasSubstr("tp=2, pp=2 is a layout of 4 ranks, but there are 2"));
}

}  // namespace
}  // namespace tessera::train
