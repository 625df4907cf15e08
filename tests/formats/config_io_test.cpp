#include "formats/config_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.h"

namespace tessera::formats {
namespace {

using spec::RunConfig;
using spec::Violation;
using testing::HasSubstr;

class ConfigIo : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(testing::TempDir()) / (std::string("config_io_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    return path;
  }

  /// Everything that is wrong with a file, for a world of one.
  std::vector<Violation> violations(const std::string& text) const {
    ConfigSources sources;
    sources.files = {file("run.toml", text)};
    return spec::all_violations(read_config(sources), 1);
  }

  std::filesystem::path folder_;
};

ConfigSources flags(const std::vector<std::string>& words) {
  ConfigSources sources;
  sources.overrides = split_flags(words).overrides;
  return sources;
}

TEST_F(ConfigIo, ReadsEveryTypeFromTomlWithItsPlace) {
  ConfigSources sources;
  sources.files = {file("run.toml",
                        "[data]\n"
                        "path = [\"a.txt\", \"b.txt\"]\n"
                        "document_mask = false\n"
                        "\n"
                        "[training]\n"
                        "steps = 1_000\n"
                        "max_norm = 2\n"
                        "precision = \"fp32\"\n"
                        "load = 'C:\\x'\n")};
  const auto result = read_config(sources);
  EXPECT_TRUE(result.violations.empty()) << describe(result.violations);
  EXPECT_EQ(result.config.data.path, (std::vector<std::string>{"a.txt", "b.txt"}));
  EXPECT_FALSE(result.config.data.document_mask);
  EXPECT_EQ(result.config.training.steps, 1000);
  EXPECT_EQ(result.config.training.max_norm, 2.0);
  EXPECT_EQ(result.config.training.precision, spec::Precision::fp32);
  EXPECT_EQ(result.config.training.load, "C:\\x");
  EXPECT_EQ(result.origin.at("training.steps").where, sources.files[0] + ":6");
}

TEST_F(ConfigIo, ListsFiveMistakesOfOneFileAtOnceEachWithItsLine) {
  const auto found = violations(
      "[model]\n"
      "num_attention_heads = 7\n"
      "[data]\n"
      "path = \"x.txt\"\n"
      "seq_len = \"long\"\n"
      "[training]\n"
      "stpes = 10\n"
      "precision = \"bf61\"\n"
      "[optimizer]\n"
      "lr = -1.0\n");
  std::vector<std::string> keys;
  for (const Violation& violation : found) {
    keys.push_back(violation.key + violation.where.substr(violation.where.find(".toml:") + 5));
  }
  EXPECT_THAT(keys, testing::UnorderedElementsAre("model.num_attention_heads:2", "data.seq_len:5",
                                                  "training.stpes:7", "training.precision:8",
                                                  "optimizer.lr:10"));
  const std::string text = describe(found);
  EXPECT_THAT(text, HasSubstr("5 mistakes"));
  EXPECT_THAT(text, HasSubstr("try: training.steps"));
  EXPECT_THAT(text, HasSubstr("try: bf16"));
}

TEST_F(ConfigIo, MergesPresetFilesEnvironmentAndFlagsInThatOrder) {
  ConfigSources sources = flags({"--training.seed", "4"});
  sources.files = {
      file("a.toml",
           "[model]\nhidden_size = 384\n[training]\nsteps = 1\nseed = 1\n"
           "max_norm = 1.5\n"),
      file("b.toml", "[model]\npreset = \"gpt2-124m\"\n[training]\nsteps = 2\nseed = 2\n")};
  ::setenv("TESSERA_TRAINING_SEED", "3", 1);
  ::setenv("TESSERA_LR_SCHEDULER_WARMUP_STEPS", "1", 1);
  const auto result = read_config(sources);
  ::unsetenv("TESSERA_TRAINING_SEED");
  ::unsetenv("TESSERA_LR_SCHEDULER_WARMUP_STEPS");
  EXPECT_TRUE(result.violations.empty()) << describe(result.violations);
  EXPECT_EQ(result.config.model.num_hidden_layers, 12);
  EXPECT_EQ(result.config.model.hidden_size, 384);
  EXPECT_EQ(result.config.training.max_norm, 1.5);
  EXPECT_EQ(result.config.training.steps, 2);
  EXPECT_EQ(result.config.training.seed, 4u);
  EXPECT_EQ(result.config.lr_scheduler.warmup_steps, 1);
}

TEST_F(ConfigIo, NamesAnUnknownVariableOfASectionAndPassesOverOthers) {
  ::setenv("TESSERA_TRAINING_STPES", "3", 1);
  ::setenv("TESSERA_SOMETHING_ELSE", "3", 1);
  const auto result = read_config(ConfigSources{});
  ::unsetenv("TESSERA_TRAINING_STPES");
  ::unsetenv("TESSERA_SOMETHING_ELSE");
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].suggest, "training.steps");
  EXPECT_THAT(result.violations[0].where, HasSubstr("TESSERA_TRAINING_STPES"));
}

TEST_F(ConfigIo, SaysWhereAFileStopsBeingToml) {
  const auto found = violations("[data]\npath = \"x\"\nseq_len = = 3\n");
  ASSERT_GE(found.size(), 1u);
  EXPECT_THAT(found[0].where, HasSubstr("run.toml:3:"));
}

TEST_F(ConfigIo, TellsMissingFilesFoldersAndUnreadableOnesApart) {
  ConfigSources sources;
  sources.files = {(folder_ / "none.toml").string(), folder_.string()};
  const auto result = read_config(sources);
  ASSERT_EQ(result.violations.size(), 2u);
  EXPECT_THAT(result.violations[0].why, HasSubstr("does not exist"));
  EXPECT_THAT(result.violations[1].why, HasSubstr("folder"));
}

TEST_F(ConfigIo, RefusesValuesOfTypesThatNoKeyHas) {
  for (const char* line :
       {"steps = 1979-05-27", "steps = [1]", "steps = true", "steps = \"5\"", "steps = 5.0",
        "steps = {a = 1}", "load = 1979-05-27", "load = [1, 2]"}) {
    const auto found = violations(std::string("[data]\npath = \"x\"\n[training]\n") + line + "\n");
    ASSERT_EQ(found.size(), 1u) << line;
    EXPECT_THAT(found[0].key, HasSubstr("training.")) << line;
  }
  const auto found = violations("[data]\npath = [\"a\", 3]\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "data.path");
}

TEST_F(ConfigIo, NamesKeysOutsideTheirSection) {
  const auto found = violations("warmup_steps = 3\nmodel = \"gpt2-124m\"\n[data]\npath = \"x\"\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].suggest, "lr_scheduler.warmup_steps");
  EXPECT_THAT(found[1].why, HasSubstr("section"));
}

TEST_F(ConfigIo, ThrowsAllOfThemAsOneConfigError) {
  ConfigSources sources = flags({"--training.steps=0", "--optimizer.lr=fast"});
  try {
    load_config(sources, 1);
    FAIL() << "nothing was thrown";
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("training.steps"));
    EXPECT_THAT(error.what(), HasSubstr("optimizer.lr"));
    EXPECT_THAT(error.what(), HasSubstr("data.path"));
  }
}

TEST_F(ConfigIo, ReadsTheScheduleFileThatTheConfigNames) {
  const std::string csv = file("mine.csv", "0F0,0B0\n");
  auto result = read_config(flags({"--parallelism.pipeline_schedule=" + csv}));
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.config.parallelism.schedule_csv, "0F0,0B0\n");
  result = read_config(flags({"--parallelism.pipeline_schedule=none.csv"}));
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].why, "none.csv does not exist");
  EXPECT_EQ(result.violations[0].where, "--parallelism.pipeline_schedule");
  RunConfig config;
  config.parallelism.schedule_csv = "left over";
  read_schedule_file(config);
  EXPECT_EQ(config.parallelism.schedule_csv, "");
}

TEST_F(ConfigIo, WritesTomlThatReadsBackTheSame) {
  RunConfig config;
  config.model_preset = "gpt2-10m";
  config.model.hidden_size = 96;
  config.model.tie_word_embeddings = false;
  config.data.path = {"a \"quoted\"\\name.txt", "tab\t and ünïcode", "x,y"};
  config.optimizer.lr = 0.1 + 0.2;
  config.optimizer.eps = 1e-300;
  config.training.max_norm = 3;
  config.parallelism.layers_per_stage = {4, 0, 3};
  config.training.seed = 9223372036854770000u;
  config.lr_scheduler.decay = spec::Decay::wsd;
  config.activation_checkpoint.mode = spec::Recompute::full;
  config.comm.backend = spec::Backend::shm;
  ConfigSources sources;
  sources.files = {file("config.toml", to_toml(spec::resolved(config, 2)))};
  const auto result = read_config(sources);
  ASSERT_TRUE(result.violations.empty()) << describe(result.violations);
  for (const spec::Option& option : spec::options()) {
    EXPECT_EQ(option.get(result.config), option.get(spec::resolved(config, 2))) << option.key;
  }
}

TEST_F(ConfigIo, WritesAConfigThatIsAsValidAsTheOneItCameFrom) {
  RunConfig config;
  config.data.path = {"x"};
  ConfigSources sources;
  sources.files = {file("config.toml", to_toml(spec::resolved(config, 3)))};
  EXPECT_TRUE(spec::all_violations(read_config(sources), 3).empty());
}

TEST(SplitFlags, TakesBothSpellingsAndLeavesTheRest) {
  const Flags split = split_flags({"run.toml", "--training.global-batch-size", "-1", "--run-dir",
                                   "out", "--optimizer.lr=1e-3", "--data.path=a=b.txt"});
  EXPECT_EQ(split.rest, (std::vector<std::string>{"run.toml", "--run-dir", "out"}));
  ASSERT_EQ(split.overrides.size(), 3u);
  EXPECT_EQ(split.overrides[0].key, "training.global_batch_size");
  EXPECT_EQ(split.overrides[0].text, "-1");
  EXPECT_EQ(split.overrides[0].where, "--training.global-batch-size");
  EXPECT_EQ(split.overrides[1].text, "1e-3");
  EXPECT_EQ(split.overrides[2].text, "a=b.txt");
}

TEST(SplitFlags, LetsABooleanStandAlone) {
  const Flags split = split_flags({"--data.document-mask", "run.toml", "--data.document-mask",
                                   "false", "--model.tie_word_embeddings"});
  ASSERT_EQ(split.overrides.size(), 3u);
  EXPECT_EQ(split.overrides[0].text, "true");
  EXPECT_EQ(split.overrides[1].text, "false");
  EXPECT_EQ(split.overrides[2].text, "true");
  EXPECT_EQ(split.rest, std::vector<std::string>{"run.toml"});
}

TEST(SplitFlags, NamesAFlagWithoutAValue) {
  const Flags split = split_flags({"--training.steps", "--data.path", "x"});
  ASSERT_EQ(split.violations.size(), 1u);
  EXPECT_EQ(split.violations[0].key, "training.steps");
  EXPECT_EQ(split.overrides.size(), 1u);
}

TEST(JsonSchema, DescribesEveryKeyWithItsDefault) {
  const auto schema = nlohmann::json::parse(to_json_schema());
  for (const spec::Option& option : spec::options()) {
    std::istringstream names{std::string(option.key)};
    nlohmann::json property = schema;
    for (std::string name; std::getline(names, name, '.');) {
      EXPECT_FALSE(property.at("additionalProperties")) << option.key;
      property = nlohmann::json(property.at("properties").at(name));
    }
    EXPECT_TRUE(property.contains("default")) << option.key;
    EXPECT_EQ(property.at("description"), std::string(option.about));
  }
  const auto& steps = schema["properties"]["training"]["properties"]["steps"];
  EXPECT_EQ(steps["type"], "integer");
  EXPECT_EQ(steps["minimum"], 1);
  EXPECT_EQ(schema["properties"]["optimizer"]["properties"]["name"]["const"], "adamw");
}

TEST(Json, OfAConfigHasTheSectionsOfTheToml) {
  const auto json = nlohmann::json::parse(to_json(RunConfig{}));
  EXPECT_EQ(json["training"]["steps"], 100);
  EXPECT_EQ(json["lr_scheduler"]["decay"], "cosine");
  EXPECT_TRUE(json["data"]["path"].is_array());
  EXPECT_EQ(json["model"]["rope_scaling"]["rope_type"], "none");
}

TEST(Json, OfViolationsKeepsTheirParts) {
  Violation violation;
  violation.key = "training.steps";
  violation.value = "\xff";  // no UTF-8
  const auto json = nlohmann::json::parse(to_json(std::vector<Violation>{violation}));
  EXPECT_EQ(json[0]["key"], "training.steps");
}

}  // namespace
}  // namespace tessera::formats
