// llm.c's model file, made here by hand: every element is the number of its place in the file, so
// that what is read says where it was.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "formats/foreign_weights.h"

namespace tessera::formats {
namespace {

using core::DType;
using testing::AllOf;
using testing::HasSubstr;

// Positions, vocabulary, layers, heads, width, padded vocabulary.
constexpr int32_t kT = 4, kV = 11, kL = 2, kH = 2, kC = 8, kVp = 16;
constexpr int64_t kWte = int64_t{kVp} * kC;
constexpr int64_t kWpe = int64_t{kT} * kC;
constexpr int64_t kLC = int64_t{kL} * kC;

class LlmcModel : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = testing::TempDir() + "llmc_" + test->name() + ".bin";
    words_[0] = 20240326;
    words_[1] = 3;
    const int32_t sizes[] = {kT, kV, kL, kH, kC, kVp};
    std::copy(std::begin(sizes), std::end(sizes), words_.begin() + 2);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static int64_t elements() {
    return kWte + kWpe + kLC * (2 + 2) + kLC * (3 * kC + 3 + kC + 1) +
           kLC * (4 * kC + 4 + 4 * kC + 1) + 2 * kC;
  }
  void write(int64_t count = elements()) const {
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(words_.data()), 1024);
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(i);
      const core::bf16 narrow(value);
      if (words_[1] == 3) file.write(reinterpret_cast<const char*>(&value), 4);
      if (words_[1] == 5) file.write(reinterpret_cast<const char*>(&narrow), 2);
    }
  }
  std::vector<float> values(const std::string& name) const {
    const ForeignWeights weights = open_llmc_weights(path_);
    const account::ParameterTable table = account::parameter_table(weights.model);
    const account::Parameter* parameter = table.find(name);
    EXPECT_NE(parameter, nullptr) << name;
    std::vector<float> out(static_cast<size_t>(parameter->elements()));
    weights.read(*parameter, core::View{out.data(), DType::f32, parameter->shape});
    return out;
  }
  std::string refusal() const {
    try {
      open_llmc_weights(path_);
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.what();
    }
    return "accepted";
  }

  std::string path_;
  std::vector<int32_t> words_ = std::vector<int32_t>(256);
};

TEST_F(LlmcModel, SaysItsShape) {
  write();
  EXPECT_TRUE(is_llmc_model(path_));
  const ForeignWeights weights = open_llmc_weights(path_);
  EXPECT_EQ(weights.model.vocab_size, kV);
  EXPECT_EQ(weights.model.hidden_size, kC);
  EXPECT_EQ(weights.model.num_hidden_layers, kL);
  EXPECT_EQ(weights.model.num_attention_heads, kH);
  EXPECT_EQ(weights.model.max_position_embeddings, kT);
  EXPECT_TRUE(weights.model.tie_word_embeddings);
  EXPECT_EQ(weights.dtype, DType::f32);
}

TEST_F(LlmcModel, HasEveryParameterInItsPlace) {
  write();
  const std::string block = "model.layers.1.";
  const int64_t ln1w = kWte + kWpe;
  const int64_t qkvw = ln1w + 2 * kLC;
  const int64_t qkvb = qkvw + kLC * 3 * kC;
  const int64_t attprojw = qkvb + 3 * kLC;
  const int64_t fcw = attprojw + kLC * kC + kLC + 2 * kLC;
  const int64_t fcprojw = fcw + 4 * kLC * kC + 4 * kLC;
  const int64_t lnfw = fcprojw + 4 * kLC * kC + kLC;
  const struct {
    std::string name;
    int64_t first;
  } cases[] = {{"model.embed_tokens.weight", 0},
               {"model.embed_positions.weight", kWte},
               {block + "input_layernorm.weight", ln1w + kC},
               {block + "input_layernorm.bias", ln1w + kLC + kC},
               {block + "self_attn.q_proj.weight", qkvw + 3 * kC * kC},
               {block + "self_attn.k_proj.weight", qkvw + 4 * kC * kC},
               {block + "self_attn.v_proj.weight", qkvw + 5 * kC * kC},
               {block + "self_attn.k_proj.bias", qkvb + 4 * kC},
               {block + "self_attn.o_proj.weight", attprojw + kC * kC},
               {block + "mlp.up_proj.weight", fcw + 4 * kC * kC},
               {block + "mlp.down_proj.weight", fcprojw + 4 * kC * kC},
               {"model.norm.weight", lnfw},
               {"model.norm.bias", lnfw + kC}};
  for (const auto& c : cases) {
    const std::vector<float> found = values(c.name);
    EXPECT_EQ(found.front(), static_cast<float>(c.first)) << c.name;
    EXPECT_EQ(found.back(), static_cast<float>(c.first) + static_cast<float>(found.size() - 1))
        << c.name;
  }
}

TEST_F(LlmcModel, MayBeInBf16) {
  words_[1] = 5;
  write();
  EXPECT_EQ(open_llmc_weights(path_).dtype, DType::bf16);
  EXPECT_EQ(values("model.embed_positions.weight")[0], static_cast<float>(kWte));
}

TEST_F(LlmcModel, IsRefusedWhereItsSizeIsNotTheHeaders) {
  write(elements() - 1);
  EXPECT_THAT(refusal(), HasSubstr("it was cut"));
  write(elements() + 1);
  EXPECT_THAT(refusal(), HasSubstr("something follows"));
  std::ofstream(path_) << "short";
  EXPECT_THAT(refusal(), HasSubstr("too short"));
}

TEST_F(LlmcModel, IsRefusedWithAHeaderThatLies) {
  words_[4] = 2'000'000'000;  // layers
  write(1);
  EXPECT_THAT(refusal(), HasSubstr("num_hidden_layers"));
  words_[4] = kL;
  words_[7] = 3;
  words_[5] = 3;
  write(1);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("padded vocabulary 3"), HasSubstr("num_attention_heads")));
  words_[1] = 1;
  write();
  EXPECT_THAT(refusal(), HasSubstr("version 1"));
  words_[0] = 20240520;
  write();
  EXPECT_THAT(refusal(), HasSubstr("20240520"));
  EXPECT_FALSE(is_llmc_model(path_));
}

}  // namespace
}  // namespace tessera::formats
