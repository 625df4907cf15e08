// Folders that transformers wrote (tests/fixtures/hf), and what becomes of them when they are cut,
// renamed and mixed up.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "formats/foreign_weights.h"
#include "formats/hf_config.h"
#include "formats/safetensors.h"

namespace tessera::formats {
namespace {

namespace fs = std::filesystem;
using core::DType;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string kFixtures = TESSERA_TESTS_DIR "/fixtures/";

/// The tensors of a committed folder, to be changed and written somewhere else.
class HfFolder : public testing::Test {
 protected:
  struct Owned {
    DType dtype = DType::f32;
    core::Shape shape;
    std::string bytes;
  };

  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(testing::TempDir()) / (std::string("hf_") + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void take(const std::string& name) {
    const fs::path from = kFixtures + "hf/" + name;
    config_ = json::parse(std::ifstream(from / "config.json"));
    const SafetensorsFile file((from / "model.safetensors").string());
    for (const SafetensorsEntry& entry : file.entries()) {
      tensors_[entry.name] = {entry.dtype, entry.shape,
                              std::string(static_cast<const char*>(file.data(entry)),
                                          static_cast<size_t>(entry.bytes))};
    }
  }
  void rename(const std::string& from, const std::string& to) {
    tensors_[to] = tensors_.at(from);
    tensors_.erase(from);
  }
  void write_config() const { std::ofstream(folder_ / "config.json") << config_; }
  /// Tensors as a file; `keep` chooses them by name.
  template <class Keep>
  void write_file(const std::string& name, Keep keep) const {
    std::vector<NamedTensor> tensors;
    for (const auto& entry : tensors_) {
      if (!keep(entry.first)) continue;
      tensors.push_back(
          {entry.first, {entry.second.bytes.data(), entry.second.dtype, entry.second.shape}});
    }
    write_safetensors((folder_ / name).string(), tensors);
  }
  void write_single() const {
    write_config();
    write_file("model.safetensors", [](const std::string&) { return true; });
  }
  /// Two shards, block 0 in the first, and an index that `changes` may still change.
  void write_shards(const json& changes = json::object()) const {
    write_config();
    const auto in_first = [](const std::string& name) {
      return name.find(".0.") != std::string::npos;
    };
    json map;
    for (const auto& entry : tensors_) map[entry.first] = in_first(entry.first) ? kFirst : kSecond;
    for (const auto& change : changes.items()) {
      if (change.value().is_null()) {
        map.erase(change.key());
      } else {
        map[change.key()] = change.value();
      }
    }
    std::ofstream(folder_ / "model.safetensors.index.json")
        << json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}};
    write_file(kFirst, in_first);
    write_file(kSecond, [&](const std::string& name) { return !in_first(name); });
  }

  ForeignWeights open() const { return open_hf_weights(folder_.string()); }
  std::string refusal() const {
    try {
      open();
    } catch (const core::ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

  static constexpr const char* kFirst = "model-00001-of-00002.safetensors";
  static constexpr const char* kSecond = "model-00002-of-00002.safetensors";
  fs::path folder_;
  json config_;
  std::map<std::string, Owned> tensors_;
};

std::vector<float> values_of(const ForeignWeights& weights, const std::string& name) {
  const account::ParameterTable table = account::parameter_table(weights.model);
  const account::Parameter* parameter = table.find(name);
  EXPECT_NE(parameter, nullptr) << name;
  if (parameter == nullptr) return {};
  std::vector<float> values(static_cast<size_t>(parameter->elements()));
  weights.read(*parameter, core::View{values.data(), DType::f32, parameter->shape});
  return values;
}

/// Every parameter that the folder gives, compared with the same in a file of canonical names,
/// which Python made from the model itself.
void expect_canonical(const ForeignWeights& weights, const std::string& path,
                      const std::string& prefix) {
  const SafetensorsFile canonical(path);
  for (const account::Parameter& parameter : account::parameter_table(weights.model).parameters) {
    const SafetensorsEntry* entry = canonical.find(prefix + parameter.name);
    ASSERT_NE(entry, nullptr) << parameter.name;
    ASSERT_EQ(entry->shape, parameter.shape) << parameter.name;
    const std::vector<float> values = values_of(weights, parameter.name);
    EXPECT_EQ(std::memcmp(values.data(), canonical.data(*entry), static_cast<size_t>(entry->bytes)),
              0)
        << parameter.name;
  }
}

TEST_F(HfFolder, OfGpt2IsReadAsPythonReadsIt) {
  const ForeignWeights weights = open_hf_weights(kFixtures + "hf/gpt2_tiny");
  EXPECT_EQ(weights.dtype, DType::f32);
  EXPECT_THAT(weights.notes, IsEmpty());
  expect_canonical(weights, kFixtures + "gpt2_tiny/gpt2_tiny.safetensors", "weights.");
}

TEST_F(HfFolder, OfTheLlamaFamilyIsReadByItsOwnNames) {
  for (const char* name : {"llama_tiny", "llama_biased", "qwen3_tiny"}) {
    const std::string folder = kFixtures + "hf/" + name;
    expect_canonical(open_hf_weights(folder), folder + "/model.safetensors", "");
  }
}

TEST_F(HfFolder, MayNameGpt2sTensorsWithoutThePrefixAndKeepItsBuffers) {
  take("gpt2_tiny");
  std::vector<std::string> names;
  for (const auto& entry : tensors_) names.push_back(entry.first);
  for (const std::string& name : names) rename(name, name.substr(name.find('.') + 1));
  tensors_["h.0.attn.bias"] = {DType::u8, {1, 1, 2, 2}, "\1\0\1\1"};
  tensors_["h.0.attn.masked_bias"] = {DType::f32, {}, "1234"};
  write_single();
  expect_canonical(open(), kFixtures + "gpt2_tiny/gpt2_tiny.safetensors", "weights.");
}

TEST_F(HfFolder, InShardsIsTheSameAsInOneFile) {
  take("gpt2_tiny");
  write_shards();
  std::ofstream(folder_ / "second-model.safetensors") << "whatever";
  const ForeignWeights weights = open();
  expect_canonical(weights, kFixtures + "gpt2_tiny/gpt2_tiny.safetensors", "weights.");
  EXPECT_THAT(weights.notes, Contains(HasSubstr("second-model.safetensors")));
}

TEST_F(HfFolder, ListsEverythingThatIsAmissBetweenIndexAndShardsAtOnce) {
  take("llama_tiny");
  write_shards({{"model.norm.weight", nullptr},
                {"model.layers.1.extra.weight", kSecond},
                {"lm_head.weight", "model-00003-of-00003.safetensors"}});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.norm.weight is in model-00002-of-00002"),
                               HasSubstr("but not in the index"),
                               HasSubstr("model.layers.1.extra.weight is not in"),
                               HasSubstr("model-00003-of-00003.safetensors is missing")));
}

TEST_F(HfFolder, NamesAShardThatIsMissingOrCut) {
  take("llama_tiny");
  write_shards();
  fs::remove(folder_ / kFirst);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(std::string(kFirst) + " is missing, with 9 tensors"),
                               Not(HasSubstr("q_proj"))));
  write_shards();
  fs::resize_file(folder_ / kSecond, fs::file_size(folder_ / kSecond) - 4);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(kSecond), HasSubstr("it was cut")));
}

TEST_F(HfFolder, KeepsTheIndexInsideTheFolder) {
  take("llama_tiny");
  write_shards({{"model.norm.weight", "../model.safetensors"}});
  EXPECT_THAT(refusal(), HasSubstr("not a file of this folder"));
}

TEST_F(HfFolder, RefusesTensorsThatTheModelDoesNotHave) {
  take("qwen3_tiny");
  config_["model_type"] = "llama";  // of the same sizes, without QK-norm
  config_.erase("use_sliding_window");
  config_.erase("max_window_layers");
  write_single();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.layers.0.self_attn.q_norm.weight is in the files"),
                               HasSubstr("k_norm.weight"), HasSubstr("1 like it in other layers")));
}

TEST_F(HfFolder, NamesTensorsThatTheModelNeeds) {
  take("llama_tiny");
  config_["model_type"] = "qwen3";
  write_single();
  EXPECT_THAT(refusal(), HasSubstr("model.layers.0.self_attn.q_norm.weight is missing"));
}

TEST_F(HfFolder, TellsBothShapesAndTheKeysBehindThem) {
  take("llama_tiny");
  config_["head_dim"] = 6;
  config_["vocab_size"] = 54;
  write_single();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("q_proj.weight is [32, 24] in the files, and [24, 24] by "
                                         "num_attention_heads, head_dim and hidden_size"),
                               HasSubstr("embed_tokens.weight is [53, 24] in the files, and [54, "
                                         "24] by vocab_size")));
}

TEST_F(HfFolder, NeedsAHeadWhereItIsNotTied) {
  take("llama_tiny");
  tensors_.erase("lm_head.weight");
  write_single();
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("lm_head.weight is missing"), HasSubstr("tie_word_embeddings")));
  config_["tie_word_embeddings"] = true;
  write_single();
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(HfFolder, WarnsWhereATiedHeadDiffersFromTheEmbedding) {
  take("llama_tiny");
  config_["tie_word_embeddings"] = true;
  write_single();
  EXPECT_THAT(open().notes, Contains(HasSubstr("lm_head.weight differs from the embedding")));
  tensors_["lm_head.weight"] = tensors_["model.embed_tokens.weight"];
  write_single();
  EXPECT_THAT(open().notes, IsEmpty());
}

TEST_F(HfFolder, TakesATiedHeadForAnEmbeddingThatNobodyListed) {
  take("qwen3_tiny");
  rename("model.embed_tokens.weight", "lm_head.weight");
  write_single();
  expect_canonical(open(), kFixtures + "hf/qwen3_tiny/model.safetensors", "");
  EXPECT_THAT(open().notes, Contains(HasSubstr("taken for it")));
}

TEST_F(HfFolder, NamesTheEmbeddingThatTheIndexListsAndNoShardHas) {
  take("qwen3_tiny");
  rename("model.embed_tokens.weight", "lm_head.weight");
  write_shards({{"model.embed_tokens.weight", kSecond}});
  EXPECT_THAT(refusal(), HasSubstr("model.embed_tokens.weight is not in"));
}

TEST_F(HfFolder, NamesATensorThatIsThereUnderTwoNames) {
  take("gpt2_tiny");
  tensors_["wte.weight"] = tensors_["transformer.wte.weight"];
  write_single();
  EXPECT_THAT(refusal(), HasSubstr("are the same tensor"));
}

TEST_F(HfFolder, SaysHowToConvertPickles) {
  take("gpt2_tiny");
  write_config();
  EXPECT_THAT(refusal(), HasSubstr("neither model.safetensors nor"));
  std::ofstream(folder_ / "pytorch_model.bin") << "pickle";
  EXPECT_THAT(refusal(), AllOf(HasSubstr("pytorch_model.bin"), HasSubstr("save_pretrained")));
}

TEST_F(HfFolder, MayHoldWeightsInFp64Fp16AndBf16) {
  take("llama_tiny");
  Owned& norm = tensors_["model.norm.weight"];
  std::vector<double> wide;
  for (int i = 0; i < 24; ++i) wide.push_back(0.5 * i);
  norm = {DType::f64, {24}, std::string(reinterpret_cast<const char*>(wide.data()), 24 * 8)};
  Owned& input = tensors_["model.layers.0.input_layernorm.weight"];
  std::vector<core::bf16> narrow(24, core::bf16(1.5F));
  input = {DType::bf16, {24}, std::string(reinterpret_cast<const char*>(narrow.data()), 24 * 2)};
  write_single();
  EXPECT_EQ(values_of(open(), "model.norm.weight")[3], 1.5F);
  EXPECT_EQ(values_of(open(), "model.layers.0.input_layernorm.weight")[23], 1.5F);
  EXPECT_EQ(open().dtype, DType::f32);
}

TEST_F(HfFolder, NamesElementTypesThatAreNotWeights) {
  take("llama_tiny");
  tensors_["model.norm.weight"] = {DType::i32, {24}, std::string(96, '\0')};
  write_single();
  EXPECT_THAT(refusal(), AllOf(HasSubstr("model.norm.weight has elements of type I32"),
                               HasSubstr("F32, BF16, F16 or F64")));
}

TEST(WeightBlocks, WidenEveryKindOfFp16) {
  const uint16_t halves[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00,
                             0xc000, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x3555};
  const float expected[] = {0.0F,  -0.0F,    0x1p-24F, -1023 * 0x1p-24F, 0x1p-14F, 1.0F,
                            -2.0F, 65504.0F, INFINITY, -INFINITY,        NAN,      0.333251953125F};
  float out[12];
  read_block({reinterpret_cast<const char*>(halves), WeightType::f16, 12, 1},
             core::View{out, DType::f32, {12}});
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(std::isnan(out[i]), std::isnan(expected[i])) << i;
    if (std::isnan(out[i])) continue;
    EXPECT_EQ(out[i], expected[i]) << i;
    EXPECT_EQ(std::signbit(out[i]), std::signbit(expected[i])) << i;
  }
}

TEST(WeightBlocks, AreTransposedWhateverTheirSizeAndAlignment) {
  constexpr int64_t kRows = 131;
  constexpr int64_t kColumns = 67;
  std::string bytes(1, 'x');
  for (int64_t c = 0; c < kColumns; ++c) {
    for (int64_t r = 0; r < kRows; ++r) {
      const auto value = static_cast<float>(1000 * r + c);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  std::vector<float> out(kRows * kColumns);
  read_block({bytes.data() + 1, WeightType::f32, 1, kRows},
             core::View{out.data(), DType::f32, {kRows, kColumns}});
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t c = 0; c < kColumns; ++c) {
      ASSERT_EQ(out[static_cast<size_t>(r * kColumns + c)], static_cast<float>(1000 * r + c));
    }
  }
}

}  // namespace
}  // namespace tessera::formats
