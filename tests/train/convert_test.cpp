#include "train/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "account/model_part.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"
#include "toy_run.h"
#include "train/checkpoint.h"
#include "train/generate.h"
#include "train/new_folder.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

spec::ModelConfig tiny(spec::Architecture architecture) {
  spec::ModelConfig model = spec::family_defaults(architecture);
  model.hidden_size = 32;
  model.num_hidden_layers = 2;
  model.num_attention_heads = 4;
  model.vocab_size = 263;
  model.max_position_embeddings = 24;
  return model;
}

class Conversions : public testing::Test {
 protected:
  /// A checkpoint of random weights; its hash.
  std::string write_checkpoint(const spec::ModelConfig& model, const std::string& name) const {
    spec::RunConfig config;
    config.model = model;
    config.training.precision = spec::Precision::fp32;
    config = spec::resolved(config, 1);
    core::MemoryLedger ledger;
    const account::ParameterTable table = account::parameter_table(config.model);
    parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
    state.initialise(5);
    parallel::MeshGroups alone;
    save_checkpoint(path(name), state, alone, {0, 5, 0, formats::to_toml(config), "dp=1"});
    return weights_hash(state, alone);
  }
  std::string hash_of(const fs::path& weights) const {
    const WeightsPath found = find_weights(weights);
    spec::RunConfig config = config_of(found);
    core::MemoryLedger ledger;
    const account::ParameterTable table = account::parameter_table(config.model);
    parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
    load_weights(found, config, state);
    parallel::MeshGroups alone;
    return weights_hash(state, alone);
  }
  Conversion to(const std::string& name) const {
    Conversion conversion;
    conversion.output = path(name);
    return conversion;
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::vector<std::string> listing() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  TestFolder folder_;
};

TEST_F(Conversions, ToHuggingFaceAndBackKeepEveryBit) {
  std::vector<spec::ModelConfig> models(7, tiny(spec::Architecture::llama));
  models[0] = tiny(spec::Architecture::gpt2);
  models[1] = tiny(spec::Architecture::gpt2);
  models[1].tie_word_embeddings = false;
  models[2].num_key_value_heads = 2;
  models[3].qk_norm = true;
  models[3].head_dim = 12;
  models[3].tie_word_embeddings = true;
  models[4].attention_bias = spec::AttentionBias::qkv;
  models[5].attention_bias = spec::AttentionBias::all;
  models[5].mlp_bias = true;
  models[5].rope_scaling = {spec::RopeType::llama3, 8, 1, 4, 12};
  models[6].hidden_size = 36;
  models[6].num_attention_heads = 8;
  models[6].head_dim = 4;
  for (size_t i = 0; i < models.size(); ++i) {
    const std::string name = std::to_string(i);
    const std::string hash = write_checkpoint(models[i], "a" + name);
    convert_to_hf(find_weights(path("a" + name)), to("hf" + name));
    EXPECT_EQ(hash_of(path("hf" + name)), hash) << i;
    convert_to_checkpoint(find_weights(path("hf" + name)), to("b" + name));
    EXPECT_EQ(find_weights(path("b" + name)).kind, WeightsKind::checkpoint);
    EXPECT_EQ(hash_of(path("b" + name)), hash) << i;
    EXPECT_EQ(config_of(find_weights(path("b" + name))).model, spec::resolved(models[i])) << i;
  }
}

TEST_F(Conversions, WriteShardsWhereAFileWouldBeTooLarge) {
  const std::string hash = write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  Conversion conversion = to("hf");
  conversion.max_shard_bytes = 40'000;
  const Converted done = convert_to_hf(find_weights(path("a")), conversion);
  EXPECT_THAT(done.files, Contains("model.safetensors.index.json"));
  EXPECT_THAT(done.files, Not(Contains("model.safetensors")));
  EXPECT_EQ(hash_of(path("hf")), hash);
  const json index = json::parse(std::ifstream(path("hf") / "model.safetensors.index.json"));
  const account::ParameterTable table =
      account::parameter_table(spec::resolved(tiny(spec::Architecture::gpt2)));
  EXPECT_EQ(index["metadata"]["total_size"], 4 * table.num_elements());
}

TEST_F(Conversions, WriteGpt2AsTransformersNamesIt) {
  write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  convert_to_hf(find_weights(path("a")), to("hf"));
  const formats::SafetensorsFile file((path("hf") / "model.safetensors").string());
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.find("transformer.h.0.attn.c_attn.weight")->shape, core::Shape(32, 96));
  EXPECT_EQ(file.find("transformer.h.1.mlp.c_fc.weight")->shape, core::Shape(32, 128));
  EXPECT_EQ(file.find("transformer.wte.weight")->shape, core::Shape(263, 32));  // not padded
  EXPECT_EQ(file.find("lm_head.weight"), nullptr);
}

TEST_F(Conversions, TakeTheTokenizerAlong) {
  write_checkpoint(tiny(spec::Architecture::llama), "a");
  const Converted done = convert_to_hf(find_weights(path("a")), to("hf"));
  EXPECT_THAT(done.files, Contains("tokenizer.json"));
  EXPECT_THAT(done.notes, Contains(HasSubstr("of bytes")));
  const json config = json::parse(std::ifstream(path("hf") / "config.json"));
  EXPECT_EQ(config["eos_token_id"], 256);
  // Another program's own files go along as they are.
  std::ofstream(path("hf") / "tokenizer_config.json") << "{\"theirs\": true}";
  convert_to_checkpoint(find_weights(path("hf")), to("b"));
  convert_to_hf(find_weights(path("b")), to("hf2"));
  EXPECT_EQ(json::parse(std::ifstream(path("hf2") / "tokenizer_config.json")),
            json::parse("{\"theirs\": true}"));
}

TEST_F(Conversions, RoundToBf16WhereAsked) {
  write_checkpoint(tiny(spec::Architecture::llama), "a");
  Conversion conversion = to("hf");
  conversion.dtype = core::DType::bf16;
  convert_to_hf(find_weights(path("a")), conversion);
  const formats::SafetensorsFile file((path("hf") / "model.safetensors").string());
  EXPECT_EQ(file.find("model.norm.weight")->dtype, core::DType::bf16);
  EXPECT_EQ(config_of(find_weights(path("hf"))).training.precision, spec::Precision::bf16);
  // What is bf16 already stays so, to the bit.
  convert_to_checkpoint(find_weights(path("hf")), to("b"));
  EXPECT_EQ(hash_of(path("b")), hash_of(path("hf")));
}

TEST_F(Conversions, OfAMeshHaveTheModelsOwnShapes) {
  for (const spec::Architecture architecture :
       {spec::Architecture::gpt2, spec::Architecture::llama}) {
    spec::RunConfig config;
    config.model = tiny(architecture);  // a vocabulary of 263: tensor parallelism pads it
    config.model.intermediate_size = 64;
    config.training.precision = spec::Precision::fp32;
    config.training.global_batch_size = 16;
    config.training.micro_batch_size = 1;
    config.parallelism.tensor_parallel_degree = 2;
    config.parallelism.pipeline_parallel_degree = 2;
    config.parallelism.data_parallel_degree = 2;
    config.parallelism.zero_stage = 3;
    config.model = spec::resolved(config.model);
    const std::string name = architecture == spec::Architecture::gpt2 ? "gpt2" : "llama";
    std::string hash;
    run_thread_ranks({8, 8}, {}, [&](comm::Communicator& comm) {
      parallel::MeshGroups groups(comm, config);
      parallel::DataParallel& dp = groups.data_parallel();
      const account::ParameterTable table = account::parameter_table(
          config.model, config.lora, account::part_of(config, comm.rank()));
      core::MemoryLedger ledger;
      parallel::ModelState state(table, config.training, /*for_training=*/true, ledger,
                                 {dp.sharding(), dp.shard_rank()});
      state.initialise(5);
      save_checkpoint(path(name), state, groups, {0, 5, 0, formats::to_toml(config), "dp=2"});
      const std::string mine = weights_hash(state, groups);
      if (comm.rank() == 0) hash = mine;
    });
    EXPECT_EQ(hash, write_checkpoint(config.model, name + "-alone"));
    convert_to_hf(find_weights(path(name)), to(name + "-hf"));
    EXPECT_EQ(hash_of(path(name + "-hf")), hash);
    convert_to_checkpoint(find_weights(path(name)), to(name + "-again"));
    EXPECT_EQ(hash_of(path(name + "-again")), hash);
    const spec::RunConfig again = config_of(find_weights(path(name + "-again")));
    EXPECT_EQ(spec::mesh_of(again.parallelism).size(), 1);
  }
}

TEST_F(Conversions, MergeAdaptersIntoTheWeightsTheyAdapt) {
  spec::RunConfig config;
  config.model = tiny(spec::Architecture::llama);
  config.training.precision = spec::Precision::fp32;
  config.lora.rank = 3;
  config = spec::resolved(config, 1);
  core::MemoryLedger ledger;
  const account::ParameterTable table = account::parameter_table(config.model, config.lora);
  parallel::ModelState state(table, config.training, /*for_training=*/false, ledger);
  state.initialise(5);
  const auto values = [&](account::Role role) {
    return state.whole(parallel::StateKind::weights, *table.find(1, role)).as<float>();
  };
  float* b = values(account::Role::q_lora_b);
  for (int i = 0; i < 32 * 3; ++i) b[i] = 0.01F * static_cast<float>(i % 7);
  parallel::MeshGroups alone;
  save_checkpoint(path("a"), state, alone, {0, 5, 0, formats::to_toml(config), "dp=1"});
  const OpenWeights open = open_weights(find_weights(path("a")));
  EXPECT_EQ(open.config.lora.rank, 0);
  std::vector<float> merged(32 * 32);
  open.read(*table.find(1, account::Role::q_weight),
            core::View{merged.data(), core::DType::f32, {32, 32}});
  const float* w = values(account::Role::q_weight);
  const float* a = values(account::Role::q_lora_a);
  for (int o = 0; o < 32; ++o) {
    for (int i = 0; i < 32; ++i) {
      double expected = w[o * 32 + i];
      for (int r = 0; r < 3; ++r) {
        expected += spec::lora_scale(config.lora) * double{b[o * 3 + r]} * double{a[r * 32 + i]};
      }
      ASSERT_NEAR(merged[static_cast<size_t>(o * 32 + i)], expected, 1e-6);
    }
  }
  convert_to_hf(find_weights(path("a")), to("hf"));
  EXPECT_EQ(find_weights(path("hf")).kind, WeightsKind::hf);

  const Converted adapters = convert_to_peft(find_weights(path("a")), to("peft"));
  EXPECT_EQ(adapters.parameters, table.num_trainable_elements());
  const formats::SafetensorsFile file((path("peft") / "adapter_model.safetensors").string());
  const auto* entry = file.find("base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(std::memcmp(file.data(*entry), b, 32 * 3 * sizeof(float)), 0);
}

TEST_F(Conversions, RefuseToWriteAdaptersThatAreNotThere) {
  write_checkpoint(tiny(spec::Architecture::llama), "plain");
  EXPECT_THROW(convert_to_peft(find_weights(path("plain")), to("peft")), core::ConfigError);
  EXPECT_THAT(listing(), Not(Contains("peft")));
}

TEST_F(Conversions, LeaveNothingBehindWhenTheyFail) {
  spec::ModelConfig model = tiny(spec::Architecture::gpt2);
  model.num_key_value_heads = 2;
  write_checkpoint(model, "a");
  EXPECT_THROW(convert_to_hf(find_weights(path("a")), to("deep/er/hf")), core::ConfigError);
  EXPECT_THAT(listing(), testing::ElementsAre("a"));
  {
    const NewFolder abandoned(path("deep/er/hf"), false, "config.json");
    EXPECT_TRUE(fs::exists(abandoned.path()));
  }
  EXPECT_THAT(listing(), testing::ElementsAre("a"));
}

TEST_F(Conversions, ReplaceOnlyWhatWasMadeTheSameWay) {
  write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  const WeightsPath weights = find_weights(path("a"));
  convert_to_hf(weights, to("hf"));
  EXPECT_THROW(convert_to_hf(weights, to("hf")), core::ConfigError);
  Conversion overwrite = to("hf");
  overwrite.overwrite = true;
  std::ofstream(path("hf") / "model-00001-of-00002.safetensors") << "x";
  convert_to_hf(weights, overwrite);
  EXPECT_FALSE(fs::exists(path("hf") / "model-00001-of-00002.safetensors"));
  // A folder that is something else stays.
  overwrite.output = path("a");
  EXPECT_THROW(convert_to_hf(weights, overwrite), core::ConfigError);
  fs::create_directories(path("home/photos"));
  std::ofstream(path("home") / "config.json") << "{}";
  overwrite.output = path("home");
  EXPECT_THROW(convert_to_hf(weights, overwrite), core::ConfigError);
  EXPECT_TRUE(fs::exists(path("home/photos")));
  std::ofstream(path("hf") / "thesis.tex") << "years";
  overwrite.output = path("hf");
  EXPECT_THROW(convert_to_hf(weights, overwrite), core::ConfigError);
  EXPECT_TRUE(fs::exists(path("hf/thesis.tex")));
  EXPECT_TRUE(fs::exists(path("a/manifest.json")));
}

TEST_F(Conversions, RefuseToReplaceTheModelThatTheyRead) {
  write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  convert_to_hf(find_weights(path("a")), to("hf"));
  Conversion overwrite = to("hf/../hf");
  overwrite.overwrite = true;
  EXPECT_THROW(convert_to_hf(find_weights(path("hf")), overwrite), core::ConfigError);
}

TEST_F(Conversions, RemoveWhatKilledOnesHaveLeft) {
  write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  fs::create_directories(path("hf.tmp-999999999"));  // beyond any process number
  fs::create_directories(path("hf.tmp-mine"));
  convert_to_hf(find_weights(path("a")), to("hf"));
  EXPECT_FALSE(fs::exists(path("hf.tmp-999999999")));
  EXPECT_TRUE(fs::exists(path("hf.tmp-mine")));
}

TEST_F(Conversions, GiveFoldersThatTextIsSampledFrom) {
  write_checkpoint(tiny(spec::Architecture::gpt2), "a");
  convert_to_hf(find_weights(path("a")), to("hf"));
  SamplingOptions options;
  options.max_new_tokens = 8;
  const std::string text = Generator(path("a")).generate("tile", options, {});
  EXPECT_EQ(Generator(path("hf")).generate("tile", options, {}), text);
  convert_to_checkpoint(find_weights(path("hf")), to("b"));
  fs::rename(path("b"), path("moved"));
  EXPECT_EQ(Generator(path("moved")).generate("tile", options, {}), text);
}

}  // namespace
}  // namespace tessera::train
