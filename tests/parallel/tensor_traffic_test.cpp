// What a pass sends is what account predicts, to the byte, and no more collectives than it takes.

#include <gtest/gtest.h>

#include <map>

#include "account/tensor_traffic.h"
#include "parallel/tensor_model.h"
#include "trace/recorder.h"

namespace tessera::parallel::testing {
namespace {

using spec::Recompute;

struct Sent {
  comm::Traffic bytes;
  std::map<std::string, int> collectives;  ///< by name, how many
};

/// What each rank sends in one pass.
std::vector<Sent> sent_in_a_pass(const Setting& setting, const Cut& cut, const Tokens& tokens,
                                 bool training) {
  std::vector<Sent> sent(static_cast<size_t>(cut.ranks));
  on_ranks(cut.ranks, [&](comm::Communicator& group) {
    PartModel model(setting, cut, group);
    trace::Recorder recorder;
    group.record(&recorder, trace::Lane::tp);
    const comm::Traffic before = group.traffic();
    if (training) {
      model.train(tokens);
    } else {
      model.forward(tokens);
    }
    Sent& mine = sent[static_cast<size_t>(group.rank())];
    mine.bytes = group.traffic() - before;
    group.record(nullptr, trace::Lane::tp);
    for (const trace::Span& span : recorder.take()) {
      if (span.lane == trace::Lane::tp) ++mine.collectives[span.name];
    }
  });
  return sent;
}

void expect_predicted(const Setting& setting, const Cut& cut, bool training) {
  const Tokens tokens(3, 24, setting.config.vocab_size, 5);
  SCOPED_TRACE(::testing::Message()
               << setting.about << ", tp " << cut.ranks << ", sp " << cut.sequence_parallel
               << ", lora " << setting.lora.rank << ", training " << training);
  account::TensorPass pass;
  pass.batch = tokens.batch;
  pass.seq_len = tokens.seq_len;
  pass.dtype = setting.dtype;
  pass.ranks = cut.ranks;
  pass.sequence_parallel = cut.sequence_parallel;
  pass.recompute = setting.recompute;
  pass.numerics = setting.invariant ? spec::Numerics::invariant : spec::Numerics::fast;
  pass.lora = setting.lora;
  pass.training = training;
  pass.num_layers = setting.config.num_hidden_layers;
  const std::vector<Sent> sent = sent_in_a_pass(setting, cut, tokens, training);
  for (int rank = 0; rank < cut.ranks; ++rank) {
    const account::StepTraffic predicted = account::tensor_traffic(setting.config, pass, rank);
    const comm::Traffic& measured = sent[static_cast<size_t>(rank)].bytes;
    EXPECT_EQ(measured.all_reduce, predicted.all_reduce) << rank;
    EXPECT_EQ(measured.reduce_scatter, predicted.reduce_scatter) << rank;
    EXPECT_EQ(measured.all_gather, predicted.all_gather) << rank;
    EXPECT_EQ(measured.total(), predicted.total()) << rank;
  }
}

Setting setting_for(int ranks, spec::Architecture architecture) {
  const bool llama = architecture == spec::Architecture::llama;
  spec::ModelConfig config = llama ? model::testing::tiny_llama() : model::testing::tiny_config();
  config.num_attention_heads = ranks == 3 ? 6 : 8;
  config.hidden_size = 24;
  config.intermediate_size = 24;
  config.max_position_embeddings = 24;
  if (llama) {
    config.num_key_value_heads = ranks == 3 ? 3 : 2;
  } else {
    config.num_key_value_heads = config.num_attention_heads;
    config.head_dim = 24 / config.num_attention_heads;
  }
  return {llama ? "llama" : "gpt2", config, {}, core::DType::f32};
}

class TensorTrafficOf : public ::testing::TestWithParam<int> {};

TEST_P(TensorTrafficOf, IsPredictedToTheByte) {
  for (const auto family : {spec::Architecture::gpt2, spec::Architecture::llama}) {
    for (const bool sp : {false, true}) {
      for (const bool training : {false, true}) {
        for (const int64_t lora_rank : {0, 5}) {
          Setting setting = setting_for(GetParam(), family);
          setting.lora.rank = lora_rank;
          if (lora_rank > 0) setting.lora.targets = {"q_proj", "v_proj", "o_proj", "up_proj"};
          expect_predicted(setting, {GetParam(), sp}, training);
        }
      }
    }
  }
}

TEST_P(TensorTrafficOf, IsPredictedWhateverIsRecomputedInEveryFormat) {
  for (const bool sp : {false, true}) {
    Setting setting = setting_for(GetParam(), spec::Architecture::llama);
    setting.recompute = Recompute::selective;
    expect_predicted(setting, {GetParam(), sp}, true);
    setting.recompute = Recompute::full;
    setting.dtype = core::DType::bf16;
    expect_predicted(setting, {GetParam(), sp}, true);
    setting.invariant = true;
    expect_predicted(setting, {GetParam(), sp}, true);
    setting.invariant = false;
    setting.dtype = core::DType::f64;
    expect_predicted(setting, {GetParam(), sp}, false);
  }
}

TEST(TensorTraffic, OfTheHeadIsPredictedChunkByChunk) {
  for (const bool invariant : {false, true}) {
    Setting setting = setting_for(3, spec::Architecture::gpt2);
    setting.config.vocab_size = 3 * 1'000'001;  // 16 rows a chunk at most: less than a sequence
    setting.config.hidden_size = setting.config.num_attention_heads;
    setting.config.head_dim = 1;
    setting.config.num_hidden_layers = 1;
    setting.invariant = invariant;
    expect_predicted(setting, {3, true}, false);
  }
}

TEST_P(TensorTrafficOf, IsOneSumForwardAndOneBackwardForEachHalfOfABlock) {
  Setting setting = setting_for(GetParam(), spec::Architecture::gpt2);
  const Tokens tokens(1, 24, setting.config.vocab_size, 5);
  const auto counts = [&](int64_t layers, bool sp, bool training) {
    setting.config.num_hidden_layers = layers;
    return sent_in_a_pass(setting, {GetParam(), sp}, tokens, training)[0].collectives;
  };
  const auto of_a_block = [&](const char* collective, bool sp, bool training) {
    return counts(3, sp, training)[collective] - counts(2, sp, training)[collective];
  };
  EXPECT_EQ(of_a_block("all-reduce", false, false), 2);
  EXPECT_EQ(of_a_block("all-reduce", false, true), 4);
  EXPECT_EQ(of_a_block("all-gather", false, true), 0);
  EXPECT_EQ(of_a_block("all-reduce", true, true), 0);
  EXPECT_EQ(of_a_block("reduce-scatter", true, false), 2);
  EXPECT_EQ(of_a_block("all-gather", true, false), 2);
  EXPECT_EQ(of_a_block("reduce-scatter", true, true), 4);
  EXPECT_EQ(of_a_block("all-gather", true, true), 4 + 4);
}

TEST_P(TensorTrafficOf, OfABlockIsSixteenBytesAnElementOfTheStream) {
  Setting setting = setting_for(GetParam(), spec::Architecture::gpt2);
  setting.dtype = core::DType::bf16;
  const Tokens tokens(2, 24, setting.config.vocab_size, 5);
  const int64_t stream = tokens.batch * tokens.seq_len * setting.config.hidden_size;
  const int64_t t = GetParam();
  for (const bool sp : {false, true}) {
    const auto total = [&](int64_t layers) {
      setting.config.num_hidden_layers = layers;
      return sent_in_a_pass(setting, {GetParam(), sp}, tokens, true)[0].bytes.total();
    };
    EXPECT_EQ(total(3) - total(2), (sp ? 24 : 16) * stream * (t - 1) / t);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, TensorTrafficOf, ::testing::Values(2, 3, 4, 8));

}  // namespace
}  // namespace tessera::parallel::testing
