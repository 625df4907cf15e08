#include "train/start_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "formats/config_io.h"
#include "formats/hf_config.h"
#include "toy_run.h"

namespace tessera::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string kGpt2 = TESSERA_TESTS_DIR "/fixtures/hf/gpt2_tiny";

spec::RunConfig from_flags(const std::vector<std::string>& words) {
  formats::ConfigSources sources;
  sources.environment = false;
  sources.overrides = formats::split_flags(words).overrides;
  return formats::load_config(sources, 1);
}

std::vector<std::string> load(const std::string& path, const spec::RunConfig& config) {
  core::MemoryLedger ledger;
  const account::ParameterTable table = account::parameter_table(config.model);
  parallel::ModelState state(table, config.training, /*for_training=*/true, ledger);
  return load_weights(find_weights(path), config, state);
}

std::string refusal(const std::string& path, const spec::RunConfig& config) {
  try {
    load(path, config);
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ModelHf, TakesTheShapeOfTheFolderUnderTheKeysThatAreGiven) {
  const spec::RunConfig config = from_flags(
      {"--model.hf", kGpt2, "--model.dropout", "0.1", "--data.path", "x", "--data.seq_len", "16"});
  EXPECT_EQ(config.model.hidden_size, 32);
  EXPECT_EQ(config.model.vocab_size, 67);
  EXPECT_EQ(config.model.dropout, 0.1);
}

TEST(ModelHf, LeavesAResolvedConfigThatNeedsTheFolderNoMore) {
  const spec::RunConfig config = spec::resolved(
      from_flags({"--model.hf", kGpt2, "--data.path", "x", "--data.seq_len", "16"}), 1);
  const std::string toml = formats::to_toml(config);
  EXPECT_THAT(toml, Not(HasSubstr("fixtures")));
  EXPECT_EQ(formats::parse_config(toml, "config.toml").model, config.model);
}

TEST(ModelHf, AndAPresetExcludeEachOtherTheLaterWins) {
  const spec::RunConfig preset = from_flags({"--model.hf", kGpt2, "--model.preset", "gpt2-124m",
                                             "--data.path", "x", "--data.seq_len", "16"});
  EXPECT_EQ(preset.model.hidden_size, 768);
  EXPECT_EQ(preset.model_hf, "");
  const spec::RunConfig folder = from_flags({"--model.preset", "gpt2-124m", "--model.hf", kGpt2,
                                             "--data.path", "x", "--data.seq_len", "16"});
  EXPECT_EQ(folder.model.hidden_size, 32);
  EXPECT_EQ(folder.model_preset, "");
}

TEST(ModelHf, IsAViolationWhereTheFolderCannotBeRead) {
  try {
    from_flags({"--model.hf", "/no/such/folder", "--data.path", "x"});
    FAIL();
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("model.hf"), HasSubstr("/no/such/folder")));
  }
}

TEST(StartWeights, OfAnotherModelAreRefusedWithEveryDifference) {
  spec::RunConfig config;
  config.model = formats::read_hf_config(kGpt2).model;
  config.model.hidden_size = 64;
  config.model.norm_eps = 1e-6;
  EXPECT_THAT(refusal(kGpt2, config),
              AllOf(HasSubstr("model.hidden_size: 64 here, 32 there"), HasSubstr("model.norm_eps"),
                    HasSubstr("model.hf = \"" + kGpt2)));
}

TEST(StartWeights, MayDifferFromTheFolderWhereThatWasAskedFor) {
  spec::RunConfig config;
  config.model = formats::read_hf_config(kGpt2).model;
  config.model.norm_eps = 1e-6;
  config.model_hf = kGpt2 + "/";
  EXPECT_THAT(load(kGpt2, config), Contains(HasSubstr("model.norm_eps")));
  config.model.vocab_size = 68;  // but not in what the tensors are
  EXPECT_THAT(refusal(kGpt2, config), HasSubstr("vocab_size"));
}

TEST(StartWeights, AreWantedUnderAPathThatHasSome) {
  const TestFolder folder;
  EXPECT_THAT(refusal(folder.path().string(), toy_config("x")),
              AllOf(HasSubstr("manifest.json"), HasSubstr("config.json")));
}

}  // namespace
}  // namespace tessera::train
